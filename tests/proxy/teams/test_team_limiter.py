"""Admission by the limits of teams and keys: the units requested, held, settled and reported."""

from collections.abc import Mapping
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from proxy.errors import GatewayError
from proxy.limits.limit import MOST_COST, MOST_TOKENS
from proxy.request_outcomes import CacheUse
from proxy.request_record import RequestRecord
from proxy.routing.snapshot import NO_KEY
from proxy.teams.held_limits import Held
from proxy.teams.team_limiter import RequestSize
from tests.proxy.kit.tables import digest_of, snapshot
from tests.proxy.teams.kit import WALL, Desk, ended, tokens_of
from tests.support.looped import looped


def never() -> RequestSize:
    raise AssertionError


def test_a_team_without_limits_is_not_even_measured() -> None:
    desk = Desk()
    record = RequestRecord("r", 0.0, "openai", "/")
    assert desk.limiter.admit(desk.key, desk.plan(), record, never) is None
    assert desk.limiter.admit(NO_KEY, desk.plan(), record, never) is None
    assert record.held is None


def test_a_team_that_is_limited_to_requests_is_not_measured_either() -> None:
    desk = Desk("limits: {requests_per_minute: 2, concurrent: 9}")
    record = RequestRecord("r", 0.0, "openai", "/")
    assert desk.limiter.admit(desk.key, desk.plan(), record, never) is None
    assert record.held is not None


@looped(
    ("size", "tokens"),
    [
        ((400, 100, 1), 200),
        ((400, 100, 5), 600),
        ((400, None, 1), 600),
        ((400, None, 3), 1600),
        ((0, 0, 1), 1),
        ((None, 0, 1), 1),
        ((0, 10**30, 128), MOST_TOKENS),
    ],
)
def test_the_prompt_and_all_answers_are_reserved(size: RequestSize, tokens: int) -> None:
    assert tokens_of(Desk("limits: {tokens_per_day: 1000000M}").ask(size)) == tokens


def test_without_any_limit_on_an_answer_4096_tokens_are_reserved() -> None:
    assert tokens_of(Desk("limits: {tokens_per_day: 1M}").ask((0, None, 1), "v/unpriced")) == 4096


def test_what_was_reserved_becomes_what_was_used() -> None:
    desk = Desk("limits: {tokens_per_day: 1M}\nbudget: [{usd: 5, per: day}]")
    record = desk.ask((40, 100, 1))
    assert desk.used() == {"team t: tokens day": 110, "team t: usd day": 210_000}
    ended(record, Usage(7, 3))
    assert desk.used() == {"team t: tokens day": 10, "team t: usd day": 13_000}


def test_it_is_settled_once() -> None:
    desk = Desk("limits: {tokens_per_day: 1M, concurrent: 3}")
    first, _ = desk.ask(), desk.ask()
    for _ in range(3):
        ended(first, Usage(7, 3))
    assert desk.used() == {"team t: requests concurrent": 1, "team t: tokens day": 120}


def test_a_request_that_asked_nobody_gives_all_back_and_a_failed_one_its_tokens() -> None:
    desk = Desk("limits: {requests_per_day: 9, tokens_per_day: 1M}")
    ended(desk.ask(), None, attempts=0)
    assert desk.used() == {"team t: requests day": 0, "team t: tokens day": 0}
    ended(desk.ask(), None)
    assert desk.used() == {"team t: requests day": 1, "team t: tokens day": 0}


def test_an_answer_out_of_the_cache_counts_as_a_request_and_uses_nothing() -> None:
    desk = Desk("limits: {requests_per_minute: 10, tokens_per_minute: 10000}")
    record = desk.ask()
    record.cache, record.billed = CacheUse("hit"), Usage(0, 0)
    ended(record, Usage(40, 60), attempts=0)
    assert sorted(desk.used().values()) == [0, 1]


def test_an_answer_of_several_calls_counts_all_of_them() -> None:
    desk = Desk("limits: {tokens_per_day: 1M}")
    record = desk.ask()
    record.billed = Usage(70, 30)
    ended(record, Usage(7, 3))
    assert desk.used() == {"team t: tokens day": 100}


