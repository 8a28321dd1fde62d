"""The gateway as a process of its own with the vendors of a rig, on the event loop of the case."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.faults.fault_rig import OPERATOR_KEY, PATIENT, Rig
from tests.support.gateway import ROOT, SERVER, RunningGateway, running_gateway

UVLOOP: Final = "import asyncio.events, uvloop\nasyncio.events.new_event_loop = uvloop.new_event_loop\n"


def folder(rig: Rig) -> Path:
    found = rig.path.parent / "process"
    found.mkdir(exist_ok=True)
    return found


@asynccontextmanager
async def process(rig: Rig, drain: Sequence[str] = (), first: str = "") -> AsyncIterator[RunningGateway]:
    """Run a gateway that is ready, for the duration of the block, with the patient configuration and these lines about
    the drain.

    The process runs the Python text `first` before anything else.
    """
    loop = UVLOOP if type(asyncio.get_running_loop()).__module__ == "uvloop" else ""
    (folder(rig) / "sitecustomize.py").write_text(loop + first, encoding="utf-8")
    environment = {
        "KEY": OPERATOR_KEY,
        "ONE": str(rig.one.port),
        "TWO": str(rig.two.port),
        "PYTHONPATH": f"{folder(rig)}:{ROOT}",
    }
    lines = [line for line in PATIENT.splitlines() if not line.startswith("server:")]
    lines += [*SERVER.splitlines(), "  watch: false", *(f"  {line}" for line in drain)]
    async with running_gateway("\n".join(lines), folder(rig), environment) as gateway:
        yield gateway
