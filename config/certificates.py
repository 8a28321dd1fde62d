"""The certificate files that a table names: read with the table, so that a change of them is a change of it.

Never a connection, and never a decision about who is trusted.
"""

import hashlib
import pathlib
import re
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from config.files import SourceFiles, UnreadableError
from config.problems import Path, Problem
from config.schema import GatewayConfig
from config.semantics import levels
from config.tree import Node, value_position

_BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


@dataclass(frozen=True, slots=True)
class Bundle:
    """Certificates as PEM, and the SHA-256 over them."""

    digest: str
    pem: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Certificates:
    """The authorities of each `ca_file` of a table, by its path there, and what is wrong with the others."""

    authorities: Mapping[Path, Bundle]
    problems: tuple[Problem, ...]


class UnusableError(Exception):
    """Certificates that cannot be used; the message says why."""


def read_certificates(config: GatewayConfig, root: Node, files: SourceFiles) -> Certificates:
    """Reads every `ca_file`, each file once; a relative path starts at the file it is written in."""
    authorities: dict[Path, Bundle] = {}
    problems: list[Problem] = []
    read: dict[pathlib.Path, Bundle | str] = {}
    for path, name in _places(config):
        at = value_position(root, path)
        file = pathlib.Path(at.file).parent / name
        if file not in read:
            read[file] = _read(file, files)
        found = read[file]
        if isinstance(found, Bundle):
            authorities[path] = found
        else:
            problems.append(Problem.at(at, path, found))
    return Certificates(authorities, tuple(problems))


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


def _read(file: pathlib.Path, files: SourceFiles) -> Bundle | str:
    try:
        return bundle(files.read_pem(file))
    except UnreadableError as error:
        return f"cannot read the file: {error}"
    except UnusableError as error:
        return str(error)


def _places(config: GatewayConfig) -> Iterator[tuple[Path, str]]:
    for path, level in levels(config):
        if level.ca_file:
            yield (*path, "ca_file"), level.ca_file
        if level.credentials is not None and level.credentials.oidc is not None and level.credentials.oidc.ca_file:
            yield (*path, "credentials", "oidc", "ca_file"), level.credentials.oidc.ca_file
