"""Convert the data of the library `genai-prices` to the form of `providers.list_prices`, without using the network.

Source: `genai-prices` 0.2.3, whose prices are USD per million tokens. The library is never loaded to serve a request.

Each model has the price of the day and the prices that begin later. Prices that the form cannot express are omitted: a
model that is priced by characters, pages or hours has no price. If the price depends on the hour, the highest one is
used.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from providers.json_types import JsonObject
from proxy.cli.terminal import CommandError

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices


_RATES: Final[Mapping[str, str]] = {
    "input_mtok": "input",
    "output_mtok": "output",
    "cache_read_mtok": "cached_input",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "input_audio_mtok": "input_audio",
    "output_audio_mtok": "output_audio",
    "cache_audio_read_mtok": "cached_audio",
    "input_image_mtok": "input_image",
    "output_image_mtok": "output_image",
    "cache_image_read_mtok": "cached_image",
    "input_video_mtok": "input_video",
    "output_video_mtok": "output_video",
    "web_searches_kcount": "web_search",
    "requests_kcount": "request",
}
"""The gateway's name of each price by the library's name."""

_NOT_COUNTED: Final = frozenset({"storage_searches_kcount"})
"""Prices of features that the gateway does not offer to clients."""

_TIERS: Final = ("service_tier", "processing", "speed")
"""The keys that select a price by the service tier that a response reports."""

_STANDARD: Final = frozenset({"default", "standard"})

_MAX_PRICE: Final = Decimal(1_000_000)
"""The highest price in USD that a config file may have."""

_HOURS: Final = tuple(time(hour, minute) for hour in range(24) for minute in (0, 30))
_HOURLY: Final = "the dearest of prices that depend on the hour"
_AUDIO: Final = ("audio", "realtime")


class Library(NamedTuple):
    """The installed library: its version, and its data."""

    version: str
    providers: "list[Provider]"


def installed_library() -> Library:
    """Return the installed library. Raises CommandError if it is not installed."""
    try:
        import genai_prices
        from genai_prices.data_snapshot import get_snapshot
    except ModuleNotFoundError:
        raise CommandError("newer prices come from an extra: pip install '.[prices]' in Dragoman's source") from None
    return Library(genai_prices.__version__, get_snapshot().providers)


def data_text(library: Library, day: date) -> bytes:
    """Return the data as of a day, a line for each vendor and each model."""
    head: JsonObject = {"source": "genai-prices", "version": library.version, "date": day.isoformat()}
    return b"".join(orjson.dumps(row) + b"\n" for row in (head, *_rows(library.providers, day)))


def _rows(providers: "Iterable[Provider]", day: date) -> Iterator[JsonObject]:
    addresses: set[str] = set()
    for provider in providers:
        models = [row for model in provider.models if (row := _model(provider.id, model, day)) is not None]
        if models and provider.api_pattern not in addresses:
            addresses.add(provider.api_pattern)
            others = [*(provider.fallback_model_providers or ())]
            yield {"vendor": provider.id, "address": provider.api_pattern, "others": others}
            yield from models


def _model(vendor: str, model: "ModelInfo", day: date) -> JsonObject | None:
    """Return the row of a model; `None` if neither a price nor a window is known."""
    row: JsonObject = {"id": model.id, "match": _pattern(model.match)}
    if model.context_window is not None:
        row["window"] = model.context_window
    prices: list[JsonObject] = []
    for begins in (None, *_later_days(model, day)):
        fields = _price(vendor, model, begins or day)
        if fields is not None and (not prices or fields != _without_day(prices[-1])):
            prices.append(fields if begins is None else {"from": begins.isoformat(), **fields})
    if prices:
        row["prices"] = list(prices)
    return row if len(row) > 2 else None


def _without_day(fields: JsonObject) -> JsonObject:
    return {name: value for name, value in fields.items() if name != "from"}


def _later_days(model: "ModelInfo", day: date) -> list[date]:
    constraints = [each.constraint for each in model.prices] if isinstance(model.prices, list) else []
    constraints += [each.constraint for each in model.price_variants or ()]
    starts = {start for each in constraints if (start := getattr(each, "start_date", None)) is not None}
    return sorted(start for start in starts if start > day)


def _price(vendor: str, model: "ModelInfo", day: date) -> JsonObject | None:
    """Return the fields of the price on a day; `None` if there is none that the form can express."""
    moments = [datetime.combine(day, each, UTC) for each in (_HOURS if _depends_on_hour(model) else (time(12),))]
    listed = [price for moment in moments if (price := _at(model, moment)) is not None]
    if not listed:
        return None
    dearest = max(listed, key=_sum_of_rates)
    if any(each != dearest for each in listed):
        dearest = {**dearest, "notes": [_HOURLY]}
    if vendor == "openai" and any(word in model.id for word in _AUDIO) and "input_audio" not in dearest:
        dearest = {**dearest, "unknown": ["audio"]}  # audio costs far more than text, and the data lacks its price
    return dearest


def _sum_of_rates(fields: JsonObject) -> float:
    return sum(float(value) for name in ("input", "output") if isinstance(value := fields.get(name), int | float))


def _depends_on_hour(model: "ModelInfo") -> bool:
    prices = model.prices if isinstance(model.prices, list) else ()
    return any(hasattr(each.constraint, "start_time") for each in prices)


def _at(model: "ModelInfo", moment: datetime) -> JsonObject | None:
    fields = _fields(model.get_prices(moment))
    if fields is None:
        return None
    tiers: JsonObject = {}
    for name, context in _contexts(model):
        own = _fields(model.get_prices(moment, context))
        if own is not None:
            tiers[name] = {} if own == fields else own
    return {**fields, "tiers": tiers} if tiers else fields


def _contexts(model: "ModelInfo") -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each service tier of a model that has its own price, with the context that selects the price."""
    seen: set[str] = set()
    for variant in model.price_variants or ():
        if len(variant.when) == 1:
            ((key, name),) = variant.when.items()
            if key in _TIERS and name not in seen | _STANDARD:
                seen.add(name)
                yield name, variant.when


