"""The health of one deployment: whether it may be asked, and what each try says of it.

Never compares deployments, reads a clock, draws by itself or waits: `now` is the loop's clock in seconds, the draw an
argument. Between processes goes only what a vendor said, by a function that is given.
"""

from collections.abc import Callable
from enum import IntEnum

from providers.failure import VERDICTS, Failure, FailureKind
from proxy.awaited import Awaited
from proxy.health_rules import HealthRules
from proxy.outcomes import Outcomes
from proxy.witnesses import Ruling, Witnesses

NEVER = float("-inf")

UNWELL = 2
"""Failures after which a team counts on a deployment no longer: the first may be the request's, or chance."""

Say = Callable[[str, FailureKind, float], None]
"""Tells other processes what the vendor said: the deployment's name among them, the kind, seconds to leave it alone."""


class State(IntEnum):
    """As the gauge `deployment_state` shows it. OPEN is asked nothing, HALF_OPEN one request at a time."""

    CLOSED = 0
    HALF_OPEN = 1
    OPEN = 2


class Answer(IntEnum):
    """What a try waits for. Their first bytes come at different times, so each kind has its own usual wait."""

    STREAM = 0
    WHOLE = 1


class Health:
    """One deployment, as this process has seen it.

    It is away from the moment it is ejected or told us to wait until a request that was sent to it while it was away
    gets its first byte. Only tries of the present time count: what was begun before it went away or came back says
    nothing of now. `in_flight` is the number of tries that have not ended, `why` the kind of failure after which it
    was last left alone; `name` is what it is called among the processes that share, and `say` tells them.
    `lone` is the team that an ejection binds alone, because no other has seen it fail.
    """

    __slots__ = (
        "_away",
        "_cooled_until",
        "_draw",
        "_ejected_until",
        "_ejections",
        "_era",
        "_failing",
        "_first_byte_at",
        "_heard_since",
        "_kinds",
        "_outcomes",
        "_probers",
        "_returned",
        "_row",
        "_rules",
        "_witnesses",
        "in_flight",
        "lone",
        "name",
        "say",
        "why",
    )

    def __init__(self, rules: HealthRules, draw: Callable[[], float]) -> None:
        self._rules = rules
        self._draw = draw
        self._kinds = tuple(Awaited(rules.hanging_age) for _ in Answer)
        self._outcomes = Outcomes(rules.window)
        self._row = 0
        self._away = False
        self._ejected_until = NEVER
        self._cooled_until = NEVER
        self._ejections = 0
        self._returned = NEVER
        self._first_byte_at = NEVER
        self._era = 0
        self._probers: list[str] = []
        self._witnesses = Witnesses(rules.window)
        self._failing: dict[str, tuple[int, float]] = {}
        self.lone: str | None = None
        self._heard_since = NEVER
        self.in_flight = 0
        self.why: FailureKind | None = None
        self.name = ""
        self.say: Say | None = None

    def follow(self, rules: HealthRules) -> None:
        """From now on be judged by the rules of a new table; `window` and `hanging_age` are the same in all of them."""
        self._rules = rules

    @property
    def first_byte(self) -> float | None:
        """The usual seconds to the first byte: of streams, and of whole answers where there has been no stream."""
        streams, wholes = self._kinds
        return wholes.usual if streams.usual is None else streams.usual

    @property
    def probed(self) -> bool:
        """Whether a request that was sent to it while it is away still waits for its first byte."""
        return bool(self._probers)

    def state(self, now: float) -> State:
        """CLOSED, OPEN for as long as it is ejected or told us to wait, HALF_OPEN after that."""
        if not self._away:
            return State.CLOSED
        return State.OPEN if now < max(self._ejected_until, self._cooled_until) else State.HALF_OPEN

    def admits(self, now: float, team: str = "") -> bool:
        """Whether a team may ask it now, if the try begins before any wait: a half-open one admits one of each team."""
        if not self._away:
            return True
        if now < self._cooled_until:
            return False
        if self.lone not in (None, team):
            return True
        if now < self._ejected_until:
            return False
        probers = self._probers
        return not probers or (team not in probers and len(probers) < self._rules.probes_most)

    def wait(self, now: float) -> float:
        """Seconds until it may be asked, 0 when it may; while a probe is under way a guess, for nobody knows."""
        if not self._away:
            return 0.0
        left = max(self._ejected_until, self._cooled_until) - now
        if left > 0:
            return left
        return self._rules.panic_every if self._probers else 0.0

    def well(self, now: float, team: str = "") -> bool:
        """Whether a team knows nothing against it: it is closed, does not hang, and has not failed the team twice since
        the latest first byte that the team got of it. Of one that nobody has asked, nobody knows anything."""
        if self._away and (self.lone in (None, team) or now < self._cooled_until):
            return False
        times, latest = self._failing.get(team, (0, NEVER))
        return (times < UNWELL or now - latest > self._rules.window) and not self.hanging(now)

    def cooling(self, now: float) -> bool:
        """Whether nothing but the vendor's own word, a rate limit or a spent quota, forbids to ask it."""
        return self._ejected_until <= now < self._cooled_until

    def told_to_wait(self, now: float) -> bool:
        """Whether the vendor's own word forbids to ask it, whatever else does."""
        return now < self._cooled_until

    def share(self, now: float) -> float:
        """Which part of its requests it should get: less than 1 for a while after it returned."""
        rules = self._rules
        back = now - self._returned
        return 1.0 if back >= rules.slow_start else max(rules.slow_start_from, back / rules.slow_start)

    def hanging(self, now: float) -> bool:
        """Whether too many tries have waited too long for a first byte: it should come after those that do not hang."""
        if self.in_flight <= self._rules.hanging_least:
            return False
        return any(self._hangs(awaited, now) for awaited in self._kinds)

    def begin(self, now: float, answer: Answer, team: str = "") -> "Try":
        """A team's request is about to be sent. While the deployment is away this is a probe."""
        self.in_flight += 1
        awaited = self._kinds[answer]
        trial = Try(self, awaited, self._era, self._away, team)
        awaited.begin(trial, now)
        if self._away:
            self._probers.append(team)
            self._heard_since = NEVER
        return trial

    def told(self, now: float, kind: FailureKind, seconds: float) -> None:
        """The vendor told another process to leave it alone: a rate limit, a spent quota, or a refused credential. That
        holds for no longer than the same said to this process, as do all such words until this one has asked itself."""
        rules = self._rules
        if self._heard_since == NEVER:
            self._heard_since = now
        most = {FailureKind.QUOTA: rules.quota, FailureKind.AUTH: rules.auth}.get(kind, rules.asked_most)
        left = min(now + seconds, self._heard_since + most) - now
        if left <= 0:
            return
        self.why = kind
        if kind is not FailureKind.AUTH:
            self._cool(now, left)
            return
        self._ejected_until = max(self._ejected_until, now + left)
        self.lone = None
        if not self._away:
            self._leave()

    def _hangs(self, awaited: Awaited, now: float) -> bool:
        rules = self._rules
        oldest = awaited.oldest()
        if oldest is None or len(awaited) <= max(rules.hanging_least, rules.hanging_times * awaited.expected(now)):
            return False
        if awaited.usual is None and self._first_byte_at > oldest:
            # It answers requests of the other kind, and this kind may simply take long.
            return False
        return now - oldest > max(rules.hanging_age, rules.hanging_slowness * awaited.tail)

    def _leave(self) -> None:
        self._away = True
        self.lone = None
        self._era += 1
        self._probers.clear()
        self._row = 0

    def _alive(self, now: float, team: str) -> None:
        """A team's probe has shown that it answers; what the vendor said meanwhile still holds."""
        self._ejected_until = NEVER
        self.lone = None
        if now < self._cooled_until:
            self._probers.remove(team)
            return
        self._away = False
        self._era += 1
        self._probers.clear()
        self._outcomes.clear()
        self._failing.clear()
        self._returned = now

    def _fails(self, team: str, now: float) -> None:
        times, _ = self._failing.get(team, (0, now))
        self._failing[team] = (times + 1, now)

    def _cool(self, now: float, seconds: float) -> None:
        self._cooled_until = max(self._cooled_until, now + seconds)
        if not self._away:
            self._leave()

    def _spread(self, kind: FailureKind, seconds: float) -> None:
        if self.say is not None:
            self.say(self.name, kind, seconds)

    def _eject(self, now: float, seconds: float, lone: str | None = None) -> None:
        self._leave()
        self.lone = lone
        self._ejected_until = now + seconds

    def _ejection(self, now: float) -> float:
        """Seconds of the next ejection."""
        rules = self._rules
        if not self._away and now - self._returned >= rules.forgive:
            self._ejections = 0
        seconds = min(rules.cooldown * 2.0**self._ejections, rules.longest_cooldown)
        if seconds < rules.longest_cooldown:
            self._ejections += 1
        return seconds * (1 + rules.jitter * (2 * self._draw() - 1))

    def _enough(self, now: float, probe: bool) -> bool:
        """Count a failure; whether it is one too many. That of a probe is, unless the deployment was well for long."""
        rules = self._rules
        if probe and (self._away or now - self._returned < rules.forgive):
            return True
        self._row += 1
        tries, failed = self._outcomes.badly(now)
        return self._row >= rules.failures or (tries >= rules.window_least and failed >= rules.window_share * tries)


