"""One request causes only bounded work in the mock, the models list and the counting of tokens."""

from collections.abc import Mapping
from functools import partial

import orjson
import pytest

from providers.emulation.merge_choices import MAX_CALLS
from providers.json_types import JsonValue
from providers.mock import server as mock
from providers.unified_request import TextPrompt
from proxy.errors import GatewayError
from proxy.routing.snapshot import ANYONE
from tests.proxy.kit.gateway_rig import rig
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.scripted_calls import ask
from tests.proxy.upstream.test_fit_context_window import ERROR, TRUNCATE, VLLM, Rig, injected, vllm
from tests.support.cpu_growth import excess
from tests.support.looped import looped

BOUND = 20
"""The bound, as a multiple of parsing a megabyte of JSON. Each case takes some milliseconds, and once took from one to
many seconds."""

BOMBS: dict[str, dict[str, JsonValue]] = {
    "length": {"model": "long-200000", "prompt": "x", "max_tokens": 10**6},
    "choices": {"model": "long-1500", "prompt": "x", "n": 128},
    "echo": {"model": "echo", "prompt": "word " * 6_000_000},
    "streamed": {"model": "long-200000", "prompt": "x", "stream": True, "logprobs": 5, "max_tokens": 10**6},
    "prompts": {"model": "m", "prompt": [[1]] * 500_000},
    "stops": {"model": "m", "prompt": "x" * 10_000_000, "stop": ["y" * 1000] * 10_000},
    "schema": {"model": "m", "prompt": "x", "guided_json": {"allOf": [{f"a{n}": 1} for n in range(50_000)]}},
    "value": {
        "model": "m",
        "prompt": "x",
        "guided_json": {
            "$defs": {"a": {"const": "y" * 30_000}},
            "type": "array",
            "minItems": 4000,
            "items": {"$ref": "#/$defs/a"},
        },
    },
    "pattern": {"model": "m", "prompt": "x", "guided_regex": "(){4096}" * 3000},
}


def answered(path: str, body: bytes) -> int:
    """Return the size of the mock's response in bytes."""
    return sum(len(chunk.data) for chunk in mock.respond(path, body).chunks)


@looped("name", BOMBS)
def test_threat_07_the_mock_does_a_bounded_amount_of_work(name: str) -> None:
    body = orjson.dumps(BOMBS[name])
    assert answered("/completions", body) < 4 * 2**20
    assert excess(partial(answered, "/completions", body), BOUND) == ""


SCRIPTS: dict[str, list[str]] = {
    "turn": ['```script\n["' + "!" * 48_000 + '"]\n```'],
    "tokens": ['```script\n["' + "!" * 4000 + '"]\n```'],
    "nesting": ["```script\n" + "[" * 20_000 + "]" * 20_000 + "\n```"],
    "fences": ['```script\n["a"]\n```', "\n```scripts" * 20_000],
    "messages": ['```script\n["a"]\n```', *["b"] * 2000],
    "text": ['```script\n["a"]\n```', "!" * 200_000],
}


@looped("name", SCRIPTS)
@looped("stream", [False, True])
def test_threat_07_a_script_costs_a_bounded_amount_of_work(name: str, stream: bool) -> None:
    messages = [{"role": "user", "content": text} for text in SCRIPTS[name]]
    body = orjson.dumps({"model": "script", "messages": messages, "stream": stream})
    assert answered("/chat/completions", body) < 4 * 2**20
    assert excess(partial(answered, "/chat/completions", body), BOUND) == ""


async def test_threat_07_no_client_chooses_faults_from_a_row_for_any_model() -> None:
    async with rig("vendors: {mock: {}}\nmodels: {mock/*: {}, mock/error-400: {}}\n") as made:
        for model, status in (("mock/hello", 200), ("mock/hang-0", 404), ("mock/long-9", 404), ("mock/error-400", 400)):
            sent = request("POST", "/v1/completions", {"model": model, "prompt": "x"})
            answer = await exchange(made.port, sent)
            assert (model, answer.status) == (model, status)
            if status == 404:
                assert orjson.loads(answer.body)["error"]["code"] == "model_not_found"


async def test_threat_08_a_models_list_is_made_once_and_anew_after_a_reload() -> None:
    rows = "".join(f"  mock/m{n}: {{}}\n" for n in range(500))
    async with rig("vendors: {mock: {}}\nmodels:\n" + rows) as made:
        first = await exchange(made.port, request("GET", "/v1/models"))
        assert len(orjson.loads(first.body)["data"]) == 500
        kept = made.gateway.catalogue._cached[(ANYONE, "openai")]
        assert kept == first.body == (await exchange(made.port, request("GET", "/v1/models"))).body
        assert made.gateway.catalogue._cached[(ANYONE, "openai")] is kept
        one = await exchange(made.port, request("GET", "/v1/models/mock/m7"))
        assert orjson.loads(one.body)["id"] == "mock/m7"


@pytest.mark.parametrize("behaviour", [ERROR, TRUNCATE])
def test_threat_08_counting_asks_at_most_as_often_as_a_request_may_call(behaviour: Mapping[str, object]) -> None:
    made = Rig(vllm, VLLM)
    with pytest.raises(GatewayError) as caught:
        made.before(ask(TextPrompt(("hi",) * 5000), behaviour))
    facts = caught.value.facts
    assert facts.message == f"This request would become 5000 calls of v/m/default; at most {MAX_CALLS} can be."
    assert (facts.status, facts.code, facts.param) == (400, "invalid_value", "prompt")
    assert made.asked == []
    made.before(ask(TextPrompt(("hi",) * MAX_CALLS), behaviour))
    assert len(made.asked) == MAX_CALLS


def test_a_default_is_no_reason_to_refuse_a_batch_that_the_engine_takes() -> None:
    made = Rig(vllm, VLLM)
    assert made.before(injected(ask(TextPrompt(("hi",) * 5000), ERROR)))
    assert made.asked == []
