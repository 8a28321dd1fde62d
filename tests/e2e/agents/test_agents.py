"""Agent frameworks as their users run them: five turns of reasoning and tools, and structured outputs, over dialects of
another shape, non-streaming and streamed."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, ExitStack

import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.e2e.agents.agent_plan import CALLS, FINAL, TRIP, TURNS, Move, MovesInTurn, StrictVendor
from tests.e2e.agents.environments import FRAMEWORKS, NodeProcess, python_process
from tests.e2e.agents.strict_ollama import Ollama
from tests.e2e.agents.strict_openai import OpenAI
from tests.e2e.agents.strict_vendors import VENDORS
from tests.support.environments import LineProcess
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.http_scripts import DONE, body_answer, data_frames, json_answer, sse_answer
from tests.support.nightly import some
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]

IN_NODE = ("vercel", "vercel_openrouter", "vercel_openai", "vercel_anthropic")
NEEDS_NPM = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
EACH_TIME = ("openai_agents", "openai_agents_default", "pydantic_ai_anthropic", "vercel_openai", "vercel_anthropic")
"""One framework for each API and mode. Loading the others takes a minute."""

EVERY = [
    pytest.param(name, marks=(*marks, *(() if name in EACH_TIME else (pytest.mark.nightly,))))
    for name, marks in (*((name, ()) for name in FRAMEWORKS), *((name, (NEEDS_NPM,)) for name in IN_NODE))
    if name not in ("instructor_forced", "smolagents")
]
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
EITHER_WAY = pytest.mark.parametrize(
    ("model", "stream"),
    some([(model, way == at % 2) for at, model in enumerate(VENDORS) for way in (0, 1)], 2),
)
"""Each vendor either non-streaming or streamed. The nightly run tries both."""

TABLE = """\
version: 1
vendors:
  anthropic: {api_key: k, base_url: "ANTHROPIC", allow_private: true}
  # The AI SDK's default for Claude wants one call at a time, which Gemini cannot be told.
  gemini: {api_key: k, base_url: "GEMINI", allow_private: true, on_unsupported: drop}
  bedrock: {api_key: k, base_url: "BEDROCK", allow_private: true}
  ollama_native: {base_url: "OLLAMA", allow_private: true}
  ollama: {base_url: "OLLAMA/v1", allow_private: true}
  openai: {api_key: k, base_url: "OPENAI/v1", allow_private: true}
