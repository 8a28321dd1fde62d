"""What a proxy on asyncio cannot be below: bytes from one socket to another, with nothing read and nothing checked.

It has no HTTP, no pool and no limits: each client's connection has one to the upstream, for as long as it lasts. What
the gateway costs above it is the gateway's own work; what it costs above nginx is Python's and asyncio's. How much that
is depends on the machine, on the price of its system calls above all: the ratios to nginx of two machines do not
compare, the differences to this do.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bench.programs.program import Forwarder, Program, Target, running_process, said
from tests.bench.upstream import RunningUpstream
from tests.support.gateway import free_ports

NAME = "bare relay"
SERVER = Path(__file__).with_name("relay_bytes.py")


def bare_relay(python: str = sys.executable) -> Program:
    """The relay under an interpreter: that of the gateway, whose floor it is."""

    @contextmanager
    def start(folder: Path, upstream: RunningUpstream) -> Iterator[Target]:
        port, tls_port = free_ports(2)
        numbers = [str(number) for number in (port, tls_port, upstream.port, upstream.tls_port)]
        command = [python, str(SERVER), *numbers, str(upstream.authority)]
        with running_process(command, folder, tls_port) as pid:
            yield Forwarder(NAME, port, pid, tls_port)

    version = said([python, "-c", "import platform; print(platform.python_version())"])
    return Program(NAME, version, start)
