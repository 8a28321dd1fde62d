"""Paths to surfaces and actions, and heads that are read once."""

from hashlib import sha256
from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp.web_protocol import RequestHandler

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Operation, Task
from proxy.errors import GatewayError
from proxy.gateway.match_path import head_of, resolve_path
from proxy.listener.client_request import PlainRequest
from proxy.listener.fast_head_parser import read_plain_head
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import Action, CountAction, ReadAction, StoredAction
from proxy.upstream.loop_detection import HOPS
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, Rig, ask, rig
from tests.proxy.kit.raw_client import connected, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


MOCKED = """
vendors:
  mock: {}
models:
  mock/echo: {}
teams:
  search:
    keys: ["KEY"]
    models: [mock/echo]
"""

TEXT, CHAT = Operation.COMPLETIONS, Operation.CHAT
HI: list[JsonValue] = [{"role": "user", "content": "hi"}]
PAIS = "/api/v1/compatibility/openai/v1"

LISTS = {"/v1/models": "openai", "/models": "openai", f"{PAIS}/models": "pais"}


@looped(("path", "surface"), LISTS.items())
def test_models_are_listed_and_shown_one_by_one(path: str, surface: str) -> None:
    route = resolve_path(path)
    assert (route.surface.name, route.action("GET"), route.tail) == (surface, ReadAction.MODELS, None)
    one = resolve_path(f"{path}/fireworks/accounts/x/models/y")
    assert (one.surface.name, one.action("GET")) == (surface, ReadAction.MODELS)
    assert one.tail == "fireworks/accounts/x/models/y"


@looped("path", ["//v1/completions", "/v1//completions", "/v1/completions/", "///v1///completions//", "/v1/v1/.."])
def test_repeated_and_trailing_slashes_do_not_matter(path: str) -> None:
    found = resolve_path(path)
    assert bool(found.methods) is not path.endswith("..")


def test_repeated_slashes_in_a_model_s_name_collapse() -> None:
    assert resolve_path("/v1/models//a///b").tail == "a/b"


@looped(
    ("path", "surface"),
    [
        ("/", "openai"),
        ("", "openai"),
        ("/nowhere", "openai"),
        ("/v1/nowhere", "openai"),
        ("/v1", "openai"),
        ("/v1/modelsx", "openai"),
        ("/v4/nowhere", "scale"),
        ("/v5/", "scale"),
        ("//v5//nowhere", "scale"),
        ("/inference/v1/nowhere", "fireworks"),
        (f"{PAIS}/nowhere", "pais"),
        ("*", "openai"),
    ],
)
def test_an_unknown_path_is_a_404_in_the_envelope_of_its_neighbours(path: str, surface: str) -> None:
    route = resolve_path(path)
    assert route.surface.name == surface
    with pytest.raises(GatewayError) as caught:
        route.action("POST")
    assert (caught.value.facts.status, caught.value.facts.code) == (404, "not_found")


@looped(
    ("path", "method", "allow"),
    [
        ("/v1/completions", "GET", "POST"),
        ("/v5/chat/completions", "DELETE", "POST"),
        ("/v1/models", "POST", "GET"),
        ("/v1/models/a/b", "POST", "GET"),
        ("/v1/completions", "post", "POST"),
    ],
)
def test_another_method_is_a_405_that_says_which_are_allowed(path: str, method: str, allow: str) -> None:
    with pytest.raises(GatewayError) as caught:
        resolve_path(path).action(method)
    facts = caught.value.facts
    assert (facts.status, facts.code, facts.headers) == (405, "method_not_allowed", {"allow": allow})


def test_every_endpoint_of_every_surface_can_be_reached() -> None:
    for surface in SURFACES:
        for endpoint in surface.endpoints:
            route = resolve_path(endpoint.path)
            assert (route.surface, route.action(endpoint.method)) == (surface, endpoint.action)


@looped("path", ["/v1%2Fcompletions", "/v1/chat%2Fcompletions", "%2Fv1/models", "/v1/models%2Fa/b"])
def test_an_escaped_slash_separates_nothing(path: str) -> None:
    assert resolve_path(path).methods == {}


