"""The current prices of the deployments of a config file, each with its source."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from config.sections.price_section import PriceSection
from config.table.inheritance import effective_settings
from providers.list_prices.list_prices import ListPrices
from providers.pricing import RATES, Price
from providers.target import Target
from proxy.cli.terminal import CommandError
from proxy.process.load_table import LoadedTable
from proxy.routing.compile_prices import look_up
from proxy.routing.resolve_model import reached
from proxy.routing.snapshot import ANYONE, WILDCARD


@dataclass(frozen=True, slots=True)
class PriceRow:
    """The current price of a deployment. `listed` is its price in the list of prices that ships with the gateway.
    `source` describes the origin of the price. `any_model` is set if the price depends on the requested model."""

    name: str
    price: Price | None
    listed: Price | None
    source: str
    window: int | None = None
    written: bool = False
    any_model: bool = False
    target: Target | None = None


def price_rows(table: LoadedTable, names: Sequence[str], prices: ListPrices) -> list[PriceRow]:
    """Return a row for each deployment of the names, or of the whole config file if there are no names. Raises
    CommandError for an unknown name."""
    if not names:
        return [_row(table, target, prices) for target in table.snapshot.targets()]
    found: dict[Target, None] = {}
    for name in names:
        targets = reached(table.snapshot, ANYONE, name)
        if not targets:
            raise CommandError(f"the config file has no model or route {name}")
        found |= dict.fromkeys(targets)
    return [_row(table, target, prices) for target in found]


def _row(table: LoadedTable, target: Target, prices: ListPrices) -> PriceRow:
    settings = effective_settings(table.loaded.config, target.vendor, target.model_key, target.deployment)
    name = f"{target.vendor}/{target.model}"
    if len([each for each in table.snapshot.targets() if each.model_key == target.model_key]) > 1:
        name = target.name
    listed = None
    if target.model != WILDCARD or settings.base_model is not None:
        listed = look_up(settings, target.profile, target.base_url, target.model, prices)
    price = None if listed is None else listed.price
    if isinstance(settings.price, PriceSection):
        position = table.loaded.locate(settings.origins["price"])
        source = f"written at {position.file}:{position.line}"
        return PriceRow(name, target.price, price, source, target.context_window, written=True, target=target)
    if target.model == WILDCARD and target.list_price is not None:
        return PriceRow(name, None, None, "list prices, by the model", any_model=True, target=target)
    if target.price is None or listed is None:
        source = "none" if settings.price == "none" else "not known"
        return PriceRow(name, target.price, price, source, target.context_window, target=target)
    notes = f", {', '.join(listed.notes)}" if listed.notes else ""
    source = f"list of {listed.vendor}: {listed.id}{notes}"
    return PriceRow(name, target.price, price, source, listed.window, target=target)


def rates_of(price: Price) -> dict[str, float]:
    """Return every rate of a price by its path in the config file, such as `service_tiers.flex.input`."""
    return dict(_rates(price, ""))


def _rates(price: Price, before: str) -> Iterator[tuple[str, float]]:
    yield from ((f"{before}{name}", rate) for name in RATES if (rate := getattr(price, name)) is not None)
    for above, long in price.long_context:
        yield from _rates(long, f"{before}long_context.{above}.")
    for tier, own in price.tiers:
        yield from _rates(own, f"{before}service_tiers.{tier}.")


def price_mapping(price: Price) -> Mapping[str, object]:
    """Return a price in the form of a config file."""
    found: dict[str, object] = {name: rate for name in RATES if (rate := getattr(price, name)) is not None}
    if price.long_context:
        found["long_context"] = [{"above": above, **price_mapping(long)} for above, long in price.long_context]
    if price.tiers:
        found["service_tiers"] = {tier: price_mapping(own) for tier, own in price.tiers}
    return found


def amount(value: float) -> str:
    """Format a rate without an exponent, which YAML would read as text."""
    return f"{Decimal(repr(value)).normalize():f}"
