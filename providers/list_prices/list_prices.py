"""Looks up list prices and context windows by the URL and the model's name of a deployment.

The data is text with one JSON object per line. The first line is `{"source", "version", "date"}`. Each vendor has a
line `{"vendor", "address", "others"}`, which a line `{"id", "match", "window", "prices"}` for each of its models
follows. `address` is a regular expression of the vendor's URLs. `others` are vendors whose prices apply to models that
this vendor does not list, as OpenAI's prices do at Azure. `prices` are ordered by the dates from which they apply; the
first has no date. The lines of a vendor are parsed when it is first looked up.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

import orjson

from providers.json_types import JsonObject
from providers.list_prices.match_model import ModelNames
from providers.list_prices.price_fields import price_of
from providers.pricing import Price

SHIPPED: Final = Path(__file__).with_name("list_prices.jsonl")


@dataclass(frozen=True, slots=True)
class ListEntry:
    """The entry of a model: the vendor whose list has it, and its id there.

    `window` is the context window in tokens. `begins` is the first day of the price, `None` if the price has no date.
    `notes` are remarks that the price does not show.
    """

    vendor: str
    id: str
    window: int | None
    price: Price | None
    begins: str | None = None
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _Vendor:
    """A vendor's lines, and the models that have been parsed from them."""

    id: str
    address: re.Pattern[str]
    others: tuple[str, ...]
    lines: list[bytes] = field(default_factory=list)
    models: list[JsonObject] = field(default_factory=list)
    names: ModelNames | None = None

    def find(self, name: str) -> JsonObject | None:
        position = self._parsed().find(name)
        return None if position is None else self.models[position]

    def ids(self) -> list[str]:
        self._parsed()
        return [str(model["id"]) for model in self.models]

    def _parsed(self) -> ModelNames:
        if self.names is None:
            self.models = orjson.loads(b"[%b]" % b",".join(self.lines))
            self.names = ModelNames([model.get("match") for model in self.models])
        return self.names


class PriceData:
    """The price data of one version. Raises ValueError if the text has another form."""

    def __init__(self, text: bytes) -> None:
        first, *lines = text.splitlines()
        head = orjson.loads(first)
        self.source, self.version, self.date = str(head["source"]), str(head["version"]), str(head["date"])
        self._vendors: dict[str, _Vendor] = {}
        current: _Vendor | None = None
        for line in lines:
            if line.startswith(b'{"vendor"'):
                row = orjson.loads(line)
                current = _Vendor(row["vendor"], re.compile(row["address"]), tuple(row["others"]))
                self._vendors[current.id] = current
            elif current is None:
                raise ValueError("a model without a vendor")
            else:
                current.lines.append(line)

    def vendor_at(self, address: str) -> str | None:
        """Return the vendor at a URL, otherwise `None`."""
        return next((each.id for each in self._vendors.values() if each.address.match(address)), None)

    def has_vendor(self, vendor: str) -> bool:
        """Return whether the data has prices of a vendor."""
        return vendor in self._vendors

    def model_ids(self, vendor: str) -> list[str]:
        """Return the ids of a vendor's own models."""
        return self._vendors[vendor].ids()

    def model(self, vendor: str, names: Iterable[str], day: date) -> ListEntry | None:
        """Return the entry on a day for the first of the names that the vendor has, otherwise `None`."""
        for name in names:
            for position, listed in enumerate((vendor, *self._vendors[vendor].others)):
                if listed in self._vendors and (found := self._vendors[listed].find(name.lower())) is not None:
                    return _read(listed, found, day, of_maker=position > 0)
        return None


def _read(vendor: str, model: JsonObject, day: date, of_maker: bool) -> ListEntry:
    prices = [each for each in _list(model.get("prices")) if str(each.get("from", "")) <= day.isoformat()]
    fields = prices[-1] if prices else {}
    window, begins = model.get("window"), fields.get("from")
    # Service tiers apply only at the vendor that lists them.
    price = price_of({name: each for name, each in fields.items() if name != "tiers"} if of_maker else fields)
    notes = ["at the price of its maker"] if of_maker else []
    notes += [str(each) for each in _texts(fields.get("notes"))]
    return ListEntry(
        *(vendor, str(model["id"]), window if isinstance(window, int) else None, price),
        *(begins if isinstance(begins, str) else None, tuple(notes)),
    )


def _list(value: object) -> list[JsonObject]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _texts(value: object) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


class ListPrices:
    """The list prices of a day. `data` is read when the first price is looked up. The result of each lookup is
    cached."""

    def __init__(self, day: date, path: Path | None = SHIPPED, data: PriceData | None = None) -> None:
        self._day = day
        self._path = path
        self._data = data
        self._found: dict[tuple[str | None, tuple[str, ...]], ListEntry | None] = {}
        self._at: dict[tuple[str, ...], str | None] = {}

    @property
    def is_read(self) -> bool:
        """Whether the data has been read."""
        return self._data is not None

    @property
    def data(self) -> PriceData | None:
        """The price data, which is read at the first access; `None` without a file."""
        if self._data is None and self._path is not None:
            self._data = PriceData(self._path.read_bytes())
        return self._data

    def vendor(self, addresses: Sequence[str]) -> str | None:
        """Return the vendor at the first URL that the data knows, otherwise `None`. `addresses` are the URLs of a
        deployment and of its profile. A placeholder in a URL matches any word."""
        key = tuple(addresses)
        if key not in self._at:
            data = self.data
            known = (data.vendor_at(_PLACEHOLDER.sub("x", each)) for each in key) if data is not None else iter(())
            self._at[key] = next((vendor for vendor in known if vendor is not None), None)
        return self._at[key]

    def model(self, vendor: str | None, names: Sequence[str]) -> ListEntry | None:
        """Return the entry of a vendor's model by the first of its names that the vendor has, otherwise `None`."""
        key = (vendor, tuple(names))
        if key not in self._found:
            if len(self._found) >= MOST_FOUND:
                self._found.clear()
            data = self.data
            known = data is not None and vendor is not None and data.has_vendor(vendor)
            self._found[key] = data.model(vendor, names, self._day) if known and data and vendor else None
        return self._found[key]


MOST_FOUND: Final = 10_000
"""The most cached lookups. There must be a limit, because clients choose the names under `vendor/*`."""

_PLACEHOLDER: Final = re.compile(r"\{[a-z_]+\}")

NO_LIST_PRICES: Final = ListPrices(date.min, None)
