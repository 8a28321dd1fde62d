"""The models of a wildcard, over real sockets: the gateway fetches the vendors' lists and shows them to its clients."""

import asyncio
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from providers.json_types import JsonObject
from proxy.discovery import discovered_models
from proxy.process.assemble_app import WholeGateway
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import port_of, up
from tests.support.forked_program import run_program
from tests.support.gateway import running_gateway
from tests.support.http_scripts import body_answer, json_answer
from tests.support.openai_wire import completion
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Hang, Script

FIXTURES = Path(__file__).parents[2] / "providers" / "model_lists" / "fixtures"
PATHS = {
    "openai": "/v1/models",
    "anthropic": "/v1/models",
    "gemini": "/v1beta/models",
    "cohere": "/v1/models",
    "ollama_native": "/api/tags",
}
TABLE = """\
version: 1
vendors:
  oa: {profile: openai, api_key: sk-openai, base_url: '%(openai)s/v1', allow_private: true, discover: true}
  cl: {profile: anthropic, api_key: sk-ant, base_url: '%(anthropic)s', allow_private: true, discover: true}
  ge: {profile: gemini, api_key: sk-gem, base_url: '%(gemini)s/v1beta', allow_private: true, discover: true}
  co: {profile: cohere, api_key: sk-co, base_url: '%(cohere)s', allow_private: true, discover: true}
  ol: {profile: ollama_native, base_url: '%(ollama_native)s', allow_private: true, discover: true}
models:
  oa/*: {price: {input: 0.15, output: 0.6}}
  oa/gpt-4o-mini: {context_window: 128000}
  cl/*: {}
  ge/*: {context_window: 1000}
  co/*: {}
  ol/*: {}
"""
TEAMS = f"""\
teams:
  every: {{keys: ['{digest_of("every")}'], models: ['*']}}
  some: {{keys: ['{digest_of("some")}'], models: ['ol/*', 'cl/claude-haiku-4-5-20251001']}}
  plain: {{keys: ['{digest_of("plain")}'], models: [oa/gpt-4o-mini]}}
"""
OF_OL = ["ol/gemma3:4b", "ol/hf.co/bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M"]


def fixture(name: str) -> Script:
    return body_answer(200, (FIXTURES / f"{name}.json").read_bytes(), [("content-type", "application/json")])


@dataclass(slots=True)
class Discovering:
    """A running gateway between clients and five fake vendors."""

    app: WholeGateway
    vendors: Mapping[str, FakeVendor]

    async def get(self, path: str, team: str = "every", headers: Mapping[str, str] | None = None) -> Answer:
        fields = {"Authorization": f"Bearer {team}", **(headers or {})}
        return await exchange(port_of(self.app.url), request("GET", path, None, fields))

    async def cards(self, team: str = "every", path: str = "/v1/models") -> dict[str, JsonObject]:
        answer = await self.get(path, team)
        assert answer.status == 200
        data = answer.json()["data"]
        assert isinstance(data, list)
        return {str(card["id"]): card for card in data if isinstance(card, dict)}

    async def status(self) -> list[str]:
        answer = await exchange(port_of(self.app.admin_url), request("GET", "/status", None, {}))
        return answer.json()["model_lists"]  # type: ignore[return-value]  # a list of texts


@asynccontextmanager
async def world(folder: Path, answers: Mapping[str, Script] | None = None) -> AsyncIterator[Discovering]:
    """Yield the gateway before vendors that send the fixtures, or the scripts in `answers` instead. Paged lists have a
    second page that is empty.
    """
    async with FakeVendor() as oa, FakeVendor() as cl, FakeVendor() as ge, FakeVendor() as co, FakeVendor() as ol:
        vendors = dict(zip(PATHS, (oa, cl, ge, co, ol), strict=True))
        for name, path in PATHS.items():
            vendors[name].answer_path(path, fixture(name.removesuffix("_native")))
        for name in ("anthropic", "gemini", "cohere"):
            vendors[name].answer(fixture(name), json_answer(200, {"data": [], "models": [], "has_more": False}))
        for name, script in (answers or {}).items():
            vendors[name].forget_answers()
            vendors[name].answer_path(PATHS[name], script)
        text = TABLE % {name: vendor.base_url for name, vendor in vendors.items()}
        async with up(text + TEAMS, folder) as app:
            yield Discovering(app, vendors)


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Discovering]:
    async with world(tmp_path) as made:
        yield made


