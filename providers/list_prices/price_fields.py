"""Reads the JSON form of a Price in `list_prices.jsonl`.

`{"input": 2, "output": 8, "long_context": {"200000": {"input": 4}}, "tiers": {"flex": {"input": 1, "output": 4}}}`: the
fields are the fields of Price. A long context has only the rates that differ from the enclosing price. A service tier
has a complete price, or an empty one if it costs the same as the standard tier.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from providers.json_types import JsonObject, JsonValue
from providers.pricing import RATES, Price, price_of_rates, with_rates

_RATES: Final = frozenset(RATES)


def price_of(fields: JsonObject) -> Price | None:
    """Return the price; `None` if the fields have no rate for the tokens of a prompt."""
    if "input" not in fields:
        return None
    unknown = fields.get("unknown")
    names = tuple(str(each) for each in unknown) if isinstance(unknown, list) else ()
    base = _with_lengths(fields)
    tiers = tuple((name, _with_lengths(each) if each else base) for name, each in _objects_at(fields, "tiers"))
    return replace(base, tiers=tiers, other_tiers="unknown", unknown=names)


def _with_lengths(fields: JsonObject) -> Price:
    price = price_of_rates(_rates(fields))
    lengths = sorted(
        ((int(above), each) for above, each in _objects_at(fields, "long_context")), key=lambda each: each[0]
    )
    return replace(price, long_context=tuple((above, with_rates(price, _rates(each))) for above, each in lengths))


def _objects_at(fields: JsonObject, name: str) -> list[tuple[str, JsonObject]]:
    nested = fields.get(name)
    return (
        [(key, value) for key, value in nested.items() if isinstance(value, dict)] if isinstance(nested, dict) else []
    )


def _rates(fields: Mapping[str, JsonValue]) -> dict[str, float]:
    return {name: float(value) for name, value in fields.items() if name in _RATES and isinstance(value, int | float)}
