"""The gateway's process as its operator sees it: reloads, its end, its metrics and its log."""

import asyncio
import re
import secrets
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families

from providers.json_types import JsonObject
from tests.proxy.kit.raw_client import RawClient, connected, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import port_of
from tests.support import openai_wire
from tests.support.gateway import FRESH, RunningGateway, running_gateway
from tests.support.http_scripts import LAST_CHUNK, chunk, head, json_answer, sse_answer
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Hang, Script, Send, Step, Until

MOCK = """\
version: 1
vendors: {mock: {}}
models: {mock/echo: {}, mock/cut-1: {}, mock/*: {}}
"""
WITHOUT_WILDCARD = """\
version: 1
vendors: {mock: {}}
models: {mock/echo: {}}
"""
BROKEN = """\
version: 1
vendors: {mock: {}}
models:
  mock/echo: {}
  mokc/*: {}
"""
ASK: JsonObject = {"model": "mock/echo", "prompt": "hi"}
OTHER: JsonObject = {"model": "mock/other", "prompt": "hi"}
FAKE: JsonObject = {"model": "fake/m", "prompt": "hi"}
SSE = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]


def vendor_table(vendor: FakeVendor, server: str = "") -> str:
    return f"""\
version: 1
vendors:
  fake:
    profile: openai_compatible
    base_url: "{vendor.base_url}/v1"
    allow_private: true
    api_key: ${{UPSTREAM_KEY:-sk}}
models:
  fake/m: {{completions: true}}
server:
  port: ${{PORT}}
  admin:
    port: ${{ADMIN_PORT}}
{server}"""


def paused(pause: Step) -> Script:
    """Return a stream of two texts with a pause between them."""
    first, *rest = openai_wire.completion_frames(["a", "b"])
    return (Send(head(200, SSE)), Send(chunk(first)), pause, *(Send(chunk(frame)) for frame in rest), Send(LAST_CHUNK))


async def status_of(gateway: RunningGateway, body: JsonObject) -> int:
    return (await exchange(port_of(gateway.url), request("POST", "/v1/completions", body))).status


@asynccontextmanager
async def streaming(gateway: RunningGateway, body: JsonObject) -> AsyncIterator[RawClient]:
    async with connected(port_of(gateway.url)) as client:
        await client.send(request("POST", "/v1/completions", {**body, "stream": True}))
        status, _ = await client.head()
        assert status == 200
        await client.chunk()
        yield client


async def until_not_ready(gateway: RunningGateway) -> None:
    async with aiohttp.ClientSession() as http:
        while True:
            async with http.get(f"{gateway.admin_url}/health/ready") as answer:
                if answer.status == 503:
                    return
            await asyncio.sleep(0.005)


def said(gateway: RunningGateway, level: str) -> list[JsonObject]:
    """Return the process's own complete messages of a level so far."""
    whole, _, _ = gateway.messages().rpartition("\n")
    return [line for line in map(orjson.loads, whole.splitlines()) if line["level"] == level]


async def families(gateway: RunningGateway) -> Mapping[str, Metric]:
    async with aiohttp.ClientSession(headers=FRESH) as http, http.get(f"{gateway.admin_url}/metrics") as answer:
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("text/plain")
        text = await answer.text()
    return {family.name: family for family in text_string_to_metric_families(text)}


# Reloads -------------------------------------------------------------------------------------------------------------


async def test_a_good_table_is_taken_and_a_bad_one_is_refused_with_its_position(tmp_path: Path) -> None:
    async with running_gateway(WITHOUT_WILDCARD, tmp_path) as gateway:
        assert await status_of(gateway, OTHER) == 404
        before = (await families(gateway))["dragoman_config_info"].samples[0].labels
        await gateway.reload(MOCK)
        assert await status_of(gateway, OTHER) == 200
        taken = (await families(gateway))["dragoman_config_info"].samples
        assert [sample.labels == before for sample in taken] == [False]

        await gateway.reload(BROKEN)
        assert (await status_of(gateway, ASK), await status_of(gateway, OTHER)) == (200, 200)
        metrics = await gateway.metrics()
        assert metrics['dragoman_config_reloads_total{result="success"}'] == 1
        assert metrics['dragoman_config_reloads_total{result="failure"}'] == 1
        assert metrics["dragoman_config_last_reload_successful"] == 0
        assert (await families(gateway))["dragoman_config_info"].samples == taken
        while not (errors := said(gateway, "error")):  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.01)
        (refusal,) = errors
        assert f"{gateway.table}:5:3 models.mokc/*: " in str(refusal["message"])
        assert "did you mean mock/*?" in str(refusal["message"])

        await gateway.reload(MOCK)
        assert (await gateway.metrics())["dragoman_config_last_reload_successful"] == 1


