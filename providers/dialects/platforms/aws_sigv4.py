"""Signs requests to AWS by Signature Version 4. It does not work for S3, which encodes paths only once.

Sources: "Signature Version 4 signing process" of the AWS General Reference; botocore 1.44.5, `auth.SigV4Auth`, whose
signatures the tests compare byte for byte.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from urllib.parse import quote, urlsplit

from pydantic import SecretStr

from providers.vendor_credential import reveal

ALGORITHM = "AWS4-HMAC-SHA256"
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


class Signer:
    """A signer with one set of keys, for one service in one region. It derives the signing key once per day."""

    __slots__ = ("_access_key", "_key_of_day", "_region", "_secret_key", "_service", "_session_token")

    def __init__(
        self, access_key: str, secret_key: SecretStr, session_token: SecretStr | None, service: str, region: str
    ) -> None:
        self._access_key = access_key
        self._secret_key = secret_key
        self._session_token = session_token
        self._service = service
        self._region = region
        self._key_of_day = ("", b"")

    @property
    def secrets(self) -> Sequence[SecretStr]:
        """The secret key and, if the keys are temporary, the session token."""
        return (self._secret_key,) if self._session_token is None else (self._secret_key, self._session_token)

    def headers(
        self, method: str, url: str, signed: Mapping[str, str], body: bytes, moment: str
    ) -> dict[str, SecretStr]:
        """Return the headers that sign a request: `Authorization`, `X-Amz-Date` and, for temporary keys,
        `X-Amz-Security-Token`.

        `url` is the URL as sent, including its escapes. `signed` are the other headers that must not change in transit,
        without `Host`; every header that begins with `x-amz-` must be among them. `moment` is the current time, such as
        `20261121T145339Z`; AWS accepts a difference of five minutes.
        """
        lowered = {name.lower(): value for name, value in signed.items()}
        lowered |= {"host": host_of(url), "x-amz-date": moment}
        signing = {"X-Amz-Date": SecretStr(moment)}
        if self._session_token is not None:
            lowered["x-amz-security-token"] = reveal(self._session_token)
            signing["X-Amz-Security-Token"] = self._session_token
        names = ";".join(sorted(lowered))
        scope = f"{moment[:8]}/{self._region}/{self._service}/aws4_request"
        text = f"{ALGORITHM}\n{moment}\n{scope}\n{_hash(_canonical(method, url, lowered, names, body).encode())}"
        signature = hmac.digest(self._signing_key(moment[:8]), text.encode(), "sha256").hex()
        signing["Authorization"] = SecretStr(
            f"{ALGORITHM} Credential={self._access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        return signing

    def _signing_key(self, day: str) -> bytes:
        if self._key_of_day[0] != day:
            key = f"AWS4{reveal(self._secret_key)}".encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key_of_day = (day, key)
        return self._key_of_day[1]


def host_of(url: str) -> str:
    """Return the `Host` header of a request to this URL, as HTTP/1.1 clients write it: with the port only if that is
    not the scheme's default."""
    parts = urlsplit(url)
    return parts.netloc.removesuffix(_DEFAULT_PORTS.get(parts.scheme, ""))


def _canonical(method: str, url: str, lowered: Mapping[str, str], names: str, body: bytes) -> str:
    parts = urlsplit(url)
    headers = "".join(f"{name}:{' '.join(lowered[name].split())}\n" for name in sorted(lowered))
    return f"{method}\n{_path(parts.path)}\n{_query(parts.query)}\n{headers}\n{names}\n{_hash(body)}"


def _path(path: str) -> str:
    """Return the path without empty segments and dot segments, and with its escapes escaped a second time."""
    segments: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    end = "/" if segments and path.endswith("/") else ""
    return quote(f"/{'/'.join(segments)}{end}", safe="/~")


def _query(query: str) -> str:
    pairs = sorted(pair.partition("=") for pair in query.split("&")) if query else []
    return "&".join(f"{name}={value}" for name, _, value in pairs)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
