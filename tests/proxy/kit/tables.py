"""Routing tables as text, loaded or compiled to a snapshot."""

import hashlib

from config.load_config import Loaded, load_text
from proxy.routing.snapshot import Snapshot, build_snapshot


def digest_of(key: str) -> str:
    """What the table holds of a key."""
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def loaded(text: str) -> Loaded:
    return load_text(f"version: 1\n{text}", "table.yaml", {"KEY": "sk-of-the-operator"})


def snapshot(text: str) -> Snapshot:
    return build_snapshot(loaded(text))
