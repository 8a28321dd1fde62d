"""What happened to one request: filled as its steps finish, emitted once.

Never formats, never holds a prompt, an answer's text or a key.
"""

from dataclasses import dataclass, field
from typing import Literal

from providers.completion import Usage
from providers.price import Price, cost

Outcome = Literal[
    "ok", "client_error", "upstream_error", "timeout", "truncated", "client_gone", "denied", "shed", "error"
]
"""`shed` is a request that the gateway refused for its own sake."""


@dataclass(slots=True)
class Attempt:
    """One call of a target. `deployment` is the table's name for it, a label of metrics; `name` what clients may make
    of it under a row for any model. `outcome` is `ok` or a failure kind, `cause` why there was no connection; times are
    seconds of the loop's clock. `maybe_executed` says that the vendor may bill a call that failed."""

    deployment: str
    started: float
    finished: float = 0.0
    outcome: str = "ok"
    status: int | None = None
    message: str | None = None
    maybe_executed: bool = False
    cause: str | None = None
    name: str = ""


NO_TEAM = "anonymous"
"""The team of every request where the table has no teams."""

UNKNOWN_TEAM = "unknown"
"""The team of requests whose key tells none."""

OTHER = "other"
"""Any label value that is no name of the table."""


@dataclass(slots=True)
class RequestRecord:
    """One logical request.

    Labels (`team`, `surface`, `model`) hold names of the table only; `asked` is the client's string, for the log,
    and `key` what the table calls the key. `called` is the name by which clients know the deployment that was called
    last, None where none was, and `price` what that one costs (None = unknown). `usage` is that of the answer, `billed`
    what several calls used where that differs. `max_tokens` is the limit that the window left room for, where the
    gateway lowered it. `waited` is the time spent waiting for the upstream, `client_waited` that for the client to send
    its body and to read, and `first_content` when content began.
    """

    request_id: str
    started: float
    surface: str
    path: str
    client: str = ""
    team: str = UNKNOWN_TEAM
    key: str = ""
    asked: str = ""
    model: str = OTHER
    stream: bool = False
    status: int = 0
    code: str | None = None
    outcome: Outcome = "ok"
    attempts: list[Attempt] = field(default_factory=list)
    called: str | None = None
    usage: Usage | None = None
    billed: Usage | None = None
    price: Price | None = None
    max_tokens: int | None = None
    waited: float = 0.0
    client_waited: float = 0.0
    first_content: float | None = None
    finished: float = 0.0
    chunks: int = 0
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()

    @property
    def owner(self) -> str:
        """Whose share of what all use together it takes: the team's, or the client's where there are no teams."""
        return self.client if self.team == NO_TEAM else self.team

    @property
    def deployment(self) -> str | None:
        """The table's name for the deployment of the last attempt."""
        return self.attempts[-1].deployment if self.attempts else None

    @property
    def answered_by(self) -> str | None:
        """The true name of the deployment of the last attempt, for the log."""
        return (self.attempts[-1].name or self.deployment) if self.attempts else None

    @property
    def cost(self) -> float | None:
        """USD; None where the price or the usage is not known."""
        return cost(self.price, self.billed or self.usage)

    @property
    def duration(self) -> float:
        """Seconds from the first byte read to the last one written."""
        return self.finished - self.started
