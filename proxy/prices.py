"""What the data of `genai-prices` says of a model at an address: its window and its price.

Never a price of its own, never the network, and never loaded to serve a request.

Source: `genai-prices` 0.2.3, whose prices are USD per million tokens, of the day it was released.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from proxy.terminal import CommandError

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ConditionalPrice, ModelInfo, ModelPrice

_LARGEST: Final = Decimal(1_000_000)
"""The table takes no higher price."""

_KEYS: Final = {"input": "input_mtok", "output": "output_mtok", "cached_input": "cache_read_mtok"}
"""The table's names and theirs."""


@dataclass(frozen=True, slots=True)
class ListPrice:
    """USD per million tokens, as it is written there."""

    input: Decimal
    output: Decimal
    cached_input: Decimal | None

    def __str__(self) -> str:
        told = {"input": self.input, "output": self.output, "cached_input": self.cached_input}
        return ", ".join(f"{name}: {decimal(value)}" for name, value in told.items() if value is not None)


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a model: under which name, and what one price cannot say, in `notes`."""

    listed_as: str
    context_window: int | None
    price: ListPrice | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PriceList:
    """The data as it came with the library; `moment` decides between prices of different days."""

    version: str
    moment: datetime
    _data: "DataSnapshot"

    def vendor(self, base_url: str) -> str | None:
        """The vendor that the data has at an address; None when it has none there."""
        try:
            return self._data.find_provider(None, None, base_url).id
        except LookupError:
            return None

    def known(self, base_url: str, names: Iterable[str]) -> Known | None:
        """What is known of the model that the vendor at an address calls one of these names; None when nothing is."""
        try:
            vendor = self._data.find_provider(None, None, base_url)
        except LookupError:
            return None
        for name in names:
            if (model := vendor.find_model(name, all_providers=self._data.providers)) is not None:
                own = any(each is model for each in vendor.models)
                return self._read(f"{vendor.id} {model.id}{'' if own else ', at the price of its maker'}", model)
        return None

    def _read(self, listed_as: str, model: "ModelInfo") -> Known:
        notes: list[str] = []
        prices = [price for each in _listed(model, self.moment) if (price := _price(each, notes)) is not None]
        dearest = max(prices, key=lambda price: price.input + price.output, default=None)
        notes += [f"At some hours it costs: {price}." for price in prices if price != dearest]
        return Known(listed_as, model.context_window, dearest, tuple(dict.fromkeys(notes)))


def price_list(moment: datetime) -> PriceList:
    """The data that is installed. Raises CommandError where it is not."""
    try:
        import genai_prices
        from genai_prices.data_snapshot import get_snapshot
    except ModuleNotFoundError:
        raise CommandError("prices come from an extra: pip install 'dragoman[prices]'") from None
    return PriceList(genai_prices.__version__, moment, get_snapshot())


def _listed(model: "ModelInfo", moment: datetime) -> "list[ModelPrice]":
    """What holds on that day: the last price that has begun, and those of its hours."""
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
    """The price of text up to the first tier; `notes` are told what more there is."""
    named = [(name, getattr(listed, key)) for name, key in _KEYS.items()]
    first, last, cached = (getattr(value, "base", value) for _, value in named)
    if first is None or last is None or max(first, last, cached or first) > _LARGEST:
        notes.append("It has no price for both, tokens read and tokens generated.")
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
    return ListPrice(first, last, cached)


def decimal(value: Decimal) -> str:
    """The number without an exponent, which the table would read as text."""
    return f"{value.normalize():f}"
