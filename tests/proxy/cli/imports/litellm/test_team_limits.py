"""LiteLLM's budgets, limits and durations become calendar periods."""

from proxy.cli.imports.litellm.access import ClientNames
from proxy.cli.imports.litellm.team_limits import budget_of_all, each_user_of, period, read_allowance
from proxy.cli.imports.table_draft import Block, TableDraft
from proxy.cli.imports.write_yaml import table_text
from tests.proxy.cli.imports.kit import section
from tests.support.looped import looped

KNOWN = ClientNames(names={"a": "a-route"})


@looped(
    ("duration", "found"),
    [
        ("1h", ("hour", True)),
        ("60m", ("hour", True)),
        ("24h", ("day", True)),
        ("daily", ("day", True)),
        ("7d", ("week", True)),
        ("1w", ("week", True)),
        ("30d", ("month", True)),
        ("1mo", ("month", True)),
        ("Monthly", ("month", True)),
        ("30s", ("hour", False)),
        ("12h", ("day", False)),
        ("14d", ("month", False)),
        ("90d", ("month", False)),
        (None, ("month", False)),
        ("0d", ("month", False)),
        ("soon", ("month", False)),
    ],
)
def test_a_duration_is_a_period_no_shorter_than_itself(duration: str | None, found: tuple[str, bool]) -> None:
    assert period(duration) == found


@looped(
    ("text", "written", "nothing"),
    [
        ("{rpm_limit: 5, tpm_limit: 6000}", ["limits: {requests_per_minute: 5, tokens_per_minute: 6000}"], False),
        ("{litellm_budget_table: {rpm_limit: 5}}", ["limits: {requests_per_minute: 5}"], False),
        ("{rpm_limit: 7, litellm_budget_table: {rpm_limit: 5}}", ["limits: {requests_per_minute: 7}"], False),
        ("{metadata: {model_rpm_limit: {a: 5, gone: 1}}}", ["a-route: {requests_per_minute: 5}"], False),
        ("{max_budget: 5, budget_duration: 1d}", ["budget: [{usd: 5, per: day}]"], False),
        ("{max_budget: 5}", ["budget: [{usd: 5, per: month}]"], False),
        (
            "{budget_duration: 7d, litellm_budget_table: {soft_budget: 4}}",
            ["budget: [{usd: 5, per: week, at: 80%, then: warn}]"],
            False,
        ),
        (
            "{budget_limits: [{budget_duration: 1h, max_budget: 1}, {budget_duration: 1d, max_budget: 9}]}",
            ["budget: [{usd: 1, per: hour}, {usd: 9, per: day}]"],
            False,
        ),
        (
            "{max_budget: 9, soft_budget: 4, budget_duration: 1d}",
            ["budget: [{usd: 9, per: day}, {usd: 5, per: day, at: 80%, then: warn}]"],
            False,
        ),
        (
            "{soft_budget: 4, litellm_budget_table: {soft_budget: 4, max_budget: 9, budget_duration: 1d}}",
            ["budget: [{usd: 9, per: day}, {usd: 5, per: day, at: 80%, then: warn}]"],
            False,
        ),
        ("{soft_budget: 0.001}", [], False),
        ("{max_budget: 0}", [], True),
        ("{max_parallel_requests: 0}", [], True),
        ("{max_parallel_requests: 3}", ["limits: {concurrent: 3}"], False),
    ],
)
def test_what_a_row_allows(text: str, written: list[str], nothing: bool) -> None:
    allowance = read_allowance(section(text), KNOWN)
    block = Block()
    allowance.put(block, KNOWN)
    assert allowance.is_nothing == nothing
    draft = TableDraft(block)
    for line in written:
        assert line in table_text(draft).replace('"80%"', "80%").replace(".0,", ",")


@looped(
    ("text", "written"),
    [
        ("{max_budget: 50, budget_duration: 30d}", "{usd: 50, per: month}"),
        ("{max_budget: 50}", "{usd: 50, per: month}"),
        ("{max_budget: 0}", ""),
        ("{budget_duration: 1d}", ""),
    ],
)
def test_the_budget_of_all_is_that_of_the_settings(text: str, written: str) -> None:
    draft, found = TableDraft(), budget_of_all(section(text))
    draft.root.put("budget", found)
    assert (f"budget: {written}" in table_text(draft)) is bool(written)


@looped(
    ("text", "written"),
    [("{max_end_user_budget: 0.5}", "budget: {usd: 0.5, per: month}"), ("{max_end_user_budget: 0}", ""), ("{}", "")],
)
def test_the_budget_of_end_users_is_that_of_each(text: str, written: str) -> None:
    draft = TableDraft()
    draft.root.put("each_user", each_user_of(section(text)))
    found = " ".join(table_text(draft).split())
    assert ("each_user:" in found, written in found) == (bool(written), True)


def test_a_soft_budget_that_is_too_small_is_told() -> None:
    row = section("{soft_budget: 0.001}")
    read_allowance(row, KNOWN)
    (told,) = row.remarks.settings
    assert (told.path, told.message) == ("soft_budget", "is less than 0.01 USD, the least of a budget: not taken")


def test_a_budget_that_only_its_id_names_is_told() -> None:
    for text, is_read in (("{budget_id: b, litellm_budget_table: {max_budget: 9}}", True), ("{budget_id: b}", False)):
        row = section(text)
        read_allowance(row, KNOWN)
        assert ("budget_id" in row.taken) is is_read
