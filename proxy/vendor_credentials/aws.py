"""Keys from AWS's own credential chain, and calls signed with them (by `providers.dialects.platforms.aws_sigv4`).

Source: botocore 1.44.5. botocore's own refresh is not used. Every fetch goes through the whole chain again, so that
keys are noticed that were replaced in a file or revoked.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from typing import TYPE_CHECKING, Final

from pydantic import SecretStr

from providers.dialect import UpstreamRequest
from providers.dialects.platforms.aws_sigv4 import Signer
from providers.vendor_credential import AwsSource, Credential, reveal
from proxy.optional_libraries import LIBRARY_ERRORS, missing_extra, silence
from proxy.vendor_credentials.token_cache import Fetched, Unobtainable

if TYPE_CHECKING:
    from botocore.credentials import Credentials
    from botocore.loaders import Loader
    from botocore.session import Session

DEFAULT_LIFETIME: Final = 900.0
"""Seconds for which keys without an expiry are used. After that, the files and the environment variables are read
again."""

MIN_LIFETIME: Final = 600.0
"""The minimum lifetime in seconds of temporary keys from botocore's chain, if botocore does not report their expiry."""

_EXPIRED_ERRORS: Final = ("ExpiredToken", "UnrecognizedClient", "InvalidClientTokenId", "InvalidSignature")
"""Prefixes of the error types of AWS's 403 responses that a newer set of keys could fix."""

_ERROR_NAME: Final = re.compile(r"[A-Z][A-Za-z]{2,63}")
"""The name of an AWS error. Any other text is not repeated in messages, because it may come from a server other than
AWS."""

_PREFIX: Final = "x-amz"


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """A set of keys that signs calls; `now` returns unix seconds."""

    signer: Signer
    now: Callable[[], float] = time.time

    def secrets(self) -> Sequence[SecretStr]:
        return self.signer.secrets

    def credential(self, sent: UpstreamRequest) -> Credential:
        static = sent.target.credential.static
        timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.now()))
        signature_headers = self.signer.headers(sent.method, sent.url, _signed(sent, static), sent.body, timestamp)
        return Credential(static={**static, **signature_headers})

    def refused(self, status: int, headers: Mapping[str, str]) -> bool:
        return status == 401 or (status == 403 and headers.get("x-amzn-errortype", "").startswith(_EXPIRED_ERRORS))


def _signed(sent: UpstreamRequest, static: Mapping[str, SecretStr]) -> dict[str, str]:
    """Return the headers that AWS requires to be signed, except the signature's own headers."""
    own = {name: reveal(value) for name, value in static.items() if name.lower().startswith(_PREFIX)}
    sent_headers = {name: value for name, value in sent.headers.items() if name.lower().startswith(_PREFIX)}
    return {**sent_headers, **own, "content-type": sent.content_type}


class AwsFetch:
    """Fetches keys for a source by blocking calls, with one botocore session and its service models."""

    def __init__(self, source: AwsSource) -> None:
        self._source = source
        self._session: Session | None = None

    def __call__(self) -> Fetched:
        """Return fresh keys. Raises Unobtainable."""
        source = self._source
        if missing := missing_extra(source.kind):
            raise Unobtainable(missing)
        from botocore.exceptions import BotoCoreError, ClientError

        silence("botocore", "urllib3")
        try:
            found = self._load_credentials()
            keys = found.get_frozen_credentials()
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code")
            code = code if isinstance(code, str) and _ERROR_NAME.fullmatch(code) else "an error"
            raise Unobtainable(f"{error.operation_name} failed with {code}") from None
        except (BotoCoreError, *LIBRARY_ERRORS) as error:
            raise Unobtainable(type(error).__name__) from None
        token = SecretStr(keys.token) if keys.token else None
        signer = Signer(keys.access_key, SecretStr(keys.secret_key), token, source.service, source.region)
        return Fetched(AwsKeys(signer), _lifetime(found))

    def _load_credentials(self) -> "Credentials":
        from botocore.credentials import AssumeRoleCredentialFetcher, DeferredRefreshableCredentials

        if self._session is None:
            self._session = _session(self._source)
        found = self._session.get_component("credential_provider").load_credentials()
        if found is None:
            raise Unobtainable("nothing found in environment, profiles, web identity, container or instance")
        if self._source.role_arn is None:
            return found
        client = partial(self._session.create_client, region_name=self._source.region)
        named = {"RoleSessionName": "dragoman"}
        fetcher = AssumeRoleCredentialFetcher(client, found, self._source.role_arn, extra_args=named)
        return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


def _session(source: AwsSource) -> "Session":
    from botocore.config import Config
    from botocore.session import Session

    session = Session(profile=source.profile)
    session.register_component("data_loader", _models())
    session.set_config_variable("region", source.region)
    session.set_default_client_config(Config(connect_timeout=3, read_timeout=5, retries={"total_max_attempts": 2}))
    return session


@cache
def _models() -> "Loader":
    """Return the shared cache of AWS's service models. The model for assuming roles takes 8 MB."""
    from botocore.loaders import Loader

    return Loader()


def _lifetime(found: "Credentials") -> float:
    """Return the remaining lifetime in seconds. botocore stores the expiry of temporary keys in a private field."""
    if not hasattr(found, "refresh_needed"):
        return DEFAULT_LIFETIME
    end = getattr(found, "_expiry_time", None)
    return (end - datetime.now(UTC)).total_seconds() if isinstance(end, datetime) else MIN_LIFETIME
