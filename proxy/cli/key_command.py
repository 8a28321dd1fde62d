"""`dragoman key new`: print a new key for a team and the digest that goes into the table. Stores neither."""

import hashlib
import secrets
import sys

PREFIX = "drg_"
"""By which secret scanners and people recognise a key."""

RANDOM_BYTES = 32


def new_key() -> str:
    """Return a key with 256 random bits, in characters that need no escaping in headers and shells."""
    return PREFIX + secrets.token_urlsafe(RANDOM_BYTES)


def digest_line(key: str) -> str:
    """Return what the table holds of a key."""
    return f"sha256:{hashlib.sha256(key.encode('ascii')).hexdigest()}"


def key_new() -> int:
    """Print a new key and its digest, a line each, and their explanation to standard error."""
    key = new_key()
    print("The key, shown this once, and its line for `teams.<team>.keys` in the table:", file=sys.stderr)
    print(key)
    print(digest_line(key))
    return 0
