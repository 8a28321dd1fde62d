"""TLS of the public listener. Reloads replace its certificate while connections stay open."""

import os
import ssl
from asyncio import sslproto
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypedDict

from config.load_config import Loaded
from config.problem import Path as Place
from config.problem import Problem

HANDSHAKE_WAIT: Final = 10.0
"""The most seconds that a handshake may take, the same as for the head of a request."""

FAREWELL_WAIT: Final = 2.0
"""The most seconds that closing a connection may take."""

READ_AT_ONCE: Final = 32 * 1024
"""The size in bytes of the buffer in which a TLS connection decrypts: two records of the largest size."""

_NO_PAIR: Final = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"})
"""OpenSSL's reasons for a key that does not belong to the certificate. The last is for a key of another type (3.0)."""

_WEAK: Final = frozenset({"EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"})


class Secured(TypedDict, total=False):
    """asyncio's options for a TLS listener; empty for plain HTTP."""

    ssl: ssl.SSLContext
    ssl_handshake_timeout: float
    ssl_shutdown_timeout: float


def keep_small_buffers() -> None:
    """Give every TLS connection of this process, to clients and to vendors, a buffer of READ_AT_ONCE.

    asyncio's buffer has 256 KiB (3.11 to 3.14, without a setting), and is zeroed for each connection. That is eight
    times the memory of a plain connection.
    """
    sslproto.SSLProtocol.max_size = READ_AT_ONCE


class Presented:
    """The certificate of the listener. Each handshake gets the latest one. Without a `first` certificate the listener
    uses plain HTTP.

    OpenSSL cannot replace a certificate and its key in one step. So every configuration has its own context, and the
    listening context passes each handshake to the latest one.
    """

    def __init__(self, first: ssl.SSLContext | None) -> None:
        self._latest = first

    def exchange(self, latest: ssl.SSLContext | None) -> None:
        """Use this certificate for later handshakes. A reload cannot switch TLS on or off."""
        if self._latest is not None and latest is not None:
            self._latest = latest

    def secured(self) -> Secured:
        """Return the options for the listening socket."""
        if self._latest is None:
            return {}
        listening = _context()
        listening.sni_callback = self._use_latest
        return {
            "ssl": listening,
            "ssl_handshake_timeout": HANDSHAKE_WAIT,
            "ssl_shutdown_timeout": FAREWELL_WAIT,
        }

    def _use_latest(self, handshake: ssl.SSLObject, name: str | None, listening: ssl.SSLContext) -> None:
        if self._latest is not None:
            handshake.context = self._latest


def listener_context(loaded: Loaded) -> ssl.SSLContext | Problem | None:
    """Return a context with the certificate of the configuration, or the problem of that certificate; `None` if there
    is no certificate, or it was refused before."""
    pair = loaded.pair
    if pair is None:
        return None
    context = _context()
    contents = loaded.copies.contents
    try:
        with as_read(pair.cert, contents) as cert, as_read(pair.key, contents) as key:
            context.load_cert_chain(cert, key, _refuse_passphrase)
    except _EncryptedKeyError:
        return _problem(loaded, "key", "the key is encrypted, but the gateway cannot ask for its passphrase")
    except ssl.SSLError as error:
        return _problem(loaded, *_fault(error.reason or ""))
    except OSError as error:
        return _problem(loaded, "cert", f"cannot read the file or its key's: {error.strerror}")
    return context


@contextmanager
def as_read(path: Path, contents: Mapping[Path, bytes]) -> Iterator[str | Path]:
    """Yield the name of a file with the `contents` that were read from `path`, because OpenSSL takes only names, and
    the file may have changed since. If the system has no files in memory, or does not allow them, it is `path`
    itself."""
    memory = _memory(path.name)
    if memory is None:
        yield path
        return
    with open(memory, "wb") as file:
        file.write(contents[path])
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def _memory(name: str) -> int | None:
    if not hasattr(os, "memfd_create"):
        return None
    try:
        return os.memfd_create(name)
    except OSError:
        return None


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    # With renegotiation a client could request any number of handshakes on a connection (OpenSSL 1.1.1).
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


class _EncryptedKeyError(Exception):
    """The key is encrypted, so OpenSSL requires a passphrase. Without this error it would prompt for it at the
    terminal."""


def _refuse_passphrase() -> bytes:
    raise _EncryptedKeyError


def _fault(reason: str) -> tuple[str, str]:
    """Return the setting of the invalid file and a message, by OpenSSL's reason."""
    if reason in _NO_PAIR:
        return "key", "is not the key of the first certificate in cert"
    if reason in _WEAK:
        return "cert", f"the certificate is too weak for TLS today: {reason}"
    return "key", "the file holds no private key that can be read; it must be PEM"


def _problem(loaded: Loaded, key: str, message: str) -> Problem:
    path: Place = ("server", "tls", key)
    return Problem.at(loaded.locate(path), path, message)