def test_usage_without_end_counts_as_the_ledger_counts_it() -> None:
    desk = Desk("limits: {tokens_per_day: 1000000M}\nbudget: [{usd: 1000000, per: day}]")
    ended(desk.ask(), Usage(10**18, 10**18))
    assert desk.used() == {"team t: tokens day": MOST_TOKENS, "team t: usd day": MOST_COST}
    other = Desk("limits: {tokens_per_day: 1M}")
    ended(other.ask(), Usage(-(10**18), 0))
    assert other.used() == {"team t: tokens day": 0}


def test_the_key_the_team_and_the_name_are_asked_together() -> None:
    desk = Desk(
        "limits: {requests_per_day: 9, models: {v/m: {requests_per_day: 5}}}", ", limits: {requests_per_day: 1}"
    )
    desk.ask()
    assert desk.used() == {
        "team t: requests day": 1,
        "key t/ci: requests day": 1,
        "team t model v/m: requests day": 1,
    }
    assert "key t/ci" in desk.refusal().facts.message
    assert desk.refused == [("t", "key ci: requests per day")]
    assert desk.used()["team t: requests day"] == 1


def test_a_refusal_shows_all_limits_and_is_told_apart_in_the_record() -> None:
    desk = Desk("limits: {requests_per_day: 1, tokens_per_minute: 1000}")
    desk.ask()
    record = RequestRecord("r", 0.0, "openai", "/")
    with pytest.raises(GatewayError) as raised:
        desk.later(record)
    headers = raised.value.facts.headers
    assert (headers["x-ratelimit-remaining-requests"], headers["x-ratelimit-remaining-tokens"]) == ("0", "890")
    assert (record.outcome, record.held) == ("limited", None)


async def test_who_may_wait_does_and_the_wait_is_told_from_the_client_s() -> None:
    desk = Desk("limits: {concurrent: 1}\non_limit: {queue: 5s}")
    first, second = desk.ask(), RequestRecord("r", 0.0, "openai", "/")
    later = desk.later(second)
    assert later is not None
    waiting = later(5.0)
    desk.now = 2.0
    ended(first, None)
    await waiting
    assert second.held is not None
    assert (second.client_waited, second.limit_waited) == (0.0, 0.0)


async def test_who_has_less_time_than_the_wait_takes_is_refused_at_once() -> None:
    desk = Desk("limits: {requests_per_minute: 60, burst: 1}\non_limit: {queue: 5s}")
    desk.ask()
    later = desk.later(RequestRecord("r", 0.0, "openai", "/"))
    assert later is not None
    with pytest.raises(GatewayError):
        await later(0.5)
    assert not desk.limiter.registry._lines.lines


def test_a_wait_that_is_longer_than_the_line_allows_is_no_wait() -> None:
    desk = Desk("limits: {requests_per_day: 1}\non_limit: {queue: 5s}")
    desk.ask()
    assert desk.refusal().facts.status == 429


BUDGET = "budget: [{{usd: 1, per: day, {}}}]"


@looped(
    ("name", "size"),
    [
        ("v/unpriced", (4, 1, 1)),
        ("mixed", (4, 1, 1)),
        ("v/m", (None, 0, 1)),
        ("v/vectors", (4, 1, 1)),
        ("v/any", (4, 1, 1)),
    ],
)
def test_what_has_no_price_is_refused_where_the_table_says_so(name: str, size: RequestSize) -> None:
    desk = Desk(BUDGET.format("unpriced: reject"))
    error = desk.refusal(size, name)
    assert (error.facts.status, error.facts.code, error.facts.param) == (429, "insufficient_quota", "model")
    assert f"'{name}'" in error.facts.message
    assert desk.refused == [("t", "usd per day, unpriced")]
    Desk(BUDGET.format("unpriced: ignore")).ask(size, name)


def test_vectors_need_no_price_of_an_answer() -> None:
    desk = Desk(BUDGET.format("unpriced: reject"))
    desk.ask((4000, 0, 1), "v/vectors")
    assert desk.used() == {"team t: usd day": 1_000_000}


