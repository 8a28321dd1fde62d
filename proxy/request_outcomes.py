"""Parts of the request record that few requests have; and the outcomes of affinity, of second attempts and of attempts,
with the names that the log and the metrics report."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, get_args

from providers.frozen_record import frozen

AffinityOutcome = Literal["kept", "spilled_load", "spilled_health", "short", "none"]
AFFINITY_OUTCOMES: Final[tuple[AffinityOutcome, ...]] = get_args(AffinityOutcome)
"""The outcome of a request whose name has affinity. `kept`: the deployment of its conversation answered.
`spilled_load`: that deployment had too many requests in flight. `spilled_health`: that deployment was out of service,
unhealthy, at a limit, failed, or cannot honour the request. `short`: the prompt is shorter than `least`. `none`: the
request identifies no conversation."""

HedgeOutcome = Literal[
    "won",
    "lost",
    "failed",
    "cancelled",
    "refused_share",
    "refused_cap",
    "refused_busy",
    "refused_target",
    "closed",
]
HEDGE_OUTCOMES: Final[tuple[HedgeOutcome, ...]] = get_args(HedgeOutcome)
"""The outcome of a request whose first attempt was late. If there was a second attempt: it had content first (`won`),
the first attempt had content first (`lost`), the second attempt failed (`failed`), or the request ended before either
attempt had content (`cancelled`). If there was no second attempt: too many requests of the name had a second attempt
(`refused_share`), the cost of cancelled calls has reached its cap (`refused_cap`), the other deployments had no free
slot or were at a limit (`refused_busy`), no other deployment was healthy or could honour the request
(`refused_target`), or half of the deployments are late (`closed`)."""

SUPERSEDED: Final = "superseded"
"""The outcome of an attempt that ended because another attempt of its request answered first."""

FAULTLESS: Final = frozenset({"ok", SUPERSEDED})
"""The outcomes of attempts that did not fail."""


@frozen(eq=False)
class CacheUse:
    """The result of the response cache for a request, and the age in seconds of the cached response. After a `miss` the
    deployment was called."""

    result: Literal["hit", "miss", "stale"]
    age: float = 0.0


@frozen(eq=False)
class RefusingLimit:
    """The limit or budget that refused a request. `scope` is the scope that the client's message names; `limit` is the
    amount in words. `period` is empty for a limit on concurrent requests."""

    scope: str
    kind: str
    unit: str
    period: str
    limit: str

    @property
    def words(self) -> str:
        """One line for the operator, such as `budget of team search: 500.00 USD per month`."""
        amount = f"{self.limit}{f' per {self.period}' if self.period else ' at once'}"
        if self.kind == "unpriced":
            return f"budget of {self.scope}: {amount}, which refuses a model without a price"
        return f"{self.kind} of {self.scope}: {amount}"


@dataclass(slots=True, eq=False)
class GuardMarks:
    """Changes by plugins: `names` are the plugins that changed something, or may have changed something in a stream.
    `dropped` are the dropped fields. `plugin` is the plugin that ended the request, and `reason` is the reason that it
    gave."""

    names: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    plugin: str = ""
    reason: str = ""

    def note(self, names: Iterable[str], dropped: Iterable[str] = ()) -> None:
        """Add each name and field that is not in the lists yet."""
        self.names += [each for each in names if each not in self.names]
        self.dropped += [each for each in dropped if each not in self.dropped]


class Receipt(NamedTuple):
    """The receipt that a client gets of its request. `may_name` returns whether the client may see the name of a
    deployment or of its model. `last` is true if the client also gets a receipt at the end of a stream."""

    may_name: Callable[[str], bool]
    last: bool = False


STALL: Final = 1.0
"""A vendor's silence of this many seconds within a stream is a stall."""


@dataclass(slots=True)
class WaitMarks:
    """The waits that most requests do not have, in seconds: `upload` for the client to send its body, `queued` for a
    slot in this process or at a deployment, `paused` between two attempts, `cached` for an equal request or a shared
    store of the response cache, `guarded` for guards, `held` for the rest of a stream whose content is withheld until
    guards have checked it. `guarded` and `held` count only before the first content. `stalls` is how often the vendor
    sent nothing for longer than STALL after the first content; `stalled` is the total time of these silences."""

    upload: float = 0.0
    queued: float = 0.0
    paused: float = 0.0
    cached: float = 0.0
    guarded: float = 0.0
    held: float = 0.0
    stalls: int = 0
    stalled: float = 0.0
