"""A control for times of answers: a server that does nothing but be as busy as the gateway was.

It answers each request itself, one after the other, once its process has used a given CPU time for each of them so far:
what its slow answers take is queueing at that load and the machine, and nothing of the gateway's.

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
    """Uses CPU until the process has used `each` seconds of it for every request so far."""

    def __init__(self, each: float) -> None:
        self._each = each
        self._until = time.process_time()

    def spend(self) -> None:
        """Use what is left of a request's share. Time that was not used while there were no requests is none's."""
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
    """The control in a process of its own, which uses `each` seconds of CPU for a request."""
    (port,) = free_ports(1)
    command = [sys.executable, "-m", "tests.bench.programs.control", str(port), str(each * 1e6)]
    with running_process(command, folder, port, {"PYTHONPATH": str(ROOT)}) as pid:
        yield Forwarder(CONTROL, port, pid, port)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]) / 1e6))
