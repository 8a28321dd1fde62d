"""`dragoman` with small limits that a test can reach: `python -m tests.observe.small_gateway serve -c TABLE`.

At most `OBSERVE_ROWS` ledger rows stay in memory while none can be written, and `OBSERVE_LABEL_SETS` sets of label
values are counted separately. The memory limit is the limit of the control group in the folder `OBSERVE_GROUP`. While
that folder has a file `broken-observer`, the observer that counts recent requests for the admin page fails. Everything
else is as in the gateway.
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
    """Return the control group of this run instead of the real group of the process."""
    return (Group(Path(os.environ["OBSERVE_GROUP"]), V2),)


BROKEN: Final = "broken-observer"
"""The name of the file in the control group's folder that breaks an observer."""


def breakable(add: Callable[[RecentRequests, RequestRecord, float | None], None]) -> Callable[..., None]:
    """Return an observer that fails while the file exists."""
    marker = Path(os.environ["OBSERVE_GROUP"]) / BROKEN

    def observe(counts: RecentRequests, record: RequestRecord, cost: float | None) -> None:
        if marker.exists():
            raise TypeError("an observer's own fault")
        add(counts, record, cost)

    return observe


def run() -> int:
    """Set the limits and run the command line."""
    journal.MOST_ROWS = int(os.environ["OBSERVE_ROWS"])  # type: ignore[misc]
    metrics.MAX_LABEL_SETS = int(os.environ["OBSERVE_LABEL_SETS"])
    assemble_app.groups = only_group  # type: ignore[attr-defined]
    RecentRequests.add = breakable(RecentRequests.add)  # type: ignore[method-assign]
    return main()


if __name__ == "__main__":
    sys.exit(run())
