"""Behaviour that text-completion clients rely on, tested with the bytes of requests and responses. A test's name has
the number of its point, from 1 to 14.

The bodies come from lm-evaluation-harness, LangChain, SillyTavern, Continue, Tabby and others, November 2026.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import orjson
import pytest
import pytest_asyncio

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.raw_client import Answer, connected, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.support import openai_wire
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.looped import looped
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script

pytestmark = pytest.mark.asyncio(loop_scope="module")

BODIES = Path(__file__).resolve().parents[1] / "fixtures" / "clients"
KEY = "sk-of-the-team"
AUTH = {"Authorization": f"Bearer {KEY}"}
COMPLETIONS, FIM = "/v1/completions", "/v1/fim/completions"
NAMES = ("any", "vllm", "strict", "lenient", "mistral", "deepseek", "talker")
TABLE = f"""\
version: 1
server:
  port: ${{PORT}}
  admin:
    port: ${{ADMIN_PORT}}
  surfaces: {{openai: {{default_model: any/default}}}}
defaults: {{allow_private: true, api_key: sk-upstream, base_url: "BASE/v1", context_window: 32768}}
vendors:
  any: {{profile: openai_compatible}}
  vllm: {{}}
  strict: {{profile: ollama}} # refuses fields that it does not know
  lenient: {{profile: ollama, on_unsupported: drop}}
  mistral: {{}}
  deepseek: {{}}
  talker: {{profile: groq}}
models: {{{", ".join(f"{name}/*: {{}}" for name in NAMES)}, any/default: {{}}}}
teams: {{team: {{keys: ["{digest_of(KEY)}"], models: ["*"]}}}}
"""


def said(received: Received) -> Script:
    body = received.json()
    assert isinstance(body, dict)
    chats = received.path.endswith(("/chat/completions", "/fim/completions"))
    if body.get("stream"):
        return sse_answer((openai_wire.chat_frames if chats else openai_wire.completion_frames)(["on", "e"]))
    return json_answer(200, openai_wire.chat("one") if chats else openai_wire.completion("one"))


@dataclass(frozen=True, slots=True)
class World:
    """The gateway between a client and a vendor. Every model of the vendor belongs to one test."""

    vendor: FakeVendor
    gateway: RunningGateway

    @property
    def port(self) -> int:
        return urlsplit(self.gateway.url).port or 0

    async def post(self, path: str, body: JsonObject, **headers: str) -> Answer:
        return await exchange(self.port, request("POST", path, body, {**AUTH, **headers}))

    async def ask(self, model: str, **fields: JsonValue) -> Answer:
        return await self.post(COMPLETIONS, {"model": model, "prompt": "hi", **fields})

    def asked(self, model: str) -> list[JsonObject]:
        """Return the bodies that the vendor received for a model, without the requests to its tokenizer."""
        received = [each for each in self.vendor.requests if each.model == model and "completions" in each.path]
        return [body for each in received if isinstance(body := each.json(), dict)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        vendor = await stack.enter_async_context(FakeVendor(said))
        table = TABLE.replace("BASE", vendor.base_url)
        yield World(vendor, await stack.enter_async_context(running_gateway(table, tmp_path_factory.mktemp("gateway"))))


def read(client: str, **changes: JsonValue) -> JsonObject:
    """Return a client's recorded body with some fields changed."""
    body: JsonObject = orjson.loads((BODIES / f"{client}.json").read_bytes())
    return {**body, **changes}


def choices(answer: Answer) -> list[JsonObject]:
    assert answer.status == 200, answer.body
    if answer.body.startswith(b"data: "):
        bodies = [orjson.loads(data) for data in answer.events() if data != b"[DONE]"]
    else:
        bodies = [answer.json()]
    return [choice for body in bodies for choice in body["choices"]]