async def test_the_admin_listener_reloads_for_those_who_have_the_token(tmp_path: Path) -> None:
    server = "server:\n  port: ${PORT}\n  admin:\n    port: ${ADMIN_PORT}\n    token: sesame\n"
    async with running_gateway(WITHOUT_WILDCARD + server, tmp_path) as gateway, aiohttp.ClientSession() as http:
        url = f"{gateway.admin_url}/-/reload"
        gateway.table.write_text(MOCK + server, encoding="utf-8")
        for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "sesame"}):
            async with http.post(url, headers=headers) as answer:
                assert answer.status == 401
        async with http.get(f"{gateway.admin_url}/metrics") as answer:
            assert answer.status == 401
        assert await status_of(gateway, OTHER) == 404
        good = {"Authorization": "Bearer sesame"}
        async with http.get(url, headers=good) as answer:
            assert answer.status == 405
        async with http.post(url, headers=good) as answer:
            taken = await answer.json()
            assert (answer.status, taken["result"]) == (200, "reloaded")
        assert await status_of(gateway, OTHER) == 200
        gateway.table.write_text(BROKEN + server, encoding="utf-8")
        async with http.post(url, headers=good) as answer:
            refused = await answer.json()
            assert (answer.status, refused["result"], refused["digest"]) == (400, "refused", taken["digest"])
        assert refused["problems"][0].startswith(f"{gateway.table}:5:3 models.mokc/*: ")
        assert await status_of(gateway, OTHER) == 200
        assert "sesame" not in gateway.messages()


async def test_a_running_request_ends_on_the_table_it_began_with(tmp_path: Path) -> None:
    async with FakeVendor() as vendor, running_gateway(vendor_table(vendor), tmp_path) as gateway:
        rest = asyncio.Event()
        vendor.answer(paused(Until(rest)))
        async with streaming(gateway, FAKE) as client:
            await gateway.reload(MOCK)
            assert await status_of(gateway, FAKE) == 404
            rest.set()
            body, whole = await client.chunks()
        assert whole
        assert b'"text":"b"' in body
        assert body.endswith(b"data: [DONE]\n\n")


# The end -------------------------------------------------------------------------------------------------------------


async def test_sigterm_lets_a_running_stream_come_to_its_end(tmp_path: Path) -> None:
    async with FakeVendor() as vendor:
        rest = asyncio.Event()
        vendor.answer(paused(Until(rest)))
        async with (
            running_gateway(vendor_table(vendor, "  drain_grace: 200ms\n"), tmp_path) as gateway,
            streaming(gateway, FAKE) as client,
        ):
            gateway.process.send_signal(signal.SIGTERM)
            await until_not_ready(gateway)
            rest.set()
            body, whole = await client.chunks()
            assert whole
            assert body.endswith(b"data: [DONE]\n\n")
            gateway.exit_code = await asyncio.to_thread(gateway.process.wait)
            assert gateway.exit_code == 0
            (line,) = gateway.log()
            assert (line["status"], line["outcome"]) == (200, "ok")


async def test_a_client_that_comes_during_the_drain_is_answered_and_told_to_leave(tmp_path: Path) -> None:
    async with running_gateway(
        MOCK + "server:\n  port: ${PORT}\n  drain_grace: 5s\n  admin:\n    port: ${ADMIN_PORT}\n", tmp_path
    ) as gateway:
        gateway.process.send_signal(signal.SIGTERM)
        await until_not_ready(gateway)
        answer = await exchange(port_of(gateway.url), request("POST", "/v1/completions", ASK))
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        live = await exchange(port_of(gateway.url), request("GET", "/health/live"))
        ready = await exchange(port_of(gateway.url), request("GET", "/health/ready"))
        assert (live.status, ready.status) == (200, 503)
        gateway.process.send_signal(signal.SIGTERM)
        gateway.exit_code = await asyncio.to_thread(gateway.process.wait)
        assert gateway.exit_code == 0


