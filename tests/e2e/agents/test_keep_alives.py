"""SDKs and agents behind HAProxy and nginx whose idle limit is shorter than a model's reasoning. Keep-alives hold the
connection, and after them comes a complete response or an error."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.deploy.proxies import HAPROXY, NGINX, NGINX_AROUND, ProxyProgram, started
from tests.e2e.agents.environments import NodeProcess, python_process, sdk_process
from tests.e2e.agents.programs import Session, claude_code, codex
from tests.proxy.kit.whole_gateway import port_of
from tests.support.environments import LineProcess
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import chat, chat_frames
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Delay, Received, Rst, Script, Step

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]

IDLE: Final = "2s"
SILENCE: Final = 4.5
"""Seconds before the first token: more than twice the proxies' idle limit."""

AFTER_TWO: Final = 0.35
"""Seconds in which a stream with the shorter interval has had more than two keep-alives."""

TABLE: Final = """\
version: 1
defaults:
  {allow_private: true, api_key: k, on_unsupported: drop, timeouts: {keep_alive: 400ms, keep_alive_json: true}}
vendors:
  engine: {profile: openai_compatible, base_url: "ENGINE/v1"}
  quick: {profile: openai_compatible, base_url: "ENGINE/v1", timeouts: {keep_alive: 100ms, keep_alive_json: false}}
models:
  engine/late: {}
  engine/silent: {upstream_model: late, timeouts: {keep_alive: off}}
  quick/*: {}
routes:
  both: {targets: [quick/dies, quick/good]}
"""
TEXT: Final = "one two"
IN_HAPROXY: Final = """\
defaults
  mode http
  timeout connect 5s
  timeout client {idle}
  timeout server {idle}
listen gateway
  bind 127.0.0.1:{port}
  server one 127.0.0.1:{gateway}
"""
IN_NGINX: Final = """\
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://127.0.0.1:{gateway};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_read_timeout {idle};
      client_max_body_size 10m;
      client_body_buffer_size 10m;
    }}
  }}
"""
PROXIES: Final[Mapping[str, ProxyProgram]] = {"haproxy": HAPROXY, "nginx": NGINX}
NEEDS_NPM = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
PYTHON, NODE = "agents", "node"
TALKS: Final = (
    *((place, client) for place in (PYTHON, NODE) for client in ("chat", "messages", "responses")),
    (NODE, "langchain"),
)
EACH_TIME: Final = (("nginx", PYTHON, "chat"), ("haproxy", PYTHON, "messages"))
"""The SDKs that are tried with every change behind a proxy. The others take a minute."""

FRAMEWORKS: Final = (
    *((PYTHON, name) for name in ("langgraph", "langgraph_anthropic", "langgraph_responses")),
    *((name, name) for name in ("vercel", "vercel_openai", "vercel_anthropic")),
)


def marked(place: str, *more: pytest.MarkDecorator) -> Sequence[pytest.MarkDecorator]:
    return more if place == PYTHON else (NEEDS_NPM, *more)


def rows() -> Iterator[object]:
    """Yield each SDK behind each proxy."""
    for proxy in PROXIES:
        for place, client in TALKS:
            night = () if (proxy, place, client) in EACH_TIME else (pytest.mark.nightly,)
            yield pytest.param(proxy, place, client, id=f"{proxy}-{place}-{client}", marks=marked(place, *night))


def answer_of(received: Received, before: Sequence[Step] = ()) -> Script:
    """Return the text, after these steps, in the form that the request wants."""
    body = received.json()
    assert isinstance(body, dict)
    good = sse_answer(chat_frames(TEXT.split(" "))) if body.get("stream") else json_answer(200, chat(TEXT))
    return (*before, *good)


def joined(text: JsonValue) -> str:
    """Return a text without the spaces between its words, which the frames above lack."""
    return str(text).replace(" ", "")


@dataclass(slots=True)
class Place:
    """The gateway, the addresses of the proxies before it, and the processes with the clients."""

    gateway: RunningGateway
    urls: Mapping[str, str]
    stack: ExitStack
    processes: dict[str, LineProcess | NodeProcess]

    async def run(self, kind: str, start: Callable[[], LineProcess | NodeProcess], order: JsonObject) -> JsonObject:
        """Carry out an order with the process of a kind."""
        if kind not in self.processes:
            self.processes[kind] = await asyncio.to_thread(start)
        answer = await asyncio.to_thread(self.processes[kind].exchange, orjson.dumps(order).decode())
        found: JsonObject = orjson.loads(answer)
        return found

    async def talk(self, place: str, client: str, url: str, model: str, *, stream: bool = True) -> JsonObject:
        """Request one response with an SDK."""
        order: JsonObject = {"scenario": "talk", "client": client, "url": url, "model": model, "prompt": "Say it."}
        start = self._sdk if place == PYTHON else lambda: self._node("sdks.mjs")
        return await self.run(f"sdk {place}", start, {**order, "stream": stream, "stored": False})

    async def work(self, place: str, framework: str, url: str, model: str) -> JsonObject:
        """Request one response with a framework."""
        order: JsonObject = {"framework": framework, "url": f"{url}/v1", "model": model, "scenario": "tools"}
        start = self._framework if place == PYTHON else lambda: self._node("driver.mjs", framework)
        return await self.run(place, start, {**order, "stream": True})

    def _sdk(self) -> LineProcess:
        return self.stack.enter_context(sdk_process(PYTHON))

    def _framework(self) -> LineProcess:
        return self.stack.enter_context(python_process(PYTHON))

    def _node(self, driver: str, *arguments: str) -> NodeProcess:
        process = NodeProcess(driver, *arguments)
        self.stack.callback(process.close)
        return process


