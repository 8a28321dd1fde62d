"""The JSON form of a price in `list_prices.jsonl`: what is written for a Price, and what is read of it.

`{"input": 2, "output": 8, "long_context": {"200000": {"input": 4}}, "tiers": {"flex": {"input": 1, "output": 4}}}`: the
fields are those of Price. A long context has the rates that differ from the price around it; a service tier has a whole
price, or none if it costs the same as the standard one.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from providers.json_types import JsonObject, JsonValue
from providers.pricing import RATES, Price, price_of_rates, with_rates

_RATES: Final = frozenset(RATES)


def price_of(fields: JsonObject) -> Price | None:
    """Return the price; `None` if it has none for the tokens of a prompt."""
    if "input" not in fields:
        return None
    unknown = fields.get("unknown")
    names = tuple(str(each) for each in unknown) if isinstance(unknown, list) else ()
    base = _with_lengths(fields)
    tiers = tuple((name, _with_lengths(each) if each else base) for name, each in _held(fields, "tiers"))
    return replace(base, tiers=tiers, other_tiers="unknown", unknown=names)


def _with_lengths(fields: JsonObject) -> Price:
    price = price_of_rates(_rates(fields))
    lengths = sorted(((int(above), each) for above, each in _held(fields, "long_context")), key=lambda each: each[0])
    return replace(price, long_context=tuple((above, with_rates(price, _rates(each))) for above, each in lengths))


def _held(fields: JsonObject, name: str) -> list[tuple[str, JsonObject]]:
    held = fields.get(name)
    return [(key, value) for key, value in held.items() if isinstance(value, dict)] if isinstance(held, dict) else []


def _rates(fields: Mapping[str, JsonValue]) -> dict[str, float]:
    return {name: float(value) for name, value in fields.items() if name in _RATES and isinstance(value, int | float)}
