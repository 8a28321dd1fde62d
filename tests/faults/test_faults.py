"""Every fault of the failure model, by number: on both event loops, non-streaming and streamed, and no resource is left
behind."""

import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvloop

from tests.faults import (  # noqa: F401 - they register
    clients,
    lifecycle,
    lifecycle_load,
    lifecycle_shared,
    process_faults,
    request_content,
    upstream_bodies,
    upstream_breaks,
    upstream_connections,
    upstream_limits,
    upstream_refusals,
    upstream_streams,
    upstream_tls,
    workers,
)
from tests.faults.fault_rig import KEY, OPERATOR_KEY, descriptors, rig
from tests.faults.registry import NUMBERS, Fault, faults
from tests.support.summary_counts import counts

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}

LONGEST = 45.0
"""Seconds that any case may take. The limits in the configurations are far below, but some cases start processes, on a
machine that may be busy."""


def cases() -> Iterator[object]:
    """Yield each fault on the loop that gateways use, non-streaming and streamed, and one test of each number on the
    other loop: whatever it is, it holds on both or on neither. The other combinations are marked `nightly`."""
    seen: set[int] = set()
    for fault in faults():
        yield pytest.param(fault, "asyncio", id=f"{fault.id}-asyncio")
        nightly = fault.number in seen
        seen.add(fault.number)
        yield pytest.param(fault, "uvloop", id=f"{fault.id}-uvloop", marks=[pytest.mark.nightly] if nightly else [])


@pytest.mark.parametrize(("fault", "loop"), [*cases()])
def test_a_fault_has_its_documented_end(fault: Fault, loop: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    before = descriptors()
    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        runner.run(shown(fault, tmp_path))
    gc.collect()
    assert descriptors() == before
    counts(pytestconfig)["fault", str(fault.number), fault.id, loop] += 1


@pytest.fixture(scope="module", autouse=True)
def warm(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Open everything that a process opens only once, before resources are counted."""
    for factory in LOOPS.values():
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(idle(tmp_path_factory.mktemp("warm")))
    gc.collect()
    # Exempt existing objects from garbage collection, like the collected tests (tests/conftest.py): walking over them
    # after every case takes longer than most cases.
    gc.freeze()


async def idle(folder: Path) -> None:
    async with rig(folder) as made:
        await made.ask()
        await made.exposition()


async def shown(fault: Fault, folder: Path) -> None:
    """Run one fault, and check afterwards that no resource is left."""
    async with rig(folder, bool(fault.stream), fault.table) as made:
        before = await made.ledger()
        assert before.settled
        async with asyncio.timeout(LONGEST):
            await fault.test(made)
        after = await made.settled(before)
        assert after.settled, after
        assert after.tasks <= before.tasks, [task.get_name() for task in asyncio.all_tasks()]
        told = f"{made.log.getvalue().decode()}{await made.exposition()}"
        assert not any(key in told for key in (KEY, OPERATOR_KEY))


def test_every_number_is_shown() -> None:
    assert {fault.number for fault in faults()} == set(NUMBERS)
