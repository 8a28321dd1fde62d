"""Prices, and what a response cost by them.

Vendors price by parts of a prompt and of a response (cached, audio, images), by the prompt's length, by service tier,
by request and by search. Sources, November 2026: the pricing pages of OpenAI, Anthropic, Google, xAI, Mistral and
Perplexity; the units of genai-prices 0.2.3.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from providers.completion import SEARCH_REQUESTS, Usage

_MILLION: Final = 1_000_000
_THOUSAND: Final = 1_000

_PLAIN: Final = frozenset({"input", "output", "cached_input", "cache_write", "cache_write_1h"})
"""The rates of a price that depends on nothing but tokens of text."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; `web_search` and `request` are USD per thousand.

    What is None costs: `cached_input` and `cache_write` as `input`, `cache_write_1h` as `cache_write`, tokens of a
    modality as those of text, `cached_audio` and `cached_image` as `cached_input`, `request` nothing. `output` is None
    if nothing is generated, as by models that embed, and `web_search` if the price of a search is not known.

    `long_context` has the price of requests whose prompt is longer than so many tokens, in ascending order: the last
    that is exceeded holds for the whole request. `tiers` has the prices of service tiers; of others `other_tiers` says
    whether they cost the same or an unknown amount. `unknown` names modalities (`audio`) whose price is not known: they
    are counted as text.
    """

    input: float
    output: float | None = None
    cached_input: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None
    input_audio: float | None = None
    output_audio: float | None = None
    cached_audio: float | None = None
    input_image: float | None = None
    output_image: float | None = None
    cached_image: float | None = None
    input_video: float | None = None
    output_video: float | None = None
    web_search: float | None = None
    request: float | None = None
    long_context: tuple[tuple[int, "Price"], ...] = ()
    tiers: tuple[tuple[str, "Price"], ...] = ()
    other_tiers: Literal["same", "unknown"] = "same"
    unknown: tuple[str, ...] = ()
    plain: bool = field(init=False, compare=False, repr=False)
    """Whether it has no more than the rates of text."""

    def __post_init__(self) -> None:
        more = (getattr(self, name) for name in RATES if name not in _PLAIN and name != "web_search")
        plain = not (self.long_context or self.tiers) and all(rate is None for rate in more)
        object.__setattr__(self, "plain", plain)

    def of_tier(self, tier: str | None) -> "Price":
        """Return the price of a service tier: this one if it has no other for it."""
        if tier is not None:
            for name, price in self.tiers:
                if name == tier:
                    return price
        return self

    def of_length(self, prompt_tokens: int) -> "Price":
        """Return the price of a request with so many tokens of prompt."""
        found = self
        for above, price in self.long_context:
            if prompt_tokens > above:
                found = price
        return found


RATES: Final = (
    *("input", "output", "cached_input", "cache_write", "cache_write_1h", "input_audio", "output_audio"),
    *("cached_audio", "input_image", "output_image", "cached_image", "input_video", "output_video"),
    *("web_search", "request"),
)
"""The fields of a Price that are amounts."""


def price_of_rates(rates: Mapping[str, float]) -> Price:
    """Return a price of the rates by their names, of which `input` must be one."""
    return with_rates(Price(rates["input"]), rates)


def with_rates(price: Price, rates: Mapping[str, float]) -> Price:
    """Return a price with some rates replaced."""
    known: dict[str, Any] = {name: rates[name] for name in RATES if name in rates}
    return replace(price, **known)


def cost(price: Price | None, usage: Usage | None) -> float | None:
    """Return the cost in USD as far as it is known (see `unpriced`). `None` if the usage, or the price of the tokens,
    is not known."""
    if price is None or usage is None:
        return None
    if usage.calls and not price.plain:
        costs = [cost(price, call) for call in usage.calls]
        known = [each for each in costs if each is not None]
        return sum(known) if len(known) == len(costs) else None
    if not price.plain:
        price = price.of_tier(usage.tier).of_length(usage.prompt_tokens)
    if price.output is None and usage.completion_tokens:
        return None
    total = usage.prompt_tokens * price.input + usage.completion_tokens * (price.output or 0)
    if usage.prompt_details:
        total += _prompt_difference(price, usage.prompt_details, usage.prompt_tokens)
    if usage.completion_details:
        total += _completion_difference(price, usage.completion_details, usage.completion_tokens)
    if price.request is not None:
        total += price.request * _THOUSAND
    return total / _MILLION


def _prompt_difference(price: Price, details: Mapping[str, int], prompt: int) -> float:
    """Return how much more, or less, a prompt costs than as many fresh tokens of text, in millionths of a USD.

    Vendors count what they read from their cache, what they wrote into it and the tokens of each modality as parts of
    the prompt; no part is taken for larger than the whole. Vendors do not report which modality was cached: text comes
    first.

    `ephemeral_1h_input_tokens`, what was written for an hour, is among what was written (Anthropic, November 2026).
    """
    read = _part(details, "cached_tokens", prompt)
    written = _part(details, "cache_write_tokens", prompt - read)
    hour = _part(details, "ephemeral_1h_input_tokens", written)
    read_at = price.input if price.cached_input is None else price.cached_input
    write_at = price.input if price.cache_write is None else price.cache_write
    hour_at = write_at if price.cache_write_1h is None else price.cache_write_1h
    difference = read * (read_at - price.input)
    difference += (written - hour) * (write_at - price.input) + hour * (hour_at - price.input)
    if price.plain:
        return difference
    left, cached = prompt - written, read
    for name, fresh_at, cached_at in (
        ("audio_tokens", price.input_audio, price.cached_audio),
        ("image_tokens", price.input_image, price.cached_image),
        ("video_tokens", price.input_video, None),
    ):
        if fresh_at is None and cached_at is None:
            continue
        tokens = _part(details, name, left)
        left -= tokens
        of_cache = max(0, min(tokens, cached - left))  # what is cached and fits into nothing else
        cached -= of_cache
        fresh_at = price.input if fresh_at is None else fresh_at
        cached_at = read_at if cached_at is None else cached_at
        difference += (tokens - of_cache) * (fresh_at - price.input) + of_cache * (cached_at - read_at)
    return difference


def _completion_difference(price: Price, details: Mapping[str, int], completion: int) -> float:
    """Return how much more a completion costs than as many tokens of text, its searches included."""
    difference = 0.0
    if price.web_search is not None:
        difference += max(0, details.get(SEARCH_REQUESTS, 0)) * price.web_search * _THOUSAND
    if price.plain or price.output is None:
        return difference
    for name, rate in (
        ("audio_tokens", price.output_audio),
        ("image_tokens", price.output_image),
        ("video_tokens", price.output_video),
    ):
        if rate is not None:
            tokens = _part(details, name, completion)
            completion -= tokens
            difference += tokens * (rate - price.output)
    return difference


def _part(details: Mapping[str, int], name: str, whole: int) -> int:
    return max(0, min(details.get(name, 0), whole))


TOKENS: Final = "tokens"
TIER: Final = "service_tier"
SEARCHES: Final = "web_search"


def unpriced(price: Price | None, usage: Usage | None) -> tuple[str, ...]:
    """Return what was used at a price that is not known: `tokens`, `service_tier`, `audio`, `web_search`; nothing if
    all of it is known. `cost` counts such a tier or modality as text of the standard tier, such a search as nothing.
    """
    if usage is None:
        return ()
    details = usage.completion_details
    searched = details is not None and details.get(SEARCH_REQUESTS, 0) > 0
    if price is None or (price.output is None and usage.completion_tokens):
        used = usage.prompt_tokens or usage.completion_tokens
        return (TOKENS, SEARCHES) if searched else (TOKENS,) if used else ()
    of_known_tier = price.other_tiers == "same" or (usage.tier is None and not usage.calls)
    if of_known_tier and not searched and not price.unknown:
        return ()
    found: list[str] = []
    if price.other_tiers == "unknown" and any(_is_unknown_tier(price, call) for call in usage.calls or (usage,)):
        found.append(TIER)
    for modality in price.unknown:
        name = f"{modality}_tokens"
        if any(details and details.get(name) for details in (usage.prompt_details, usage.completion_details)):
            found.append(modality)
    if searched and price.of_tier(usage.tier).web_search is None:
        found.append(SEARCHES)
    return tuple(found)


def _is_unknown_tier(price: Price, usage: Usage) -> bool:
    return usage.tier is not None and all(name != usage.tier for name, _ in price.tiers)


def unpriced_tokens(kinds: Collection[str], usage: Usage) -> int:
    """Return how many tokens of a usage have no known price, of which `kinds` are what `unpriced` returned."""
    if TOKENS in kinds or TIER in kinds:
        return usage.total_tokens
    details = (usage.prompt_details or {}, usage.completion_details or {})
    return sum(part.get(f"{kind}_tokens", 0) for kind in kinds for part in details)
