"""The reservation of one request in the limits and budgets of its client, and the scopes that hold a client's
requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from providers.failure import Failure
from providers.pricing import Price
from proxy.limits.limit import MOST_COST, MOST_TOKENS, NANO, EachUser
from proxy.limits.reservation import Meters, Reservation
from proxy.limits.token_estimate import UNKNOWN_RATIO, TokenRatio
from proxy.request_record import RequestRecord, TargetHold
from proxy.teams.limit_errors import cached_limit_lines, limit_headers, limit_lines
from proxy.teams.user_scopes import UserState

if TYPE_CHECKING:
    from proxy.teams.team_limiter import TeamLimiter

_NANO_PER_MILLIONTH: Final = NANO // 1_000_000
"""Billionths of a USD in a millionth: prices are per million tokens."""


@dataclass(slots=True, eq=False)
class BoundScopes:
    """The scopes that limit a key's requests for a model name.

    - `pair`: the team and the model name. `scopes` are the scopes with limits.
    - `amounts`: whether a limit counts more than requests. `budgets`: whether there is a budget. `priced`: whether a
      limit counts USD.
    - `meters`, `ratio`: the meters and the token ratio of the key's requests for this model name, set by the first
      request.
    - `each_user`: the limits of each end user of the team, if there are any. Each user has its own BoundScopes, with
      the scope `user` and the meters `state`.
    """

    pair: tuple[str, str]
    scopes: tuple[str, ...] = ()
    amounts: bool = False
    budgets: bool = False
    priced: bool = False
    meters: Meters | None = None
    ratio: TokenRatio = UNKNOWN_RATIO
    each_user: EachUser | None = None
    user: str = ""
    state: UserState | None = None


Amounts: TypeAlias = tuple[int, int | None, tuple[TokenRatio, int, int] | None]
"""The tokens of a request, their cost (`None` if it is unknown), and the source of the estimate: the ratio, the bytes
of the prompt, and the most tokens of the response."""

ONE: Final[Amounts] = (1, 0, None)
"""The amounts of a request if only requests are limited."""


class Held(Reservation):
    """The reservation of one request in its limits until the request ends. It implements `HeldLimits`."""

    __slots__ = ("_bound", "_ended_at", "_estimate", "_limits", "_target", "soonest")

    def __init__(
        self,
        limits: "TeamLimiter",
        bound: BoundScopes,
        meters: Meters,
        amounts: Amounts,
    ) -> None:
        self._limits = limits
        self._bound = bound
        self.meters = meters
        self.tokens, self._cost, self._estimate = amounts
        self.soonest: Failure | None = None
        self._target: TargetHold | None = None
        self._ended_at: float | None = None
        self.ended = False

    def cost_at(self, price: Price | None) -> int | None:
        if self._estimate is None:
            return None if price is None else 0
        ratio, prompt_bytes, most = self._estimate
        return cost_of(price, *ratio.parts(prompt_bytes, most))

    def hold_target(self, reservation: TargetHold) -> None:
        self._target = reservation

    def leave_target(self) -> None:
        """Settle the target's reservation without any usage. The request itself still counts for the target, because it
        was sent."""
        target, self._target = self._target, None
        if target is not None:
            target.settle(0, 0)

    def end(self, record: RequestRecord) -> None:
        """Settle all limits. A request that called no deployment adds nothing to the ledger, and returns everything
        that it reserved. A response from the cache counts as a request, and uses no tokens."""
        if self.ended:
            return
        from_cache = record.cache is not None and record.from_cache
        if not record.attempts and not from_cache:
            self.release()
            self.leave_target()
            return
        # If counting the usage fails, the reservation counts as used.
        tokens, billed = self.tokens, self._cost
        try:
            self._bill_unanswered(record)
            if (usage := record.counted) is None:
                tokens, billed = 0, None
            else:
                prompt, answer = usage.prompt_tokens, usage.completion_tokens
                used = prompt + answer
                tokens = used if 0 <= used <= MOST_TOKENS else _within(used, MOST_TOKENS)
                billed = None
                if self._bound.priced or (self._target is not None and self._target.priced):
                    paid = record.cost
                    record.paid = usage, paid  # The cost is stored for the metrics and the ledger, which need it next.
                    if paid is not None:
                        nano = round(paid * NANO)
                        billed = nano if 0 <= nano <= MOST_COST else _within(nano, MOST_COST)
                if (estimate := self._estimate) is not None and not (usage.estimated or from_cache):
                    ratio, prompt_bytes, most = estimate
                    if ratio is UNKNOWN_RATIO:
                        ratio = self._bound.ratio = self._limits.estimates.begin(self._bound.pair)
                    ratio.learn(prompt_bytes, most, prompt, answer)
            limits = self._limits
            now = self._ended_at = limits.now()
            if now >= limits.notes.until:
                limits.settling()
        finally:
            self.settle(tokens, billed)
            if self._target is not None:
                self._target.settle(tokens, billed)

    def _bill_unanswered(self, record: RequestRecord) -> None:
        """Bill calls whose responses the client did not get. The estimate does not learn from them, because a sum over
        several calls says nothing about one call."""
        if record.unanswered:
            record.bill_unanswered()
            self._estimate = None

    def headers(self) -> Mapping[str, str]:
        return limit_headers(self.meters.facts(*self._limits.times()))

    def header_lines(self) -> str:
        """Return the header lines. The head of a non-streaming response is written right after `end`, with the same
        reading of the clock. For most responses all rates are unused again, because the units that the request took
        have come back since."""
        meters, limits = self.meters, self._limits
        now = limits.now() if self._ended_at is None else self._ended_at
        if not meters.unused(now):
            return limit_lines(meters.facts(now, limits.wall()))
        if meters.full_lines is None:
            meters.full_lines = cached_limit_lines(meters.facts(now, limits.wall()))
        return meters.full_lines


def cost_of(price: Price | None, prompt: int, answer: int) -> int | None:
    """Return the cost of tokens, in billionths of a USD; `None` if a price is missing."""
    if price is None:
        return None
    if price.long_context:
        price = price.of_length(prompt)
    if price.output is None:
        return None if answer > 0 else round(prompt * price.input * _NANO_PER_MILLIONTH)
    return round((prompt * price.input + answer * price.output) * _NANO_PER_MILLIONTH)


def _within(number: int, most: int) -> int:
    """Return a reported number, limited to the range from 0 to `most`."""
    return most if number > most else number if number > 0 else 0
