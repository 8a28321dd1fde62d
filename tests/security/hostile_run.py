"""Costly requests to a real gateway beside a light client: their cost, and their effect on the light client."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.cpu import cpu_seconds
from tests.proxy.kit.raw_client import connected, request
from tests.proxy.kit.whole_gateway import port_of
from tests.security.costly_requests import ANSWERS, COSTLY_REQUESTS, TABLE, CostlyRequest
from tests.support import openai_wire
from tests.support.gateway import ROOT, RunningGateway, running_gateway
from tests.support.http_scripts import json_answer
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script

JSON = {"Content-Type": "application/json"}
IDLE = 1.0
"""Seconds for which the light client is alone."""

AFTER = 0.2
"""Seconds for which the light client continues after an attack has ended."""


@dataclass(frozen=True, slots=True)
class Felt:
    """The light client's view: milliseconds of each response, milliseconds of the gateway's CPU time meanwhile, and
    statuses."""

    took: Sequence[float]
    worked: Sequence[float]
    statuses: Sequence[int]

    @property
    def worst(self) -> float:
        """Return the milliseconds of the slowest response."""
        return max(self.took)

    @property
    def stalled(self) -> float:
        """Return the most milliseconds for which the gateway's own work delayed a response. Other work on the machine
        slows responses down without using the gateway's CPU time."""
        return max(map(min, self.took, self.worked))

    @property
    def hurt(self) -> int:
        """Return the responses that were not 200."""
        return sum(status != 200 for status in self.statuses)


@dataclass(frozen=True, slots=True)
class Attack:
    """One costly request: its status (0 without a response), the seconds of the gateway's CPU time for it, and the
    light client's view meanwhile."""

    name: str
    status: int
    cpu: float
    felt: Felt


@dataclass(frozen=True, slots=True)
class HostileRun:
    """The whole run. `idle` is the view of the light client without attacks, `kept` the bytes that the gateway holds at
    rest after the run beyond those before it, `alive` whether its process is still the one that was started."""

    idle: Felt
    attacks: Sequence[Attack]
    kept: int
    alive: bool

    @property
    def worst(self) -> Attack:
        """Return the attack with the largest effect on the light client."""
        return max(self.attacks, key=lambda attack: attack.felt.worst)

    def of(self, number: str) -> Sequence[Attack]:
        """Return the attacks of a threat."""
        return [attack for attack in self.attacks if attack.name.startswith(number)]


async def hostile_run(folder: Path) -> HostileRun:
    """Send each costly request twice to a gateway of its own."""
    async with FakeVendor(_vendor) as vendor:
        table = TABLE.replace("VENDOR", str(vendor.port))
        async with running_gateway(table, folder) as gateway:
            port = port_of(gateway.url)
            idle = await _alone(gateway)
            for _ in range(3):
                await _sent(port, COSTLY_REQUESTS["06 unique items"])  # no leak: objects of the first check
            before = _resident(gateway.process.pid)
            attacks = [await _attack(gateway, name, each) for name, each in COSTLY_REQUESTS.items() for _ in range(2)]
            alive = gateway.process.poll() is None
            kept = _resident(gateway.process.pid) - before
    return HostileRun(idle, attacks, kept, alive)


async def _alone(gateway: RunningGateway) -> Felt:
    async with _light_client(gateway) as felt:
        await asyncio.sleep(IDLE)
    return felt[0]


async def _attack(gateway: RunningGateway, name: str, each: CostlyRequest) -> Attack:
    pid = gateway.process.pid
    async with _light_client(gateway) as felt:
        before = cpu_seconds(pid)
        status = await _sent(port_of(gateway.url), each)
        cpu = cpu_seconds(pid) - before
        await asyncio.sleep(AFTER)
    return Attack(name, status, cpu, felt[0])


async def _sent(port: int, each: CostlyRequest) -> int:
    body = await asyncio.to_thread(each.body)
    async with connected(port) as client:
        try:
            await client.send(request("POST", each.path, body, JSON))
            return (await client.answer()).status
        except (ConnectionError, asyncio.IncompleteReadError):
            return 0


@asynccontextmanager
async def _light_client(gateway: RunningGateway) -> AsyncIterator[list[Felt]]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.security.light_client", str(port_of(gateway.url)), str(gateway.process.pid)),
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    felt: list[Felt] = []
    await process.stdout.readline()
    try:
        yield felt
    finally:
        process.stdin.close()
        line = await process.stdout.readline()
        await process.wait()
    said = json.loads(line)
    felt.append(Felt(said["took"], said["worked"], said["statuses"]))


def _vendor(received: Received) -> Script:
    """Respond as the model's name demands, in the OpenAI family's format. The vendor reveals nothing about its
    engine."""
    if not received.body:
        return json_answer(404, {})
    sent = received.json()
    assert isinstance(sent, dict)
    answer = ANSWERS.get(str(sent.get("model")), ANSWERS["empty"])()
    if "prompt" in sent:
        return json_answer(200, openai_wire.completion(answer))
    return json_answer(200, openai_wire.chat(answer))


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096
