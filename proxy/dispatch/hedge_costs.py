"""The cost of a call that was cancelled because another attempt answered first. Pure."""

from dataclasses import replace
from typing import TypeAlias

from providers.completion import Usage
from providers.emulation.plan_calls import CallPlan
from providers.pricing import Price, cost
from providers.target import Target
from proxy.limits.token_estimate import DEFAULT_OUTPUT_TOKENS
from proxy.upstream.unanswered_usage import usage_of_call

Used: TypeAlias = tuple[tuple[Usage, Price | None], ...]
"""The usages of calls whose response no client gets, each with the price of its deployment."""


def usd_of(used: Used) -> float:
    """Return the cost of calls in USD; calls with an unknown price are not included."""
    return sum([cost(price, usage) or 0.0 for usage, price in used])


def most_lost(*prepared: CallPlan) -> float:
    """Return the most USD that a cancelled one of these calls may cost, as far as prices are known."""
    return max([cost(each.target.price, _most_used(each)) or 0.0 for each in prepared])


def bounded(used: Used, prepared: CallPlan) -> Used:
    """Return the usage of a cancelled call. If its vendor may continue to generate, it includes all tokens that the
    vendor may generate."""
    if not used or _ends_bill(prepared):
        return used
    usage, price = used[-1]
    return (*used[:-1], (with_bound(usage, most_generated(prepared)), price))


def _most_used(prepared: CallPlan) -> Usage:
    call = prepared.calls[0]
    prompt = usage_of_call(call.request, len(call.sent.body))
    return prompt if _ends_bill(prepared) else with_bound(prompt, most_generated(prepared))


def _ends_bill(prepared: CallPlan) -> bool:
    return ends_bill(prepared.target, stream=prepared.calls[0].sent.stream)


def most_generated(prepared: CallPlan) -> int:
    """Return the most tokens that a vendor may generate for a call, as far as that is limited."""
    asked, most = prepared.request.params.get("max_tokens"), prepared.target.max_output_tokens
    if prepared.max_tokens is not None:
        asked = prepared.max_tokens
    if asked is None:
        return most or DEFAULT_OUTPUT_TOKENS
    return asked if most is None else min(asked, most)


def ends_bill(target: Target, *, stream: bool) -> bool:
    """Return whether a cancelled call is known to cost at most the tokens generated until then. For a non-streaming
    response this is unknown, because the vendor may notice the cancellation only when it writes the response."""
    return target.is_engine or (stream and target.profile.closing_ends_bill)


def with_bound(usage: Usage, most: int) -> Usage:
    """Return the usage of a cancelled call with all the tokens that its vendor may generate; unchanged if the vendor
    reported it."""
    if not usage.estimated:
        return usage
    return replace(usage, completion_tokens=max(usage.completion_tokens, most))