class Try:
    """One request at one deployment, until `succeeded`, `failed` or `abandoned` ends it; nothing counts after that.
    `disputed`: it failed while other teams' went well, so that the request may be to blame."""

    __slots__ = ("_awaited", "_era", "_health", "_open", "_probe", "_team", "_waits", "disputed")

    def __init__(self, health: Health, awaited: Awaited, era: int, probe: bool, team: str) -> None:
        self._health = health
        self._awaited = awaited
        self._era = era
        self._probe = probe
        self._team = team
        self._open = True
        self._waits = True
        self.disputed = False

    def first_byte(self, now: float) -> None:
        """The first content of a stream, or a whole answer, is there. A probe has done its work with that, since a
        stream may go on for minutes; should it fail later, the deployment is ejected again all the same."""
        if not self._waits:
            return
        self._waits = False
        self._awaited.answered(self, now)
        health = self._health
        health._first_byte_at = now
        health._failing.pop(self._team, None)
        if self._probe and self._era == health._era:
            self._lives(now)

    def succeeded(self, now: float) -> None:
        """The answer is complete."""
        if not self._open:
            return
        if self._waits:
            self.first_byte(now)
        self._open = False
        health = self._health
        health.in_flight -= 1
        if self._era == health._era:
            health._row = 0
            health._outcomes.well(now)
            health._witnesses.well(self._team, now)

    def failed(self, now: float, failure: Failure) -> bool:
        """The attempt failed; gives whether this ejected the deployment. A failure that is no fault of the deployment's
        says nothing of it, but for a probe an answer is an answer."""
        if not self._open:
            return False
        health, rules, waited = self._health, self._health._rules, self._close()
        if VERDICTS[failure.kind].try_next and self._era == health._era:
            health._fails(self._team, now)
        if failure.kind is FailureKind.RATE_LIMITED:
            # Told so while others are being answered, it has more than it takes, and is not out of everything.
            seconds = rules.asked(failure.retry_after)
            if failure.retry_after is None and health.in_flight:
                seconds = min(seconds, rules.asked_least)
            self._told(now, failure.kind, seconds)
        elif failure.kind is FailureKind.QUOTA:
            if health._witnesses.badly(self._team, failure, now) is not Ruling.NOBODY:
                self._told(now, failure.kind, rules.quota)
        elif self._era != health._era:
            return False
        elif VERDICTS[failure.kind].counts_against:
            return self._blamed(now, failure, waited)
        elif self._probe and waited and failure.status is not None:
            self._lives(now)
            return False
        self._step_back(waited)
        return False

    def outlasted(self, now: float) -> None:
        """The client would not wait. That shows nothing of the deployment, but that the team may fail there again."""
        self._health._fails(self._team, now)

    def abandoned(self, now: float) -> None:
        """It ended through no doing of the deployment's: the client left, or the gateway stops."""
        if self._open:
            self._step_back(self._close())

    def _told(self, now: float, kind: FailureKind, seconds: float) -> None:
        self._health.why = kind
        self._health._cool(now, seconds)
        self._health._spread(kind, seconds)

    def _blamed(self, now: float, failure: Failure, waited: bool) -> bool:
        """Count a failure against the deployment; gives whether that ejected it."""
        health, kind = self._health, failure.kind
        denied = kind is FailureKind.AUTH
        enough = denied or health._enough(now, self._probe)
        ruling = health._witnesses.badly(self._team, failure, now)
        self.disputed = ruling is Ruling.NOBODY
        if self.disputed or not enough:
            self._step_back(waited)
            return False
        lone = self._team if ruling is Ruling.TEAM else None
        health._eject(now, health._rules.auth if denied else health._ejection(now), lone)
        if denied and lone is None:
            health._spread(kind, health._rules.auth)
        health.why = kind
        return True

    def _lives(self, now: float) -> None:
        self._health._alive(now, self._team)
        self._era = self._health._era

    def _close(self) -> bool:
        """End it; gives whether it was still waiting for its first byte."""
        self._open = False
        self._health.in_flight -= 1
        waited, self._waits = self._waits, False
        if waited:
            self._awaited.forget(self)
        return waited

    def _step_back(self, waited: bool) -> None:
        """Leave the half-open place to another request."""
        if waited and self._probe and self._era == self._health._era:
            self._health._probers.remove(self._team)
