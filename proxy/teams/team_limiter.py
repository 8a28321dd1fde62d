"""Holds requests to the limits and budgets of their team and key: once, after they are parsed and before they are
planned to their end.

A request of a team without limits costs one look into a dict.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from providers.target import Price
from proxy.bounded_dict import BoundedDict
from proxy.errors import GatewayError
from proxy.limits.limit import NANO
from proxy.limits.limit_book import FREE, LimitBook
from proxy.limits.limit_views import limit_labels
from proxy.limits.reservation import Exceeded, Reservation
from proxy.limits.token_estimate import OUTPUT, TokenEstimates
from proxy.request_record import RequestRecord, TargetHold
from proxy.routing.resolve_model import Plan
from proxy.routing.snapshot import NO_KEY, WILDCARD, Key, Snapshot, Team
from proxy.teams.limit_errors import budget_unread, limit_exceeded, limit_headers

_NANO_PER_MILLIONTH: Final = NANO // 1_000_000
"""Billionths of a USD in a millionth: prices are per million tokens."""

KEPT: Final = 16_384
"""Pairs of key and name whose scopes are kept."""


@dataclass(frozen=True, slots=True)
class RequestSize:
    """What a request may take: bytes of its prompt, and the most tokens of its answers (None: it does not say)."""

    prompt_bytes: int
    max_tokens: int | None


@dataclass(slots=True, eq=False)
class Held:
    """What one request holds of its limits until it ends. See `HeldLimits`."""

    _limits: "TeamLimiter"
    _reservation: Reservation
    _model: str
    _prompt_bytes: int
    _max_tokens: int
    tokens: int
    """The tokens that are reserved."""
    _target: TargetHold | None = None
    _ended: bool = False

    def hold_target(self, reservation: TargetHold) -> None:
        """Hold a deployment's units too. Those of one that failed keep the request and give back its tokens."""
        if self._target is not None:
            self._target.settle(0, 0)
        self._target = reservation

    def end(self, record: RequestRecord) -> None:
        """See HeldLimits. What no vendor was asked gives everything back."""
        if self._ended:
            return
        self._ended = True
        usage = record.billed or record.usage
        if usage is None and not record.attempts:
            self._reservation.release()
            return
        tokens = 0 if usage is None else usage.prompt_tokens + usage.completion_tokens
        cost = record.cost
        billed = None if cost is None else round(cost * NANO)
        self._limits.settling()
        self._reservation.settle(tokens, billed)
        if self._target is not None:
            self._target.settle(tokens, billed)
        if usage is not None and not usage.estimated:
            used = (usage.prompt_tokens, usage.completion_tokens)
            self._limits.estimates.learn((record.team, self._model), self._prompt_bytes, self._max_tokens, used)

    def headers(self) -> Mapping[str, str]:
        """See HeldLimits."""
        return limit_headers(self._reservation.facts(*self._limits.times()))


