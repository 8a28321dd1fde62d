"""A control for response times: a server that only uses as much CPU as the gateway did.

It responds to requests one after the other, as soon as its process has used a given CPU time for each request so far.
Its slow responses show the queueing at that load and the machine, and nothing of the gateway.

    python -m tests.bench.programs.control PORT MICROSECONDS
"""

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from typing_extensions import override

from tests.bench.programs.program import Forwarder, Target, running_process
from tests.bench.upstream import Upstream
from tests.support.gateway import ROOT, free_ports

CONTROL = "control, as busy"


class BusyUntil:
    """A loop that uses CPU until the process has used `each` seconds of it for every request so far."""

    def __init__(self, each: float) -> None:
        self._each = each
        self._until = time.process_time()

    def spend(self) -> None:
        """Use the rest of a request's share. Time that was not used while there were no requests is not added."""
        self._until = max(self._until, time.process_time() - self._each) + self._each
        while time.process_time() < self._until:
            pass


class BusyUpstream(Upstream):
    """One connection of the control."""

    def __init__(self, busy: BusyUntil) -> None:
        super().__init__()
        self._busy = busy

    @override
    def data_received(self, data: bytes) -> None:
        self._busy.spend()
        super().data_received(data)


async def serve(port: int, each: float) -> None:
    """Serve until a signal ends the process."""
    busy = BusyUntil(each)
    server = await asyncio.get_running_loop().create_server(lambda: BusyUpstream(busy), "127.0.0.1", port, backlog=1024)
    await server.serve_forever()


@contextmanager
def running_control(folder: Path, each: float) -> Iterator[Target]:
    """Run the control in a process of its own, with `each` seconds of CPU for a request."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "tests.bench.programs.control", str(port), str(each * 1e6)]
    with running_process(command, folder, port, {"PYTHONPATH": str(ROOT)}) as pid:
        yield Forwarder(CONTROL, port, pid, port)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]) / 1e6))
