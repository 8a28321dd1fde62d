"""Signs requests to AWS, version 4. Not for S3, whose paths are encoded once only.

Sources: "Signature Version 4 signing process" of the AWS General Reference; botocore 1.44.5, `auth.SigV4Auth`, with
which the tests compare byte for byte.
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
    """One set of keys, for one service in one region. The signing key of a day is derived once."""

    __slots__ = ("_access_key", "_derived", "_region", "_secret_key", "_service", "_session_token")

    def __init__(
        self, access_key: str, secret_key: SecretStr, session_token: SecretStr | None, service: str, region: str
    ) -> None:
        self._access_key = access_key
        self._secret_key = secret_key
        self._session_token = session_token
        self._service = service
        self._region = region
        self._derived = ("", b"")

    @property
    def secrets(self) -> Sequence[SecretStr]:
        """The secret key and, of temporary ones, the session token."""
        return (self._secret_key,) if self._session_token is None else (self._secret_key, self._session_token)

    def headers(
        self, method: str, url: str, signed: Mapping[str, str], body: bytes, moment: str
    ) -> dict[str, SecretStr]:
        """Return the headers that sign a request: `Authorization`, `X-Amz-Date` and, for temporary keys,
        `X-Amz-Security-Token`.

        `url` is the URL as sent, escapes included. `signed` are the headers, besides these and `Host`, that must not
        change on the way; all that begin with `x-amz-` must be among them. `moment` is the current time, as
        `20261121T145339Z`; AWS accepts it within five minutes.
        """
        lowered = {name.lower(): value for name, value in signed.items()}
        lowered |= {"host": host_of(url), "x-amz-date": moment}
        made = {"X-Amz-Date": SecretStr(moment)}
        if self._session_token is not None:
            lowered["x-amz-security-token"] = reveal(self._session_token)
            made["X-Amz-Security-Token"] = self._session_token
        names = ";".join(sorted(lowered))
        scope = f"{moment[:8]}/{self._region}/{self._service}/aws4_request"
        text = f"{ALGORITHM}\n{moment}\n{scope}\n{_hash(_canonical(method, url, lowered, names, body).encode())}"
        signature = hmac.digest(self._key(moment[:8]), text.encode(), "sha256").hex()
        made["Authorization"] = SecretStr(
            f"{ALGORITHM} Credential={self._access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        return made

    def _key(self, day: str) -> bytes:
        if self._derived[0] != day:
            key = f"AWS4{reveal(self._secret_key)}".encode()
            for part in (day, self._region, self._service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._derived = (day, key)
        return self._derived[1]


def host_of(url: str) -> str:
    """Return the `Host` header of a request to this address, as HTTP/1.1 clients write it: the port only where it is
    not the scheme's default."""
    parts = urlsplit(url)
    return parts.netloc.removesuffix(_DEFAULT_PORTS.get(parts.scheme, ""))


def _canonical(method: str, url: str, lowered: Mapping[str, str], names: str, body: bytes) -> str:
    parts = urlsplit(url)
    headers = "".join(f"{name}:{' '.join(lowered[name].split())}\n" for name in sorted(lowered))
    return f"{method}\n{_path(parts.path)}\n{_query(parts.query)}\n{headers}\n{names}\n{_hash(body)}"


def _path(path: str) -> str:
    """Return the path without empty and dot segments, and its escapes escaped once more."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            del kept[-1:]
        elif segment not in ("", "."):
            kept.append(segment)
    end = "/" if kept and path.endswith("/") else ""
    return quote(f"/{'/'.join(kept)}{end}", safe="/~")


def _query(query: str) -> str:
    pairs = sorted(pair.partition("=") for pair in query.split("&")) if query else []
    return "&".join(f"{name}={value}" for name, _, value in pairs)


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