@looped("prompt", ["hi", ["hi", "ho"], [1, 2], [[1, 2], [3]]])
async def test_01_a_prompt_comes_in_four_forms_and_the_model_may_be_missing(world: World, prompt: JsonValue) -> None:
    double = isinstance(prompt, list) and not isinstance(prompt[0], int)
    answer = openai_wire.completion("one")
    answer["choices"] = [{"index": k, "text": "one", "finish_reason": "stop"} for k in range(1 + double)]
    world.vendor.answer(json_answer(200, answer))
    answered = await world.post(COMPLETIONS, {"prompt": prompt})
    assert [choice["index"] for choice in choices(answered)] == list(range(1 + double))
    assert world.asked("default")[-1]["prompt"] == prompt
    assert answered.json()["model"] == "any/default"


@looped(("given", "sent"), [(True, 0), (0, 0), (1, 1), (None, None), (False, None)])
async def test_02_log_probabilities_are_a_count_or_a_switch(world: World, given: JsonValue, sent: JsonValue) -> None:
    # True lists no alternatives, rather than one, as in the APIs of Scale and Fireworks, which define it.
    await world.ask("any/logprobs", logprobs=given)
    assert world.asked("logprobs")[-1].get("logprobs") == sent


async def test_03_nulls_and_neutral_values_are_never_an_error_and_null_goes_nowhere(world: World) -> None:
    for number, client in enumerate(("langchain_openai", "llm_cli", "aiperf", "llama_index_openai_like")):
        body = read(client, model="any/neutral", prompt="hi", stream=False, stream_options=None, logprobs=None)
        assert (await world.post(COMPLETIONS, body)).status == 200, client
        assert None not in world.asked("neutral")[number].values()
    neutral: JsonObject = {"n": 1, "best_of": 1, "echo": False, "logit_bias": {}, "suffix": "", "top_p": 1, "top_k": -1}
    neutral |= {"presence_penalty": 0, "frequency_penalty": 0.0, "repetition_penalty": 1.0, "ignore_eos": False}
    for model in ("strict/none", "talker/none", "mistral/none"):
        assert (await world.ask(model, **neutral)).status == 200


@pytest.mark.parametrize("stream", [False, True])
async def test_04_ten_stops_work_where_the_vendor_takes_four(world: World, stream: bool) -> None:
    body = read("continue_autocomplete", model="any/stops", stream=stream)
    world.vendor.answer_model(
        "stops", sse_answer(openai_wire.completion_frames(["x):", "\n  #", "- coding", ": utf-8 y"]))
    )
    answer = await world.post(COMPLETIONS, body)
    text = "".join(str(choice["text"]) for choice in choices(answer))
    assert (text, choices(answer)[-1]["finish_reason"]) == ("x):\n  ", "stop")
    stops = body["stop"]
    assert isinstance(stops, list)
    assert world.asked("stops")[-1]["stop"] == stops[:4]
    assert "stop" in answer.headers["x-dragoman-emulated"].split(", ")


async def test_05_a_scoring_request_goes_through_as_it_is(world: World) -> None:
    body = read("lm_eval_loglikelihood", model="vllm/scores")
    two = openai_wire.completion("a b")
    two["choices"] = [{"index": k, "text": "a b", "finish_reason": "length"} for k in (0, 1)]
    world.vendor.answer_model("scores", json_answer(200, two))
    assert (await world.post(COMPLETIONS, body)).status == 200
    assert world.asked("scores") == [{**body, "model": "scores"}]


@pytest.mark.parametrize("model", ["any/order", "talker/order"])
async def test_06_choices_are_prompt_by_prompt_in_ascending_order(world: World, model: str) -> None:
    answer = openai_wire.completion("")
    answer["choices"] = [{"index": k, "text": f"{k}", "finish_reason": "stop"} for k in (3, 1, 0, 2)]
    world.vendor.answer_model("order", json_answer(200, answer) if model == "any/order" else said)
    found = choices(await world.ask(model, prompt=["a", "b"], n=2))
    assert [choice["index"] for choice in found] == [0, 1, 2, 3]
    if model == "any/order":
        assert [choice["text"] for choice in found] == list("0123")


