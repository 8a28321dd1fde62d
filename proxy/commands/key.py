"""`dragoman key new`: a team's key, shown once, and the digest that goes into the table. Never stores either."""

import hashlib
import secrets
import sys

PREFIX = "drg_"
"""Lets secret scanners and people recognise a key."""

RANDOM_BYTES = 32


def new_key() -> str:
    """A key with 256 random bits in characters that every header and shell takes as they are."""
    return PREFIX + secrets.token_urlsafe(RANDOM_BYTES)


def digest_line(key: str) -> str:
    """What the table holds of a key."""
    return f"sha256:{hashlib.sha256(key.encode('ascii')).hexdigest()}"


def key_new() -> int:
    """Print a fresh key and its digest, a line each; the explanation goes to standard error."""
    key = new_key()
    print("The key, shown this once, and its line for `teams.<team>.keys` in the table:", file=sys.stderr)
    print(key)
    print(digest_line(key))
    return 0
