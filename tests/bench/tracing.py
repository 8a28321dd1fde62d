"""What tracing costs a good request, in one run: `python -m tests.bench.tracing`, with `--python` under another one.

Gateways on the same table but for `server.tracing` are loaded with the same bytes in turns; the spans go to a process
that reads them and throws them away. The cheapest round of each counts. What the exporter's thread takes is in it.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Final

import uvloop

from tests.bench.load import WholeCaller
from tests.bench.measure import separate
from tests.bench.overload import Amount, amount_of, readings
from tests.bench.programs.gateway import Build
from tests.bench.readings import Reading
from tests.bench.team_limits import lines
from tests.bench.upstream import running_upstream

SHARES: Final[Mapping[str, str]] = {
    "not traced": "",
    "0 %": "sample: 0",
    "10 %": "sample: 0.1",
    "10 % and metrics": "sample: 0.1, metrics: on",
    "100 %": "sample: 1",
}
"""How many requests are traced, none first."""

SINK: Final = """\
import http.server
class Sink(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *args):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
"""A collector that keeps nothing: a program, so that its work is not the load's."""


@contextmanager
def sink() -> Iterator[int]:
    """A collector that keeps nothing, for the block; its port."""
    with subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.terminate()


def settings(port: int, share: str) -> str:
    """What stands in the table after the limits of the server."""
    return f"{{}}, tracing: {{endpoint: 'http://127.0.0.1:{port}', {share}}}" if share else "{}"


async def bench(amount: Amount, python: str, folder: Path) -> Mapping[str, Sequence[Reading]]:
    """Run all, and return what was read."""
    async with AsyncExitStack() as stack:
        upstream = stack.enter_context(running_upstream(folder))
        port = stack.enter_context(sink())
        targets = []
        for number, (name, share) in enumerate(SHARES.items()):
            place = folder / str(number)
            place.mkdir()
            build = Build(name, python=python, limits=settings(port, share))
            targets.append(stack.enter_context(build.start(place, upstream)))
        separate([target.pid for target in targets], [os.getpid(), upstream.pid])
        taken = await readings([(target, WholeCaller) for target in targets], amount)
    return dict(zip(SHARES, taken, strict=True))


def main() -> None:
    """Measure as the command line says."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--python", default=sys.executable)
    chosen, rest = parser.parse_known_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for line in lines(uvloop.run(bench(amount_of(rest), chosen.python, Path(folder)))):
            print(line)


if __name__ == "__main__":
    main()
