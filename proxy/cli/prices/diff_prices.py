"""The changes that newer price data would make to the current prices, and to the prices in the config file."""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from providers.list_prices.list_prices import ListPrices, PriceData
from providers.pricing import Price
from proxy.cli.prices.genai_data import data_text, installed_library
from proxy.cli.prices.price_rows import PriceRow, amount, price_rows, rates_of
from proxy.cli.terminal import CommandError
from proxy.process.load_table import LoadedTable

INSTALLED: Final = "installed"
"""Selects the data of the installed library instead of a file."""


def newer_data(name: str, day: date) -> PriceData:
    """Return the data of a file like `list_prices.jsonl`, or of the installed library. Raises CommandError."""
    if name == INSTALLED:
        return PriceData(data_text(installed_library(), day))
    try:
        return PriceData(Path(name).read_bytes())
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not in the form of list_prices.jsonl"
        raise CommandError(f"{name} cannot be read: {reason}") from None


def changes(table: LoadedTable, names: Sequence[str], prices: ListPrices, newer: PriceData, day: date) -> Iterator[str]:
    """Yield a line for each price that differs in the newer data. All models of a `vendor/*` are included."""
    other = ListPrices(day, None, newer)
    for now, then in zip(price_rows(table, names, prices), price_rows(table, names, other), strict=True):
        if now.any_model:
            yield from _of_any_model(now, prices, newer, day)
        elif now.source != "none" and (message := _change(now, then)):
            yield f"{now.name}: {message} ({now.source})"


def _change(now: PriceRow, then: PriceRow) -> str:
    if then.listed is None:
        return "" if now.written or now.price is None else "no longer priced"
    if now.price is None:
        return f"{_shown(rates_of(then.listed))} (no price now)" if now.target is not None else ""
    return _difference(now.price, then.listed, only_written=now.written)


def _difference(now: Price, then: Price, only_written: bool) -> str:
    old, new = rates_of(now), rates_of(then)
    keys = [key for key in (*old, *(key for key in new if key not in old)) if not only_written or key in old]
    return ", ".join(
        f"{key} {_amount(old.get(key))} -> {_amount(new.get(key))}" for key in keys if old.get(key) != new.get(key)
    )


def _amount(value: float | None) -> str:
    return "unknown" if value is None else amount(value)


def _shown(rates: dict[str, float]) -> str:
    return ", ".join(f"{key} {amount(value)}" for key, value in rates.items())


def _of_any_model(row: PriceRow, prices: ListPrices, newer: PriceData, day: date) -> Iterator[str]:
    """Yield the changes of the models that the list has for the vendor of a `vendor/*`."""
    target, data = row.target, prices.data
    vendor = None if target is None else prices.vendor([target.base_url, target.profile.base_url or target.base_url])
    if data is None or vendor is None or target is None or not newer.has_vendor(vendor):
        return
    for name in dict.fromkeys((*data.model_ids(vendor), *newer.model_ids(vendor))):
        old, new = data.model(vendor, (name,), day), newer.model(vendor, (name,), day)
        was, becomes = (None if each is None else each.price for each in (old, new))
        if becomes is None:
            message = "" if was is None else "no longer priced"
        elif was is None:
            message = f"{_shown(rates_of(becomes))} (no price now)"
        else:
            message = _difference(was, becomes, only_written=False)
        if message:
            yield f"{target.vendor}/{name}: {message}"
