"""Warnings about limits and budgets that are probably unintended."""

import pytest

from tests.config.tables import BASE, warnings
from tests.support.looped import looped

KEY = f"sha256:{'a' * 64}"
TABLE = BASE.replace("openai/gpt-4o: {}", "openai/gpt-4o: {price: {input: 2, output: 8}}").replace(
    "openai/gpt-4o-mini: {}", "openai/gpt-4o-mini: {price: {input: 0.1, output: 0.4}}"
)
LEDGER = "server: {ledger: 'sqlite:l.db'}\n"


def warnings_about_team(
    team: str, table: str = TABLE + LEDGER, models: str = "openai/*", key: str = f"'{KEY}'"
) -> list[str]:
    """Return the warnings about a team, without lines and columns."""
    text = f"{table}routes: {{fast: openai/gpt-4o}}\nteams: {{t: {{keys: [{key}], models: [{models}], {team}}}}}\n"
    return [each.partition(" ")[2] for each in warnings(text)]


def test_what_is_meant_is_not_doubted() -> None:
    limits = "limits: {requests_per_minute: 600, burst: 50, tokens_per_minute: 200k, concurrent: 64}"
    budget = "budget: [{usd: 500, per: month}, {usd: 9, per: day, at: 80%, then: {route: openai/gpt-4o-mini}}]"
    assert warnings_about_team(f"{limits}, {budget}, on_limit: {{queue: 5s}}") == []


def test_a_limit_of_few_tokens_is_doubted_at_its_place() -> None:
    (only,) = warnings(TABLE.replace("azure: {}", "azure: {limits: {tokens_per_minute: 999}}"))
    assert only.startswith("2:59 vendors.azure.limits.tokens_per_minute: is less than many requests use")
    assert warnings_about_team("limits: {tokens_per_minute: 1000, requests_per_minute: 1}") == []
    assert (
        len(warnings_about_team("limits: {tokens_per_second: 500, models: {openai/gpt-4o: {tokens_per_day: 5}}}")) == 2
    )


@pytest.mark.parametrize("period", ["second", "minute"])
def test_a_burst_is_for_requests_that_flow(period: str) -> None:
    assert warnings_about_team(f"limits: {{burst: 5, requests_per_{period}: 9}}") == []
    message = "teams.t.limits.burst: has no effect without requests_per_second or requests_per_minute"
    assert warnings_about_team(f"limits: {{burst: 5, tokens_per_{period}: 9k, requests_per_day: 5}}") == [message]


def test_a_limit_above_one_that_holds_too_is_doubted() -> None:
    key = f"{{hash: '{KEY}', limits: {{requests_per_minute: 601, tokens_per_minute: 300k, concurrent: 5}}}}"
    assert warnings_about_team(
        "limits: {requests_per_minute: 600, tokens_per_minute: 300k, concurrent: 4}", key=key
    ) == [
        "teams.t.keys.0.limits.requests_per_minute: has no effect: it is above the team's, 600, which applies too",
        "teams.t.keys.0.limits.concurrent: has no effect: it is above the team's, 4, which applies too",
    ]
    models = "limits: {tokens_per_day: 5M, models: {openai/gpt-4o: {tokens_per_day: 6M}}}"
    message = "has no effect: it is above the team's, 5,000,000, which applies too"
    assert warnings_about_team(models) == [f"teams.t.limits.models.openai/gpt-4o.tokens_per_day: {message}"]


def test_a_deployment_s_limit_above_its_model_s_or_vendor_s_is_doubted() -> None:
    limited = "{limits: {concurrent: 8}, deployments: {eu: {limits: {concurrent: 9, requests_per_minute: 91}}"
    table = TABLE.replace("azure: {}", "azure: {limits: {concurrent: 9, requests_per_minute: 90}}")
    told = [each.partition("limits.")[2] for each in warnings(table.replace("{deployments: {eu: {}", limited))]
    assert told == [
        "concurrent: has no effect: it is above the model's, 8, which applies too",
        "requests_per_minute: has no effect: it is above the vendor's, 90, which applies too",
    ]


