"""Whether a failed attempt may be followed by another, who pays for it, and how long it waits.

Never chooses a deployment or makes an attempt; `now` is the loop's clock in seconds, the draw an argument.
"""

import asyncio
from collections.abc import Awaitable, Callable, Set
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from tenacity import AsyncRetrying, RetryCallState

from providers.dialect import RetryBudget as Budget
from providers.failure import VERDICTS, Failure, FailureKind, UpstreamError

T = TypeVar("T")

BUILT_IN = Budget()
"""What a deployment says that says nothing."""

_FREE = frozenset({FailureKind.CONNECT, FailureKind.TLS, FailureKind.BUSY})
_REFUSED = frozenset({FailureKind.RATE_LIMITED, FailureKind.QUOTA})
_THROTTLED = frozenset({FailureKind.RATE_LIMITED, FailureKind.OVERLOADED})


@dataclass(frozen=True, slots=True)
class RetryRules:
    """Times in seconds. Another deployment is asked at once or after up to `elsewhere`; the same one, once, after what
    it said and a `spread` of it more, unless that is above `longest_asked`, or else after up to `first`, `throttled`
    where it has too much. A try has a `share` of what is left while there is another; one with less than `useful` left,
    or a `useful_share` of the whole, is not begun.

    A budget gains `per_request` with every request and `per_second` with time, holds what `worth` seconds bring and
    `least` in any case; a retry that is not free takes 1.
    """

    elsewhere: float = 0.05
    first: float = 0.25
    throttled: float = 1.0
    longest_asked: float = 10.0
    spread: float = 0.1
    useful: float = 2.0
    useful_share: float = 0.1
    share: float = 0.6
    per_request: float = 0.2
    per_second: float = 1.0
    worth: float = 10.0
    least: float = 10.0

    def of(self, own: Budget) -> "RetryRules":
        """These rules with what a deployment's settings say of the budget instead."""
        return replace(
            self,
            per_request=self.per_request if own.share is None else own.share,
            per_second=self.per_second if own.per_second is None else own.per_second,
            least=self.least if own.least is None else own.least,
        )


def may_repeat(failure: Failure, safety: Literal["safe", "strict", "off"]) -> bool:
    """Whether the request may be sent again after this failure. A generation is repeatable, but not for free: `strict`
    wants none to be paid for twice."""
    if safety == "strict":
        return not failure.maybe_executed
    return safety == "safe"


def is_free(failure: Failure) -> bool:
    """Whether a failed attempt was none for the upstream, so that another takes nothing from the budget."""
    return failure.unsent or failure.kind in _FREE


def wait_for_other(failure: Failure, rules: RetryRules, draw: Callable[[], float]) -> float:
    """Seconds until another deployment is asked: at once where this one was not reached or refused the request by its
    own account, else after a little that differs, so that what failed together does not arrive there together."""
    return 0.0 if is_free(failure) or failure.kind in _REFUSED else draw() * rules.elsewhere


def wait_for_same(failure: Failure, away: float, rules: RetryRules, draw: Callable[[], float]) -> float | None:
    """Seconds until the same deployment may be asked again, which is left alone for `away` seconds from now; None when
    that is no use or takes too long. One that hung up without a word may have worked on the request: it is no use."""
    unanswered = failure.kind is FailureKind.SERVER and failure.status is None
    if unanswered or not VERDICTS[failure.kind].retry_same:
        return None
    asked = max(away, failure.retry_after or 0.0)
    if asked > rules.longest_asked:
        return None
    if asked:
        return asked * (1 + rules.spread * draw())
    return draw() * (rules.throttled if failure.kind in _THROTTLED else rules.first)


def least_useful(usual: float | None, total: float, rules: RetryRules) -> float:
    """Seconds that a try needs to be worth beginning: what the deployment usually takes, where that is known."""
    return min(rules.useful, total * rules.useful_share) if usual is None else usual


class RetryBudget:
    """A bucket of tokens, filled by requests and by time, so that retries stay a share of what is asked for even when
    everything fails. It begins with the least that it holds when it is full."""

    __slots__ = ("_counted", "_tokens", "_worth", "requests")

    def __init__(self, now: float) -> None:
        self._tokens: float | None = None
        self._worth = 0.0
        self._counted = now
        self.requests = 0
        """Since tokens were last counted; one more for every request."""

    def spend(self, rules: RetryRules, now: float) -> bool:
        """Take a token; False when there is none."""
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


class RetryBudgets:
    """Each team's budgets, one for each name of the table. What the requests of one team or for one name fail of, the
    retries of no other pay for."""

    __slots__ = ("_budgets", "_rules")

    def __init__(self, rules: RetryRules) -> None:
        self._rules = rules
        self._budgets: dict[tuple[str, str], RetryBudget] = {}

    def arrived(self, name: str, team: str, now: float) -> None:
        """A team's request for this name came."""
        self._of(name, team, now).requests += 1

    def spend(self, name: str, team: str, now: float, own: Budget = BUILT_IN) -> bool:
        """Pay for a retry of a team's request for this name, of which a deployment has its own word; False when there
        is nothing to pay with."""
        return self._of(name, team, now).spend(self._rules.of(own), now)

    def _of(self, name: str, team: str, now: float) -> RetryBudget:
        """The budget of a name; a request under way may ask for what a new table does not have."""
        budget = self._budgets.get((team, name))
        if budget is None:
            budget = self._budgets[team, name] = RetryBudget(now)
        return budget

    def keep(self, names: Set[str], teams: Set[str]) -> None:
        """Forget the names and teams that a new table does not have."""
        self._budgets = {
            (team, name): budget for (team, name), budget in self._budgets.items() if name in names and team in teams
        }


class _Decision:
    """One decision for tenacity's two questions: whether to try again, and after how many seconds."""

    __slots__ = ("_decide", "_wait")

    def __init__(self, decide: Callable[[Failure], Awaitable[float | None]]) -> None:
        self._decide = decide
        self._wait: float | None = None

    async def retry(self, state: RetryCallState) -> bool:
        """Whether to try again. tenacity calls this first, after every attempt."""
        error = None if state.outcome is None else state.outcome.exception()
        self._wait = await self._decide(error.failure) if isinstance(error, UpstreamError) else None
        return self._wait is not None

    def wait(self, state: RetryCallState) -> float:
        """The seconds that were decided on."""
        return self._wait or 0.0


async def retried(
    attempt: Callable[[], Awaitable[T]],
    decide: Callable[[Failure], Awaitable[float | None]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> T:
    """The result of the first attempt that gives one; after each UpstreamError another is made as many seconds later as
    `decide` says. Raises the last error once it says None, and any other error at once."""
    decision = _Decision(decide)
    # One for each request: its state is a thread's, not a task's, so that two requests would share it.
    retrying = AsyncRetrying(retry=decision.retry, wait=decision.wait, sleep=sleep, reraise=True)
    try:
        return await retrying(attempt)
    except UpstreamError as error:
        # tenacity's frame holds the error, and its traceback would hold that frame: a cycle with the whole request in
        # it, which waits for the collector. So do the actions that it keeps.
        raise error.with_traceback(None) from None
    finally:
        retrying.iter_state.reset()
