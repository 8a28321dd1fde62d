"""`dragoman prices`: print the current prices with their sources, or the changes in newer data."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from providers.list_prices.list_prices import ListPrices
from proxy.cli.prices.diff_prices import changes, newer_data
from proxy.cli.prices.price_rows import PriceRow, amount, price_mapping, price_rows
from proxy.process.load_table import Source

Form = Callable[[Sequence[PriceRow], ListPrices], Iterator[str]]
"""Formats prices as lines."""

_COLUMNS: Final = (("INPUT", "input"), ("OUTPUT", "output"), ("CACHED", "cached_input"), ("WRITE", "cache_write"))


def prices(source: Source, names: Sequence[str], form: Form) -> int:
    """Print the prices of the names, or of the whole config file."""
    listed = _today(source)
    for line in form(price_rows(source.load(), names, listed), listed):
        print(line)
    return 0


def prices_diff(source: Source, names: Sequence[str], newer: str) -> int:
    """Print the changes in newer data. Return 1 if there are any."""
    listed, day = _today(source), datetime.fromtimestamp(source.wall(), UTC).date()
    data = newer_data(newer, day)
    found = list(changes(source.load(), names, listed, data, day))
    for line in found:
        print(line)
    if not found:
        print(f"{data.source} {data.version} ({data.date}) changes nothing")
    return 1 if found else 0


def _today(source: Source) -> ListPrices:
    return ListPrices(datetime.fromtimestamp(source.wall(), UTC).date())


def as_configuration(rows: Sequence[PriceRow], listed: ListPrices) -> Iterator[str]:
    """Yield aligned columns, and a line with the source of the list."""
    heads = ["MODEL", *(head for head, _ in _COLUMNS), "MORE", "SOURCE"]
    cells = [heads, *(_cells(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(heads))]
    for row in cells:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    if (data := listed.data) is not None:
        yield f"USD per million tokens. List prices: {data.source} {data.version}, {data.date}."


def _cells(row: PriceRow) -> list[str]:
    price = row.price
    amounts = [getattr(price, name, None) for _, name in _COLUMNS]
    shown = ["-" if value is None else amount(value) for value in amounts]
    return [row.name, *shown, _more(row), row.source]


def _more(row: PriceRow) -> str:
    price = row.price
    if price is None:
        return ""
    parts = [f"above {above}" for above, _ in price.long_context]
    parts += [tier for tier, _ in price.tiers]
    parts += ["audio"] if price.input_audio is not None or price.output_audio is not None else []
    parts += ["images"] if price.input_image is not None or price.output_image is not None else []
    parts += ["search"] if price.web_search is not None else []
    return ", ".join(parts)


def as_json(rows: Sequence[PriceRow], listed: ListPrices) -> Iterator[str]:
    """Yield one JSON object, with each price in the form of a config file."""
    data = listed.data
    head = {} if data is None else {"source": data.source, "version": data.version, "date": data.date}
    every = [
        {"name": row.name, "price": None if row.price is None else price_mapping(row.price), "source": row.source}
        for row in rows
    ]
    yield json.dumps({"list": head, "prices": every}, indent=2)


def as_yaml(rows: Sequence[PriceRow], listed: ListPrices) -> Iterator[str]:
    """Yield a config file to include, with the list's windows and prices of the named models."""
    data = listed.data
    yield f"# List prices of {data.source} {data.version}, {data.date}." if data else "# Without a list."
    yield "version: 1"
    named = {
        row.target.model_key: row
        for row in rows
        if row.target is not None and not (row.written or row.any_model) and row.price is not None
    }
    yield "models:" if named else "models: {}"
    for key, row in named.items():
        yield f"  {json.dumps(key)}: # {row.source}"
        if row.window is not None:
            yield f"    context_window: {row.window}"
        if row.price is not None:
            yield f"    price: {_flow(price_mapping(row.price))}"


def _flow(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return amount(value) if isinstance(value, float) else str(value)


FORMS: Final[Mapping[str, Form]] = {"table": as_configuration, "json": as_json, "yaml": as_yaml}
