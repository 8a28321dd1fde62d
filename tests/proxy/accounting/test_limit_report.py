"""The operators' view of limits: the most used first, several processes as one, and unused limits."""

import orjson

from proxy.accounting.limit_report import (
    MAX_STATUS_LINES,
    limit_lines,
    limits_report,
    merged_views,
    most_used,
    team_of,
    with_unused,
)
from proxy.limits.limit import NANO, Period, Unit
from proxy.limits.limit_views import MOST_VIEWS, LimitKind, LimitView
from tests.proxy.kit.tables import digest_of, snapshot

WALL = 1_795_003_200.0
"""2026-11-18 12:00 UTC."""

TABLE = f"""
vendors: {{mock: {{limits: {{requests_per_minute: 6000}}}}}}
models: {{mock/echo: {{price: {{input: 1, output: 2}}}}}}
teams:
  search:
    keys: [{{hash: "{digest_of("k")}", name: ci, limits: {{requests_per_minute: 60}}}}]
    models: ["*"]
    limits:
      {{requests_per_minute: 600, tokens_per_day: 5M, concurrent: 64, models: {{mock/echo: {{tokens_per_hour: 1k}}}}}}
    budget: {{usd: 500, per: month, at: 80%, then: warn}}
  data: {{keys: ["{digest_of("d")}"], models: ["*"], limits: {{requests_per_minute: 5}}}}
"""


def rate(scope: str, used: int, limit: int = 100) -> LimitView:
    return LimitView(scope, LimitKind.RATE, Unit.REQUESTS, Period.MINUTE, limit, used)


def test_the_most_used_come_first_and_their_number_is_bounded() -> None:
    views = [rate(f"team t{number}", number, 10_000) for number in range(2 * MOST_VIEWS)]
    found = most_used(views)
    assert len(found) == MOST_VIEWS
    assert (found[0].used, found[-1].used) == (2 * MOST_VIEWS - 1, MOST_VIEWS)


def test_a_team_has_its_own_limits_and_those_of_its_keys_and_models() -> None:
    scopes = ["team a", "team a model m", "key a/ci", "team ab", "key ab/ci", "vendor a"]
    assert {each.scope for each in most_used(map(lambda scope: rate(scope, 1), scopes), "a")} == set(scopes[:3])
    assert team_of(rate("vendor a", 1)) == ""


def test_of_several_processes_the_one_that_knows_of_most_is_right() -> None:
    merged = merged_views([[rate("team a", 3), rate("team b", 1)], [rate("team a", 9)], [rate("team a", 4, 50)]])
    assert {(each.scope, each.limit, each.used) for each in merged} == {
        ("team a", 100, 9),
        ("team a", 50, 4),
        ("team b", 100, 1),
    }


def test_what_nobody_has_used_is_in_the_report_with_all_of_it_left() -> None:
    table = snapshot(TABLE)
    found = with_unused([rate("team search", 7, 600)], table, WALL)
    assert found[0].used == 7
    assert {each.scope: (each.kind.value, each.remaining) for each in found[1:] if each.kind is LimitKind.RATE} == {
        "vendor mock": ("rate", 1000),
        "key search/ci": ("rate", 60),
        "team data": ("rate", 5),
    }
    mine = with_unused([], table, WALL, "search")
    assert {each.scope for each in mine} == {"team search", "key search/ci", "team search model mock/echo"}
    (budget,) = (each for each in mine if each.kind is LimitKind.BUDGET)
    assert (budget.limit, budget.at, budget.then) == (500 * NANO, 0.8, "warn")
    assert budget.ends == 1_796_083_200


def test_what_each_user_of_a_team_may_use_is_in_the_report_before_any_is_seen() -> None:
    each = "each_user: {limits: {requests_per_minute: 9}, budget: {usd: 5, per: month}}"
    table = snapshot(f"{TABLE}{each}\n")
    found = [each for each in with_unused([], table, WALL, "search") if each.scope == "user search/*"]
    assert [(view.kind, view.remaining) for view in found] == [(LimitKind.RATE, 9), (LimitKind.BUDGET, 5 * NANO)]


def test_money_is_in_usd_and_a_period_has_its_end() -> None:
    spent = LimitView(
        *("team a", LimitKind.BUDGET, Unit.USD, Period.MONTH, 500 * NANO, 401 * NANO, 1_796_083_200, 0.8, "warn", True)
    )
    report = limits_report([spent], {"alone": False}, {"a": 5.0})
    assert report == {
        "alone": False,
        "limits": [
            {
                "scope": "team a",
                "kind": "budget",
                "unit": "usd",
                "period": "month",
                "limit": 500.0,
                "burst": None,
                "used": 401.0,
                "remaining": 99.0,
                "ratio": 0.802,
                "ends": "2026-12-01T00:00:00+00:00",
                "at": 0.8,
                "then": "warn",
                "queue_s": None,
                "reached": True,
            }
        ],
    }
    assert limit_lines([spent]) == ["team a: 401.00 of 500.00 USD per month (80%), warn at 80%, reached"]


def test_a_rate_whose_burst_is_not_its_amount_shows_both_as_its_refusals_do() -> None:
    full = LimitView("team a", LimitKind.RATE, Unit.REQUESTS, Period.MINUTE, 100, 5, reached=True, burst=5)
    assert limit_lines([full]) == ["team a: 5 of 5 in one go, 100 requests per minute (100%), reached"]
    report = orjson.loads(orjson.dumps(limits_report([full], {}, {"a": 5.0, "b": 7.0})))
    assert [report["limits"][0][name] for name in ("limit", "burst", "used", "remaining")] == [100, 5, 5, 0]
    assert report["limits"][0]["queue_s"] == 5.0


def test_the_status_page_has_few_lines_and_none_of_what_is_unused() -> None:
    used = [rate(f"team t{number}", 1) for number in range(100)]
    assert limit_lines([*used, rate("team z", 0)]) == [
        f"team t{number}: 1 of 100 requests per minute (1%)" for number in range(MAX_STATUS_LINES)
    ]
    places = LimitView("team a", LimitKind.CONCURRENT, Unit.REQUESTS, None, 4, 4, reached=True)
    assert limit_lines([rate("team z", 0), places]) == ["team a: 4 of 4 requests at once (100%), reached"]
