"""The models list: once for each team and surface of a snapshot, in slices of the loop."""

import asyncio

import orjson
import pytest

from proxy.gateway import models_list as catalogue_module
from proxy.gateway.models_list import Catalogue
from proxy.routing.snapshot import ANYONE, Snapshot, Team
from proxy.surfaces.registry import SURFACES
from tests.proxy.kit.tables import snapshot

OPENAI, SCALE = SURFACES[0], SURFACES[1]


def many(count: int, more: str = "") -> Snapshot:
    return snapshot("vendors: {mock: {}}\nmodels:\n" + "".join(f"  mock/m{n}: {{}}\n" for n in range(count)) + more)


def names(body: bytes) -> list[str]:
    return [model["id"] for model in orjson.loads(body)["data"]]


async def test_each_team_and_surface_has_its_own_and_gets_it_again() -> None:
    made, table = Catalogue(5), many(3)
    one = Team("one", ("mock/m1",), {})
    body = await made.models(table, ANYONE, OPENAI)
    assert names(body) == ["mock/m0", "mock/m1", "mock/m2"]
    assert names(await made.models(table, one, OPENAI)) == ["mock/m1"]
    assert await made.models(table, ANYONE, SCALE)
    assert await made.models(table, ANYONE, OPENAI) is body


async def test_a_new_table_has_a_new_list_and_the_old_one_is_let_go() -> None:
    made, old, new = Catalogue(5), many(3), many(2)
    await made.models(old, ANYONE, OPENAI)
    assert names(await made.models(new, ANYONE, OPENAI)) == ["mock/m0", "mock/m1"]
    assert names(await made.models(old, ANYONE, OPENAI)) == ["mock/m0", "mock/m1", "mock/m2"]
    assert len(made._cached) == 1


async def test_lists_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalogue_module, "MAX_BYTES", 700)
    made, table = Catalogue(5), many(3)
    for number in range(5):
        assert len(names(await made.models(table, Team(f"t{number}", ("*",), {}), OPENAI))) == 3
        assert sum(map(len, made._cached.values())) == made._size <= 700


async def test_threat_08_a_long_list_is_made_in_slices_and_once_for_all_who_ask() -> None:
    seconds = [0.0]

    def clock() -> float:
        seconds[0] += 0.001
        return seconds[0]

    made, table, turns = Catalogue(5, clock), many(1000), [0]

    async def other() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    bodies = await asyncio.gather(*(made.models(table, ANYONE, OPENAI) for _ in range(20)))
    beside.cancel()
    assert len(names(bodies[0])) == 1000
    assert all(body is bodies[0] for body in bodies)
    assert turns[0] > 300
