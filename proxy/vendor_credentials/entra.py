"""Access tokens from Microsoft Entra ID. A service principal in the configuration needs no library: it uses OAuth 2.0
client credentials (`oidc`).

Source: azure-identity 1.27.0, `DefaultAzureCredential`.
"""

import re
import time
from typing import Final

from pydantic import SecretStr

from providers.vendor_credential import EntraSource
from proxy.optional_libraries import LIBRARY_ERRORS, missing_extra, silence
from proxy.vendor_credentials.token_cache import Bearer, Fetched, Unobtainable

_ERROR_CODE: Final = re.compile(r"\bAADSTS[0-9]{3,8}\b")


def fetch(source: EntraSource) -> Fetched:
    """Return a token for a source, by blocking calls. Raises Unobtainable."""
    if missing := missing_extra(source.kind):
        raise Unobtainable(missing)
    from azure.core.exceptions import AzureError
    from azure.identity import DefaultAzureCredential

    silence("azure", "msal", "urllib3")
    chosen = {} if source.client_id is None else dict.fromkeys(_CLIENT_ID_OPTIONS, source.client_id)
    limits = {"connection_timeout": 3, "read_timeout": 5, "retry_total": 1}
    try:
        with DefaultAzureCredential(**chosen, **limits) as chain:
            given = chain.get_token(source.scope)
    except (AzureError, *LIBRARY_ERRORS) as error:
        codes = sorted(set(_ERROR_CODE.findall(str(error))))
        raise Unobtainable(" ".join([type(error).__name__, *codes])) from None
    return Fetched(Bearer(SecretStr(given.token)), given.expires_on - time.time())


_CLIENT_ID_OPTIONS: Final = ("managed_identity_client_id", "workload_identity_client_id")
