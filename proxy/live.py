"""The snapshot in force.

Never builds or loads one. A request reads `snapshot` once and keeps what it read.
"""

from proxy.snapshot import Snapshot


class Live:
    """Holds the current snapshot; `swap` is one assignment, so a reader sees the old one or the new one.

    `since` is when the gateway started, in unix seconds; the models list needs a `created`.
    """

    __slots__ = ("since", "snapshot")

    def __init__(self, snapshot: Snapshot, since: int) -> None:
        self.snapshot = snapshot
        self.since = since

    def swap(self, snapshot: Snapshot) -> None:
        """Put a new table in force for requests that begin from now on."""
        self.snapshot = snapshot