def _fields(price: "ModelPrice") -> JsonObject | None:
    """Return the rates of a price, the rates for long prompts included; `None` if the form cannot express them."""
    values = {key: value for key, value in vars(price).items() if value is not None and key not in _NOT_COUNTED}
    if "input_mtok" not in values or not values.keys() <= _RATES.keys():
        return None
    base = {_RATES[key]: _number(getattr(value, "base", value)) for key, value in values.items()}
    if any(each is None for each in base.values()):
        return None
    fields: JsonObject = {name: base[name] for name in _RATES.values() if name in base}
    starts = sorted({tier.start for value in values.values() for tier in getattr(value, "tiers", ())})
    if starts:
        fields["long_context"] = {str(start): _long_rates(values, start) for start in starts}
    return fields


def _long_rates(values: "Mapping[str, Decimal | TieredPrices]", start: int) -> JsonObject:
    found: JsonObject = {}
    for key, value in values.items():
        tiers = [tier.price for tier in getattr(value, "tiers", ()) if tier.start <= start]
        if tiers:
            found[_RATES[key]] = _number(tiers[-1])
    return found


def _number(value: Decimal) -> int | float | None:
    """Return a price as a JSON number; `None` if a config file could not have it."""
    if value > _MAX_PRICE:
        return None
    return int(value) if value == value.to_integral_value() else float(value)


_LEAVES: Final = ("equals", "starts_with", "ends_with", "contains", "regex")


def _pattern(clause: object) -> JsonObject:
    """Return the patterns of the names of a model."""
    for name in _LEAVES:
        if (text := getattr(clause, name, None)) is not None:
            return {name: [text if name == "regex" else str(text).lower()]}
    if (every := getattr(clause, "and_", None)) is not None:
        return {"all": [_pattern(each) for each in every]}
    found: JsonObject = {}
    for each in getattr(clause, "or_"):  # noqa: B009 - clauses have no common type
        for name, values in _pattern(each).items():
            if name == "all" and name in found:
                raise ValueError("two conjunctions of one model")
            held = found.setdefault(name, [])
            if isinstance(held, list) and isinstance(values, list):
                held.extend(value for value in values if value not in held)
    return found
