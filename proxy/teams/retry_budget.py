"""The retry budgets of teams: token buckets that limit retries to a share of the requests."""

from collections.abc import Set
from dataclasses import dataclass, field, replace

from config.sections.failover_section import RetryBudgetSection
from config.sections.section import built_in
from providers.target import RetryBudget


@dataclass(frozen=True, slots=True)
class BudgetRules:
    """The rules of a retry budget. The budget gains `per_request` tokens with every request, and `per_second` tokens
    each second. It holds at most the gain of `worth` seconds, but always up to `least` tokens. A retry that is not free
    takes one token."""

    per_request: float = built_in(RetryBudgetSection, "share", float)
    per_second: float = built_in(RetryBudgetSection, "per_second", float)
    worth: float = 10.0
    least: float = built_in(RetryBudgetSection, "least", float)

    def of(self, own: RetryBudget) -> "BudgetRules":
        """Return these rules with a deployment's own settings."""
        return replace(
            self,
            per_request=self.per_request if own.share is None else own.share,
            per_second=self.per_second if own.per_second is None else own.per_second,
            least=self.least if own.least is None else own.least,
        )


@dataclass(slots=True, eq=False)
class RetryBucket:
    """A token bucket, filled by requests and by time, so that retries stay a share of the requests even if everything
    fails. It begins with `least` tokens."""

    _counted: float
    requests: int = 0
    """The requests since the tokens were last counted."""
    _tokens: float | None = None
    _worth: float = 0.0

    def spend(self, rules: BudgetRules, now: float) -> bool:
        """Take a token. Return false if there is none."""
        passed = now - self._counted
        gained = self.requests * rules.per_request + passed * rules.per_second
        if passed >= 1:
            self._worth = rules.worth * gained / passed
        held = rules.least if self._tokens is None else self._tokens
        self._tokens = min(max(1.0, rules.least, self._worth), held + gained)
        self._counted, self.requests = now, 0
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


@dataclass(slots=True, eq=False)
class RetryBudgets:
    """The retry budgets of this process, one for each team (by `Team.tenant`) and configured model name. So no team and
    no name uses up the budget of another. The budgets survive a reload, as the state of deployments does."""

    _known: dict[tuple[str, str], RetryBucket] = field(default_factory=dict)

    def of(self, tenant: str, name: str, now: float) -> RetryBucket:
        """Return the budget of a team and a name. A request in flight may have a budget for a team or name that a new
        configuration does not have."""
        budget = self._known.get((tenant, name))
        if budget is None:
            budget = self._known[tenant, name] = RetryBucket(now)
        return budget

    def count_request(self, tenant: str, name: str, now: float) -> RetryBucket:
        """Count a request, and return its budget."""
        budget = self._known.get((tenant, name))
        if budget is None:
            budget = self.of(tenant, name, now)
        budget.requests += 1
        return budget

    def keep(self, tenants: Set[str], names: Set[str]) -> None:
        """Forget the teams and names that a new configuration does not have."""
        self._known = {key: each for key, each in self._known.items() if key[0] in tenants and key[1] in names}
