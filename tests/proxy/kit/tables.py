"""Configurations as text, loaded or compiled to a snapshot."""

import hashlib
from datetime import date

from config.load_config import Loaded, load_text
from providers.list_prices.list_prices import ListPrices
from proxy.routing.snapshot import Snapshot, build_snapshot


def digest_of(key: str) -> str:
    """Return the digest of a key as the configuration holds it."""
    return "sha256:" + hashlib.sha256(key.encode()).hexdigest()


def loaded(text: str) -> Loaded:
    return load_text(f"version: 1\n{text}", "table.yaml", {"KEY": "sk-of-the-operator"})


def snapshot(text: str) -> Snapshot:
    return build_snapshot(loaded(text), ListPrices(date(2026, 11, 29)))
