"""The TLS of the public listener: its certificate of the moment, exchanged while connections stand.

Never what is said inside it, and never the vendors' side; `proxy.upstream` has that.
"""

import os
import ssl
from asyncio import sslproto
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypedDict

from config.loader import Loaded
from config.problems import Path as Place
from config.problems import Problem

HANDSHAKE_WAIT: Final = 10.0
"""Seconds a client has to shake hands, as it has for the head of a request."""

FAREWELL_WAIT: Final = 2.0
"""Seconds a client has to take the end of its connection."""

READ_AT_ONCE: Final = 32 * 1024
"""Bytes that a TLS connection decrypts at once, and keeps a buffer for: two of TLS's largest records."""

_NO_PAIR: Final = frozenset({"KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED"})
"""What OpenSSL says of a key that is another's; the last, of one of another kind (3.0)."""

_WEAK: Final = frozenset({"EE_KEY_TOO_SMALL", "CA_KEY_TOO_SMALL", "CA_MD_TOO_WEAK"})


class Secured(TypedDict, total=False):
    """What asyncio wants to know of TLS to listen; nothing for plain HTTP."""

    ssl: ssl.SSLContext
    ssl_handshake_timeout: float
    ssl_shutdown_timeout: float


def keep_small_buffers() -> None:
    """Give every TLS connection of this process, to clients and to vendors, a buffer of READ_AT_ONCE.

    asyncio's own is 256 KiB (3.11 to 3.14, without a setting), written full of zeros for each connection: eight times
    all that a plain one takes.
    """
    sslproto.SSLProtocol.max_size = READ_AT_ONCE


class Presented:
    """The certificate that handshakes are shown: each that begins gets the latest. Without a first there never is any,
    and the listener is plain.

    OpenSSL cannot exchange a certificate and its key in one step, so every table brings a context of its own, and the
    one that listens turns each handshake over to it.
    """

    def __init__(self, first: ssl.SSLContext | None) -> None:
        self._latest = first
        self._listening = _context()
        self._listening.sni_callback = self._turn_over

    def exchange(self, latest: ssl.SSLContext | None) -> None:
        """Show this one from now on. Whether TLS is spoken at all is settled at the start."""
        if self._latest is not None and latest is not None:
            self._latest = latest

    def secured(self) -> Secured:
        """How to listen."""
        if self._latest is None:
            return {}
        return {
            "ssl": self._listening,
            "ssl_handshake_timeout": HANDSHAKE_WAIT,
            "ssl_shutdown_timeout": FAREWELL_WAIT,
        }

    def _turn_over(self, handshake: ssl.SSLObject, name: str | None, listening: ssl.SSLContext) -> None:
        if self._latest is not None:
            handshake.context = self._latest


def listener_context(loaded: Loaded) -> ssl.SSLContext | Problem | None:
    """A context with the table's certificate; None where it has none, or one that has been refused already."""
    pair = loaded.pair
    if pair is None:
        return None
    context = _context()
    contents = loaded.copies.contents
    try:
        with as_read(pair.cert, contents) as cert, as_read(pair.key, contents) as key:
            context.load_cert_chain(cert, key, _refuse_passphrase)
    except _EncryptedKeyError:
        return _problem(loaded, "key", "the key is encrypted, and nobody is there to type its passphrase")
    except ssl.SSLError as error:
        return _problem(loaded, *_fault(error.reason or ""))
    except OSError as error:
        return _problem(loaded, "cert", f"cannot read the file or its key's: {error.strerror}")
    return context


@contextmanager
def as_read(path: Path, contents: Mapping[Path, bytes]) -> Iterator[str | Path]:
    """A name under which OpenSSL, which takes names only, finds what the load read there: the file may have changed
    since, or be broken by the time another process loads the same table. Where the system has no files in memory, or
    allows none, it is the file itself."""
    memory = _memory(path.name)
    if memory is None:
        yield path
        return
    with open(memory, "wb") as file:
        file.write(contents[path])
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


def _memory(name: str) -> int | None:
    """The descriptor of a new file in memory."""
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
    # A client could ask for one handshake after the other on a connection (OpenSSL 1.1.1).
    context.options |= ssl.OP_NO_RENEGOTIATION
    return context


class _EncryptedKeyError(Exception):
    """A passphrase was asked for, which OpenSSL would otherwise do at the terminal."""


def _refuse_passphrase() -> bytes:
    raise _EncryptedKeyError


def _fault(reason: str) -> tuple[str, str]:
    """Which of the two files is wrong, and how; OpenSSL's reason is one of its own words."""
    if reason in _NO_PAIR:
        return "key", "is not the key of the first certificate in cert"
    if reason in _WEAK:
        return "cert", f"the certificate is too weak for TLS today: {reason}"
    return "key", "the file holds no private key that can be read; it must be PEM"


def _problem(loaded: Loaded, key: str, message: str) -> Problem:
    path: Place = ("server", "tls", key)
    return Problem.at(loaded.locate(path), path, message)
