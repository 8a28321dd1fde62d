"""Keys by AWS's own chain, and calls signed with them (by `providers.dialects.platforms.aws_sigv4`).

Source: botocore 1.44.5. Its own refreshing is not used: every fetch walks the chain afresh, so that keys which were
replaced in a file or revoked are noticed.
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

LASTING: Final = 900.0
"""Seconds that keys without an expiry are taken to live: then files and environment are read again."""

GUARANTEED: Final = 600.0
"""Seconds that keys of botocore's chain live at least, where it does not say how long."""

_EXPIRED: Final = ("ExpiredToken", "UnrecognizedClient", "InvalidClientTokenId", "InvalidSignature")
"""Beginnings of the error types with which AWS answers 403 to keys that others could replace."""

_ERROR: Final = re.compile(r"[A-Z][A-Za-z]{2,63}")
"""A name of an error of AWS. Other text is not repeated: it is from whatever answered in place of AWS."""

_PREFIX: Final = "x-amz"


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """A set of keys that signs calls; `now` returns unix seconds."""

    signer: Signer
    now: Callable[[], float] = time.time

    def secrets(self) -> Sequence[SecretStr]:
        """See Token."""
        return self.signer.secrets

    def credential(self, sent: UpstreamRequest) -> Credential:
        """See Token."""
        static = sent.target.credential.static
        timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.now()))
        made = self.signer.headers(sent.method, sent.url, _signed(sent, static), sent.body, timestamp)
        return Credential(static={**static, **made})

    def refused(self, status: int, headers: Mapping[str, str]) -> bool:
        """See Token."""
        return status == 401 or (status == 403 and headers.get("x-amzn-errortype", "").startswith(_EXPIRED))


def _signed(sent: UpstreamRequest, static: Mapping[str, SecretStr]) -> dict[str, str]:
    """Return the headers of a call, besides the signature's own, that AWS wants signed."""
    own = {name: reveal(value) for name, value in static.items() if name.lower().startswith(_PREFIX)}
    sent_headers = {name: value for name, value in sent.headers.items() if name.lower().startswith(_PREFIX)}
    return {**sent_headers, **own, "content-type": sent.content_type}


class AwsFetch:
    """Fetches keys for a source, by blocking calls, with one session of botocore and its service models."""

    def __init__(self, source: AwsSource) -> None:
        self._source = source
        self._session: Session | None = None

    def __call__(self) -> Fetched:
        """Return fresh keys. Raises Unobtainable."""
        source = self._source
        if lack := missing_extra(source.kind):
            raise Unobtainable(lack)
        from botocore.exceptions import BotoCoreError, ClientError

        silence("botocore", "urllib3")
        try:
            found = self._found()
            keys = found.get_frozen_credentials()
        except ClientError as error:
            code = error.response.get("Error", {}).get("Code")
            code = code if isinstance(code, str) and _ERROR.fullmatch(code) else "an error"
            raise Unobtainable(f"{error.operation_name} was answered with {code}") from None
        except (BotoCoreError, *LIBRARY_ERRORS) as error:
            raise Unobtainable(type(error).__name__) from None
        token = SecretStr(keys.token) if keys.token else None
        signer = Signer(keys.access_key, SecretStr(keys.secret_key), token, source.service, source.region)
        return Fetched(AwsKeys(signer), _lives(found))

    def _found(self) -> "Credentials":
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
    """Return the cache of AWS's service models: the one that assumes roles takes 8 MB, however many roles there are."""
    from botocore.loaders import Loader

    return Loader()


def _lives(found: "Credentials") -> float:
    """Return the seconds left; botocore keeps the expiry of temporary keys in a private field."""
    if not hasattr(found, "refresh_needed"):
        return LASTING
    end = getattr(found, "_expiry_time", None)
    return (end - datetime.now(UTC)).total_seconds() if isinstance(end, datetime) else GUARANTEED
