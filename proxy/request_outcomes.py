"""What became of a request by a feature of its name, and of an attempt, as the log and the metrics report it."""

from typing import Final, Literal, get_args

AffinityOutcome = Literal["kept", "spilled_load", "spilled_health", "short", "none"]
AFFINITY_OUTCOMES: Final[tuple[AffinityOutcome, ...]] = get_args(AffinityOutcome)
"""What became of a request whose name has affinity: the deployment of its conversation answered (`kept`); that had too
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
"""What became of a request whose first attempt was late: its second attempt had content first (`won`), the first one
had (`lost`), the second failed (`failed`), or the request ended before (`cancelled`). There was no second attempt: too
many requests of the name had one (`refused_share`), cancelled calls cost enough (`refused_cap`), the others had no slot
or were at a limit (`refused_busy`), none was healthy or could honour the request (`refused_target`), or half of the
deployments are late (`closed`)."""

SUPERSEDED: Final = "superseded"
"""The outcome of an attempt that ended because another one of its request answered first."""

FAULTLESS: Final = frozenset({"ok", SUPERSEDED})
"""The outcomes of attempts that did not fail."""
