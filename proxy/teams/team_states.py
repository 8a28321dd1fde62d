"""The state of each team in this process: its retry budgets. It outlives the table, as that of deployments does."""

from collections.abc import Set
from dataclasses import dataclass, field

from proxy.teams.retry_budget import RetryBucket


@dataclass(slots=True, eq=False)
class TeamState:
    """What one team has used. A retry budget belongs to a name of the table, so that no name uses up another's."""

    _retry_budgets: dict[str, RetryBucket] = field(default_factory=dict)

    def retry_budget(self, name: str, now: float) -> RetryBucket:
        """Return the retry budget of a name; a running request may use a name that a new table does not have."""
        budget = self._retry_budgets.get(name)
        if budget is None:
            budget = self._retry_budgets[name] = RetryBucket(now)
        return budget

    def keep(self, names: Set[str]) -> None:
        """Forget the names that a new table does not have."""
        self._retry_budgets = {name: each for name, each in self._retry_budgets.items() if name in names}


@dataclass(slots=True, eq=False)
class TeamStates:
    """The states of all teams, by `Team.tenant`."""

    _states: dict[str, TeamState] = field(default_factory=dict)

    def of(self, tenant: str) -> TeamState:
        """Return the state of a team; a running request may belong to a team that a new table does not have."""
        state = self._states.get(tenant)
        if state is None:
            state = self._states[tenant] = TeamState()
        return state

    def count_request(self, tenant: str, name: str, now: float) -> RetryBucket:
        """Count a request of a team for a name, and return the retry budget that it belongs to."""
        state = self._states.get(tenant)
        budget = (self.of(tenant) if state is None else state).retry_budget(name, now)
        budget.requests += 1
        return budget

    def keep(self, tenants: Set[str], names: Set[str]) -> None:
        """Forget the teams and names that a new table does not have."""
        self._states = {tenant: state for tenant, state in self._states.items() if tenant in tenants}
        for state in self._states.values():
            state.keep(names)
