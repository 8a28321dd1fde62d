"""The page's values for a view: states, reasons, probes, the visitor's options, and the length limits of tables."""

from dataclasses import replace

import pytest

from proxy.admin.page_model import MOST_LIMITS, MOST_QUERY, MOST_ROWS, PageQuery, Traffic, status_page
from proxy.admin.recent_requests import NO_USE, RecentUse, RecentUses
from proxy.admin.route_states import Health, Level
from proxy.deployment_health.concurrency_limit import Limited
from proxy.limits.limit_views import LimitView
from tests.proxy.admin.kit import NOW, USE, page, status, view
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped


def test_the_worst_deployments_come_first_with_their_state_reason_and_next_probe() -> None:
    shown = page()
    assert [(each.name, each.health) for each in shown.rows] == [
        ("v/m/a", Health.OPEN),
        ("v/m/b", Health.COOLING),
        ("v/m/c", Health.HALF_OPEN),
        ("v/m/d", Health.LIMITED),
        ("mock/echo/default", Health.UP),
    ]
    worst, cooling, trial, limited, well = shown.rows
    assert (worst.probe, cooling.probe, trial.probe, limited.probe, well.probe) == (12.0, 70.0, 0.0, None, None)
    assert (worst.reason, worst.failed) == ("server, status 500: it broke", NOW - 60)
    assert (well.reason, well.failed) == ("", None)
    assert limited.limit == "4 at once (operator), 4 in flight, 2 waiting"
    assert (shown.deployments, shown.state.level, shown.found) == (5, Level.TROUBLED, 5)


def test_of_deployments_in_one_state_those_with_the_largest_share_of_errors_come_first() -> None:
    uses = {"v/m/d": RecentUse(4, 4), "v/m/b": RecentUse(100, 50), "v/m/a": RecentUse(9, 0, 9)}
    shown = page(status=replace(status(), states={}, limited={}, recent=RecentUses(300.0, USE, uses)))
    assert [each.name for each in shown.rows] == ["v/m/d", "v/m/b", "mock/echo/default", "v/m/a", "v/m/c"]


@looped(
    ("limit", "health"),
    [
        (Limited(9, "operator", 8, 0), Health.UP),
        (Limited(9, "operator", 9, 0), Health.LIMITED),
        (Limited(9, "operator", 0, 1), Health.LIMITED),
        (Limited(9, "learned after rate_limited 3 s ago", 0, 0), Health.LIMITED),
    ],
)
def test_an_operator_s_limit_is_a_state_only_where_it_binds(limit: Limited, health: Health) -> None:
    found = replace(status(), states={}, limited={"v/m/a": limit})
    rows = {each.name: each.health for each in page(status=found).rows}
    assert rows["v/m/a"] is health


def test_traffic_is_told_of_each_deployment_each_group_and_the_whole() -> None:
    shown = page()
    busy, idle = shown.rows[0].traffic, shown.rows[1].traffic
    assert (busy.requests, busy.errors, busy.refused, busy.tokens) == (20, 5, 1, 2.0)
    assert busy.duration_p50 == pytest.approx(0.0168, rel=0.01)
    assert busy.first_p95 == pytest.approx(0.0138, rel=0.01)
    assert idle == Traffic.of(NO_USE, 300.0)
    assert (idle.requests, idle.duration_p50) == (0, None)
    assert [(each.name, each.deployments, each.troubled) for each in shown.vendors] == [("mock", 1, 0), ("v", 4, 4)]
    assert [(each.name, each.traffic.requests) for each in shown.models] == [("mock/echo", 0), ("v/m", 20)]
    assert shown.whole.requests == 20


@looped(
    ("asked", "found"),
    [
        ({"vendor": "mock"}, ["mock/echo/default"]),
        ({"q": "M/B"}, ["v/m/b"]),
        ({"vendor": "v", "q": " /c "}, ["v/m/c"]),
        ({"vendor": "v", "q": "echo"}, []),
        ({"vendor": "nobody"}, []),
        ({"q": "x" * 10_000}, []),
    ],
)
def test_a_visitor_may_ask_for_a_vendor_and_a_part_of_a_name(asked: dict[str, str], found: list[str]) -> None:
    shown = page(query=PageQuery.of(asked))
    assert [each.name for each in shown.rows] == found
    assert (shown.deployments, shown.found) == (5, len(found))
    assert len(shown.query.text) <= MOST_QUERY


def test_long_tables_are_cut_unless_all_rows_are_asked_for() -> None:
    models = "".join(f"  mock/m{number}: {{}}\n" for number in range(MOST_ROWS + 50))
    many = snapshot("vendors: {mock: {}}\nmodels:\n" + models)
    cut = page(snapshot=many)
    assert (len(cut.rows), cut.found, len(cut.models), cut.models_found) == (200, 250, 200, 250)
    whole = page(snapshot=many, query=PageQuery.of({"rows": "all"}))
    assert (len(whole.rows), len(whole.models)) == (250, 250)


def test_the_limits_that_are_used_most_are_shown() -> None:
    (quota, budget) = status().limits
    many = tuple(replace(quota, scope=f"team {number}", used=number) for number in range(MOST_LIMITS + 9))
    shown = page(status=replace(status(), limits=(budget, *many)))
    limits: list[LimitView] = list(shown.limits)
    assert (len(limits), shown.limits_more) == (MOST_LIMITS, 10)
    assert limits[:2] == [budget, many[-1]]


def test_a_page_can_be_made_of_a_gateway_that_has_done_nothing() -> None:
    shown = status_page(view(workers=None, ledger=None), (), (), PageQuery())
    assert (shown.workers, shown.reloads, shown.warnings) == (None, (), [])
