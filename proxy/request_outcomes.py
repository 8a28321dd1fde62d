"""Parts of the record that few requests have, and the outcomes of affinity, second attempts and attempts as the log and
the metrics report them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, get_args

from providers.frozen_record import record

AffinityOutcome = Literal["kept", "spilled_load", "spilled_health", "short", "none"]
AFFINITY_OUTCOMES: Final[tuple[AffinityOutcome, ...]] = get_args(AffinityOutcome)
"""The outcome of a request whose name has affinity: the deployment of its conversation answered (`kept`); that had too
many requests in flight (`spilled_load`); it was out of service, unhealthy, at a limit, failed, or cannot honour the
request (`spilled_health`); the prompt is shorter than `least` (`short`); nothing names a conversation (`none`)."""

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
"""The outcome of a request whose first attempt was late: its second attempt had content first (`won`), the first one
had (`lost`), the second failed (`failed`), or the request ended before (`cancelled`). There was no second attempt: too
many requests of the name had one (`refused_share`), cancelled calls cost enough (`refused_cap`), the others had no slot
or were at a limit (`refused_busy`), none was healthy or could honour the request (`refused_target`), or half of the
deployments are late (`closed`)."""

SUPERSEDED: Final = "superseded"
"""The outcome of an attempt that ended because another one of its request answered first."""

FAULTLESS: Final = frozenset({"ok", SUPERSEDED})
"""The outcomes of attempts that did not fail."""


@record(eq=False)
class CacheUse:
    """The result of the response cache for a request, and the age in seconds of the response from it. A `miss`
    called."""

    result: Literal["hit", "miss", "stale"]
    age: float = 0.0


@record(eq=False)
class RefusingLimit:
    """The limit or budget that refused a request: its `scope`, as in the client's message, its unit and its
    period, which is empty for requests at once; `limit` is its amount in words."""

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
    """Changes by plugins: the names of the plugins that changed something, or on a stream may, and the dropped fields.
    `plugin` is the one that ended the request, `reason` why."""

    names: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    plugin: str = ""
    reason: str = ""

    def note(self, names: Iterable[str], dropped: Iterable[str] = ()) -> None:
        """Add each that is not there yet."""
        self.names += [each for each in names if each not in self.names]
        self.dropped += [each for each in dropped if each not in self.dropped]


class Receipt(NamedTuple):
    """The receipt that a client gets of its request. `may_name` returns whether the client may see the name of a
    deployment or of its model; `last` is set if it gets a receipt at the end of a stream too."""

    may_name: Callable[[str], bool]
    last: bool = False


STALL: Final = 1.0
"""Seconds of a vendor's silence in a stream from which on it is a stall."""


@dataclass(slots=True)
class WaitMarks:
    """The waits of a request that most requests do not have, in seconds: for the client to send its body (`upload`),
    for a slot in this process or at a deployment (`queued`), between two attempts (`paused`), for an equal request
    or a shared store of the answer cache (`cached`), for guards (`guarded`), and for more of a stream whose content is
    held back until guards have seen it (`held`). The last two are before the first content. `stalls` is how often the
    vendor sent nothing for longer than STALL after the first content, `stalled` for how long in all."""

    upload: float = 0.0
    queued: float = 0.0
    paused: float = 0.0
    cached: float = 0.0
    guarded: float = 0.0
    held: float = 0.0
    stalls: int = 0
    stalled: float = 0.0
