"""SDKs in Python and Node.js over every API: conversations with reasoning and calls, embeddings, moderations,
errors."""

import asyncio
import base64
import shutil
import struct
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass

import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.e2e.agents.environments import NodeProcess, sdk_process
from tests.support.environments import LineProcess
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.http_scripts import body_answer, json_answer
from tests.support.nightly import some
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300), pytest.mark.asyncio(loop_scope="module")]

BROKEN = some(("cut-2", "eof-2", "midstream-error-2"), 2)
FAILING = some(("error-429", "error-500", "error-400", "overflow"), 2)
TABLE = """\
version: 1
server:
  port: ${PORT}
  admin:
    port: ${ADMIN_PORT}
  surfaces: {openai: {task_models: {moderations: openai/omni-moderation-latest}}}
defaults: {allow_private: true, api_key: k-4711}
vendors:
  mock: {}
  engine: {profile: openai_compatible, base_url: "ENGINE/v1"}
  openai: {base_url: "ENGINE/v1"}
models:
  mock/*: {}
  engine/*: {}
  openai/*: {}
""" + "".join([f"  mock/{word}: {{upstream_model: script+{word}}}\n" for word in (*BROKEN, *FAILING)])

SCRIPT: JsonValue = [
    {
        "thinking": "Hmm",
        "text": "I look.",
        "calls": [{"name": "lookup", "arguments": {"word": word}} for word in ("tram", "bus")],
    },
    {"calls": [{"name": "lookup", "arguments": {"word": 'fähre "x"\n'}}]},
    "All found.",
]
CALLS = [[["lookup", {"word": "tram"}], ["lookup", {"word": "bus"}]], [["lookup", {"word": 'fähre "x"\n'}]], []]
TEXTS = ["I look.", "", "All found."]

NEEDS_NPM = pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
PYTHON, NODE, RAG = "agents", "node", "rag"


MARKS: Mapping[str, pytest.MarkDecorator] = {NODE: NEEDS_NPM, RAG: pytest.mark.nightly}
"""Marks of the environments. Loading the frameworks for retrieval takes half a minute of CPU."""


def ways(*named: tuple[str, str]) -> list[object]:
    """Return parameters of an environment and a client in it."""
    return [pytest.param(place, client, id=f"{place}-{client}", marks=MARKS.get(place, ())) for place, client in named]


TALKING = pytest.mark.parametrize(
    ("place", "client"),
    ways(
        *((place, client) for place in (PYTHON, NODE) for client in ("chat", "responses", "messages")),
        (NODE, "langchain"),
    ),
)
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])

FINISHES = {
    "chat": ["tool_calls", "tool_calls", "stop"],
    "messages": ["tool_use", "tool_use", "end_turn"],
    "responses": ["completed"] * 3,
    "langchain": ["completed"] * 3,
}


def vector_of(text: str) -> list[float]:
    """Return a vector of three numbers that 32 bits represent exactly, different for each text."""
    return [len(text) / 4, -0.5, float(sum(text.encode()) % 64)]


def embed(received: Received) -> Script:
    """Respond with numbers, whatever encoding was requested, as many engines do. `packed` models follow the request."""
    body = received.json()
    assert isinstance(body, dict)
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    vectors: list[JsonValue] = [[*vector_of(str(text))] for text in texts]
    if str(body["model"]).startswith("packed") and body.get("encoding_format") == "base64":
        vectors = [base64.b64encode(struct.pack("<3f", *vector_of(str(text)))).decode() for text in texts]
    data: list[JsonValue] = [
        {"object": "embedding", "index": number, "embedding": vector} for number, vector in enumerate(vectors)
    ]
    usage: JsonObject = {"prompt_tokens": 4, "total_tokens": 4}
    return json_answer(200, {"object": "list", "data": data, "model": body["model"], "usage": usage})


def moderate(received: Received) -> Script:
    """Flag the texts that hold the word bad."""
    body = received.json()
    assert isinstance(body, dict)
    assert isinstance(body["input"], list)
    results: list[JsonValue] = [{"flagged": "bad" in str(text), "categories": {}} for text in body["input"]]
    return json_answer(200, {"id": "modr-1", "model": body["model"], "results": results})


def transcribe(received: Received) -> Script:
    """Respond with the received fields, wherever the file stands among them."""
    whole = b"RIFF" * 4000 in received.body and b"\r\n\r\nwhisper-1\r\n" in received.body
    return json_answer(200, {"text": "heard" if whole else received.body[:500].decode(errors="replace")})