@looped(("tail", "name"), [("a%2Fb", "a/b"), ("a/b%2Fc", "a/b/c"), ("a%252Fb", "a%2Fb"), ("a%25", "a%")])
def test_in_a_model_s_name_it_is_a_slash_decoded_once(tail: str, name: str) -> None:
    assert resolve_path(f"/v1/models/{tail}").tail == name


@looped(
    ("path", "method", "action", "name"),
    [
        ("/v1/responses/resp_1", "GET", StoredAction.RETRIEVE, "resp_1"),
        ("/v1/responses/resp_1/", "DELETE", StoredAction.DELETE, "resp_1"),
        ("//v1//responses//resp_1//input_items/", "GET", StoredAction.INPUT_ITEMS, "resp_1"),
        ("/responses/resp_1/cancel", "POST", StoredAction.CANCEL, "resp_1"),
        ("/v1/responses/input_items", "GET", StoredAction.RETRIEVE, "input_items"),
        ("/v1/responses/a%2Fb", "GET", StoredAction.RETRIEVE, "a/b"),
        ("/v1/responses/compact", "POST", StoredAction.COMPACT, None),
        ("/v1/responses/input_tokens", "POST", StoredAction.INPUT_TOKENS, None),
    ],
)
def test_a_path_names_a_response(path: str, method: str, action: StoredAction, name: str | None) -> None:
    route = resolve_path(path)
    assert (route.surface.name, route.action(method), route.tail) == ("responses", action, name)


@looped(
    ("path", "action", "name"),
    [
        ("/openai/deployments/m/chat/completions", CHAT, "m"),
        ("/openai/deployments/v/a/b/chat/completions/", CHAT, "v/a/b"),
        ("/openai/deployments/v%2Fchat/completions", TEXT, "v/chat"),
        ("/openai/deployments/v%2Fm/embeddings", Task.EMBEDDINGS, "v/m"),
        ("/openai/deployments/m/audio/transcriptions", Task.TRANSCRIPTIONS, "m"),
        ("/engines/v/m/completions", TEXT, "v/m"),
        ("/v1/engines/m/completions", TEXT, "m"),
        ("/openai/v1/chat/completions", CHAT, None),
        ("/openai/images/generations", Task.IMAGES, None),
        ("/openai/v1/responses/compact", StoredAction.COMPACT, None),
        ("/messages", CHAT, None),
        ("/anthropic/v1/messages/count_tokens", CountAction.TOKENS, None),
    ],
)
def test_other_clients_paths_and_the_model_in_them(path: str, action: Action, name: str | None) -> None:
    route = resolve_path(path)
    assert (route.action("POST"), route.tail) == (action, name)


@looped(
    ("path", "body"),
    [
        ("/openai/deployments/mock/echo/chat/completions?api-version=2024-10-21", {"messages": HI}),
        ("/openai/deployments/mock%2Fecho/chat/completions?api-version=x", {"messages": HI, "model": "other"}),
        ("/v1/engines/mock/echo/completions", {"prompt": "hi"}),
        ("/openai/deployments/mock/echo/embeddings", {"input": "hi", "model": "other"}),
        ("/openai/v1/responses", {"model": "mock/echo", "input": "hi"}),
        ("/messages", {"model": "mock/echo", "messages": HI, "max_tokens": 9}),
        ("/anthropic/v1/messages", {"model": "mock/echo", "messages": HI, "max_tokens": 9}),
    ],
)
async def test_they_are_answered_by_the_model_that_the_path_names(path: str, body: JsonObject) -> None:
    async with rig(MOCKED.replace("KEY", digest_of(CLIENT_KEY))) as served:
        answer = await served.post(path, body)
        (record,) = await served.finished(1)
    assert (answer.status, answer.json()["model"], record.asked) == (200, "mock/echo", "mock/echo")


async def test_a_path_names_no_model_that_a_team_may_not_use() -> None:
    async with rig(MOCKED.replace("KEY", digest_of(CLIENT_KEY))) as served:
        for name, status in {"mock/nix": 404, "%20x": 400, "x" * 1000: 400}.items():
            path = f"/openai/deployments/{name}/chat/completions"
            answer = await served.post(path, {"model": "mock/echo", "messages": HI})
            assert (answer.status, answer.error()["param"]) == (status, "model"), answer.body


@looped("path", ["/v1/responses/a/b", "/v1/responses/a/input_items/b", "/v1/responses//input_items/x/y"])
def test_an_id_has_no_slash(path: str) -> None:
    route = resolve_path(path)
    assert (route.surface.name, route.methods) == ("responses", {})


