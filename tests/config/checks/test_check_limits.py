"""Limits and budgets that must be mistakes: unknown names, budgets that refuse every request, too short periods."""

import pytest

from config.checks.check_limits import counted_periods, limit_sections
from tests.config.tables import BASE, complaints, load
from tests.support.looped import looped

KEY = f"sha256:{'a' * 64}"
PRICED = BASE.replace("openai/gpt-4o: {}", "openai/gpt-4o: {price: {input: 2, output: 8}}")


def complaints_about_team(team: str, table: str = PRICED, models: str = "openai/gpt-4o, azure/gpt-4o") -> list[str]:
    """Return the complaints about a team, without lines and columns."""
    text = f"{table}routes: {{fast: openai/gpt-4o}}\nteams: {{t: {{keys: ['{KEY}'], models: [{models}], {team}}}}}\n"
    return [each.partition(" ")[2] for each in complaints(text)]


def test_a_limit_of_a_name_that_leads_nowhere_is_refused_with_the_nearest() -> None:
    (only,) = complaints_about_team("limits: {models: {openai/gpt-4: {concurrent: 1}, fast: {concurrent: 1}}}")
    assert only.startswith(
        "teams.t.limits.models.openai/gpt-4: no model or route named openai/gpt-4; did you mean openai"
    )


def test_a_limited_name_may_hold_a_colon() -> None:
    table = PRICED.replace("models:\n", "models:\n  local/m:free: {}\n")
    assert (
        complaints_about_team("limits: {models: {'local/m:free': {concurrent: 1}}}, routes: {own: local/m}", table)
        == []
    )


@pytest.mark.parametrize(
    ("name", "counted", "instead"),
    [("local/m", "local/*", "add 'local/m' to models"), ("azure/gpt-4o/eu", "azure/gpt-4o", "set the limit there")],
)
def test_a_limit_of_a_name_that_is_counted_under_another_is_refused(name: str, counted: str, instead: str) -> None:
    assert complaints_about_team(f"limits: {{models: {{{name}: {{concurrent: 1}}}}}}") == [
        f"teams.t.limits.models.{name}: has no effect: requests for this name are counted as '{counted}'; {instead}"
    ]


def test_a_budget_s_route_must_lead_somewhere() -> None:
    (only,) = complaints_about_team("budget: {usd: 5, per: day, then: {route: fsat}}")
    assert only == "teams.t.budget.then.route: no model or route named fsat; did you mean fast?"
    for name in ("fast", "own", "openai/gpt-4o-mini", "azure/gpt-4o/eu", "local/any"):
        assert (
            complaints_about_team(f"budget: {{usd: 5, per: day, then: {{route: {name}}}}}, routes: {{own: local/x}}")
            == []
        )


def test_a_budget_s_route_from_a_reference_is_not_shown() -> None:
    budget = "{usd: 5, per: day, then: {route: '${R}'}}"
    text = f"{PRICED}teams: {{t: {{keys: ['{KEY}'], models: ['*'], budget: {budget}}}}}\n"
    (only,) = complaints(text, {"R": "canary"})
    assert only.endswith("teams.t.budget.then.route: the value of this reference is no model or route")


def test_a_budget_that_leads_to_the_only_name_there_is_leads_to_itself() -> None:
    budget = "budget: {usd: 5, per: day, then: {route: openai/gpt-4o}}"
    message = "teams.t.budget.then.route: leads to itself: this team may request no other name"
    assert complaints_about_team(budget, models="openai/gpt-4o") == [message]
    assert complaints_about_team(budget) == []


@looped(
    ("team", "days"),
    [
        ("budget: {tokens: 1M, per: hour}", None),
        ("budget: {tokens: 1M, per: day}", 2),
        ("limits: {tokens_per_week: 1M}", 8),
        ("budget: [{tokens: 1M, per: day}, {usd: 5, per: month}]", 32),
        ("limits: {models: {fast: {requests_per_month: 1M}}}", 32),
        ("limits: {requests_per_minute: 5}", None),
    ],
)
def test_the_ledger_keeps_longer_than_what_is_summed_from_it(team: str, days: int | None) -> None:
    def with_keep(keep: int) -> list[str]:
        return complaints_about_team(team, f"{PRICED}server: {{ledger: {{keep: {keep}d}}}}\n")

    if days is None:
        assert with_keep(1) == []
        return
    period = {2: "day", 8: "week", 32: "month"}[days]
    assert with_keep(days) == []
    assert with_keep(days - 1) == [
        f"server.ledger.keep: must be at least {days}d: a limit or a budget per {period} is summed from the ledger"
    ]


EVERYWHERE = f"""\
version: 1
limits: {{requests_per_day: 5}}
vendors: {{v: {{limits: {{requests_per_hour: 5}}}}}}
models: {{v/m: {{limits: {{concurrent: 5}}, deployments: {{a: {{limits: {{tokens_per_week: 5000}}}}, b: {{}}}}}}}}
teams:
  t:
    keys: [{{hash: '{KEY}', limits: {{requests_per_minute: 5}}}}]
    models: [v/m]
    limits: {{concurrent: 9, models: {{v/m: {{concurrent: 2}}}}}}
    budget: {{tokens: 5M, per: month}}
"""


def test_every_section_with_limits_is_found_with_those_around_it() -> None:
    found = {
        ".".join(map(str, path)): [words for words, _ in around]
        for path, _, around in limit_sections(load(EVERYWHERE).config)
    }
    assert found == {
        "limits": [],
        "vendors.v.limits": [],
        "models.v/m.limits": ["the vendor's"],
        "models.v/m.deployments.a.limits": ["the model's", "the vendor's"],
        "teams.t.limits": ["the limit of all clients"],
        "teams.t.limits.models.v/m": ["the team's", "the limit of all clients"],
        "teams.t.keys.0.limits": ["the team's", "the limit of all clients"],
    }


def test_the_periods_that_are_counted_are_those_of_the_calendar() -> None:
    assert counted_periods(load(EVERYWHERE).config) == {"hour", "day", "week", "month"}


@looped(
    ("section", "message"),
    [
        ("{limit: {}}", "8:123 teams.t.each_user.limit: unknown key; did you mean limits?"),
        ("{limits: {models: {}}}", "8:132 teams.t.each_user.limits.models: unknown key"),
        ("{budget: {usd: 5}}", "8:131 teams.t.each_user.budget.per: required key is missing"),
        (
            "{budget: {usd: 5, per: day, then: {route: fast}}}",
            "8:156 teams.t.each_user.budget.then: must be warn or reject",
        ),
        ("{required: 'perhaps'}", "8:133 teams.t.each_user.required: expected true or false, found text"),
    ],
)
def test_what_each_user_cannot_have_is_refused_at_its_place(section: str, message: str) -> None:
    text = f"{BASE}teams: {{t: {{keys: ['{KEY}'], models: ['*'], each_user: {section}}}}}\n"
    (only,) = complaints(text)
    assert only.startswith(message)


def test_a_ledger_keeps_what_users_are_summed_from() -> None:
    table = f"{PRICED}server: {{ledger: {{url: 'sqlite:l.db', keep: 20d}}}}\n"
    (only,) = complaints_about_team("each_user: {budget: {usd: 5, per: month}}", table)
    assert only.startswith("server.ledger.keep: must be at least 32d: a limit or a budget per month is summed")
