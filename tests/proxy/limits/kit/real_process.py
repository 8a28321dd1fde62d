"""One of several real processes that share a limit in a real Redis: it sends requests at random times, and writes
which passed and when.

`python -m tests.proxy.limits.kit.real_process URL NAME PROCESSES LIMIT OFFERED SECONDS BURST` reports when it is ready,
begins at the moment that it receives, and prints one JSON object.
"""

import asyncio
import json
import random
import sys
import time

from config.sections.server_section import SharedSection
from proxy.limits.lease_registry import LeaseRegistry
from proxy.limits.limit import Limits, Period, Rate, Unit
from proxy.limits.limit_registry import LimitRegistry
from proxy.limits.reservation import Reservation
from proxy.shared_state import redis_leases
from proxy.shared_state.redis_sync import SharedState
from tests.proxy.limits.kit.simulation import BERLIN

PATIENCE = 5.0
"""The time limit of an exchange, in seconds."""


async def main(url: str, name: str, processes: int, rate: Rate, offered: float, seconds: float) -> None:
    """Offer the given number of requests per second."""
    redis_leases.EXCHANGE_TIMEOUT = PATIENCE  # type: ignore[misc]  # a busy machine is no lost Redis
    clock = asyncio.get_running_loop().time
    state = SharedState(SharedSection.model_validate({"redis": url}), lambda cooldowns, now: None)
    leases = LeaseRegistry(redis_leases.RedisLeases(state.run_script, "dragoman", name), processes, clock)
    registry = LimitRegistry(clock, time.time, leases)
    registry.use({"team t": Limits((rate,))}, {}, BERLIN, clock())
    admitted: list[float] = []
    waits: list[float] = []
    refused: list[float] = []
    alone = 0

    async def one() -> None:
        nonlocal alone
        begin = clock()
        outcome = registry.admit(("team t",), 1, 0, begin, time.time())
        if outcome is None:
            outcome = await registry.admit_waiting(("team t",), 1, 0)
        alone += registry.alone
        if isinstance(outcome, Reservation):
            admitted.append(time.time())
            waits.append(clock() - begin)
            outcome.settle(1, 0)
        else:
            refused.append(clock() - begin)

    running = [asyncio.create_task(each) for each in (state.run(), leases.run())]
    chance = random.Random(name)
    async with asyncio.TaskGroup() as group:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        line = await asyncio.to_thread(sys.stdin.readline)
        await asyncio.sleep(float(line) - time.time())
        at = clock()
        until = at + seconds
        while (at := at + chance.expovariate(offered)) < until:
            await asyncio.sleep(at - clock())
            group.create_task(one())
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    shown = {"admitted": admitted, "waits": waits, "refused": refused, "alone": alone, "turns": leases.rounds}
    sys.stdout.write(json.dumps(shown))


if __name__ == "__main__":
    words = sys.argv[1:]
    limit = Rate(Unit.REQUESTS, 60 * int(words[3]), Period.MINUTE, int(words[6]))
    asyncio.run(main(words[0], words[1], int(words[2]), limit, float(words[4]), float(words[5])))
