"""The cost of an answer, from the operator's prices."""

from dataclasses import dataclass
from typing import Final

from providers.completion import Usage

_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens. Tokens from the vendor's cache cost as much as others where `cached_input` is None."""

    input: float
    output: float
    cached_input: float | None = None


def cost(price: Price | None, usage: Usage | None) -> float | None:
    """Return the cost in USD; None where the price or the usage is not known."""
    if price is None or usage is None:
        return None
    cached = min((usage.prompt_details or {}).get("cached_tokens", 0), usage.prompt_tokens)
    cached_input = price.input if price.cached_input is None else price.cached_input
    fresh = usage.prompt_tokens - cached
    return (fresh * price.input + cached * cached_input + usage.completion_tokens * price.output) / _MILLION
