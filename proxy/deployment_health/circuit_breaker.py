"""The circuit breaker of one deployment, and the effect of each attempt on it.

Pure: `now` is the time of the event loop's clock in seconds. Only facts that the vendor itself reported are published.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntEnum

from providers.failure import CIRCUIT_OPENING_KINDS, VERDICTS, Failure, FailureKind
from proxy.deployment_health.circuit_breaker_rules import HealthRules
from proxy.deployment_health.first_byte_latency import Awaited
from proxy.deployment_health.recent_failures import Outcomes, Ruling, Witnesses

NEVER = float("-inf")

TEAM_FAILURES = 2
"""Failures after which a deployment is unhealthy for a team. A single failure may be due to the request, or chance."""

Publish = Callable[[str, FailureKind, float], None]
"""Publishes a vendor's cooldown to other processes: the deployment's shared name, the kind of failure, the seconds."""


class State(IntEnum):
    """The values of the gauge `deployment_state`. OPEN admits no request, HALF_OPEN one probe of each team."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


class AnswerKind(IntEnum):
    """The kind of response that an attempt waits for. The usual time to the first byte differs by kind."""

    STREAM = 0
    WHOLE = 1


@dataclass(slots=True, eq=False)
class Breaker:
    """The circuit breaker of one deployment, in one process.

    It opens after failures, or for a cooldown that the vendor asks for. It closes when a request sent after it opened
    gets its first byte. Only attempts that began after the last change of state count. `in_flight` is the number of
    running attempts. `why` is the kind of failure that last opened the breaker. `name` is the deployment's name among
    the processes that share cooldowns, and `publish` sends cooldowns to them. `only_team` is the one team for which the
    breaker is open, because the deployment has failed for no other team.
    """

    _rules: HealthRules
    _draw: Callable[[], float]
    in_flight: int = 0
    why: FailureKind | None = None
    name: str = ""
    publish: Publish | None = None
    only_team: str | None = None
    _kinds: tuple[Awaited, ...] = field(init=False)
    _outcomes: Outcomes = field(init=False)
    _witnesses: Witnesses = field(init=False)
    _in_row: int = 0
    _tripped: bool = False
    _open_until: float = NEVER
    _cooldown_until: float = NEVER
    _requested_until: float = NEVER
    _openings: int = 0
    _returned: float = NEVER
    _first_byte_at: float = NEVER
    _epoch: int = 0
    _probing: list[str] = field(default_factory=list)
    _failures_of_team: dict[str, tuple[int, float]] = field(default_factory=dict)
    _shared_since: float = NEVER

    def __post_init__(self) -> None:
        self._kinds = tuple(Awaited(self._rules.hanging_age) for _ in AnswerKind)
        self._outcomes, self._witnesses = Outcomes(self._rules.window), Witnesses(self._rules.window)

    def follow(self, rules: HealthRules) -> None:
        """Use the rules of a new configuration; `window` and `hanging_age` are the same in every configuration."""
        self._rules = rules

    @property
    def first_byte(self) -> float | None:
        """The usual seconds to the first byte of streams, or of non-streaming responses if there was no stream yet."""
        streams, wholes = self._kinds
        return wholes.usual if streams.usual is None else streams.usual

    def percentile(self, answer: AnswerKind) -> float | None:
        """Return the 95th percentile of the seconds to the first byte; `None` while too few times are known."""
        awaited = self._kinds[answer]
        return awaited.tail if awaited.settled else None

    @property
    def probed(self) -> bool:
        """Whether a probe is waiting for its first byte."""
        return bool(self._probing)

    def state(self, now: float) -> State:
        """Return CLOSED, OPEN until the cooldown ends, or HALF_OPEN after it."""
        if not self._tripped:
            return State.CLOSED
        return State.OPEN if now < max(self._open_until, self._cooldown_until) else State.HALF_OPEN

    def admits(self, now: float, team: str = "") -> bool:
        """Return whether a team may send a request now. The attempt must begin before the caller awaits anything."""
        if not self._tripped:
            return True
        if now < self._cooldown_until:
            return False
        if self.only_team not in (None, team):
            return True
        if now < self._open_until:
            return False
        probing = self._probing
        return not probing or (team not in probing and len(probing) < self._rules.probes_most)

    def wait(self, now: float) -> float:
        """Return the seconds until a request is admitted, 0 for now; an estimate while a probe is running."""
        if not self._tripped:
            return 0.0
        left = max(self._open_until, self._cooldown_until) - now
        if left > 0:
            return left
        return self._rules.panic_every if self._probing else 0.0

    def requested_wait(self, now: float) -> float:
        """Return the longer of `wait` and the wait that the vendor requested. A refused client is sent this time."""
        return max(self.wait(now), self._requested_until - now) if self.cooling_down(now) else self.wait(now)

    def healthy(self, now: float, team: str = "") -> bool:
        """Return whether a deployment is healthy for a team: its breaker is closed for the team, it does not hang, and
        it has not failed the team TEAM_FAILURES times since the team's last first byte."""
        if self._tripped and (self.only_team in (None, team) or now < self._cooldown_until):
            return False
        times, latest = self._failures_of_team.get(team, (0, NEVER))
        return (times < TEAM_FAILURES or now - latest > self._rules.window) and not self.hanging(now)

    def only_cooling_down(self, now: float) -> bool:
        """Return whether a rate limit or a spent quota is the only reason why no request is admitted."""
        return self._open_until <= now < self._cooldown_until

    def cooling_down(self, now: float) -> bool:
        """Return whether a rate limit or a spent quota forbids requests."""
        return now < self._cooldown_until

    def share(self, now: float) -> float:
        """Return the share of its usual requests that the deployment should get: below 1 just after a recovery."""
        rules = self._rules
        back = now - self._returned
        return 1.0 if back >= rules.slow_start else max(rules.slow_start_from, back / rules.slow_start)

    def hanging(self, now: float) -> bool:
        """Return whether too many attempts have waited too long for a first byte, so that others should come first."""
        if self.in_flight <= self._rules.hanging_least:
            return False
        streams, wholes = self._kinds
        return self._hangs(streams, now) or self._hangs(wholes, now)

    def untroubled(self, now: float) -> bool:
        """Return whether the deployment takes every team, does not hang, and should get its full share, as is usual."""
        rules = self._rules
        if self._tripped or now - self._returned < rules.slow_start:
            return False
        return self.in_flight <= rules.hanging_least or not self.hanging(now)

    def begin(self, now: float, answer: AnswerKind, team: str = "") -> "TrackedAttempt":
        """Count a team's attempt that is about to be sent. The attempt is a probe unless the breaker is closed."""
        self.in_flight += 1
        awaited = self._kinds[answer]
        tracked = TrackedAttempt(self, awaited, self._epoch, self._tripped, team)
        awaited.begin(tracked, now)
        if self._tripped:
            self._probing.append(team)
            self._shared_since = NEVER
        return tracked

    def apply_cooldown(self, now: float, kind: FailureKind, seconds: float) -> None:
        """Apply a cooldown that another process learned from the vendor: for a rate limit, a spent quota, a refused
        credential or a missing model. Until this process sends a request again, all such cooldowns together last at
        most as long as one cooldown that this process itself would impose."""
        rules = self._rules
        if self._shared_since == NEVER:
            self._shared_since = now
        most = (
            rules.auth
            if kind in CIRCUIT_OPENING_KINDS
            else rules.quota
            if kind is FailureKind.QUOTA
            else rules.requested_most
        )
        left = min(now + seconds, self._shared_since + most) - now
        if left <= 0:
            return
        self.why = kind
        if kind not in CIRCUIT_OPENING_KINDS:
            self._cool_down(now, left)
            return
        self._open_until = max(self._open_until, now + left)
        self.only_team = None
        if not self._tripped:
            self._trip()

    def _hangs(self, awaited: Awaited, now: float) -> bool:
        rules = self._rules
        oldest = awaited.oldest()
        if oldest is None or now - oldest <= rules.hanging_age:
            return False
        if len(awaited) <= max(rules.hanging_least, rules.hanging_times * awaited.expected(now)):
            return False
        if awaited.usual is None and self._first_byte_at > oldest:
            # Requests for the other kind of response get first bytes, so this kind may just take long.
            return False
        return now - oldest > rules.hanging_slowness * awaited.tail

    def _trip(self) -> None:
        self._tripped = True
        self.only_team = None
        self._epoch += 1
        self._probing.clear()
        self._in_row = 0

    def _answered_probe(self, now: float, team: str) -> None:
        """Close the breaker, because a team's probe got a response. A cooldown that the vendor requested stays."""
        self._open_until = NEVER
        self.only_team = None
        if now < self._cooldown_until:
            self._probing.remove(team)
            return
        self._tripped = False
        self._epoch += 1
        self._probing.clear()
        self._outcomes.clear()
        self._failures_of_team.clear()
        self._returned = now

    def _count_for_team(self, team: str, now: float) -> None:
        times, _ = self._failures_of_team.get(team, (0, now))
        self._failures_of_team[team] = (times + 1, now)

    def _cool_down(self, now: float, seconds: float) -> None:
        self._cooldown_until = max(self._cooldown_until, now + seconds)
        if not self._tripped:
            self._trip()

    def _publish(self, kind: FailureKind, seconds: float) -> None:
        if self.publish is not None:
            self.publish(self.name, kind, seconds)

    def _open(self, now: float, seconds: float, only_team: str | None = None) -> None:
        self._trip()
        self.only_team = only_team
        self._open_until = now + seconds

    def _next_cooldown(self, now: float) -> float:
        rules = self._rules
        if not self._tripped and now - self._returned >= rules.forgive:
            self._openings = 0
        seconds = min(rules.cooldown * 2.0**self._openings, rules.longest_cooldown)
        if seconds < rules.longest_cooldown:
            self._openings += 1
        return seconds * (1 + rules.jitter * (2 * self._draw() - 1))

    def _count_failure(self, now: float, probe: bool) -> bool:
        """Count a failure, and return whether it opens the breaker. A probe's does, unless it closed long ago."""
        rules = self._rules
        if probe and (self._tripped or now - self._returned < rules.forgive):
            return True
        self._in_row += 1
        attempts, failed = self._outcomes.failed(now)
        too_many = attempts >= rules.window_least and failed >= rules.window_share * attempts
        return self._in_row >= rules.failures or too_many


