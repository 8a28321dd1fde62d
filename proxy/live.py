"""The snapshot in force.

Never builds or loads one. A request reads `snapshot` once and keeps what it read.
"""

import time
from collections.abc import Callable

from proxy.snapshot import Snapshot


class Live:
    """Holds the current snapshot; `swap` is one assignment, so a reader sees the old one or the new one.

    `since` is when the gateway started, in unix seconds; the models list needs a `created`. `wall` tells unix seconds,
    by which keys of the snapshot expire.
    """

    __slots__ = ("since", "snapshot", "wall")

    def __init__(self, snapshot: Snapshot, since: int, wall: Callable[[], float] = time.time) -> None:
        self.snapshot = snapshot
        self.since = since
        self.wall = wall

    def swap(self, snapshot: Snapshot) -> None:
        """Put a new table in force for requests that begin from now on."""
        self.snapshot = snapshot
