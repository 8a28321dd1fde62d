"""Bodies of every size and depth, through the whole gateway."""

import threading
from collections.abc import AsyncIterator, Container

import orjson
import pytest
import pytest_asyncio

from providers.unified import JsonObject
from proxy import gateway as gateway_module
from proxy.surfaces import body as body_module
from proxy.surfaces import parse as parse_module
from tests.proxy.rig import Rig, ask, rig
from tests.support.openai_wire import completion
from tests.support.wire import json_answer


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    """A gateway whose vendor answers everything."""
    async with rig() as made:
        made.vendor.default = json_answer(200, completion("hello", "m"))
        yield made


@pytest.mark.parametrize(("size", "beside"), [(4096, False), (4097, True)])
async def test_a_long_body_is_read_beside_the_loop(
    served: Rig, size: int, beside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateway_module, "BRIEF", 4096)
    readers: list[int] = []

    def load(body: bytes, acted_on: Container[str]) -> JsonObject:
        readers.append(threading.get_ident())
        return body_module.load(body, acted_on)

    monkeypatch.setattr(parse_module, "load", load)
    bare = len(orjson.dumps(ask()))
    answer = await served.post("/v1/completions", ask() | {"prompt": "hi" + "x" * (size - bare)})
    assert answer.status == 200
    assert [reader != threading.get_ident() for reader in readers] == [beside]


async def test_a_fault_of_a_long_body_is_told_as_of_any(served: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gateway_module, "BRIEF", 10)
    refused = await served.post("/v1/completions", ask(temperature=3))
    assert (refused.status, refused.code, refused.error()["param"]) == (400, "invalid_value", "temperature")


@pytest.mark.parametrize(("depth", "status"), [(63, 200), (64, 200), (65, 400), (1024, 400), (45_000, 400)])
async def test_nesting_is_taken_up_to_the_limit_and_never_a_fault_of_ours(
    served: Rig, depth: int, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    nested = b"[" * (depth - 1) + b"]" * (depth - 1)
    for path in ("/v1/completions", "/v5/completions"):
        answer = await served.post(path, b'{"model":"v/m","prompt":"hi","x":%b}' % nested)
        assert answer.status == (422 if path[2] == "5" and status == 400 else status)
    assert caplog.text == ""
