"""Secrets that can be recognised in any output, and the search for them.

Each is made of words, so that no code that detects keys by their form can hide it by accident.
"""

import base64
from collections.abc import Iterator, Mapping
from urllib.parse import quote

KINDS = (
    "vendor-key",
    "file-key",
    "header-value",
    "client-secret",
    "redis-password",
    "team-key",
    "wrong-key",
    "admin-token",
    "wrong-admin-token",
    "client-header",
)
"""The kinds of secrets in a test's configuration and its requests."""


def canary(kind: str) -> str:
    """Return the secret of one kind."""
    return f"canary-{kind}-plum-quartz-violet"


CANARIES: Mapping[str, str] = {kind: canary(kind) for kind in KINDS}


def forms(secret: str) -> Iterator[bytes]:
    """Yield the forms in which a secret may have been written: unchanged, its first half, percent-encoded,
    hexadecimal, in base64."""
    plain = secret.encode()
    yield plain
    yield plain[: len(plain) // 2 + 4]
    yield quote(secret, safe="").replace("-", "%2D").encode()
    yield plain.hex().encode()
    for shift in range(3):
        # Only complete groups of three bytes look the same in any context.
        aligned = plain[shift:]
        yield base64.b64encode(aligned[: len(aligned) // 3 * 3])


def leaks(places: Mapping[str, str | bytes], canaries: Mapping[str, str] = CANARIES) -> list[str]:
    """Return each secret that was found and where, as `place: secret ...context`."""
    found = []
    for place, content in places.items():
        data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
        for kind, secret in canaries.items():
            at = next((position for form in forms(secret) if (position := data.find(form)) >= 0), None)
            if at is not None:
                found.append(f"{place}: {kind} {data[max(0, at - 120) : at + 60]!r}")
    return found
