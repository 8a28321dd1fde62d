"""What an answer costs: the operator's price on the usage that was billed.

Never a price of its own, and never zero where nobody knows one.
"""

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
    """USD; None where one of them is not known."""
    if price is None or usage is None:
        return None
    cached = min((usage.prompt_details or {}).get("cached_tokens", 0), usage.prompt_tokens)
    cached_input = price.input if price.cached_input is None else price.cached_input
    fresh = usage.prompt_tokens - cached
    return (fresh * price.input + cached * cached_input + usage.completion_tokens * price.output) / _MILLION
