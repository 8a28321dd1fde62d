"""The price of a deployment (its own price, the vendor's list price, or no price), and the data of its base model in
the price list."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from config.sections.price_section import PriceSection, RatesSection, TierSection
from config.table.inheritance import Settings
from providers.list_prices.list_prices import ListEntry, ListPrices
from providers.pricing import Price, price_of_rates, with_rates
from providers.profile import Profile
from providers.profiles.load_profiles import load_profiles

_ANY_MODEL = "*"


@dataclass(frozen=True, slots=True)
class Pricing:
    """The price of a deployment. `listed` is the entry of the price list from which the price or the context window is
    taken. `list_price` returns the price of a model by its name, for deployments of any model. `base_model` is the name
    without its maker."""

    price: Price | None = None
    listed: ListEntry | None = None
    list_price: Callable[[str], Price | None] | None = None
    base_model: str | None = None

    @property
    def window(self) -> int | None:
        """The context window of the base model in tokens; `None` for a model under its own name, because the vendor's
        responses contain its window."""
        return None if self.base_model is None or self.listed is None else self.listed.window


def compile_pricing(settings: Settings, profile: Profile, base_url: str, model: str, prices: ListPrices) -> Pricing:
    """Return the price of a deployment of a model, or of any model for `*`. The list is read only if it may be
    needed."""
    _, base = _base_model(settings.base_model)
    if isinstance(settings.price, PriceSection):
        own = written_price(settings.price)
        needs_window = base is not None and settings.context_window is None
        return Pricing(own, look_up(settings, profile, base_url, model, prices) if needs_window else None, None, base)
    if not takes_list_price(settings, base_url):
        listed = None if base is None else look_up(settings, profile, base_url, model, prices)
        return Pricing(None, listed, None, base)
    if model == _ANY_MODEL and base is None:
        vendor = _vendor(profile, base_url, prices)
        known = partial(_price_of, prices, vendor)
        return Pricing(list_price=None if vendor is None else known)
    listed = look_up(settings, profile, base_url, model, prices)
    return Pricing(None if listed is None else listed.price, listed, None, base)


def takes_list_price(settings: Settings, base_url: str) -> bool:
    """Return whether a deployment costs the vendor's list price. That is `price: auto`, the default outside private
    networks."""
    if settings.price is None:
        return not settings.allow_private and base_url.startswith("https:")
    return settings.price == "auto"


def _price_of(prices: ListPrices, vendor: str | None, model: str) -> Price | None:
    listed = prices.model(vendor, (model,))
    return None if listed is None else listed.price


def _base_model(written: str | None) -> tuple[str | None, str | None]:
    """Return the maker of a base model, if a vendor has this name, and the model's name there."""
    if written is None:
        return None, None
    maker, _, name = written.partition("/")
    return (maker, name) if name and maker in load_profiles() else (None, written)


def look_up(settings: Settings, profile: Profile, base_url: str, model: str, prices: ListPrices) -> ListEntry | None:
    """Return the list entry of the vendor at the deployment's address, otherwise of the base model's maker."""
    maker, base = _base_model(settings.base_model)
    names = (settings.upstream_model or model, model) if base is None else (base,)
    found = prices.model(_vendor(profile, base_url, prices), names)
    if found is None and maker is not None:
        found = prices.model(_vendor(load_profiles()[maker], "", prices), names)
    return found


def _vendor(profile: Profile, base_url: str, prices: ListPrices) -> str | None:
    """Return the listed vendor at the address, otherwise the vendor at the profile's own address."""
    return prices.vendor([each for each in (base_url, profile.base_url) if each])


def written_price(section: PriceSection) -> Price:
    """Return the price that the operator set. Tiers and long contexts inherit the rates that they do not set."""
    base = price_of_rates(dict(section.rates()))
    tiers = tuple(
        (name, _with_lengths(_with_section_rates(base, tier), tier)) for name, tier in section.service_tiers.items()
    )
    return replace(_with_lengths(base, section), tiers=tiers)


def _with_lengths(price: Price, section: PriceSection | TierSection) -> Price:
    lengths = sorted(section.long_context, key=lambda each: each.above)
    return replace(price, long_context=tuple((each.above, _with_section_rates(price, each)) for each in lengths))


def _with_section_rates(price: Price, section: RatesSection) -> Price:
    return with_rates(price, dict(section.rates()))
