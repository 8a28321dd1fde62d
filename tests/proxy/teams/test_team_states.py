"""What a team has used: by name, kept over reloads, of no effect on other teams."""

from proxy.teams.retry_budget import BudgetRules
from proxy.teams.team_states import TeamStates

RULES = BudgetRules()


def spent(teams: TeamStates, tenant: str, name: str) -> int:
    """How many retries were left."""
    budget, count = teams.of(tenant).retry_budget(name, 0.0), 0
    while budget.spend(RULES, 0.0):
        count += 1
    return count


def test_each_name_has_its_retry_budget() -> None:
    teams = TeamStates()
    assert [spent(teams, "", name) for name in ("a", "b", "a")] == [10, 10, 0]


def test_a_name_that_a_new_table_has_keeps_its_retry_budget_and_one_that_comes_back_begins_anew() -> None:
    teams = TeamStates()
    assert [spent(teams, "", name) for name in ("a", "b")] == [10, 10]
    teams.keep({""}, {"b"})
    assert [spent(teams, "", name) for name in ("a", "b")] == [10, 0]


def test_requests_fill_the_retry_budget_of_their_name() -> None:
    teams = TeamStates()
    assert spent(teams, "a", "n") == 10
    budgets = [teams.count_request("a", "n", 0.0) for _ in range(round(1 / RULES.per_request))]
    assert budgets[0].spend(RULES, 0.0)
    assert (spent(teams, "a", "n"), spent(teams, "a", "m")) == (0, 10)


def test_a_request_whose_name_a_new_table_lost_still_pays() -> None:
    teams = TeamStates()
    budget = teams.of("").retry_budget("gone", 0.0)
    teams.keep({""}, set())
    assert budget.spend(RULES, 1.0)
    assert teams.of("").retry_budget("gone", 1.0).spend(RULES, 1.0)


def test_one_team_s_retries_leave_another_s_budget_alone() -> None:
    teams = TeamStates()
    assert [spent(teams, "hostile", name) for name in ("a", "b")] == [10, 10]
    assert spent(teams, "honest", "a") == 10


def test_a_team_that_a_new_table_does_not_have_is_forgotten_and_the_others_keep_their_state() -> None:
    teams = TeamStates()
    old = [teams.of(tenant) for tenant in ("kept", "gone")]
    teams.keep({"", "kept"}, {"a"})
    assert teams.of("kept") is old[0]
    assert teams.of("gone") is not old[1]