@dataclass(frozen=True, slots=True)
class Bench:
    """The gateway, an OpenAI-compatible vendor behind it, and the processes with the SDKs, each started at its first
    use."""

    gateway: RunningGateway
    vendor: FakeVendor
    stack: ExitStack
    started: dict[str, LineProcess | NodeProcess]

    async def run(self, place: str, scenario: str, client: str, **order: JsonValue) -> JsonObject:
        """Carry out one order of `sdk_driver.py` with a client in an environment."""
        if place not in self.started:
            self.started[place] = await asyncio.to_thread(self._start, place)
        whole: JsonObject = {"scenario": scenario, "client": client, "url": self.gateway.url, **order}
        line = orjson.dumps({"stream": False, "stored": False, **whole}).decode()
        answer: JsonObject = orjson.loads(await asyncio.to_thread(self.started[place].exchange, line))
        return answer

    def _start(self, place: str) -> LineProcess | NodeProcess:
        if place != NODE:
            return self.stack.enter_context(sdk_process(place))
        process = NodeProcess("sdks.mjs")
        self.stack.callback(process.close)
        return process


@pytest.fixture(scope="module")
def processes() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bench(processes: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        vendor = await stack.enter_async_context(FakeVendor())
        vendor.answer_path("/v1/embeddings", embed)
        vendor.answer_path("/v1/moderations", moderate)
        vendor.answer_path("/v1/audio/transcriptions", transcribe)
        vendor.answer_path("/v1/audio/speech", body_answer(200, b"sound", [("content-type", "audio/mpeg")]))
        vendor.answer_path("/v1/images/generations", json_answer(200, {"created": 1, "data": [{"b64_json": "QUJD"}]}))
        table = TABLE.replace("ENGINE", vendor.base_url)
        gateway = await stack.enter_async_context(running_gateway(table, tmp_path_factory.mktemp("gateway")))
        yield Bench(gateway, vendor, processes, {})


def prompt_of(script: JsonValue) -> str:
    return f"Look the words up.\n\n```script\n{orjson.dumps(script).decode()}\n```"


def check_conversation(client: str, outcome: JsonObject) -> None:
    assert outcome["error"] is None, outcome
    turns = outcome["turns"]
    assert isinstance(turns, list)
    told = [turn for turn in turns if isinstance(turn, dict)]
    assert [turn["calls"] for turn in told] == CALLS
    assert [turn["text"] for turn in told] == TEXTS
    assert [turn["thought"] for turn in told] == ["Hmm", "", ""]
    assert [turn["finish"] for turn in told] == FINISHES[client]
    for turn in told:
        assert isinstance(turn["usage"], list)
        assert all(isinstance(count, int) and count > 0 for count in turn["usage"])


@TALKING
@STREAMED
async def test_a_conversation_with_thoughts_and_calls(place: str, client: str, stream: bool, bench: Bench) -> None:
    order: JsonObject = {"model": "mock/script", "prompt": prompt_of(SCRIPT), "stream": stream}
    check_conversation(client, await bench.run(place, "talk", client, **order))


@pytest.mark.parametrize(("place", "client"), ways((PYTHON, "responses"), (NODE, "responses")))
@STREAMED
async def test_the_gateway_keeps_a_conversation(place: str, client: str, stream: bool, bench: Bench) -> None:
    order: JsonObject = {"model": "mock/script", "prompt": prompt_of(SCRIPT), "stream": stream, "stored": True}
    check_conversation(client, await bench.run(place, "talk", client, **order))


@pytest.mark.parametrize(("place", "client"), ways((PYTHON, "openai"), (NODE, "openai")))
async def test_a_kept_answer_is_retrieved_listed_and_deleted(place: str, client: str, bench: Bench) -> None:
    prompt = prompt_of(["All found."])
    outcome = await bench.run(place, "keep", client, model="mock/script", prompt=prompt)
    assert (outcome["error"], outcome["result"]) == (None, ["All found.", "All found.", [prompt], "NotFoundError"])


@pytest.mark.parametrize(("place", "client"), ways((PYTHON, "anthropic"), (NODE, "anthropic")))
async def test_models_are_listed_in_the_form_of_messages(place: str, client: str, bench: Bench) -> None:
    outcome = await bench.run(place, "models", client, model="")
    assert outcome["error"] is None, outcome
    assert isinstance(outcome["result"], list)
    assert "mock/cut-2" in outcome["result"]


@pytest.mark.nightly
@pytest.mark.parametrize("client", ["llama_index", "haystack"])
@STREAMED
async def test_a_rag_framework_asks_over_responses(client: str, stream: bool, bench: Bench) -> None:
    order: JsonObject = {"model": "mock/script", "prompt": prompt_of(["All found."]), "stream": stream}
    outcome = await bench.run(RAG, "talk", client, **order)
    assert (outcome["error"], outcome["turns"]) == (None, [{"text": "All found."}])


RAISED = {
    "error-429": (429, "RateLimitError"),
    "error-500": (502, "InternalServerError"),
    "error-400": (400, "BadRequestError"),
    "overflow": (400, "BadRequestError"),
}


@TALKING
@STREAMED
@pytest.mark.parametrize("fault", FAILING)
async def test_a_failure_raises_its_status(place: str, client: str, stream: bool, fault: str, bench: Bench) -> None:
    model = f"mock/{fault}"
    outcome = await bench.run(place, "talk", client, model=model, prompt=prompt_of(SCRIPT), stream=stream)
    error = outcome["error"]
    assert isinstance(error, dict), outcome
    status, kind = RAISED[fault]
    assert outcome["turns"] == []
    # LangChain has errors of its own, some of which do not have the status.
    assert (error["status"], error["kind"]) == (status, kind) or client == "langchain"


@TALKING
@pytest.mark.parametrize("fault", BROKEN)
async def test_a_stream_that_broke_is_never_an_answer(place: str, client: str, fault: str, bench: Bench) -> None:
    model = f"mock/{fault}"
    outcome = await bench.run(place, "talk", client, model=model, prompt=prompt_of(SCRIPT), stream=True)
    assert outcome["error"] is not None, outcome
    assert outcome["turns"] == []


EMBEDDERS = (
    *((PYTHON, "openai"), (PYTHON, "langchain"), (RAG, "llama_index"), (RAG, "haystack")),
    *((NODE, "openai"), (NODE, "vercel"), (NODE, "langchain")),
)


@pytest.mark.parametrize(("place", "client"), ways(*EMBEDDERS))
@pytest.mark.parametrize("model", ["engine/plain", "engine/packed", "openai/packed"])
async def test_embeddings_are_the_vendors_numbers(place: str, client: str, model: str, bench: Bench) -> None:
    texts = ["tram", "a longer text", "ü"]
    outcome = await bench.run(place, "embed", client, model=model, texts=[*texts])
    assert outcome["error"] is None, outcome
    assert outcome["result"] == [vector_of(text) for text in texts]


@pytest.mark.parametrize(("place", "client"), ways((PYTHON, "anthropic"), (NODE, "anthropic")))
async def test_tokens_are_counted_before_a_request(place: str, client: str, bench: Bench) -> None:
    outcome = await bench.run(place, "count", client, model="mock/script", prompt="One two three four five.")
    assert outcome["error"] is None, outcome
    assert isinstance(outcome["result"], dict)
    count = outcome["result"]["input_tokens"]
    assert isinstance(count, int)
    assert 4 < count < 30


@pytest.mark.parametrize(("place", "client"), ways((PYTHON, "openai"), (NODE, "openai")))
async def test_moderations_need_no_model(place: str, client: str, bench: Bench) -> None:
    outcome = await bench.run(place, "moderate", client, texts=["good", "bad"])
    assert outcome["error"] is None, outcome
    result = outcome["result"]
    assert isinstance(result, dict)
    assert (result["model"], result["id"]) == ("omni-moderation-latest", "modr-1")
    assert isinstance(result["results"], list)
    assert [each["flagged"] for each in result["results"] if isinstance(each, dict)] == [False, True]


@pytest.mark.parametrize(("place", "client"), ways((PYTHON, "openai"), (NODE, "openai")))
async def test_sounds_and_pictures_pass(place: str, client: str, bench: Bench) -> None:
    # In Python the model stands before the file, in Node.js after it.
    outcome = await bench.run(place, "media", client, model="openai/whisper-1", prompt="a cat")
    assert (outcome["error"], outcome["result"]) == (None, ["heard", "sound", "QUJD"])
