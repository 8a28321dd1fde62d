"""The lower bound of a proxy on asyncio: bytes from one socket to another, without reading or checking them.

It has no HTTP, no pool and no limits: each client's connection has one to the upstream, for as long as it lasts. The
gateway's cost above it is the gateway's own work. Its cost above nginx is the cost of Python and asyncio. That depends
on the machine, above all on the cost of its system calls. So ratios to nginx do not compare between machines, but
differences to this relay do.
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
    """Return the relay under an interpreter. To be a lower bound, it needs the gateway's interpreter."""

    @contextmanager
    def start(folder: Path, upstream: RunningUpstream) -> Iterator[Target]:
        port, tls_port = free_ports(2)
        numbers = [str(number) for number in (port, tls_port, upstream.port, upstream.tls_port)]
        command = [python, str(SERVER), *numbers, str(upstream.authority)]
        with running_process(command, folder, tls_port) as pid:
            yield Forwarder(NAME, port, pid, tls_port)

    version = said([python, "-c", "import platform; print(platform.python_version())"])
    return Program(NAME, version, start)