class TeamLimiter:
    """Admits the requests of teams by the limits of a table. `now` returns seconds of the event loop, `wall` unix
    seconds, `draw` a number from 0 to 1. `settling` is called before what a request used is counted, `refused` with the
    team and the limit of each refusal; `unread` says whether budgets refuse since nobody knows what was spent."""

    def __init__(
        self, book: LimitBook, now: Callable[[], float], wall: Callable[[], float], draw: Callable[[], float]
    ) -> None:
        self.book = book
        self.estimates = TokenEstimates()
        self.settling: Callable[[], None] = _nothing
        self.unread: Callable[[], bool] = _never
        self.refused: Callable[[str, str], None] = lambda team, limit: None
        self._now = now
        self._wall = wall
        self._draw = draw
        self._snapshot: Snapshot | None = None
        self._limited: frozenset[str] = frozenset()
        self._targets = False
        self._scopes: BoundedDict[tuple[Key, str], tuple[str, ...]] = BoundedDict(KEPT)
        self._free: dict[Team, Team] = {}

    def use(self, snapshot: Snapshot) -> None:
        """Put a table's limits in force for requests that begin from now on."""
        budgets = {f"team {name}": team.limits.budgets for name, team in snapshot.teams.items() if team.limits.budgets}
        self.book.use(snapshot.scopes, budgets, snapshot.zone, self._now())
        self._snapshot = snapshot
        self._limited = frozenset((*snapshot.scopes, *budgets))
        self._targets = bool(snapshot.target_limits)
        self._scopes = BoundedDict(KEPT)
        self._free = {}

    def times(self) -> tuple[float, float]:
        """Return the time of the loop, and that of the calendar."""
        return self._now(), self._wall()

    def route(self, key: Key) -> tuple[str, Team] | None:
        """Return the name that answers a team's requests because of what it has spent, and the team that may ask for
        it, since that is the operator's word; None for the name asked for."""
        team = key.team
        if not team.limits.budgets:
            return None
        name = self.book.route_of(f"team {team.name}", *self.times())
        if name is None:
            return None
        if (free := self._free.get(team)) is None:
            free = self._free[team] = replace(team, allow=(WILDCARD,))
        return name, free

    def admit(
        self, key: Key, planned: Plan, record: RequestRecord, size: Callable[[], RequestSize]
    ) -> Awaitable[None] | None:
        """Admit a planned request, or return what waits until it is. `size` measures it, where something is limited.
        Raises GatewayError where it is refused."""
        model = planned.label
        scopes = self._scopes_of(key, model)
        if not scopes and not self._targets:
            return None
        if key.team.limits.budgets and self.unread():
            record.outcome = "limited"
            raise budget_unread()
        measured = size()
        most = OUTPUT if measured.max_tokens is None else measured.max_tokens
        prompt, answer = self.estimates.parts(record.team, model, measured.prompt_bytes, most)
        tokens, cost = max(1, prompt + answer), _cost(planned.targets[0].price, prompt, answer)
        held = Held(self, FREE, model, measured.prompt_bytes, most, tokens)
        outcome = self.book.admit(scopes, tokens, cost, *self.times())
        if isinstance(outcome, Reservation):
            held._reservation = outcome
            record.held = held
            return None
        if isinstance(outcome, Exceeded) and not key.team.limits.patience:
            raise self._refusal(outcome, key, model, record)
        return self._admitted_later(key, model, (tokens, cost), scopes, record, held)

    async def _admitted_later(
        self,
        key: Key,
        model: str,
        units: tuple[int, int | None],
        scopes: tuple[str, ...],
        record: RequestRecord,
        held: Held,
    ) -> None:
        began = self._now()
        try:
            outcome = await self.book.admit_within(scopes, *units, key.team.limits.patience)
        finally:
            record.client_waited += self._now() - began
        if isinstance(outcome, Exceeded):
            raise self._refusal(outcome, key, model, record)
        held._reservation = outcome
        record.held = held

    def _refusal(self, exceeded: Exceeded, key: Key, model: str, record: RequestRecord) -> GatewayError:
        record.outcome = "limited"
        team, limit = limit_labels(exceeded.scope, exceeded.unit, exceeded.period)
        self.refused(team, limit)
        zone = self._snapshot.zone if self._snapshot is not None else None
        if zone is None:
            raise RuntimeError("a refusal before a table was in force")
        return limit_exceeded(exceeded, model, zone, self._draw)

    def _scopes_of(self, key: Key, model: str) -> tuple[str, ...]:
        """Return the scopes with limits of a key's request for a name."""
        if key is NO_KEY or not self._limited:
            return ()
        found = self._scopes.get((key, model))
        if found is None:
            team = key.team.name
            every = (f"team {team}", f"key {team}/{key.label}", f"team {team} model {model}")
            found = self._scopes[key, model] = tuple(scope for scope in every if scope in self._limited)
        return found


def _cost(price: Price | None, prompt: int, answer: int) -> int | None:
    """Return what so many tokens cost, in billionths of a USD; None where that is not known."""
    if price is None or price.output is None:
        return None
    return round((prompt * price.input + answer * price.output) * _NANO_PER_MILLIONTH)


def _never() -> bool:
    return False


def _nothing() -> None:
    """Called where nothing keeps count of what is settled."""