@dataclass(slots=True, eq=False)
class TrackedAttempt:
    """One attempt as the breaker tracks it. The first call of `succeeded`, `failed` or `abandoned` ends it; later calls
    do nothing. `disputed`: other teams' attempts succeeded meanwhile, so the request may be the cause."""

    _breaker: Breaker
    _awaited: Awaited
    _epoch: int
    _probe: bool
    _team: str
    disputed: bool = False
    _running: bool = True
    _waits: bool = True

    def first_byte(self, now: float) -> None:
        """Note the first content of a stream, or a non-streaming response. It ends a probe: a stream may last minutes,
        and the breaker opens again if it fails later."""
        if not self._waits:
            return
        self._waits = False
        self._awaited.answered(self, now)
        breaker = self._breaker
        breaker._first_byte_at = now
        if breaker._failures_of_team:
            breaker._failures_of_team.pop(self._team, None)
        if self._probe and self._epoch == breaker._epoch:
            self._answered_probe(now)

    def succeeded(self, now: float) -> None:
        """Note that the response is complete."""
        if not self._running:
            return
        if self._waits:
            self.first_byte(now)
        self._running = False
        breaker = self._breaker
        breaker.in_flight -= 1
        if self._epoch == breaker._epoch:
            breaker._in_row = 0
            breaker._outcomes.succeeded(now)
            breaker._witnesses.succeeded(self._team, now)

    def failed(self, now: float, failure: Failure) -> bool:
        """Note a failure, and return whether it opened the breaker. A failure that is not the deployment's fault only
        ends a probe."""
        if not self._running:
            return False
        breaker, rules, waited = self._breaker, self._breaker._rules, self._close()
        if VERDICTS[failure.kind].try_next and self._epoch == breaker._epoch:
            breaker._count_for_team(self._team, now)
        if failure.kind is FailureKind.RATE_LIMITED:
            # While other attempts run, the cause is too many requests at once rather than an exhausted limit.
            breaker._requested_until = now + (failure.retry_after or 0.0)
            seconds = rules.cooldown_for(failure.retry_after)
            if failure.retry_after is None and breaker.in_flight:
                seconds = min(seconds, rules.requested_least)
            self._cool_down(now, failure.kind, seconds)
        elif failure.kind is FailureKind.QUOTA:
            if breaker._witnesses.failed(self._team, failure, now) is not Ruling.NOBODY:
                self._cool_down(now, failure.kind, rules.quota)
        elif self._epoch != breaker._epoch:
            return False
        elif VERDICTS[failure.kind].counts_against:
            return self._count(now, failure, waited)
        elif self._probe and waited and failure.status is not None:
            self._answered_probe(now)
            return False
        self._free_probe(waited)
        return False

    def outlasted(self, now: float) -> None:
        """Note that the client's own deadline ended the attempt. This only affects `healthy` for the team."""
        self._breaker._count_for_team(self._team, now)

    def abandoned(self, now: float) -> None:
        """Note an end that is not due to the deployment: the client left, or the gateway is stopping."""
        if self._running:
            self._free_probe(self._close())

    def superseded(self, now: float) -> None:
        """Note that another attempt of the same request responded first and so ended this one, which is no failure."""
        if not self._running:
            return
        waited, self._waits = self._waits, False
        if waited:
            self._awaited.cut_off(self, now)
        self._close()
        self._free_probe(waited)

    def _cool_down(self, now: float, kind: FailureKind, seconds: float) -> None:
        self._breaker.why = kind
        self._breaker._cool_down(now, seconds)
        self._breaker._publish(kind, seconds)

    def _count(self, now: float, failure: Failure, waited: bool) -> bool:
        """Count a failure against the deployment, and return whether it opened the breaker."""
        breaker, kind = self._breaker, failure.kind
        denied = kind in CIRCUIT_OPENING_KINDS
        enough = denied or breaker._count_failure(now, self._probe)
        ruling = breaker._witnesses.failed(self._team, failure, now)
        self.disputed = ruling is Ruling.NOBODY
        if self.disputed or not enough:
            self._free_probe(waited)
            return False
        only_team = self._team if ruling is Ruling.TEAM else None
        breaker._open(now, breaker._rules.auth if denied else breaker._next_cooldown(now), only_team)
        if denied and only_team is None:
            breaker._publish(kind, breaker._rules.auth)
        breaker.why = kind
        return True

    def _answered_probe(self, now: float) -> None:
        self._breaker._answered_probe(now, self._team)
        self._epoch = self._breaker._epoch

    def _close(self) -> bool:
        """End the attempt. Return whether it was still waiting for its first byte."""
        self._running = False
        self._breaker.in_flight -= 1
        waited, self._waits = self._waits, False
        if waited:
            self._awaited.forget(self)
        return waited

    def _free_probe(self, waited: bool) -> None:
        """Allow another request to be the probe."""
        if waited and self._probe and self._epoch == self._breaker._epoch:
            self._breaker._probing.remove(self._team)
