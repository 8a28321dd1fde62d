"""The limits in a dry run's report: every scope that holds a request, as text, and the units that it would reserve."""

import pytest

from proxy.errors import GatewayError
from proxy.limits.limit import user_scope
from proxy.routing.deployment_load import Idle
from proxy.routing.resolve_model import plan_for
from proxy.teams.limit_outline import HeldTo, request_limits
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.looped import looped

TABLE = f"""
vendors: {{mock: {{limits: {{requests_per_minute: 6000}}}}}}
models: {{mock/echo: {{}}}}
routes: {{fast: {{targets: [mock/echo]}}}}
teams:
  search:
    keys: [{{hash: "{digest_of("k")}", name: ci, limits: {{requests_per_minute: 60}}}}, "{digest_of("other")}"]
    models: ["*"]
    limits: {{requests_per_minute: 600, models: {{fast: {{tokens_per_day: 5M}}}}}}
    budget: {{tokens: 1M, per: month}}
    on_limit: {{queue: 5s}}
  data: {{keys: ["{digest_of("d")}"], models: ["*"], limits: {{concurrent: 9}}}}
"""


def test_a_request_is_held_to_its_team_its_name_and_each_key_that_may_ask() -> None:
    table = snapshot(TABLE)
    team = table.teams["search"]
    found = request_limits(table, team, plan_for(table, team, "fast", "openai", Idle()), (400, 64, 1))
    assert found is not None
    assert (found.tokens, found.patience) == (164, 5.0)
    assert found.held == (
        HeldTo("team search", ("600 requests per minute", "1000000 tokens per month; once 100% are spent: refused")),
        HeldTo("team search model fast", ("5000000 tokens per day",)),
        HeldTo("key search/ci", ("60 requests per minute",)),
    )
    assert found.targets == {
        "mock/echo/default": (HeldTo("vendor mock", ("6000 requests per minute, 1000 in one go",)),)
    }
    other = request_limits(table, team, plan_for(table, team, "mock/echo", "openai", Idle()), (0, None, 1))
    assert other is not None
    assert other.tokens == 4096
    assert [each.scope for each in other.held] == ["team search", "key search/ci"]


def test_without_limits_there_is_nothing_to_say() -> None:
    table = snapshot(f"""
vendors: {{mock: {{}}}}
models: {{mock/echo: {{}}}}
teams: {{data: {{keys: ["{digest_of("d")}"], models: ["*"]}}}}
""")
    team = table.teams["data"]
    planned = plan_for(table, team, "mock/echo", "openai", Idle())
    assert request_limits(table, team, planned, (1, 1, 1)) is None


def test_a_budget_says_what_happens_and_when() -> None:
    table = snapshot(f"""
vendors: {{mock: {{}}}}
models: {{mock/echo: {{}}}}
teams:
  data:
    keys: ["{digest_of("d")}"]
    models: ["*"]
    budget: [{{usd: 500, per: month, at: 80%, then: {{route: mock/echo}}}}, {{usd: 5, per: day, at: 50%, then: warn}}]
""")
    team = table.teams["data"]
    found = request_limits(table, team, plan_for(table, team, "mock/echo", "openai", Idle()), (1, 1, 1))
    assert found is not None
    assert found.held == (
        HeldTo(
            "team data",
            (
                "500 USD per month; once 80% are spent: requests go to mock/echo",
                "5 USD per day; once 50% are spent: a line in the log",
            ),
        ),
    )


def test_a_user_who_is_named_is_held_to_what_each_may_use() -> None:
    each = "each_user: {limits: {requests_per_day: 9}, budget: {usd: 5, per: month, then: warn}}"
    table = snapshot(TABLE.replace("limits: {concurrent: 9}", each))
    team = table.teams["data"]
    planned = plan_for(table, team, "mock/echo", "openai", Idle())
    words = ("9 requests per day", "5 USD per month; once 100% are spent: a line in the log")
    for user, scope in (("ann", user_scope("data", "ann")), (None, "each user of team data that a request names; ")):
        found = request_limits(table, team, planned, (0, 1, 1), user)
        assert found is not None
        (held,) = found.held
        assert (held.scope.startswith(scope), held.words) == (True, words)


def test_a_user_who_has_to_be_named_is_asked_for() -> None:
    table = snapshot(TABLE.replace("limits: {concurrent: 9}", "each_user: {required: true}"))
    team = table.teams["data"]
    planned = plan_for(table, team, "mock/echo", "openai", Idle())
    with pytest.raises(GatewayError) as raised:
        request_limits(table, team, planned, (0, 1, 1))
    assert raised.value.facts.param == "user"
    assert request_limits(table, team, planned, (0, 1, 1), "ann") is not None


STRICT = "budget: {usd: 5, per: month, unpriced: reject}"


@looped(
    ("rule", "user", "named"),
    [
        (STRICT, None, "team data"),
        (f"each_user: {{{STRICT}}}", "ann", user_scope("data", "ann")),
        (f"each_user: {{{STRICT}}}", None, None),
        (STRICT.replace("unpriced: reject", "then: warn"), None, None),
    ],
)
def test_what_a_budget_refuses_without_a_price_is_refused(rule: str, user: str | None, named: str | None) -> None:
    table = snapshot(
        TABLE.replace("limits: {concurrent: 9}", rule).replace(
            "echo: {}", "paid: {price: {input: 1, output: 1}}, mock/echo: {}"
        )
    )
    team = table.teams["data"]
    for model, size, refused in (
        ("mock/echo", (1, 1, 1), True),
        ("fast", (1, 1, 1), True),
        ("mock/paid", (1, 1, 1), False),
        ("mock/paid", (None, None, 1), True),
    ):
        planned = plan_for(table, team, model, "openai", Idle())
        if named is None or not refused:
            assert request_limits(table, team, planned, size, user) is not None
            continue
        with pytest.raises(GatewayError) as raised:
            request_limits(table, team, planned, size, user)
        facts = raised.value.facts
        assert (facts.status, facts.code, named in facts.message, model in facts.message) == (
            429,
            "insufficient_quota",
            True,
            True,
        )


def test_what_a_key_s_budget_refuses_is_said_with_the_key() -> None:
    table = snapshot(TABLE.replace("name: ci,", f"name: ci, {STRICT},"))
    team = table.teams["search"]
    found = request_limits(table, team, plan_for(table, team, "mock/echo", "openai", Idle()), (1, 1, 1))
    assert found is not None
    words = "5 USD per month; once 100% are spent: refused; models without a price are refused"
    assert [words in each.words for each in found.held if each.scope == "key search/ci"] == [True]