models:
  anthropic/*: {}
  gemini/*: {}
  bedrock/*: {}
  ollama_native/*: {}
  ollama/*: {}
  openai/*: {}
"""


class Frameworks:
    """Processes of the frameworks, each started at its first use. There is one for each environment, whose frameworks
    share imports, and one for each framework in Node.js."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._started: dict[str, LineProcess | NodeProcess] = {}

    async def run(self, framework: str, order: JsonObject) -> JsonObject:
        """Carry out one order of `driver.py` with a framework."""
        home = FRAMEWORKS.get(framework, framework)
        if home not in self._started:
            self._started[home] = self._start(home)
        line = orjson.dumps({"framework": framework, **order}).decode()
        answer = await asyncio.to_thread(self._started[home].exchange, line)
        found: JsonObject = orjson.loads(answer)
        return found

    def _start(self, home: str) -> LineProcess | NodeProcess:
        if home not in IN_NODE:
            return self._stack.enter_context(python_process(home))
        process = NodeProcess("driver.mjs", home)
        self._stack.callback(process.close)
        return process


@pytest.fixture(scope="module")
def frameworks() -> Iterator[Frameworks]:
    with ExitStack() as stack:
        yield Frameworks(stack)


Vendors = dict[str, FakeVendor]
OLLAMA, OPENAI = "ollama/any", "openai/gpt-4o"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vendors() -> AsyncIterator[Vendors]:
    async with AsyncExitStack() as stack:
        yield {model: await stack.enter_async_context(FakeVendor()) for model in (*VENDORS, OLLAMA, OPENAI)}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(vendors: Vendors, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningGateway]:
    table = TABLE
    for model, vendor in vendors.items():
        table = table.replace(model.partition("/")[0].upper(), vendor.base_url)
    async with running_gateway(table, tmp_path_factory.mktemp("gateway")) as running:
        yield running


def strict(vendors: Vendors, model: str) -> StrictVendor:
    """Begin a new conversation with a vendor."""
    vendor = VENDORS[model]()
    vendors[model].default = vendor.play
    return vendor


@EITHER_WAY
@pytest.mark.parametrize("framework", [each for each in EVERY if "instructor" not in str(each.values)])
async def test_an_agent_thinks_and_calls_tools_over_five_turns(
    framework: str, stream: bool, model: str, frameworks: Frameworks, vendors: Vendors, gateway: RunningGateway
) -> None:
    vendor = strict(vendors, model)
    order: JsonObject = {"scenario": "tools", "url": f"{gateway.url}/v1", "model": model, "stream": stream}
    outcome = await frameworks.run(framework, order)
    assert (outcome["error"], vendor.wire.refused) == (None, [])
    assert sorted(map(str, CALLS)) == sorted(map(str, outcome["calls"] if isinstance(outcome["calls"], list) else []))
    assert outcome["output"] == FINAL
    assert vendor.wire.thinking == [True] * TURNS


@EITHER_WAY
@pytest.mark.parametrize("framework", EVERY)
async def test_a_framework_gets_its_structured_output(
    framework: str, stream: bool, model: str, frameworks: Frameworks, vendors: Vendors, gateway: RunningGateway
) -> None:
    vendor = strict(vendors, model)
    order: JsonObject = {"scenario": "structured", "url": f"{gateway.url}/v1", "model": model, "stream": stream}
    outcome = await frameworks.run(framework, order)
    assert (outcome["error"], vendor.wire.refused) == (None, [])
    assert outcome["output"] == TRIP


def held_to_a_format(received: Received) -> Script:
    """Respond as Ollama does, which makes a model follow a format and call no tool."""
    body = received.json()
    assert isinstance(body, dict)
    assert body.keys().isdisjoint({"tools", "tool_choice"})
    text = orjson.dumps(TRIP).decode()
    pieces = [text[start : start + 7] for start in range(0, len(text), 7)] if body.get("stream") else [text]
    if received.target == "/api/chat":
        said: list[JsonObject] = [
            {"message": {"role": "assistant", "content": piece}, "done": False} for piece in pieces
        ]
        said[-1] |= {"done": True, "done_reason": "stop", "prompt_eval_count": 3, "eval_count": 9}
        return body_answer(200, b"".join([orjson.dumps(line) + b"\n" for line in said]))
    if not body.get("stream"):
        message: JsonObject = {"role": "assistant", "content": text}
        return json_answer(200, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
    frames: list[JsonValue] = [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    frames.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return sse_answer([*data_frames(*frames), DONE])


@STREAMED
@pytest.mark.parametrize("scenario", ["chat", "messages"])
@pytest.mark.parametrize("model", some(["ollama_native/any", "ollama/any"], 2))
async def test_instructor_forces_a_call_of_a_vendor_that_cannot_be_made_to_call(
    model: str, scenario: str, stream: bool, frameworks: Frameworks, vendors: Vendors, gateway: RunningGateway
) -> None:
    vendors[OLLAMA].default = held_to_a_format
    order: JsonObject = {"scenario": scenario, "url": f"{gateway.url}/v1", "model": model, "stream": stream}
    outcome = await frameworks.run("instructor_forced", order)
    assert (outcome["error"], outcome["output"]) == (None, TRIP)


STEPS: tuple[tuple[str, JsonObject], ...] = (
    ("weather", {"city": "Paris"}),
    ("weather", {"city": "Rome"}),
    ("compare", {"first": "Paris: 5 degrees", "second": "Rome: 4 degrees"}),
    ("final_answer", {"answer": FINAL}),
)
CODE = ("paris = weather(city='Paris')", "print(compare(paris, weather(city='Rome')))", f"final_answer({FINAL!r})")
MOVES = {
    "tools": tuple([Move(number, "", (call,)) for number, call in enumerate(STEPS)]),
    "code": tuple([Move(number, "", text=f"Thought: next.\n<code>\n{line}\n") for number, line in enumerate(CODE)]),
}
OF_STEPS: dict[str, type[StrictVendor]] = {**VENDORS, OPENAI: OpenAI, "ollama_native/any": Ollama}


@STREAMED
@pytest.mark.parametrize("scenario", list(MOVES))
@pytest.mark.parametrize("model", some([*OF_STEPS], 2))
async def test_smolagents_reaches_its_answer_by_calls_and_by_code(
    model: str, scenario: str, stream: bool, frameworks: Frameworks, vendors: Vendors, gateway: RunningGateway
) -> None:
    vendor = OF_STEPS[model](MovesInTurn(MOVES[scenario]))
    vendors[model if model in vendors else OLLAMA].default = vendor.play
    order: JsonObject = {"scenario": scenario, "url": f"{gateway.url}/v1", "model": model, "stream": stream}
    outcome = await frameworks.run("smolagents", order)
    assert (outcome["error"], vendor.wire.refused, outcome["output"]) == (None, [], FINAL)
    assert outcome["calls"] == [["weather", "Paris"], ["weather", "Rome"], *CALLS[3:4]]