async def test_07_usage_is_always_an_object(world: World) -> None:
    silent = openai_wire.completion("four")
    del silent["usage"]
    world.vendor.answer_model("silent", json_answer(200, silent))
    answer = await world.ask("any/silent", prompt="12345678")
    counts = {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3}
    # The web page shows zeros; an estimate that is marked as one is more useful to a client that divides by it.
    assert answer.json()["usage"] == {**counts, "estimated": True}
    assert answer.headers["x-dragoman-emulated"] == "usage"


CONTINUE: JsonObject = {
    "prompt": "def f(",
    "suffix": "):\n    return 1",
    "max_tokens": 64,
    "max_completion_tokens": 64,
    "temperature": 0.01,
    "top_p": None,
    "frequency_penalty": None,
    "presence_penalty": None,
    "stop": ["\n\n"],
    "stream": True,
}
TABBY: JsonObject = {
    "prompt": "def f(",
    "suffix": "):\n    return 1",
    "max_tokens": 64,
    "temperature": 0.1,
    "stream": True,
    "random_seed": 7,
}


@looped("path", [FIM, "/fim/completions"])
@looped(
    ("vendor", "upstream"),
    [("mistral", "/v1/fim/completions"), ("deepseek", "/v1/beta/completions"), ("any", "/v1/completions")],
)
async def test_08_the_middle_is_filled_in_chats_shape(world: World, path: str, vendor: str, upstream: str) -> None:
    name = f"fim-{vendor}"
    for body in (CONTINUE, {**CONTINUE, "stream": False}):
        answer = await world.post(path, {"model": f"{vendor}/{name}", **body})
        if body["stream"]:
            assert answer.events()[-1] == b"[DONE]"
            deltas = [choice["delta"] for choice in choices(answer)]
            texts = [delta["content"] for delta in deltas if isinstance(delta, dict)]
        else:
            texts = [choice["message"]["content"] for choice in choices(answer) if isinstance(choice["message"], dict)]
        assert ("".join(map(str, texts)), choices(answer)[-1]["finish_reason"]) == ("one", "stop")
        assert None not in texts
    received = [received for received in world.vendor.requests if received.model == name]
    assert {each.path for each in received} == {upstream}
    asked: JsonObject = {"prompt": "def f(", "suffix": "):\n    return 1", "max_tokens": 64, "temperature": 0.01}
    assert world.asked(name)[-1] == {"model": name, **asked, "stop": ["\n\n"]}


async def test_08_tabby_says_mistrals_name_of_the_seed(world: World) -> None:
    answer = await world.post(FIM, {"model": "mistral/tabby", **TABBY})
    assert choices(answer)
    assert world.asked("tabby") == [{"model": "tabby", **TABBY}]


async def test_08_a_vendor_that_cannot_fill_in_says_so(world: World) -> None:
    for model in ("talker/fim", "vllm/fim"):
        refused = await world.post(FIM, {"model": model, **CONTINUE})
        assert (refused.status, refused.code, refused.error()["param"]) == (400, "unsupported_parameter", "suffix")
    assert world.asked("fim") == []


async def test_09_what_clients_look_for_first_is_there_or_a_quick_404(world: World) -> None:
    async def get(path: str) -> Answer:
        return await exchange(world.port, request("GET", path, None, AUTH))

    for path in ("/health", "/health/live", "/health/ready"):
        assert (await exchange(world.port, request("GET", path))).status == 200
    for path in ("/v1/models", "/models"):
        cards = orjson.loads((await get(path)).body)["data"]
        assert [card["max_model_len"] for card in cards if card["id"] == "any/default"] == [32768]
    assert (await get("/v1/models/any/default")).json()["max_model_len"] == 32768
    asked: JsonObject = {"prompt": "hi", "add_special_tokens": False}
    for path in ("/tokenizer_info", "/v1/tokenizer_info", "/tokenize", "/v1/tokenize"):
        for missing in (await get(path), await world.post(path, asked)):
            assert (missing.status, missing.code) == (404, "not_found")