async def test_a_second_sigterm_ends_at_once_and_no_stream_looks_whole(tmp_path: Path) -> None:
    async with FakeVendor() as vendor:
        vendor.answer(paused(Hang()))
        async with (
            running_gateway(vendor_table(vendor, "  drain_timeout: 10m\n"), tmp_path) as gateway,
            streaming(gateway, FAKE) as client,
        ):
            gateway.process.send_signal(signal.SIGTERM)
            await until_not_ready(gateway)
            gateway.process.send_signal(signal.SIGTERM)
            gateway.exit_code = await asyncio.to_thread(gateway.process.wait)
            body, whole = await client.chunks()
            assert not whole
            assert b"[DONE]" not in body
            await vendor.requests[0].gone.wait()


async def test_a_stream_that_outlives_the_drain_is_told_why_it_ends(tmp_path: Path) -> None:
    async with FakeVendor() as vendor:
        vendor.answer(paused(Hang()))
        server = "  drain_grace: 10ms\n  drain_timeout: 100ms\n"
        async with (
            running_gateway(vendor_table(vendor, server), tmp_path) as gateway,
            streaming(gateway, FAKE) as client,
        ):
            gateway.process.send_signal(signal.SIGTERM)
            body, whole = await client.chunks()
            assert not whole
            assert orjson.loads(body.removeprefix(b"data: "))["error"]["code"] == "overloaded"
            gateway.exit_code = await asyncio.to_thread(gateway.process.wait)
            assert gateway.exit_code == 0


# Metrics -------------------------------------------------------------------------------------------------------------

PROMISED: Mapping[str, tuple[str, set[str]]] = {
    "dragoman_requests": ("counter", {"team", "surface", "model", "code", "stream", "outcome"}),
    "dragoman_request_duration_seconds": ("histogram", {"surface", "model", "deployment"}),
    "dragoman_overhead_seconds": ("histogram", {"surface"}),
    "dragoman_time_to_first_token_seconds": ("histogram", {"model", "deployment"}),
    "dragoman_tokens": ("counter", {"team", "model", "direction"}),
    "dragoman_inflight_requests": ("gauge", {"deployment"}),
    "dragoman_attempts": ("counter", {"deployment", "outcome"}),
    "dragoman_stream_aborts": ("counter", {"side", "reason", "model"}),
    "dragoman_config_reloads": ("counter", {"result"}),
    "dragoman_config_last_reload_successful": ("gauge", set()),
    "dragoman_config_info": ("gauge", {"digest"}),
    "dragoman_build_info": ("gauge", {"version"}),
}


async def test_the_promised_metrics_are_there_with_their_labels_and_only_on_the_admin_listener(tmp_path: Path) -> None:
    async with running_gateway(MOCK, tmp_path) as gateway:
        await gateway.reload(MOCK)
        assert await status_of(gateway, ASK) == 200
        for model in ("mock/echo", "mock/cut-1"):
            await exchange(
                port_of(gateway.url), request("POST", "/v1/completions", {**ASK, "model": model, "stream": True})
            )
        found = await families(gateway)
        for name, (kind, labels) in PROMISED.items():
            assert found[name].type == kind, name
            assert found[name].documentation
            assert {key for sample in found[name].samples for key in sample.labels} - {"le"} == labels, name
        assert not [name for name in found if name.endswith("_created")]
        metrics = await gateway.metrics()
        # Two responses of one token to prompts of one token. The stream that broke off reported no usage.
        for direction in ("input", "output"):
            assert metrics[f'dragoman_tokens_total{{direction="{direction}",model="mock/echo",team="anonymous"}}'] == 2
        public = await exchange(port_of(gateway.url), request("GET", "/metrics"))
        assert public.status == 404


