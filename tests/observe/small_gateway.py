"""`dragoman` with small bounds, so that they can be reached: `python -m tests.observe.small_gateway serve -c TABLE`.

`OBSERVE_ROWS` rows of the ledger are kept in memory while none can be written, `OBSERVE_LABEL_SETS` sets of label
values are kept apart, and the memory limit is that of the control group in the folder `OBSERVE_GROUP`. While there is a
file `broken-observer` in it, the counts of the page fail. Everything else is the gateway's own.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from proxy.admin.recent_requests import RecentRequests
from proxy.cli.main import main
from proxy.control_groups import CGROUP_MOUNT, OWN_GROUPS_FILE
from proxy.ledger import journal
from proxy.overload.memory_usage import V2, Group
from proxy.process import assemble_app
from proxy.request_record import RequestRecord
from proxy.telemetry import metrics


def only_group(own: Path = OWN_GROUPS_FILE, mount: Path = CGROUP_MOUNT) -> tuple[Group, ...]:
    """The control group of this run, wherever the process really is."""
    return (Group(Path(os.environ["OBSERVE_GROUP"]), V2),)


BROKEN: Final = "broken-observer"
"""The file in the folder of the control group that breaks an observer."""


def breakable(add: Callable[[RecentRequests, RequestRecord, float | None], None]) -> Callable[..., None]:
    """Return an observer that fails while the file is there."""
    marker = Path(os.environ["OBSERVE_GROUP"]) / BROKEN

    def observe(counts: RecentRequests, record: RequestRecord, cost: float | None) -> None:
        if marker.exists():
            raise TypeError("an observer's own fault")
        add(counts, record, cost)

    return observe


def run() -> int:
    """Set the bounds and run the command line."""
    journal.MOST_ROWS = int(os.environ["OBSERVE_ROWS"])  # type: ignore[misc]
    metrics.MAX_LABEL_SETS = int(os.environ["OBSERVE_LABEL_SETS"])
    assemble_app.groups = only_group  # type: ignore[attr-defined]
    RecentRequests.add = breakable(RecentRequests.add)  # type: ignore[method-assign]
    return main()


if __name__ == "__main__":
    sys.exit(run())
