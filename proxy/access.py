"""Who is asking: the key presented and the team it belongs to.

Never holds a key in clear: the table has SHA-256 digests, and the presented key is hashed before it is compared.
"""

import hashlib
import hmac
from collections.abc import Mapping, Sequence

from proxy.errors import invalid_key
from proxy.snapshot import ANYONE, Snapshot, Team

MAX_KEY = 512
"""Characters of a key; longer ones are not hashed."""

NO_KEY = "0" * 64


def presented_key(headers: Mapping[str, str], order: Sequence[str]) -> str | None:
    """The key of the first header in `order` that is there; `authorization` may carry `Bearer KEY` or the bare key."""
    for name in order:
        value = headers.get(name)
        if value is None:
            continue
        if name == "authorization":
            scheme, _, rest = value.strip().partition(" ")
            value = rest.strip() if scheme.lower() == "bearer" else value.strip()
        if value:
            return value
    return None


def identify(snapshot: Snapshot, headers: Mapping[str, str], order: Sequence[str]) -> Team:
    """The team of a request. Raises GatewayError 401 when the table has teams and the key is none of theirs."""
    if not snapshot.keys:
        return ANYONE
    key = presented_key(headers, order)
    if key is None or len(key) > MAX_KEY or not key.isascii():
        raise invalid_key()
    digest = hashlib.sha256(key.encode("ascii")).hexdigest()
    team = snapshot.keys.get(digest)
    # An unknown digest is compared as well, so that both ways take the same path.
    known = digest if team is not None else NO_KEY
    if not hmac.compare_digest(known, digest) or team is None:
        raise invalid_key()
    return team