@pytest.fixture(scope="module")
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place(processes: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    folder = tmp_path_factory.mktemp("silence")
    async with AsyncExitStack() as stack:
        vendor = await stack.enter_async_context(FakeVendor(answer_of))
        vendor.answer_model("late", lambda received: answer_of(received, (Delay(SILENCE),)))
        vendor.answer_model("dies", (Delay(AFTER_TWO), Rst()))
        refusal = json_answer(400, {"error": {"message": "it is too hot", "type": "invalid_request_error"}})
        vendor.answer_model("refuses", (Delay(AFTER_TWO), *refusal))
        down = json_answer(500, {"error": {"message": "it is down", "type": "server_error"}})
        vendor.answer_model("fails", (Delay(AFTER_TWO), *down))
        text = TABLE.replace("ENGINE", vendor.base_url)
        gateway = await stack.enter_async_context(running_gateway(text, folder))
        urls = {"direct": gateway.url}
        for name, program in PROXIES.items():
            port = await stack.enter_async_context(proxy_before(program, folder / name, port_of(gateway.url)))
            urls[name] = f"http://127.0.0.1:{port}"
        yield Place(gateway, urls, processes, {})


def proxy_before(program: ProxyProgram, folder: Path, gateway: int) -> AbstractAsyncContextManager[int]:
    """Run a proxy with a short idle limit before the gateway."""

    def configure(port: int) -> str:
        if program is HAPROXY:
            return IN_HAPROXY.format(idle=IDLE, port=port, gateway=gateway)
        return NGINX_AROUND.format(folder=folder, lines=IN_NGINX.format(idle=IDLE, port=port, gateway=gateway))

    return started(program, folder, configure)


# Behind an impatient proxy -------------------------------------------------------------------------------------------


def check_answer(outcome: JsonObject) -> None:
    turns = outcome["turns"]
    assert (outcome["error"], isinstance(turns, list)) == (None, True), outcome
    texts = [turn["text"] for turn in turns if isinstance(turn, dict)] if isinstance(turns, list) else []
    assert [joined(text) for text in texts] == [joined(TEXT)]


@pytest.mark.parametrize(("proxy", "where", "client"), [*rows()])
async def test_a_late_stream_comes_whole_through_an_impatient_proxy(
    place: Place, proxy: str, where: str, client: str
) -> None:
    check_answer(await place.talk(where, client, place.urls[proxy], "engine/late"))


@pytest.mark.nightly
@pytest.mark.parametrize("proxy", PROXIES)
@pytest.mark.parametrize("client", ["chat", "messages", "responses"])
async def test_a_late_whole_response_comes_through_an_impatient_proxy(place: Place, proxy: str, client: str) -> None:
    check_answer(await place.talk(PYTHON, client, place.urls[proxy], "engine/late", stream=False))


@pytest.mark.parametrize("proxy", PROXIES)
async def test_without_keep_alives_the_proxy_gives_up(place: Place, proxy: str) -> None:
    outcome = await place.talk(PYTHON, "chat", place.urls[proxy], "engine/silent")
    error = outcome["error"]
    assert isinstance(error, dict), outcome
    assert error["status"] == 504


@pytest.mark.nightly
@pytest.mark.parametrize("proxy", PROXIES)
@pytest.mark.parametrize(
    ("where", "framework"), [pytest.param(*row, id=row[1], marks=marked(row[0])) for row in FRAMEWORKS]
)
async def test_a_framework_waits_behind_an_impatient_proxy(
    place: Place, proxy: str, where: str, framework: str
) -> None:
    outcome = await place.work(where, framework, place.urls[proxy], "engine/late")
    assert outcome["error"] is None, outcome
    assert joined(outcome["output"]) == joined(TEXT)


@pytest.mark.nightly
@NEEDS_NPM
@pytest.mark.parametrize("proxy", PROXIES)
@pytest.mark.parametrize("agent", [claude_code, codex])
async def test_a_coding_agent_waits_behind_an_impatient_proxy(
    place: Place, proxy: str, agent: Callable[..., "asyncio.Future[Session]"], tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    session = await agent(place.urls[proxy], "engine/late", "Say it.", folder)
    assert session.status == 0, session.output
    assert '"onetwo"' in session.output


# After keep-alives ---------------------------------------------------------------------------------------------------

EVERY_SDK = pytest.mark.parametrize(
    ("where", "client"), [pytest.param(*row, id="-".join(row), marks=marked(row[0])) for row in TALKS]
)


@EVERY_SDK
async def test_another_deployment_answers_after_one_that_died_in_silence(place: Place, where: str, client: str) -> None:
    check_answer(await place.talk(where, client, place.urls["direct"], "both"))


@EVERY_SDK
@pytest.mark.parametrize("model", ["refuses", "fails"])
async def test_a_failure_after_keep_alives_raises(place: Place, where: str, client: str, model: str) -> None:
    outcome = await place.talk(where, client, place.urls["direct"], f"quick/{model}")
    error = outcome["error"]
    assert isinstance(error, dict), outcome
    assert outcome["turns"] == []
    assert ("too hot" if model == "refuses" else "down") in str(error["message"])