def request_of(head: bytes) -> PlainRequest:
    """Return the request of a head without a body."""
    plain = read_plain_head(head)
    assert plain is not None
    return PlainRequest(plain, b"", cast(RequestHandler, SimpleNamespace(_loop=None, peername=None)), 1)


def test_equal_heads_are_read_once_and_others_are_others() -> None:
    fields = {"authorization": "Bearer sk-one", "x-request-id": "given"}
    first = request_of(request("POST", "/v1/messages?beta=true", None, fields))
    head = head_of(first)
    assert head_of(request_of(request("POST", "/v1/messages?beta=true", None, fields))) is head
    assert (head.path, head.match.surface.name, head.action) == ("/v1/messages", "anthropic", CHAT)
    assert (head.given_id, head.from_gateway) == ("given", False)
    assert head.key_digest(first) == sha256(b"sk-one").hexdigest()
    for name, value in {"authorization": "Bearer sk-two", "x-request-id": "other", HOPS: "1"}.items():
        other = head_of(request_of(request("POST", "/v1/messages?beta=true", None, {**fields, name: value})))
        assert other is not head
        assert other.from_gateway == (name == HOPS)
    assert head_of(request_of(request("DELETE", "/v1/messages", None, fields))).action is None


def test_an_id_that_is_not_fit_is_none() -> None:
    assert head_of(request_of(request("GET", "/v1/models", None, {"x-request-id": "not fit"}))).given_id is None


async def test_a_head_that_is_known_means_what_the_table_in_force_says() -> None:
    async with rig() as served, connected(served.port) as client:

        async def status() -> int:
            await client.send(request("POST", "/v1/completions", ask("mock/echo"), AUTH))
            return (await client.answer()).status

        table = MOCKED.replace("KEY", digest_of(CLIENT_KEY))
        served.table(table)
        assert await status() == 200
        served.table(table.replace("search:", "ads:"))
        assert await status() == 200
        served.table(MOCKED.replace("KEY", digest_of("another")))
        assert await status() == 401
        served.table(MOCKED[: MOCKED.index("teams:")])
        assert await status() == 200
    assert [record.team for record in served.records] == ["search", "ads", "unknown", "anonymous"]
    assert len({record.request_id for record in served.records}) == 4


async def test_a_record_has_the_tags_of_the_table_that_its_request_began_with() -> None:
    tagged = MOCKED.replace("KEY", digest_of(CLIENT_KEY)) + "    tags: {team: one}\n"
    async with rig() as served:
        for later in (tagged.replace("one", "two"), MOCKED.replace("KEY", digest_of("another"))):
            served.table(tagged)
            served.gateway.on_begin = lambda record, table=later: served.table(table)  # type: ignore[misc]
            assert (await served.post("/v1/completions", ask("mock/echo"))).status == 200
    assert [record.tags for record in served.records] == [{"team": "one"}] * 2


@pytest.mark.parametrize(
    ("method", "path", "aside"),
    [
        ("POST", "/v1/completions", False),
        ("POST", "/v1/embeddings", False),
        ("POST", "/v1/nix", True),
        ("GET", "/v1/completions", True),
        ("GET", "/v1/models/nix", True),
        ("GET", "/v1/usage?by=nix", True),
        ("GET", "/v1/responses/resp_nix", True),
        ("POST", "/v1/messages/count_tokens", True),
    ],
)
async def test_what_asks_no_deployment_is_recorded_as_such(served: Rig, method: str, path: str, aside: bool) -> None:
    await exchange(served.port, request(method, path, {} if method == "POST" else None, AUTH))
    (record,) = await served.finished(1)
    assert (record.team, record.aside, record.outcome) == ("search", aside, "client_error")


async def test_a_head_that_has_passed_is_judged_again_by_other_lists() -> None:
    async with rig() as served, connected(served.port) as client:
        asked = request("GET", "/v1/models", None, AUTH).replace(b"Host: localhost", b"Host: llm.example")
        served.guard.exchange(["llm.example"], ())
        for _ in range(2):
            await client.send(asked)
            assert (await client.answer()).status == 200
        served.guard.exchange((), ())
        await client.send(asked)
        assert (await client.answer()).status == 421