async def test_the_list_has_what_the_vendors_list_with_windows_and_the_table_s_prices(made: Discovering) -> None:
    cards = await made.cards()
    assert list(cards) == [
        "oa/gpt-4o-mini",
        "oa/ft:gpt-4o-2024-08-06:acme::AbC123",
        *("cl/claude-haiku-4-5-20251001", "cl/claude-3-haiku-20240307"),
        *("ge/gemini-2.5-flash", "ge/gemini-embedding-001"),
        "co/command-a-03-2025",
        *OF_OL,
    ]
    assert cards["cl/claude-haiku-4-5-20251001"] == {
        "id": "cl/claude-haiku-4-5-20251001",
        "object": "model",
        "created": cards["oa/gpt-4o-mini"]["created"],
        "owned_by": "cl",
        "root": "cl/claude-haiku-4-5-20251001",
        "max_model_len": 200000,
        "context_length": 200000,
        "top_provider": {"context_length": 200000, "max_completion_tokens": 64000},
    }
    # The configuration overrides the vendor's list.
    assert cards["ge/gemini-2.5-flash"]["context_length"] == 1000
    assert "pricing" in cards["oa/ft:gpt-4o-2024-08-06:acme::AbC123"]
    assert "pricing" not in cards["oa/gpt-4o-mini"]
    sent = {name: vendor.requests[0] for name, vendor in made.vendors.items()}
    assert {each.method for each in sent.values()} == {"GET"}
    assert sent["openai"].header("authorization") == "Bearer sk-openai"
    assert sent["anthropic"].header("x-api-key") == "sk-ant"
    assert sent["anthropic"].header("anthropic-version") == "2023-06-01"
    assert sent["gemini"].header("x-goog-api-key") == "sk-gem"
    assert sent["ollama_native"].header("authorization") is None
    assert await made.status() == [*("cl, 2 models", "co, 1 models", "ge, 2 models", "oa, 2 models", "ol, 2 models")]


@pytest.mark.parametrize("path", ["/v1/models", "/models", "/api/v1/compatibility/openai/v1/models"])
async def test_every_models_list_has_them(path: str, made: Discovering) -> None:
    assert OF_OL[0] in await made.cards(path=path)


async def test_a_team_sees_and_causes_no_more_than_it_may_ask_for(made: Discovering) -> None:
    assert [*await made.cards("plain")] == ["oa/gpt-4o-mini"]
    assert [*await made.cards("some")] == ["cl/claude-haiku-4-5-20251001", *OF_OL]
    assert made.vendors["gemini"].connections == 0
    assert len(await made.cards()) == 9
    assert [*await made.cards("plain")] == ["oa/gpt-4o-mini"]


async def test_a_listed_name_can_be_asked_for_and_a_name_of_another_team_cannot(made: Discovering) -> None:
    listed = [*await made.cards("some")]
    everything = [*await made.cards()]
    made.vendors["ollama_native"].answer_path("/api/chat", json_answer(503, {"error": "busy"}))
    made.vendors["anthropic"].answer_path("/v1/messages", json_answer(503, {"error": "busy"}))
    for name in everything:
        assert (await made.get(f"/v1/models/{name}", "some")).status == (200 if name in listed else 404)
        body: JsonObject = {"model": name, "messages": [{"role": "user", "content": "hi"}]}
        data = request("POST", "/v1/chat/completions", body, {"Authorization": "Bearer some"})
        answer = await exchange(port_of(made.app.url), data)
        assert (answer.code == "model_not_found") is (name not in listed)


async def test_one_discovered_model_is_told_with_its_window_before_any_list_was_asked_for(made: Discovering) -> None:
    card = (await made.get("/v1/models/cl%2Fclaude-haiku-4-5-20251001")).json()
    assert card["context_length"] == 200000
    assert made.vendors["openai"].connections == 0
    # A model that the vendor does not list is still passed on.
    assert (await made.get("/v1/models/cl/claude-unlisted")).json()["id"] == "cl/claude-unlisted"


