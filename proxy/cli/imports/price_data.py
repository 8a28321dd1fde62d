"""Look up context windows and list prices in the data of the library `genai-prices`, without using the network.

Never loaded to serve a request. Source: `genai-prices` 0.2.3, whose prices are USD per million tokens, of the day it
was released.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from proxy.cli.terminal import CommandError

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ConditionalPrice, ModelInfo, ModelPrice

_LARGEST: Final = Decimal(1_000_000)
"""The highest price that a table may have."""

_KEYS: Final = {
    "input": "input_mtok",
    "output": "output_mtok",
    "cached_input": "cache_read_mtok",
    "cache_write": "cache_write_mtok",
}
"""The table's name of each price, and the library's."""


@dataclass(frozen=True, slots=True)
class ListPrice:
    """A price in USD per million tokens, as the library has it."""

    input: Decimal
    output: Decimal | None
    cached_input: Decimal | None
    cache_write: Decimal | None = None

    def __str__(self) -> str:
        prices = ((name, getattr(self, name)) for name in _KEYS)
        return ", ".join(f"{name}: {decimal(value)}" for name, value in prices if value is not None)


@dataclass(frozen=True, slots=True)
class KnownModel:
    """The data on a model: the name it has there, and in `notes` what a single price does not show."""

    listed_as: str
    context_window: int | None
    price: ListPrice | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PriceList:
    """The library's data; `moment` selects among prices that depend on the date."""

    version: str
    moment: datetime
    _data: "DataSnapshot"

    def vendor(self, base_url: str) -> str | None:
        """Return the vendor at an address, or None."""
        try:
            return self._data.find_provider(None, None, base_url).id
        except LookupError:
            return None

    def known(self, base_url: str, names: Iterable[str]) -> KnownModel | None:
        """Return the data on the model for which the vendor at an address has one of these names, or None."""
        try:
            vendor = self._data.find_provider(None, None, base_url)
        except LookupError:
            return None
        for name in names:
            if (model := vendor.find_model(name, all_providers=self._data.providers)) is not None:
                own = any(each is model for each in vendor.models)
                return self._read(f"{vendor.id} {model.id}{'' if own else ', at the price of its maker'}", model)
        return None

    def _read(self, listed_as: str, model: "ModelInfo") -> KnownModel:
        notes: list[str] = []
        prices = [price for each in _listed(model, self.moment) if (price := _price(each, notes)) is not None]
        dearest = max(prices, key=lambda price: price.input + (price.output or 0), default=None)
        notes += [f"At some hours it costs: {price}." for price in prices if price != dearest]
        return KnownModel(listed_as, model.context_window, dearest, tuple(dict.fromkeys(notes)))


def price_list(moment: datetime) -> PriceList:
    """Return the installed data. Raises CommandError where the library is not installed."""
    try:
        import genai_prices
        from genai_prices.data_snapshot import get_snapshot
    except ModuleNotFoundError:
        raise CommandError("prices come from an extra: pip install '.[prices]' in Dragoman's source") from None
    return PriceList(genai_prices.__version__, moment, get_snapshot())


def _listed(model: "ModelInfo", moment: datetime) -> "list[ModelPrice]":
    """Return the prices in force at a moment: the last one that has begun, and those for certain hours."""
    if not isinstance(model.prices, list):
        return [model.prices]
    hourly = [each.prices for each in model.prices if hasattr(each.constraint, "start_time")]
    daily = [
        each.prices for each in model.prices if not hasattr(each.constraint, "start_time") and _begun(each, moment)
    ]
    return [*daily[-1:], *hourly]


def _begun(price: "ConditionalPrice", moment: datetime) -> bool:
    return price.constraint is None or price.constraint.active(moment)


def _price(listed: "ModelPrice", notes: list[str]) -> ListPrice | None:
    """Return the price of text up to the first tier; add to `notes` what else is charged."""
    named = [(name, getattr(listed, key)) for name, key in _KEYS.items()]
    prices = [getattr(value, "base", value) for _, value in named]
    if prices[0] is None or max(price for price in prices if price is not None) > _LARGEST:
        notes.append("It has no price for the tokens that are read.")
        return None
    tiers: dict[int, list[str]] = {}
    for name, value in named:
        for tier in getattr(value, "tiers", ()):
            tiers.setdefault(tier.start, []).append(f"{name}: {decimal(tier.price)}")
    notes += [
        f"With more than {start} tokens of prompt it costs: {', '.join(tiers[start])}." for start in sorted(tiers)
    ]
    if listed.requests_kcount is not None:
        notes.append("Each request costs something too.")
    return ListPrice(*prices)


def decimal(value: Decimal) -> str:
    """Format a number without an exponent, which YAML would read as text."""
    return f"{value.normalize():f}"
