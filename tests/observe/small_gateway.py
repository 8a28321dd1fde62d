"""`dragoman` with small bounds, so that they can be reached: `python -m tests.observe.small_gateway serve -c TABLE`.

`OBSERVE_ROWS` rows of the ledger are kept in memory while none can be written, `OBSERVE_LABEL_SETS` sets of label
values are kept apart, and the memory limit is that of the control group in the folder `OBSERVE_GROUP`. Everything else
is the gateway's own.
"""

import os
import sys
from pathlib import Path

from proxy.cli.main import main
from proxy.control_groups import MOUNT, OWN
from proxy.ledger import journal
from proxy.overload.memory_usage import V2, Group
from proxy.process import assemble_app
from proxy.telemetry import metrics


def only_group(own: Path = OWN, mount: Path = MOUNT) -> tuple[Group, ...]:
    """The control group of this run, wherever the process really is."""
    return (Group(Path(os.environ["OBSERVE_GROUP"]), V2),)


def run() -> int:
    """Set the bounds and run the command line."""
    journal.MOST_ROWS = int(os.environ["OBSERVE_ROWS"])  # type: ignore[misc]
    metrics.MAX_LABEL_SETS = int(os.environ["OBSERVE_LABEL_SETS"])
    assemble_app.groups = only_group  # type: ignore[attr-defined]
    return main()


if __name__ == "__main__":
    sys.exit(run())