@looped(
    ("limits", "key", "outer"),
    [
        ("requests_per_hour: 1000, requests_per_month: 10", "requests_per_hour", "requests_per_month, 10"),
        ("tokens_per_day: 2M, tokens_per_week: 1M", "tokens_per_day", "tokens_per_week, 1,000,000"),
        ("requests_per_second: 9, requests_per_minute: 8", "requests_per_second", "requests_per_minute, 8"),
        ("requests_per_week: 21, requests_per_month: 10", "requests_per_week", "requests_per_month, 10"),
        ("requests_per_minute: 21, requests_per_day: 10", "requests_per_minute", "requests_per_day, 10"),
        ("requests_per_minute: 9000, burst: 60, requests_per_hour: 29", "requests_per_minute", "requests_per_hour, 29"),
    ],
)
def test_a_limit_that_another_of_its_section_never_lets_come_to_is_doubted(limits: str, key: str, outer: str) -> None:
    message = f"has no effect: it is above {outer}, which applies too"
    assert warnings_about_team(f"limits: {{{limits}}}") == [f"teams.t.limits.{key}: {message}"]
    place = f"teams.t.limits.models.openai/gpt-4o.{key}"
    assert warnings_about_team(f"limits: {{models: {{openai/gpt-4o: {{{limits}}}}}}}") == [f"{place}: {message}"]


@looped(
    "limits",
    [
        "requests_per_hour: 10, requests_per_day: 10",
        "requests_per_hour: 5, requests_per_day: 10, requests_per_week: 50, requests_per_month: 100",
        "requests_per_week: 20, requests_per_month: 10",  # a week can overlap two months
        "requests_per_minute: 20, requests_per_hour: 10",  # the minute can overlap two hours
        "requests_per_minute: 9000, burst: 10, requests_per_hour: 100",
        "requests_per_month: 10, tokens_per_day: 5M",
    ],
)
def test_limits_that_hold_beside_each_other_are_not_doubted(limits: str) -> None:
    assert warnings_about_team(f"limits: {{{limits}}}") == []


def test_a_vendor_s_limits_may_come_at_once_for_ten_seconds_of_a_minute() -> None:
    table = TABLE.replace("azure: {}", "azure: {limits: {requests_per_minute: AMOUNT, requests_per_day: 10}}") + LEDGER
    assert warnings(table.replace("AMOUNT", "120")) == []
    (only,) = warnings(table.replace("AMOUNT", "126"))
    assert only.startswith("2:61 vendors.azure.limits.requests_per_minute: has no effect: it is above requests_per_day")


def test_a_burst_that_takes_longer_than_an_hour_to_come_back_is_doubted() -> None:
    place = "teams.t.limits.burst: accepts as many requests at once as"
    assert warnings_about_team("limits: {requests_per_minute: 10, burst: 100000}") == [
        f"{place} requests_per_minute, 10, allows in 10,000 minutes"
    ]
    assert warnings_about_team("limits: {requests_per_second: 2, burst: 7201}") == [
        f"{place} requests_per_second, 2, allows in 60 minutes"
    ]
    assert warnings_about_team("limits: {requests_per_minute: 10, burst: 600}") == []


def test_a_limit_of_a_name_that_the_team_may_not_ask_for_is_doubted() -> None:
    limits = "limits: {models: {openai/gpt-4o: {concurrent: 1}, azure/gpt-4o: {concurrent: 1}, own: {concurrent: 1}}}"
    assert warnings_about_team(f"{limits}, routes: {{own: openai/gpt-4o}}") == [
        "teams.t.limits.models.azure/gpt-4o: this team may not request this name"
    ]


def test_a_queue_without_limits_is_doubted() -> None:
    message = "teams.t.on_limit: has no effect: neither this team, its keys, its users nor all clients have limits"
    assert warnings_about_team("on_limit: {queue: 5s}", TABLE + LEDGER + "limits: {concurrent: 9}\n") == []
    assert warnings_about_team("on_limit: {queue: 5s}") == [message]
    assert warnings_about_team("on_limit: {queue: 5s}", key=f"{{hash: '{KEY}', limits: {{concurrent: 1}}}}") == []
    assert warnings_about_team("on_limit: {queue: 5s}, limits: {models: {openai/gpt-4o: {concurrent: 1}}}") == []