async def test_a_hundred_clients_at_once_cause_one_fetch_for_each_vendor(made: Discovering) -> None:
    lists = await asyncio.gather(*(made.cards() for _ in range(100)))
    assert all(each == lists[0] for each in lists)
    assert [len(vendor.requests) for vendor in made.vendors.values()] == [1, 2, 2, 2, 1]


async def test_a_vendor_that_fails_leaves_the_list_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovered_models, "FIRST_WAIT", 0.2)
    broken = {
        "openai": (Hang(),),
        "anthropic": json_answer(401, {"error": {"message": "sk-ant is wrong"}}),
        "gemini": body_answer(200, b"<html>sk-gem</html>"),
        "cohere": json_answer(302, {}, [("location", "http://169.254.169.254/latest")]),
    }
    async with world(tmp_path, broken) as made:
        for _ in range(3):
            assert [*await made.cards()] == ["oa/gpt-4o-mini", *OF_OL]
        assert [len(vendor.requests) for vendor in made.vendors.values()] == [1] * 5
        told = await made.status()
    assert told[3:] == ["oa, not fetched yet", "ol, 2 models"]
    assert told[0].startswith("cl, not fetched yet, last fetch failed: auth, status 401")
    assert "not valid JSON" in told[2]
    assert "sk-" not in str(told)


async def test_a_reload_of_the_table_turns_discovery_on_and_off(tmp_path: Path, made: Discovering) -> None:
    path = tmp_path / "t.yaml"
    on = path.read_text()
    assert len(await made.cards()) == 9
    path.write_text(on.replace(", discover: true", ""))
    await made.app.reloader.reload()
    assert [*await made.cards()] == ["oa/gpt-4o-mini"]
    path.write_text(on)
    await made.app.reloader.reload()
    assert OF_OL[0] in await made.cards()


async def test_a_name_that_leads_inside_is_asked_for_no_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def inside(host: str, port: int) -> list[tuple[object, ...]]:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", port))]

    monkeypatch.setattr("proxy.http_client.address_guard._resolved", inside)
    vendor = "{profile: openai, api_key: k, base_url: 'https://rebound.example/v1', discover: true}"
    async with up(f"version: 1\nvendors: {{v: {vendor}}}\nmodels: {{v/*: {{}}}}\n", tmp_path) as app:
        answer = await exchange(port_of(app.url), request("GET", "/v1/models", None, {}))
        assert answer.json()["data"] == []
        told = (await exchange(port_of(app.admin_url), request("GET", "/status", None, {}))).json()["model_lists"]
    assert "withheld" in str(told) or "may not be called" in str(told)


async def test_the_commands_that_read_a_table_ask_no_vendor(tmp_path: Path) -> None:
    async with FakeVendor(json_answer(200, completion("x", "m"))) as vendor:
        table = tmp_path / "t.yaml"
        table.write_text(TABLE % dict.fromkeys(PATHS, vendor.base_url))
        for command in (["check", "-c"], ["routes", "-c"], ["check", "--strict", "-c"]):
            await asyncio.to_thread(run_program, ("-m", "proxy", *command, str(table)))
        assert vendor.connections == 0


async def test_several_processes_fetch_each_for_itself_and_report_together(tmp_path: Path) -> None:
    async with FakeVendor(fixture("ollama")) as vendor:
        address = f"base_url: '{vendor.base_url}', allow_private: true"
        table = f"vendors: {{v: {{profile: ollama_native, {address}, discover: true}}}}"
        server = "server:\n  port: ${PORT}\n  workers: 2\n  admin:\n    port: ${ADMIN_PORT}"
        async with running_gateway(f"version: 1\n{table}\nmodels: {{v/*: {{}}}}\n{server}\n", tmp_path) as gateway:
            port, admin = port_of(gateway.url), port_of(gateway.admin_url)
            while len(vendor.requests) < 2:
                answer = await exchange(port, request("GET", "/v1/models", None, {}))
                assert len(answer.json()["data"]) == 2  # type: ignore[arg-type]  # a list
            status = await exchange(admin, request("GET", "/status", None, {}))
            assert status.json()["model_lists"] == ["v, 2 models"]
        assert len(vendor.requests) == 2