async def test_what_clients_invent_makes_no_series(tmp_path: Path) -> None:
    async def ask(names: Sequence[str]) -> None:
        async with aiohttp.ClientSession(gateway.url) as http:
            for name in names:
                headers = {"x-request-id": name, "Authorization": f"Bearer {name}", "User-Agent": name}
                async with http.post(f"/v1/{name}", json={}, headers=headers) as answer:
                    assert answer.status == 404
                for model in (name, f"mock/{name}", f"mock/{name}/a/b"):
                    async with http.post("/v1/completions", json={**ASK, "model": model}, headers=headers) as answer:
                        assert answer.status in {200, 404}

    async with running_gateway(MOCK, tmp_path) as gateway:
        await ask(["first"])
        before = (await gateway.metrics()).keys()
        names = [secrets.token_hex(6) for _ in range(334)]
        await ask(names)
        after = await gateway.metrics()
        assert after.keys() == before
        assert sum(value for series, value in after.items() if series.startswith("dragoman_requests_total")) == 4 * 335


# The log -------------------------------------------------------------------------------------------------------------


async def test_a_request_is_one_line_of_json_without_its_text_or_a_key(tmp_path: Path) -> None:
    canaries = {
        name: f"canary{secrets.token_hex(8)}" for name in ("key", "bad", "prompt", "answer", "upstream", "words")
    }
    async with FakeVendor(json_answer(200, openai_wire.completion(canaries["answer"]))) as vendor:
        teams = f'teams:\n  search: {{keys: ["{digest_of(canaries["key"])}"], models: ["*"]}}\n'
        once = "defaults: {retries: {attempts: 1}}\n"
        table = vendor_table(vendor) + once + teams
        async with running_gateway(table, tmp_path, {"UPSTREAM_KEY": canaries["upstream"]}) as gateway:
            good = {"Authorization": f"Bearer {canaries['key']}", "x-request-id": "req-1"}
            body: JsonObject = {"model": "fake/m", "prompt": canaries["prompt"], "user": canaries["words"]}
            error: JsonObject = {"error": {"message": canaries["words"], "type": "x", "code": None, "param": None}}
            vendor.answer(
                json_answer(200, openai_wire.completion(canaries["answer"])),
                sse_answer(openai_wire.completion_frames([canaries["answer"]])),
                json_answer(500, error),
            )
            sent = [
                request("POST", "/v1/completions", body, good),
                request("POST", "/v1/completions", {**body, "stream": True}, good),
                request("POST", "/v1/completions", body, good),
                request("POST", "/v1/completions", {**body, "temperature": canaries["words"]}, good),
                request("POST", "/v1/completions", f'{{"prompt": "{canaries["prompt"]}'.encode(), good),
                request("POST", "/v1/completions", body, {"x-api-key": canaries["bad"]}),
                request("POST", f"/v1/completions?key={canaries['bad']}", body, good),
            ]
            answers = [await exchange(port_of(gateway.url), data) for data in sent]
            assert [answer.status for answer in answers] == [200, 200, 502, 400, 400, 401, 200]
            lines = await gateway.logged(len(sent))
    assert len(lines) == len(sent)
    assert [line["status"] for line in lines] == [answer.status for answer in answers]
    assert [line["request_id"] for line in lines] == [answer.headers["x-request-id"] for answer in answers]
    assert lines[0]["request_id"] == "req-1"
    assert [line["team"] for line in lines].count("search") == 6
    first = lines[0]
    assert (first["surface"], first["model"], first["deployment"]) == ("openai", "fake/m", "fake/m/default")
    assert (first["prompt_tokens"], first["completion_tokens"], first["outcome"]) == (6, 2, "ok")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", str(first["time"]))
    written = gateway.stdout.read_text(encoding="utf-8") + gateway.messages()
    leaked = [name for name, canary in canaries.items() if canary in written]
    # The vendor's own text about its failure is for the operator only.
    assert leaked == ["words"]
    assert written.count(canaries["words"]) == 1


async def test_the_request_id_is_the_clients_when_it_may_be_logged(tmp_path: Path) -> None:
    async with running_gateway(MOCK, tmp_path) as gateway:
        for given, kept in (("a-B_1.:9", True), ("x" * 128, True), ("x" * 129, False), ("a b", False)):
            for body in (ASK, {**ASK, "stream": True}, {**ASK, "model": "nobody/x"}):
                answer = await exchange(
                    port_of(gateway.url), request("POST", "/v1/completions", body, {"X-Request-ID": given})
                )
                assert (answer.headers["x-request-id"] == given) is kept