@looped(
    ("budget", "expected"),
    [
        ("{usd: 5, per: day, then: warn}", "then: warns only when the budget is spent: write `at: 80%` too"),
        ("{usd: 5, per: day, then: warn, at: 100%}", "then: warns only when the budget is spent"),
        ("{usd: 5, per: day, then: warn, at: 99%}", ""),
        ("{tokens: 5M, per: day, unpriced: reject}", "unpriced: has no effect on a budget in tokens"),
        ("{usd: 5, per: day, then: {route: openai/gpt-4o-mini}}", ""),
        ("{tokens: 5M, per: day, then: {route: local/x}}", ""),
    ],
)
def test_a_budget_that_does_little_is_doubted(budget: str, expected: str) -> None:
    found = warnings_about_team(f"budget: {budget}")
    assert [each[: len(f"teams.t.budget.{expected}")] for each in found] == (
        [f"teams.t.budget.{expected}"] if expected else []
    )


@looped(
    ("budgets", "key", "refused"),
    [
        ("{usd: 200, per: day}, {usd: 5, per: month}", "0.usd", "5.00 USD per month"),
        ("{usd: 10, per: day, at: 90%, then: warn}, {usd: 10, per: day, at: 50%}", "0.usd", "5.00 USD per day"),
        (
            "{tokens: 10k, per: week}, {tokens: 21k, per: week, at: 50%, then: warn}",
            "1.tokens",
            "10,000 tokens per week",
        ),
        ("{tokens: 21k, per: week}, {tokens: 10k, per: month}", "0.tokens", "10,000 tokens per month"),
    ],
)
def test_a_budget_that_another_refuses_everything_before_is_doubted(budgets: str, key: str, refused: str) -> None:
    (only,) = warnings_about_team(f"budget: [{budgets}]")
    message = f"has no effect: from {refused} on, the budget at "
    assert only.startswith(f"teams.t.budget.{key}: {message}t.yaml:")


@looped(
    "budgets",
    [
        "{usd: 5, per: day}, {usd: 100, per: month}",
        "{usd: 5, per: day, at: 80%, then: warn}, {usd: 5, per: day}",
        "{usd: 9, per: week}, {usd: 5, per: month}",
        "{usd: 200, per: day}, {tokens: 5k, per: month}",
        "{usd: 200, per: day}, {usd: 5, per: month, then: warn, at: 80%}",
        "{usd: 200, per: month}, {usd: 5, per: day}",
    ],
)
def test_budgets_that_hold_beside_each_other_are_not_doubted(budgets: str) -> None:
    assert warnings_about_team(f"budget: [{budgets}]") == []


def test_two_budgets_that_say_the_same_are_doubted() -> None:
    text = (
        f"{TABLE}{LEDGER}teams:\n  t:\n    keys: ['{KEY}']\n    models: [openai/*]\n    budget:\n"
        "      - {usd: 5, per: day}\n      - {usd: 6, per: month}\n"
        "      - {usd: 5.0, per: day, at: 100%, then: reject}\n"
    )
    assert warnings(text) == ["16:9 teams.t.budget.2: equals the budget at t.yaml:14:9"]


@looped(
    ("server", "expected"),
    [
        ("{ledger: off}", "server.ledger: without a ledger, limits and budgets of the calendar start at zero with"),
        ("{ledger: 'sqlite:l.db'}", ""),
        ("{ledger: 'postgresql://h/l', shared: {redis: 'redis://h'}}", ""),
        (
            "{ledger: 'sqlite:l.db', shared: {redis: 'redis://h'}}",
            "server.ledger: only one gateway can use a ledger in a file",
        ),
        ("{shared: {redis: 'redis://h'}}", "server.shared: only one gateway can use a ledger in a file"),
    ],
)
def test_what_is_counted_by_the_calendar_needs_a_ledger_of_all_gateways(server: str, expected: str) -> None:
    counted = "limits: {tokens_per_hour: 5M}, budget: {tokens: 9M, per: month}"
    found = warnings_about_team(counted, f"{TABLE}server: {server}\n")
    assert [each[: len(expected)] for each in found] == ([expected] if expected else [])
    assert warnings_about_team("limits: {tokens_per_minute: 5M}", f"{TABLE}server: {server}\n") == []


