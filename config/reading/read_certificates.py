"""Read the certificate files that a configuration names. The files are part of the configuration: if one of them
changes, the gateway reloads the configuration."""

import hashlib
import pathlib
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from config.problem import Path, Problem
from config.reading.table_files import SourceFiles, UnreadableError, others_may_write
from config.reading.yaml_tree import Node, value_position

_CERT: Final[Path] = ("server", "tls", "cert")
_KEY: Final[Path] = ("server", "tls", "key")

_BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


@dataclass(frozen=True, slots=True)
class Bundle:
    """Certificates as PEM, and their SHA-256."""

    digest: str
    pem: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Pair:
    """The files of a certificate and its key, and the certificate's expiry in unix seconds."""

    cert: pathlib.Path
    key: pathlib.Path
    ends: float


@dataclass(frozen=True, slots=True)
class Certificates:
    """The authorities of each `ca_file`, by its path in the configuration, the listener's pair, and the problems of
    unusable files. Only OpenSSL decides whether key and certificate belong together."""

    authorities: Mapping[Path, Bundle]
    pair: Pair | None
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


class UnusableError(Exception):
    """Certificates that cannot be used. The message gives the reason."""


def read_certificates(
    ca_files: Iterable[tuple[Path, str]], tls: tuple[str, str] | None, root: Node, files: SourceFiles
) -> Certificates:
    """Read each `ca_file`, given by its path and value, and the listener's certificate and key. Each file is read once.
    A file name is relative to the file in which it is written."""
    reader = _CertificateReader(root, files)
    authorities = {path: found for path, name in ca_files if (found := reader.bundle(path, name))}
    pair = None if tls is None else reader.pair(*tls)
    return Certificates(authorities, pair, tuple(reader.problems), tuple(reader.warnings))


def bundle(text: str) -> Bundle:
    """Return the certificates in the text of a PEM file. Raises UnusableError if no certificate can be read."""
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
    """Return the expiry of the first of these certificates, in unix seconds. OpenSSL must have read them before.

    The standard library returns the expiry only for a peer's certificate. The expiry is found as in RFC 5280, 4.1: by
    the fields of TBSCertificate in their order, in DER.
    """
    der = ssl.PEM_cert_to_DER_cert(_BLOCK.findall(pem)[0])
    offset = _element(der, _element(der, 0)[1])[1]
    if der[offset] == _VERSION_TAG:
        offset = _element(der, offset)[2]
    for _ in ("serialNumber", "signature", "issuer"):
        offset = _element(der, offset)[2]
    not_before = _element(der, offset)[1]
    tag, start, end = _element(der, _element(der, not_before)[2])
    expiry = der[start:end].decode("ascii")
    if tag == _UTC_TIME_TAG:  # a year of two digits, from 1950 to 2049
        expiry = ("19" if expiry >= "50" else "20") + expiry
    return datetime.strptime(expiry, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


_VERSION_TAG: Final = 0xA0
_UTC_TIME_TAG: Final = 0x17


def _element(der: bytes, at: int) -> tuple[int, int, int]:
    """Return the tag of the DER element at an offset, and the offsets at which its content starts and ends."""
    length, start = der[at + 1], at + 2
    if length & 0x80:
        digits = length & 0x7F
        length, start = int.from_bytes(der[start : start + digits]), start + digits
    return der[at], start, start + length


@dataclass(slots=True, eq=False)
class _CertificateReader:
    """Reads each file once, relative to the file that names it, and collects the problems."""

    _root: Node
    _files: SourceFiles
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    _read: dict[pathlib.Path, Bundle | str] = field(default_factory=dict)

    def bundle(self, path: Path, name: str) -> Bundle | None:
        """Return the certificates in a file. If it has no usable certificate, record a problem and return `None`."""
        file = self._file(path, name)
        if file not in self._read:
            self._read[file] = self._certificates(file)
        found = self._read[file]
        if isinstance(found, Bundle):
            return found
        self._report(path, found)
        return None

    def pair(self, cert_name: str, key_name: str) -> Pair | None:
        """Return the listener's files if both can be read. The content of the key file is not stored."""
        found = self.bundle(_CERT, cert_name)
        key = self._file(_KEY, key_name)
        try:
            self._files.read_pem(key)
        except UnreadableError as error:
            self._report(_KEY, _unreadable(error))
            return None
        if others_may_write(key):
            at = value_position(self._root, _KEY)
            self.warnings.append(Problem.at(at, _KEY, "any user of this machine may change the file"))
        return None if found is None else Pair(self._file(_CERT, cert_name), key, end_of(found.pem))

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