def test_a_spent_budget_refuses_until_its_period_ends_whatever_the_clock_does() -> None:
    desk = Desk(BUDGET.format("then: reject"))
    ended(desk.ask(), Usage(1_000_000, 0))
    assert desk.refusal().facts.code == "insufficient_quota"
    desk.wall = WALL - 7 * 86_400
    assert desk.refusal().facts.code == "insufficient_quota"
    desk.wall = WALL + 86_400
    desk.ask()


def test_a_request_that_would_hold_more_than_a_budget_passes_only_while_nothing_of_it_is_used() -> None:
    desk, unlimited = Desk("budget: {usd: 0.01, per: day}"), (40, 8192, 1)
    ended(desk.ask(unlimited), Usage(5, 50))
    told = desk.refusal(unlimited).facts
    assert "0.000105 USD of 0.010000 USD used, 0.00 USD reserved by running requests" in told.message
    assert "this request would hold 0.016" in told.message
    assert int(told.headers["retry-after"]) > 60
    desk.ask((40, 100, 1))


def test_a_budget_routes_for_the_rest_of_its_period_and_grants_what_it_routes_to() -> None:
    desk = Desk(BUDGET.format("at: 50%, then: {route: small}").replace("models", "models"))
    assert desk.limiter.route(desk.key, desk.table) is None
    ended(desk.ask(), Usage(500_000, 0))
    routed = desk.limiter.route(desk.key, desk.table)
    assert routed is not None
    name, team = routed
    assert (name, team.name, team.allow) == ("small", "t", ("*",))
    assert desk.limiter.route(desk.key, desk.table) == routed
    desk.wall += 86_400
    assert desk.limiter.route(desk.key, desk.table) is None


def test_a_request_from_before_a_reload_is_not_routed_to_a_name_that_it_does_not_know() -> None:
    desk = Desk(BUDGET.format("at: 50%, then: {route: small}"))
    before, table = desk.key, desk.table
    ended(desk.ask(), Usage(500_000, 0))
    desk.use(BUDGET.format("at: 50%, then: {route: mixed}"))
    assert desk.limiter.route(desk.key, desk.table) is not None
    assert desk.limiter.route(before, table) is None


def test_a_team_with_a_budget_is_refused_while_nobody_knows_what_it_spent() -> None:
    desk = Desk(BUDGET.format("then: reject"))
    desk.limiter.unread = lambda: True
    assert desk.refusal().facts.status == 503
    desk.use("limits: {requests_per_day: 5}")
    desk.ask()


def test_a_raised_limit_holds_at_once_and_what_is_used_stays_used() -> None:
    desk = Desk("limits: {requests_per_day: 1}")
    running = desk.ask()
    desk.refusal()
    desk.use("limits: {requests_per_day: 2}")
    desk.ask()
    desk.refusal()
    desk.use()
    desk.ask()
    ended(running, Usage(1, 1))


def test_what_is_settled_is_numbered_before_it_is_counted() -> None:
    desk = Desk("limits: {requests_per_day: 9}")
    seen: list[Mapping[str, int]] = []
    desk.limiter.settling = lambda: seen.append(desk.used())
    desk.limiter.notes.until = desk.now
    first = desk.ask()
    ended(desk.ask(), None, attempts=0)
    assert seen == []
    ended(first, None)
    assert len(seen) == 1


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), max_size=20))
def test_what_is_used_is_the_sum_of_what_requests_used(usages: list[tuple[int, int]]) -> None:
    desk = Desk("limits: {tokens_per_day: 1000000M, concurrent: 100}")
    for record, used in [(desk.ask(), used) for used in usages]:
        ended(record, Usage(*used))
    if usages:
        assert desk.used() == {"team t: requests concurrent": 0, "team t: tokens day": sum(map(sum, usages))}


@pytest.mark.thorough
def test_estimates_are_corrected_by_what_was_seen() -> None:
    desk = Desk("limits: {tokens_per_day: 1000M}")
    size = (400, 1000, 1)
    first = tokens_of(desk.ask(size))
    for _ in range(300):
        ended(desk.ask(size), Usage(50, 10))
    assert first == 1100
    assert tokens_of(desk.ask(size)) == pytest.approx(50 + 10, rel=0.2)