def test_a_vendor_s_quota_without_teams_is_forgotten() -> None:
    table = TABLE.replace("azure: {}", "azure: {limits: {tokens_per_day: 5M}}")
    (only,) = warnings(table)
    assert only.startswith("2:56 vendors.azure.limits.tokens_per_day: without a ledger, limits and budgets of the")
    assert warnings(table + LEDGER) == []


@looped(
    ("key", "team", "everybody", "expected"),
    [
        ("{usd: 9, per: day}", "{usd: 8, per: day}", "", "teams.t.keys.0.budget.usd: has no effect: from 8.00 USD per"),
        ("{usd: 9, per: day}", "", "{usd: 8, per: month}", "teams.t.keys.0.budget.usd: has no effect: from 8.00 USD"),
        ("", "[{tokens: 9k, per: hour}]", "{tokens: 8k, per: day}", "teams.t.budget.0.tokens: has no effect: from 8,0"),
        ("{usd: 7, per: day}", "{usd: 8, per: day}", "{usd: 9, per: day}", ""),
        ("{usd: 9, per: week}", "{usd: 8, per: day}", "", ""),
        ("{usd: 9, per: day, then: warn, at: 80%}", "{usd: 8, per: day, then: warn, at: 80%}", "", ""),
    ],
)
def test_a_budget_that_a_wider_one_never_lets_a_request_come_to_is_doubted(
    key: str, team: str, everybody: str, expected: str
) -> None:
    own = f"{{hash: '{KEY}', budget: {key}}}" if key else f"'{KEY}'"
    table = TABLE + LEDGER + (f"budget: {everybody}\n" if everybody else "")
    found = warnings_about_team(f"budget: {team}" if team else "tags: {a: b}", table, key=own)
    assert len(found) == bool(expected)
    assert all(each.startswith(expected) for each in found)


@looped(
    ("section", "message"),
    [
        ("{}", "teams.t.each_user: has no effect: it has neither limits nor a budget"),
        ("{required: true}", ""),
        (
            "{limits: {tokens_per_day: 5}}",
            "teams.t.each_user.limits.tokens_per_day: is less than many requests use: ",
        ),
        (
            "{limits: {requests_per_day: 500}}",
            "teams.t.each_user.limits.requests_per_day: has no effect: it is above the team's, 100, which applies too",
        ),
        (
            "{budget: {tokens: 9k, per: day, unpriced: reject}}",
            "teams.t.each_user.budget.unpriced: has no effect on a budget in tokens",
        ),
        (
            "{budget: {usd: 90, per: day}}",
            "teams.t.each_user.budget.usd: has no effect: from 50.00 USD per day on, the budget at ",
        ),
        (
            "{budget: {usd: 9, per: day, then: warn}}",
            "teams.t.each_user.budget.then: warns only when the budget is spent: write `at: 80%` too",
        ),
    ],
)
def test_what_is_said_of_each_user_is_doubted_as_of_teams(section: str, message: str) -> None:
    own = "limits: {requests_per_day: 100}, budget: {usd: 50, per: day}"
    found = warnings_about_team(f"{own}, each_user: {section}")
    assert len(found) == bool(message)
    assert all(each.startswith(message) for each in found)


def test_a_team_may_have_no_limits_of_users_where_all_others_have_them() -> None:
    table = f"{TABLE}{LEDGER}each_user: {{limits: {{requests_per_minute: 5}}}}\n"
    assert warnings_about_team("each_user: {}, on_limit: {queue: 5s}", table) == [
        "teams.t.on_limit: has no effect: neither this team, its keys, its users nor all clients have limits"
    ]
    assert warnings_about_team("on_limit: {queue: 5s}", table) == []
    empty = warnings(f"{TABLE}{LEDGER}each_user: {{}}\n")
    assert [each.partition(" ")[2] for each in empty] == [
        "each_user: has no effect: it has neither limits nor a budget"
    ]
