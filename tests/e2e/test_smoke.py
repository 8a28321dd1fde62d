"""Every endpoint of every surface responds once, over a socket, from the program as a process with its mock vendor."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

import pytest

from providers.json_types import JsonObject
from providers.unified_request import Operation
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import MODEL, CountAction, Endpoint, ReadAction, StoredAction, Surface
from tests.e2e.kit import gateway_of
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.support.gateway import RunningGateway
from tests.support.looped import looped

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.smoke]

TABLE: Final = "version: 1\nvendors: {mock: {}}\nmodels: {mock/echo: {}, mock/*: {}}\n"
WORDS: Final = "two words"
TURNS: Final[JsonObject] = {"messages": [{"role": "user", "content": WORDS}], "max_tokens": 64}

BODIES: Final[Mapping[object, JsonObject]] = {
    Operation.COMPLETIONS: {"prompt": WORDS, "max_tokens": 64},
    Operation.CHAT: TURNS,
    CountAction.TOKENS: TURNS,
    StoredAction.INPUT_TOKENS: {"input": WORDS},
}
ENDS: Final[Mapping[str, bytes]] = {"scale": b"", "anthropic": b"message_stop", "responses": b"response.completed"}
"""The last bytes of a good stream on surfaces that do not end with `[DONE]`."""

ENDPOINTS: Final = [(surface, endpoint) for surface in SURFACES for endpoint in surface.endpoints]


def name_of(value: object) -> str | None:
    return value.path if isinstance(value, Endpoint) else None


def body_of(surface: Surface, endpoint: Endpoint) -> JsonObject:
    if surface.name == "responses":
        return {"model": "mock/echo", "input": WORDS}
    return {"model": "mock/echo", **BODIES[endpoint.action]}


gateway = gateway_of(TABLE)


def path_of(endpoint: Endpoint) -> str:
    """Return the path of an endpoint, with the mock's model if it names one."""
    return endpoint.path.replace(MODEL, "mock/echo")


async def answer(gateway: RunningGateway, endpoint: Endpoint, body: JsonObject | None) -> Answer:
    return await exchange(urlsplit(gateway.url).port or 0, request(endpoint.method, path_of(endpoint), body))


@looped(("surface", "endpoint"), [row for row in ENDPOINTS if row[1].action in BODIES], ids=name_of)
async def test_an_endpoint_answers_a_request(gateway: RunningGateway, surface: Surface, endpoint: Endpoint) -> None:
    got = await answer(gateway, endpoint, body_of(surface, endpoint))
    assert (got.status, got.whole) == (200, True), got.body
    if isinstance(endpoint.action, Operation):
        assert WORDS.encode() in got.body


GENERATIONS: Final = [row for row in ENDPOINTS if row[1].action in (Operation.COMPLETIONS, Operation.CHAT)]


@looped(("surface", "endpoint"), GENERATIONS, ids=name_of)
async def test_an_endpoint_streams_and_ends_as_its_surface_does(
    gateway: RunningGateway, surface: Surface, endpoint: Endpoint
) -> None:
    got = await answer(gateway, endpoint, {**body_of(surface, endpoint), "stream": True})
    assert (got.status, got.headers["content-type"], got.whole) == (200, "text/event-stream; charset=utf-8", True)
    assert ENDS.get(surface.name, b"[DONE]") in got.events()[-1]
    assert b"words" in got.body


@looped("endpoint", [endpoint for _, endpoint in ENDPOINTS if endpoint.action is ReadAction.MODELS], ids=name_of)
async def test_models_are_listed(gateway: RunningGateway, endpoint: Endpoint) -> None:
    got = await answer(gateway, endpoint, None)
    assert (got.status, b"mock/echo" in got.body) == (200, True), got.body


@looped(("surface", "endpoint"), ENDPOINTS, ids=name_of)
async def test_an_endpoint_refuses_a_body_that_is_no_object_in_its_surfaces_envelope(
    gateway: RunningGateway, surface: Surface, endpoint: Endpoint
) -> None:
    if endpoint.method == "POST":
        path = path_of(endpoint).replace("{id}", "resp_1")
        got = await exchange(urlsplit(gateway.url).port or 0, request("POST", path, b"["))
        assert 400 <= got.status < 500, got.body
        assert "message" in got.error(), surface.name
