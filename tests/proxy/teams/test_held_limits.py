"""The units held of limits, and the cost of tokens while they are held."""

from providers.completion import Usage
from providers.pricing import Price
from proxy.request_record import RequestRecord
from proxy.teams.held_limits import ONE, BoundScopes, Held, cost_of
from tests.proxy.teams.kit import Desk, ended
from tests.support.looped import looped


@looped(
    ("price", "tokens", "cost"),
    [
        (None, (10, 10), None),
        (Price(1.0, 2.0), (10, 5), 20_000),
        (Price(1.0, None), (10, 0), 10_000),
        (Price(1.0, None), (10, 1), None),
    ],
)
def test_tokens_cost_what_their_price_says_or_nobody_knows(
    price: Price | None, tokens: tuple[int, int], cost: int | None
) -> None:
    assert cost_of(price, *tokens) == cost


def test_what_is_held_ends_once_with_what_was_used() -> None:
    desk = Desk("limits: {tokens_per_day: 1M}")
    record = desk.ask()
    for tokens in (9, 99):
        ended(record, Usage(tokens, 1))
    assert desk.used() == {"team t: tokens day": 10}


def test_what_holds_no_scope_has_no_headers() -> None:
    desk = Desk("limits: {concurrent: 1}")
    desk.ask()
    held = Held(desk.limiter, BoundScopes(("t", "v/m")), desk.limiter.registry.meters((), 0.0), ONE)
    assert (held.headers(), held.header_lines()) == ({}, "")
    assert held.cost_at(Price(1.0, 2.0)) == 0
    held.end(RequestRecord("r", 0.0, "openai", "/"))
    assert held.ended