def test_made_up_usage_teaches_nothing() -> None:
    desk = Desk("limits: {tokens_per_day: 1000M}")
    ended(desk.ask(), Usage(50, 10, estimated=True))
    assert not desk.limiter.estimates._ratios


def test_ten_thousand_teams_and_names_that_clients_make_up_stay_bounded() -> None:
    desk = Desk("limits: {requests_per_day: 100M}")
    for number in range(20_000):
        desk.limiter._bind(desk.key, f"v/{number}")
    assert len(desk.limiter._scopes) == 16_384


def test_of_several_budgets_that_route_the_narrowest_scope_s_name_answers() -> None:
    spends = "budget: {{tokens: 10k, per: day, at: 50%, then: {{route: {}}}}}"
    desk = Desk(spends.format("small"), ", " + spends.format("mixed"))
    assert desk.limiter.route(desk.key, desk.table) is None
    ended(desk.ask(), Usage(5000, 0))
    routed = desk.limiter.route(desk.key, desk.table)
    assert routed is not None
    assert routed[0] == "mixed"


def test_a_key_s_spent_budget_refuses_it_by_its_name() -> None:
    desk = Desk("", ", budget: {tokens: 1000, per: day}")
    ended(desk.ask(), Usage(1000, 0))
    told = desk.refusal().facts
    assert (told.code, told.message.partition(" is spent")[0]) == (
        "insufficient_quota",
        "The budget of key t/ci per day",
    )
    assert desk.refused == [("t", "key ci: tokens per day")]


def test_without_teams_all_clients_are_held_together() -> None:
    desk = Desk()
    desk.table = snapshot(
        "limits: {requests_per_minute: 1}\nvendors: {v: {profile: openai, api_key: k}}\nmodels: {v/m: {}}"
    )
    desk.limiter.use(desk.table)
    desk.key = NO_KEY
    record = desk.ask()
    assert record.held is not None
    assert record.held.headers()["x-ratelimit-scope-requests"] == "all clients"
    assert desk.refusal().facts.message.startswith("Rate limit reached for all clients on requests per minute: Limit 1")


BUDGETED = """
{every}
vendors: {{v: {{profile: openai, api_key: k}}}}
models: {{v/m: {{}}}}
teams: {{t: {{keys: [{{hash: "{hash}", name: ci{key}}}], models: ["*"]{team}}}}}
"""


@looped(("place", "scope"), [("every", "all clients"), ("team", "team t"), ("key", "key t/ci")])
def test_a_refused_request_notes_whose_budget_refused_it(place: str, scope: str) -> None:
    budget = "budget: {tokens: 1000, per: day}"
    written = {"every": budget, "team": f", {budget}", "key": f", {budget}"}
    desk = Desk()
    at = {each: text if each == place else "" for each, text in written.items()}
    desk.table = snapshot(BUDGETED.format(hash=digest_of("k"), **at))
    (desk.key,) = desk.table.keys.values()
    desk.limiter.use(desk.table)
    ended(desk.ask(), Usage(1000, 0))
    record = RequestRecord("r", 0.0, "openai", "/", team="t", asked="v/m")
    with pytest.raises(GatewayError):
        desk.later(record)
    assert record.limit is not None
    assert record.limit.words == f"budget of {scope}: 1000 tokens per day"


def test_if_the_count_of_what_was_used_fails_the_reserved_counts_and_the_slot_is_free() -> None:
    desk = Desk("limits: {concurrent: 1, tokens_per_day: 1M}")
    for _ in range(2):
        record = desk.ask()
        before = desk.used()["team t: tokens day"]
        with patch.object(Held, "_bill_unanswered", side_effect=TypeError), pytest.raises(TypeError):
            ended(record, Usage(1, 1))
        assert desk.used() == {"team t: requests concurrent": 0, "team t: tokens day": before}
        assert before >= tokens_of(record) > 2
