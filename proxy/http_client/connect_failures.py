"""Translates exceptions of failed connections into failures with the gateway's own messages. Pure.

The message is for clients. It names no host, because a host name could reveal machines of the operator's network.
`Failure.peer` names the host for the operator.
"""

import errno
import socket
import ssl
from collections.abc import Mapping
from typing import Final

from yarl import URL

from providers.failure import Cause, Failure, FailureKind


class WithheldAddress(OSError):
    """The error for a host name that resolves only to addresses that must not be called."""


_WORDS: Final[Mapping[Cause, tuple[FailureKind, str]]] = {
    Cause.DNS: (FailureKind.CONNECT, "The upstream's host name could not be resolved."),
    Cause.WITHHELD: (FailureKind.CONNECT, "The upstream's host name leads only to addresses that may not be called."),
    Cause.REFUSED: (FailureKind.CONNECT, "The upstream refused the connection."),
    Cause.UNREACHABLE: (FailureKind.CONNECT, "There is no way to the upstream's network or host."),
    Cause.TIMEOUT: (FailureKind.TIMEOUT, "Connecting to the upstream took too long."),
    Cause.CLOSED: (FailureKind.CONNECT, "The upstream closed the connection before it was ready."),
    Cause.OTHER: (FailureKind.CONNECT, "The upstream could not be reached."),
    Cause.CERTIFICATE_EXPIRED: (FailureKind.TLS, "The upstream's certificate has expired."),
    Cause.CERTIFICATE_EARLY: (FailureKind.TLS, "The upstream's certificate is not valid yet."),
    Cause.CERTIFICATE_HOST: (FailureKind.TLS, "The upstream's certificate is for another host."),
    Cause.CERTIFICATE_AUTHORITY: (FailureKind.TLS, "The upstream's certificate is from an unknown authority."),
    Cause.CERTIFICATE: (FailureKind.TLS, "The upstream's certificate could not be accepted."),
    Cause.HANDSHAKE: (FailureKind.TLS, "The TLS handshake with the upstream failed."),
}

_BY_ERRNO: Final[Mapping[int | None, Cause]] = {
    errno.ECONNREFUSED: Cause.REFUSED,
    errno.EHOSTUNREACH: Cause.UNREACHABLE,
    errno.ENETUNREACH: Cause.UNREACHABLE,
    errno.EHOSTDOWN: Cause.UNREACHABLE,
    errno.ENETDOWN: Cause.UNREACHABLE,
    # This is the system's own timeout, which is usually longer than the deployment's.
    errno.ETIMEDOUT: Cause.TIMEOUT,
    errno.ECONNRESET: Cause.CLOSED,
    errno.EPIPE: Cause.CLOSED,
}

_BY_VERIFY_CODE: Final[Mapping[int, Cause]] = {
    9: Cause.CERTIFICATE_EARLY,
    10: Cause.CERTIFICATE_EXPIRED,
    62: Cause.CERTIFICATE_HOST,
    64: Cause.CERTIFICATE_HOST,
    **dict.fromkeys((2, 7, 18, 19, 20, 21, 27), Cause.CERTIFICATE_AUTHORITY),
}
"""OpenSSL's X509_V_ERR_* by cause: not yet valid; expired; wrong host name; wrong IP address; and for an unknown
authority: no issuer, a signature of another issuer, self-signed, self-signed in the chain, no local issuer, no issuer
of the leaf, untrusted."""


def connect_failure(error: OSError, url: str) -> Failure:
    """Return the failure of a call to `url` that was not sent. TLS exceptions and TimeoutError are OSErrors too."""
    cause = _cause(error)
    kind, message = _WORDS[cause]
    unsent = kind is FailureKind.TIMEOUT  # the other kinds imply that nothing was sent
    return Failure(kind, message, unsent=unsent, cause=cause, peer=peer_of(url), ours=True)


def peer_of(url: str) -> str:
    """Return `host:port` of a URL, without its other parts."""
    parsed = URL(url, encoded=True)
    return f"{parsed.host_subcomponent}:{parsed.port}"


_BY_CLASS: Final[tuple[tuple[type[OSError], Cause], ...]] = (
    (ssl.SSLError, Cause.HANDSHAKE),
    (WithheldAddress, Cause.WITHHELD),
    (socket.gaierror, Cause.DNS),
    (TimeoutError, Cause.TIMEOUT),
    (ConnectionResetError, Cause.CLOSED),  # asyncio's own exception has no errno
)


def _cause(error: OSError) -> Cause:
    if isinstance(error, ssl.SSLCertVerificationError):
        return _BY_VERIFY_CODE.get(error.verify_code, Cause.CERTIFICATE)
    known = (cause for kind, cause in _BY_CLASS if isinstance(error, kind))
    return next(known, _BY_ERRNO.get(error.errno, Cause.OTHER))
