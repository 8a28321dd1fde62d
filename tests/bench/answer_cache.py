"""The cost and the savings of the response cache, in one run: `python -m tests.bench.answer_cache`, `--python` as
elsewhere.

Gateways whose configurations differ only in `cache` get the same bodies in alternate turns, non-streaming and as a
stream of 65 chunks. One has no cache. One has a cache that no request uses. One requests a fresh response each time,
which is stored. One serves every response from the cache. The cheapest round of each counts. `--case hit` runs only the
cases whose names contain the word. `--against FOLDER` adds another checkout of the gateway.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import uvloop
from typing_extensions import override

from tests.bench.cpu import cpu_seconds
from tests.bench.load import LAST_CHUNK, OK, Caller, Load, WholeCaller, WrongAnswer, run_load, shown
from tests.bench.measure import separate
from tests.bench.overload import Amount, amount_of
from tests.bench.programs.gateway import MODEL_SETTINGS, Build
from tests.bench.programs.program import Target
from tests.bench.readings import Reading, cheapest
from tests.bench.traffic import Ask, chat_request
from tests.bench.upstream import running_upstream
from tests.support.gateway import ROOT

CACHED: Final = f"{MODEL_SETTINGS}, cache: {{ttl: 1h}}"
CHUNKS: Final = 65
TRIES: Final = 20


class StreamCaller(Caller):
    """A caller that requests streams and reads each to its end."""

    def __init__(self, request: bytes, tickets: Iterator[int]) -> None:
        super().__init__(request, tickets)
        self._head, self._tail = b"", b""

    @override
    def data_received(self, data: bytes) -> None:
        if not self._head:
            self._head = data[:64]
            if not self._head.startswith(OK):
                self.fail(WrongAnswer(shown(data)))
                return
        self._tail = (self._tail + data)[-len(LAST_CHUNK) :]
        if self._tail == LAST_CHUNK:
            self._head = self._tail = b""
            self.ask()


@dataclass(frozen=True, slots=True)
class CacheCase:
    """A load: its name, the settings of the gateway's models, and the request's cache directives."""

    name: str
    model: str
    wish: str = ""
    chunks: int = 0

    @property
    def request(self) -> bytes:
        """Return the bytes of a request."""
        plain = chat_request(Ask(chunks=self.chunks))
        if not self.wish:
            return plain
        return plain.replace(b"\r\n\r\n", f"\r\nx-dragoman-cache: {self.wish}\r\n\r\n".encode(), 1)

    @property
    def caller(self) -> Callable[[bytes, Iterator[int]], Caller]:
        """Return the caller that sends it."""
        return StreamCaller if self.chunks else WholeCaller


def _cases(of: str, chunks: int) -> Iterator[CacheCase]:
    yield CacheCase(f"{of}no cache", MODEL_SETTINGS, chunks=chunks)
    yield CacheCase(f"{of}not asked for", CACHED, chunks=chunks)
    yield CacheCase(f"{of}kept", CACHED, "refresh", chunks)
    yield CacheCase(f"{of}hit", CACHED, "use", chunks)


CASES: Final[Sequence[CacheCase]] = (*_cases("", 0), *_cases(f"stream of {CHUNKS}: ", CHUNKS))


async def measured(target: Target, case: CacheCase, amount: Amount, count: int) -> Reading:
    """Return the cost of one load of `count` requests. Measure again if the gateway's event loop was late and it
    refused some."""
    for left in reversed(range(TRIES)):
        before = cpu_seconds(target.pid)
        try:
            wall = await run_load(target.port, Load(case.request, count, amount.connections), case.caller)
        except WrongAnswer as wrong:
            if "503" not in str(wrong)[:16] or not left:
                raise
            await asyncio.sleep(1.0)
        else:
            return Reading(cpu_seconds(target.pid) - before, wall, count)
    raise AssertionError("the last try returns or raises")


async def bench(
    cases: Sequence[CacheCase], amount: Amount, python: str, checkouts: Mapping[str, Path], folder: Path
) -> Mapping[str, Sequence[Reading]]:
    """Run all cases, and return the readings by name."""
    taken: dict[str, list[Reading]] = {}
    async with AsyncExitStack() as stack:
        upstream = stack.enter_context(running_upstream(folder))
        started: dict[tuple[str, str], Target] = {}
        for name, checkout in checkouts.items():
            for model in dict.fromkeys(case.model for case in cases):
                place = folder / str(len(started))
                place.mkdir()
                build = Build(name, checkout, python, model=model)
                started[name, model] = stack.enter_context(build.start(place, upstream))
        separate([target.pid for target in started.values()], [os.getpid(), upstream.pid])
        for turn in range(amount.rounds + 1):
            for case in cases:
                for name in checkouts:
                    target = started[name, case.model]
                    # The first turn warms up, with a tenth of the requests.
                    count = amount.requests if turn else amount.requests // 10
                    reading = await measured(target, case, amount, count)
                    if turn:
                        taken.setdefault(f"{name}{case.name}", []).append(reading)
    return taken


def lines(taken: Mapping[str, Sequence[Reading]]) -> list[str]:
    """Return the figures: a request's CPU, and its ratio to the first case of its kind."""
    found, first = [], 0.0
    for name, readings in taken.items():
        cost = cheapest(readings).microseconds
        first = cost if name.endswith("no cache") or not first else first
        found.append(f"{name}: {cost:.1f} µs of CPU a request, {cost / first:.1%}")
    return found


def main() -> None:
    """Measure as the command line orders."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--case", default="")
    parser.add_argument("--against", type=Path)
    chosen, rest = parser.parse_known_args()
    checkouts = {"": ROOT} if chosen.against is None else {"": ROOT, "against: ": chosen.against}
    cases = [case for case in CASES if chosen.case in case.name]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for line in lines(uvloop.run(bench(cases, amount_of(rest), chosen.python, checkouts, Path(folder)))):
            print(line)


if __name__ == "__main__":
    main()
