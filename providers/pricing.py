"""Prices, and the cost of a response.

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

_TEXT_RATES: Final = frozenset({"input", "output", "cached_input", "cache_write", "cache_write_1h"})
"""The rates of a price that depends only on tokens of text."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens; `web_search` and `request` are USD per thousand.

    If a rate is `None`, another rate applies: `input` for `cached_input` and `cache_write`, `cache_write` for
    `cache_write_1h`, the rate of text for a modality, and `cached_input` for `cached_audio` and `cached_image`. If
    `request` is `None`, a request costs nothing by itself. `output` is `None` if nothing is generated, as by embedding
    models. `web_search` is `None` if the price of a search is not known.

    `long_context` has prices of requests whose prompt has more than the given number of tokens, in ascending order. The
    last one that is exceeded applies to the whole request. `tiers` has the prices of service tiers. `other_tiers` says
    whether tiers that are not in `tiers` have this price (`same`) or an unknown one (`unknown`). `unknown` names
    modalities (`audio`) whose price is not known; they are counted as text.
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
    """Whether the price has one rate for each kind of text tokens and no other rates, apart from `web_search`."""

    def __post_init__(self) -> None:
        others = (getattr(self, name) for name in RATES if name not in _TEXT_RATES and name != "web_search")
        plain = not (self.long_context or self.tiers) and all(rate is None for rate in others)
        object.__setattr__(self, "plain", plain)

    def of_tier(self, tier: str | None) -> "Price":
        """Return the price of a service tier; this price if the tier has none of its own."""
        if tier is not None:
            for name, price in self.tiers:
                if name == tier:
                    return price
        return self

    def of_length(self, prompt_tokens: int) -> "Price":
        """Return the price of a request whose prompt has `prompt_tokens` tokens."""
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
"""The fields of a Price that are amounts of USD."""


def price_of_rates(rates: Mapping[str, float]) -> Price:
    """Return a price with the given rates. The keys are names of RATES, and `input` must be one of them."""
    return with_rates(Price(rates["input"]), rates)


def with_rates(price: Price, rates: Mapping[str, float]) -> Price:
    """Return a price with some rates replaced."""
    known: dict[str, Any] = {name: rates[name] for name in RATES if name in rates}
    return replace(price, **known)


def cost(price: Price | None, usage: Usage | None) -> float | None:
    """Return the cost in USD as far as it is known (see `unpriced`); `None` if the usage, or the price of the tokens,
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
    """Return how much more, or less, a prompt costs than the same number of uncached tokens of text, in millionths of a
    USD.

    Vendors count tokens read from their cache, tokens written into it, and the tokens of each modality as parts of the
    prompt. No part is counted as larger than the whole. Vendors do not report which modality was cached; text is
    assumed to be cached first.

    `ephemeral_1h_input_tokens`, tokens written for an hour, are included in the written tokens (Anthropic, November
    2026).
    """
    read_tokens = _part(details, "cached_tokens", prompt)
    written_tokens = _part(details, "cache_write_tokens", prompt - read_tokens)
    hour_tokens = _part(details, "ephemeral_1h_input_tokens", written_tokens)
    read_rate = price.input if price.cached_input is None else price.cached_input
    write_rate = price.input if price.cache_write is None else price.cache_write
    hour_rate = write_rate if price.cache_write_1h is None else price.cache_write_1h
    difference = read_tokens * (read_rate - price.input)
    difference += (written_tokens - hour_tokens) * (write_rate - price.input) + hour_tokens * (hour_rate - price.input)
    if price.plain:
        return difference
    left, cached = prompt - written_tokens, read_tokens
    for name, fresh_rate, cached_rate in (
        ("audio_tokens", price.input_audio, price.cached_audio),
        ("image_tokens", price.input_image, price.cached_image),
        ("video_tokens", price.input_video, None),
    ):
        if fresh_rate is None and cached_rate is None:
            continue
        tokens = _part(details, name, left)
        left -= tokens
        of_cache = max(0, min(tokens, cached - left))  # the cached tokens that exceed the rest of the prompt
        cached -= of_cache
        fresh_rate = price.input if fresh_rate is None else fresh_rate
        cached_rate = read_rate if cached_rate is None else cached_rate
        difference += (tokens - of_cache) * (fresh_rate - price.input) + of_cache * (cached_rate - read_rate)
    return difference


def _completion_difference(price: Price, details: Mapping[str, int], completion: int) -> float:
    """Return how much more a completion costs than the same number of tokens of text, in millionths of a USD. Its web
    searches are part of the difference."""
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
    """Return the kinds of usage whose price is not known: `tokens`, `service_tier`, `audio`, `web_search`; empty if all
    prices are known. For these kinds `cost` uses other prices: the standard prices for a tier and the prices of text
    for a modality. `cost` counts a search as free."""
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
    """Return how many tokens of a usage have no known price. `kinds` is the result of `unpriced`."""
    if TOKENS in kinds or TIER in kinds:
        return usage.total_tokens
    details = (usage.prompt_details or {}, usage.completion_details or {})
    return sum(part.get(f"{kind}_tokens", 0) for kind in kinds for part in details)
