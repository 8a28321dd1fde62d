"""Routing tables for tests: text in, snapshot out. Never a file."""

import hashlib

from config.loader import Loaded, load_text
from proxy.snapshot import Snapshot, build_snapshot


def digest_of(key: str) -> str:
    """What the table holds of a key."""
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def loaded(text: str) -> Loaded:
    """A table's text, loaded; `version: 1` is added."""
    return load_text(f"version: 1\n{text}", "table.yaml", {"KEY": "sk-of-the-operator"})


def snapshot(text: str) -> Snapshot:
    """A table's text, compiled."""
    return build_snapshot(loaded(text))
