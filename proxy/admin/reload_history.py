"""The last reloads of the table: when, with what result, and what changed."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from config.problem import Problem
from config.table.table_schema import GatewayConfig
from proxy.admin.table_changes import table_changes

MOST_RELOADS: Final = 20

MOST_PROBLEMS: Final = 20
"""Problems of one refused table that are kept."""


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """The digest in force after a reload, the problems for which the new table was refused, and the settings of the new
    table that are not in force before a restart."""

    digest: str
    problems: tuple[Problem, ...] = ()
    needs_restart: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PastReload:
    """A reload: when in unix seconds, the digest in force after it, and what changed; `problems` are those for which
    the new table was refused."""

    when: float
    digest: str
    changes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def result(self) -> str:
        """What became of it, in a word."""
        return "refused" if self.problems else "taken"


class ReloadHistory:
    """Keeps the last reloads. `wall` returns unix seconds."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._kept: deque[PastReload] = deque(maxlen=MOST_RELOADS)

    def taken(
        self, before: GatewayConfig, after: GatewayConfig, digest: str, needs_restart: Sequence[str] = ()
    ) -> None:
        """Keep a reload that put a table in force, but for settings that need a restart."""
        self._kept.append(PastReload(self._wall(), digest, table_changes(before, after, needs_restart)))

    def refused(self, digest: str, problems: Sequence[Problem]) -> None:
        """Keep a reload that changed nothing."""
        told = tuple(str(problem) for problem in problems[:MOST_PROBLEMS])
        self._kept.append(PastReload(self._wall(), digest, (), told))

    @property
    def newest(self) -> tuple[PastReload, ...]:
        """The reloads that are kept, the newest first."""
        return tuple(reversed(self._kept))


class ReloadableTable(Protocol):
    """The table in force, as the operator's listener needs it."""

    history: ReloadHistory

    @property
    def warnings(self) -> Sequence[Problem]:
        """The warnings of the table in force."""

    async def reload(self) -> ReloadResult:
        """Load the table again."""
