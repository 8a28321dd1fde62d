"""The models list: built once for each team and surface of a snapshot, in slices between event loop iterations."""

import asyncio
from collections.abc import Mapping

import orjson
import pytest

from proxy.discovery.discovered_models import DiscoveredModels
from proxy.gateway import models_list as catalogue_module
from proxy.gateway.models_list import Catalogue
from proxy.routing.snapshot import ANYONE, Snapshot, Team
from proxy.surfaces.anthropic.surface import ANTHROPIC
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import ReadAction
from tests.proxy.discovery import kit as discovery
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.looped import looped

OPENAI, SCALE = SURFACES[0], SURFACES[1]
LISTING = [
    each
    for each in SURFACES
    if each is not ANTHROPIC and ReadAction.MODELS in {endpoint.action for endpoint in each.endpoints}
]
"""The surfaces that have a models list at their own path."""


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


async def test_a_key_for_single_names_has_a_list_of_its_own() -> None:
    keys = [f"'{digest_of('all')}'", f"{{hash: '{digest_of('one')}', models: [mock/m1]}}"]
    made, table = Catalogue(5), many(3, f"teams: {{t: {{models: [mock/*], keys: [{', '.join(keys)}]}}}}\n")
    whole, narrowed = (key.team for key in table.keys.values())
    for _ in range(2):
        assert names(await made.models(table, whole, OPENAI)) == ["mock/m0", "mock/m1", "mock/m2"]
        assert names(await made.models(table, narrowed, OPENAI)) == ["mock/m1"]


async def test_a_name_of_which_no_deployment_is_in_service_is_not_listed() -> None:
    away = "{deployments: {eu: {out_of_service: true}, us: {}}}"
    table = snapshot(
        f"vendors: {{mock: {{}}}}\nmodels: {{mock/up: {{}}, mock/part: {away}, mock/away: {{out_of_service: true}}}}\n"
        "routes: {gone: mock/away, alias: gone, some: {targets: [mock/away, mock/up]}}\n"
    )
    made = Catalogue(5)
    assert names(await made.models(table, ANYONE, OPENAI)) == ["some", "mock/up", "mock/part", "mock/part/us"]
    assert orjson.loads(await made.model(table, ANYONE, OPENAI, "gone"))["id"] == "gone"


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


PRICED = """
vendors: {v: {profile: openai, api_key: k}, w: {profile: openai, api_key: k}}
models:
  v/a: {context_window: 1000, max_output_tokens: 100, price: {input: 1, output: 2}}
  v/b: {context_window: 500, max_output_tokens: 200, price: {input: 1, output: 2}}
  v/c: {context_window: 700, price: {input: 1, output: 3}}
  v/d: {price: {input: 1, output: 2, cached_input: 0.5}}
  v/e: {price: {input: 1, output: 2, cache_write: 1.25}}
  w/*: {deployments: {east: {context_window: 300}, west: {price: {input: 9, output: 9}}}}
routes: {same: {targets: [v/a, v/b]}, dearer: {targets: [v/a, v/c]}, unknown: {targets: [v/a, w/m]}, one: v/d}
"""


@looped(
    ("name", "window", "most", "price"),
    [
        ("v/a", 1000, 100, {"prompt": "0.000001", "completion": "0.000002"}),
        ("v/d", None, None, {"prompt": "0.000001", "completion": "0.000002", "input_cache_read": "0.0000005"}),
        ("v/e", None, None, {"prompt": "0.000001", "completion": "0.000002", "input_cache_write": "0.00000125"}),
        ("same", 500, 100, {"prompt": "0.000001", "completion": "0.000002"}),
        ("dearer", 700, None, None),
        ("unknown", None, None, None),
        ("one", None, None, {"prompt": "0.000001", "completion": "0.000002", "input_cache_read": "0.0000005"}),
        ("w/any", None, None, None),
        ("w/any/east", 300, None, None),
    ],
)
async def test_a_name_tells_what_holds_for_all_of_its_targets(
    name: str, window: int | None, most: int | None, price: Mapping[str, str] | None
) -> None:
    made, table = Catalogue(5), snapshot(PRICED)
    card = orjson.loads(await made.model(table, ANYONE, ANTHROPIC, name))
    assert (card.get("max_input_tokens"), card.get("max_tokens")) == (window, most)
    for surface in LISTING:
        card = orjson.loads(await made.model(table, ANYONE, surface, name))
        assert (card.get("context_length"), card.get("max_model_len"), card.get("pricing")) == (window, window, price)
        top = None if window is most is None else {"context_length": window, "max_completion_tokens": most}
        assert card.get("top_provider") == top


async def discovering(text: str, *listed: str) -> tuple[Catalogue, Snapshot]:
    table, made = discovery.table(text), Catalogue(5)
    made.discovered = DiscoveredModels(discovery.ScriptedTransport(lambda request: discovery.listing(*listed)))
    await made.discovered.use(table)
    return made, table


async def test_discovered_names_come_after_the_table_s_and_each_once() -> None:
    text = discovery.VENDORS + "models: {v/own: {}, v/*: {}, w/*: {}}\nroutes: {v/routed: v/own}\n"
    made, table = await discovering(text, "own", "routed", "a", "b", "a/default", "a")
    body = await made.models(table, ANYONE, OPENAI)
    assert names(body) == ["v/routed", "v/own", "v/a", "v/b", *(f"w/{name}" for name in ("own", "routed", "a", "b"))]
    assert await made.models(table, ANYONE, OPENAI) is body


async def test_a_list_that_changed_is_rendered_anew() -> None:
    made, table = await discovering(discovery.BOTH, "a")
    assert names(await made.models(table, ANYONE, OPENAI)) == ["v/a", "w/a"]
    assert made.discovered is not None
    await made.discovered.use(discovery.table(discovery.VENDORS + "models: {v/*: {}}\n"))
    assert names(await made.models(table, ANYONE, OPENAI)) == ["v/a"]


async def test_threat_08_a_team_that_sees_few_of_many_discovered_names_does_not_hold_the_loop() -> None:
    made, table = await discovering(discovery.BOTH, *(f"m{number}" for number in range(5000)))
    seconds, turns = [0.0], [0]

    def clock() -> float:
        seconds[0] += 0.001
        return seconds[0]

    async def other() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    made._now = clock
    beside = asyncio.create_task(other())
    assert names(await made.models(table, Team("one", ("v/m4999",), {}), OPENAI)) == ["v/m4999"]
    beside.cancel()
    assert turns[0] > 1500
