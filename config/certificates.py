"""The certificate files that a table names: read with the table, so that a change of them is a change of it.

Never a connection, and never a decision about who is trusted.
"""

import hashlib
import pathlib
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from config.files import SourceFiles, UnreadableError, others_may_write
from config.problems import Path, Problem
from config.schema import GatewayConfig
from config.semantics import levels
from config.server import Tls
from config.tree import Node, value_position

_CERT: Final[Path] = ("server", "tls", "cert")
_KEY: Final[Path] = ("server", "tls", "key")

_BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


@dataclass(frozen=True, slots=True)
class Bundle:
    """Certificates as PEM, and the SHA-256 over them."""

    digest: str
    pem: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate and its key, and when the certificate ends, in unix seconds."""

    cert: pathlib.Path
    key: pathlib.Path
    ends: float


@dataclass(frozen=True, slots=True)
class Certificates:
    """The authorities of each `ca_file` of a table, by its path there, the listener's pair, and what is wrong with the
    others. Whether the pair is one is for OpenSSL to say."""

    authorities: Mapping[Path, Bundle]
    pair: Pair | None
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


class UnusableError(Exception):
    """Certificates that cannot be used; the message says why."""


def read_certificates(config: GatewayConfig, root: Node, files: SourceFiles) -> Certificates:
    """Reads every `ca_file` and the listener's certificate, each file once; a relative path starts at the file it is
    written in."""
    reader = _Reader(root, files)
    authorities = {path: found for path, name in _places(config) if (found := reader.bundle(path, name))}
    pair = None if config.server.tls is None else reader.pair(config.server.tls)
    return Certificates(authorities, pair, tuple(reader.problems), tuple(reader.warnings))


def bundle(text: str) -> Bundle:
    """The certificates in the text of a PEM file; raises `UnusableError` when there are none that can be read."""
    blocks = _BLOCK.findall(text)
    if not blocks:
        raise UnusableError("the file holds no certificate; it must be PEM, with -----BEGIN CERTIFICATE-----")
    pem = "\n".join(blocks)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except ssl.SSLError:
        raise UnusableError("the file holds a certificate that cannot be read") from None
    return Bundle(hashlib.sha256(pem.encode()).hexdigest(), pem)


def end_of(pem: str) -> float:
    """When the first of these certificates ends, in unix seconds; they are ones that OpenSSL has read.

    The standard library tells it only of a peer's certificate. The way to it: RFC 5280, 4.1, the fields of
    TBSCertificate in their order, in DER.
    """
    der = ssl.PEM_cert_to_DER_cert(_BLOCK.findall(pem)[0])
    inside = _element(der, _element(der, 0)[1])[1]
    if der[inside] == _VERSION:
        inside = _element(der, inside)[2]
    for _ in ("serialNumber", "signature", "issuer"):
        inside = _element(der, inside)[2]
    not_before = _element(der, inside)[1]
    tag, start, end = _element(der, _element(der, not_before)[2])
    written = der[start:end].decode("ascii")
    if tag == _UTC_TIME:  # two digits for the years 1950 to 2049
        written = ("19" if written >= "50" else "20") + written
    return datetime.strptime(written, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


_VERSION: Final = 0xA0
_UTC_TIME: Final = 0x17


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """The tag of the element there, and where its content starts and ends."""
    length, start = der[at + 1], at + 2
    if length & 0x80:
        digits = length & 0x7F
        length, start = int.from_bytes(der[start : start + digits]), start + digits
    return der[at], start, start + length


class _Reader:
    """Reads files beside the places that name them, and keeps what is wrong."""

    def __init__(self, root: Node, files: SourceFiles) -> None:
        self._root = root
        self._files = files
        self._read: dict[pathlib.Path, Bundle | str] = {}
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def bundle(self, path: Path, name: str) -> Bundle | None:
        """The certificates in a file; None when there are none."""
        file = self._file(path, name)
        if file not in self._read:
            self._read[file] = self._certificates(file)
        found = self._read[file]
        if isinstance(found, Bundle):
            return found
        self._report(path, found)
        return None

    def pair(self, tls: Tls) -> Pair | None:
        """The listener's files, when both could be read. What the key's file holds is not kept."""
        found = self.bundle(_CERT, tls.cert)
        key = self._file(_KEY, tls.key)
        try:
            self._files.read_pem(key)
        except UnreadableError as error:
            self._report(_KEY, _unreadable(error))
            return None
        if others_may_write(key):
            at = value_position(self._root, _KEY)
            self.warnings.append(Problem.at(at, _KEY, "any user of this machine may change the file"))
        return None if found is None else Pair(self._file(_CERT, tls.cert), key, end_of(found.pem))

    def _certificates(self, file: pathlib.Path) -> Bundle | str:
        try:
            return bundle(self._files.read_pem(file))
        except UnreadableError as error:
            return _unreadable(error)
        except UnusableError as error:
            return str(error)

    def _file(self, path: Path, name: str) -> pathlib.Path:
        return pathlib.Path(value_position(self._root, path).file).parent / name

    def _report(self, path: Path, message: str) -> None:
        self.problems.append(Problem.at(value_position(self._root, path), path, message))


def _unreadable(error: UnreadableError) -> str:
    return f"cannot read the file: {error}"


def _places(config: GatewayConfig) -> Iterator[tuple[Path, str]]:
    for path, level in levels(config):
        if level.ca_file:
            yield (*path, "ca_file"), level.ca_file
        if level.credentials is not None and level.credentials.oidc is not None and level.credentials.oidc.ca_file:
            yield (*path, "credentials", "oidc", "ca_file"), level.credentials.oidc.ca_file