SAMPLERS = ("length_penalty", "early_stopping", "stop_token_ids", "min_tokens", "skip_special_tokens")


async def test_10_samplers_nobody_knows_are_passed_on(world: World) -> None:
    body = read("sillytavern_vllm", model="vllm/samplers", stream=False)
    for model in ("vllm/samplers", "strict/samplers", "lenient/samplers"):
        assert (await world.post(COMPLETIONS, {**body, "model": model})).status == 200, model
        sent = world.asked("samplers")[-1]
        assert {name: sent.get(name) for name in SAMPLERS} == {name: body[name] for name in SAMPLERS}


async def test_11_guided_fields_bind_old_and_new_engines_and_are_checked(world: World) -> None:
    yes = json_answer(200, openai_wire.completion("yes"))
    world.vendor.answer_model("guided", yes)
    constraints: list[JsonObject] = [{"guided_choice": ["yes", "no"]}, {"guided_regex": "y.s"}]
    for constraint in constraints:
        answer = await world.ask("vllm/guided", **constraint)
        assert choices(answer)[0]["text"] == "yes"
        sent = world.asked("guided")[-1]
        ((field, value),) = constraint.items()
        # Version 0.12 and later silently ignore the first; version 0.10 and earlier ignore the second.
        assert (sent[field], sent["structured_outputs"]) == (value, {field.removeprefix("guided_"): value})
    broken = await world.ask("vllm/guided", guided_choice=["maybe", "no"])
    assert (broken.status, broken.code) == (502, "malformed_upstream")


@looped("model", ["any/plain", "talker/plain", "mistral/plain"])
async def test_12_a_stream_is_plain_frames_that_end_with_the_terminator(world: World, model: str) -> None:
    body: JsonObject = {"model": model, "prompt": "hi", "stream": True, "stream_options": {"include_usage": True}}
    async with connected(world.port) as client:
        await client.send(request("POST", COMPLETIONS, body, AUTH))
        answer = await client.answer()
        # The body ended, so the connection can serve another request.
        await client.send(request("POST", COMPLETIONS, body, AUTH))
        assert (await client.answer()).body.endswith(b"data: [DONE]\n\n")
    assert answer.whole
    assert b"\r" not in answer.body
    assert all(line.startswith(b"data: ") or not line for line in answer.body.split(b"\n"))
    assert answer.body.endswith(b"data: [DONE]\n\n")
    assert [choice["finish_reason"] for choice in choices(answer)][-1] == "stop"


async def test_13_a_request_id_is_taken_echoed_and_passed_on(world: World) -> None:
    answer = await world.post(COMPLETIONS, {"model": "any/id", "prompt": "hi"}, **{"x-request-id": "mine-1"})
    assert answer.headers["x-request-id"] == "mine-1"
    (received,) = [received for received in world.vendor.requests if received.model == "id"]
    assert received.header("x-request-id") == "mine-1"
    made = (await world.ask("any/id")).headers["x-request-id"]
    assert world.vendor.requests[-1].header("x-request-id") == made != "mine-1"


@looped("header", ["Bearer ", "Bearer", "", "Bearer  ", "Basic"])
async def test_14_an_empty_key_is_a_clean_401(world: World, header: str) -> None:
    body: JsonObject = {"model": "any/none", "prompt": "hi"}
    answer = await exchange(world.port, request("POST", COMPLETIONS, body, {"Authorization": header}))
    assert (answer.status, answer.code) == (401, "invalid_api_key")
    assert answer.headers["x-should-retry"] == "false"


async def test_every_point_is_a_test_by_its_number() -> None:
    names = [name for name in globals() if name.startswith("test_")]
    assert [number for number in range(1, 15) if not any(name.startswith(f"test_{number:02}_") for name in names)] == []
