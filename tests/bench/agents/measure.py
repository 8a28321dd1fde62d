"""The CPU of large requests, one at a time on one connection, in alternate turns over all of them. The cheapest turn
counts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tests.bench.agents.floor import json_floors
from tests.bench.agents.rows import Bound
from tests.bench.cpu import family_pids, usage
from tests.bench.load import Load, WholeCaller, WrongAnswer, run_load
from tests.bench.measure import Times
from tests.bench.probe import exchange
from tests.bench.programs.program import Target

BYTES_A_TURN = 6_000_000
"""Bytes of the requests of one turn, so that each takes some 0.1 s of CPU."""

SAID = b"the river runs south to the sea " * 20
"""A part of the response that the fake upstream gives."""


class AgentsRow(Protocol):
    """One request that is measured. `Row` documents its parts."""

    @property
    def way(self) -> str:
        """The surface and the vendor."""

    @property
    def name(self) -> str:
        """Its name in tables."""

    @property
    def size(self) -> int:
        """The approximate bytes of its body."""

    @property
    def spaced(self) -> bool:
        """Whether its JSON has spaces."""

    @property
    def bound(self) -> Bound:
        """The limits of its cost."""

    def request(self, target: Target) -> bytes | None:
        """Return the request to a program. Return `None` if the program does not support it."""


@dataclass(slots=True)
class Cost:
    """The cost of one row in one program: the bytes of its body, the CPU of a request in each turn in seconds, and the
    CPU of parsing and serializing its JSON. `failure` is why there is no cost."""

    row: AgentsRow
    size: int
    floor: float
    turns: list[float] = field(default_factory=list)
    failure: str = ""

    @property
    def seconds(self) -> float:
        return min(self.turns, default=math.nan)

    @property
    def milliseconds(self) -> float:
        return self.seconds * 1e3

    @property
    def times_floor(self) -> float:
        return self.seconds / self.floor


async def checked(port: int, request: bytes) -> None:
    """Send a request once. Raise WrongAnswer unless the response contains the upstream's text."""
    data = await exchange(port, request, stream=False)
    if SAID not in data:
        raise WrongAnswer(data[:300].decode("latin-1"))


async def cpu_each(target: Target, request: bytes, count: int) -> float:
    """Return the seconds of a program's CPU for each of `count` consecutive requests. Raise WrongAnswer for any but a
    good response."""
    pids = family_pids(target.pid)
    before = usage(pids).total
    await run_load(target.port, Load(request, count, 1), WholeCaller)
    return (usage(pids).total - before) / count


async def take_turn(target: Target, cost: Cost, request: bytes) -> None:
    """Take one more turn of a row, or record its failure. After a failure, take no turn."""
    if cost.failure:
        return
    try:
        if not cost.turns:
            await checked(target.port, request)
        cost.turns.append(await cpu_each(target, request, max(2, BYTES_A_TURN // len(request))))
    except (WrongAnswer, OSError, TimeoutError) as error:
        cost.failure = str(error)[:200] or type(error).__name__


def body_of(request: bytes) -> bytes:
    return request.partition(b"\r\n\r\n")[2]


async def measured_rows(
    targets: Sequence[Target], found: Sequence[AgentsRow], python: str, core: int, times: Times
) -> dict[str, list[Cost]]:
    """Return the cost of each row in each program that supports it, by the program's name."""
    asked = [(target, row, request) for target in targets for row in found if (request := row.request(target))]
    floors = json_floors(python, core, [body_of(request) for _, _, request in asked])
    costs = [Cost(row, len(body_of(request)), each) for (_, row, request), each in zip(asked, floors, strict=True)]
    for _ in range(times.turns):
        for (target, _, request), cost in zip(asked, costs, strict=True):
            await take_turn(target, cost, request)
    by_program: dict[str, list[Cost]] = {target.name: [] for target in targets}
    for (target, _, _), cost in zip(asked, costs, strict=True):
        by_program[target.name].append(cost)
    return {name: of_program for name, of_program in by_program.items() if of_program}


def growth_of(costs: Sequence[Cost]) -> Mapping[str, float]:
    """Return the ratio of the CPU of a large request to the CPU of a small one of the same way and form, scaled to
    exactly ten times the bytes, by way and form."""
    good = [cost for cost in costs if cost.turns]
    grown = {}
    for small in good:
        for large in good:
            alike = (large.row.way, large.row.spaced) == (small.row.way, small.row.spaced)
            if alike and large.row.size > small.row.size:
                form = f"{small.row.way}, {'spaced' if small.row.spaced else 'compact'}"
                grown[form] = large.seconds / small.seconds * 10 * small.size / large.size
    return grown
