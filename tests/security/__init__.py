"""Each threat of `SECURITY.md`, tried as an attacker would."""
