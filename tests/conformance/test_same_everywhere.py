"""One request has the same meaning for every vendor: vendors with different features give equal responses."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import cast

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from tests.conformance.fake_engine import FakeEngine
from tests.conformance.feature_requests import CHOICES, PROMPT
from tests.conformance.read_answer import emulated_fields, read_answer
from tests.conformance.run_matrix import STREAM
from tests.proxy.kit.gateway_rig import Rig, rig
from tests.proxy.kit.raw_client import Answer
from tests.support.vendor_script import Hang, Received, Script

HELD_BY: Mapping[str, str] = {
    "openai": "response_format.json_schema",
    "anthropic": "output_config.format",
    "fireworks": "response_format.grammar",
    "vllm": "structured_outputs.choice",
    "sglang": "regex",
    "llamacpp": "grammar",
    "tgi": "response_format.value",
    "mock": "guided_choice",
}
"""Vendors that enforce a choice in a way of their own, and the field of the body that does it."""

PROMPTS: list[JsonValue] = [f"Say {number}" for number in range(10)]


class Vendors:
    """Fakes of several vendors on one port, distinguished by the first segment of the path."""

    def __init__(self) -> None:
        self._fakes: dict[str, FakeEngine] = {}

    def __call__(self, received: Received) -> Script:
        """Return the response of the vendor that was called."""
        profile = received.path.split("/")[1]
        if profile not in self._fakes:
            self._fakes[profile] = FakeEngine(profile)
        return self._fakes[profile](received)


@asynccontextmanager
async def vendors(*profiles: str) -> AsyncIterator[Rig]:
    settings = "api_key: sk-a, allow_private: true, max_output_tokens: 100"
    rows = [f'  {name}: {{{settings}, base_url: "http://127.0.0.1:PORT/{name}"}}' for name in profiles]
    table = "\n".join(["vendors:", *rows, "models:", *(f"  {name}/*: {{}}" for name in profiles), ""])
    async with rig(table) as running:
        running.vendor.default = Vendors()
        yield running


def _member(body: JsonValue, path: str) -> JsonValue:
    for step in path.split("."):
        assert isinstance(body, dict)
        body = body[step]
    return body


@pytest.mark.parametrize("switches", [{}, STREAM], ids=["whole", "streamed"])
async def test_a_choice_comes_back_bare_from_eight_vendors(switches: JsonObject) -> None:
    asked: JsonObject = {"messages": [{"role": "user", "content": PROMPT}], "guided_choice": CHOICES, **switches}
    async with vendors(*HELD_BY) as running:
        for name, member in HELD_BY.items():
            running.vendor.requests.clear()
            answer = await running.post("/v1/chat/completions", {"model": f"{name}/m", **asked})
            only = read_answer(answer).only
            assert (name, only.text, only.finish) == (name, "no", "stop")
            (sent,) = (
                each.json() for each in running.vendor.requests if each.path.endswith(("completions", "messages"))
            )
            assert _member(sent, member), name


def _frames(answer: Answer) -> Counter[bytes]:
    """Return the frames without their identifying fields, each candidate by its prompt, because the order of
    candidates is random."""
    *events, last = answer.events()
    assert last == b"[DONE]"
    frames = [cast(JsonObject, orjson.loads(event)) for event in events]
    assert len({(str(frame.pop("id")), str(frame.pop("created"))) for frame in frames}) == 1
    assert frames[-1]["choices"] == []
    assert all(frame["usage"] is None for frame in frames[:-1])
    for frame in frames:
        del frame["model"]
        for choice in cast(list[JsonObject], frame["choices"]):
            choice["index"] = cast(int, choice["index"]) // 2
    return Counter(map(orjson.dumps, frames))


async def test_a_streamed_batch_does_not_show_who_made_it() -> None:
    asked: JsonObject = {"prompt": PROMPTS, "n": 2, **STREAM}
    async with vendors("vllm", "ollama") as running:
        answers: dict[str, Answer] = {}
        calls: dict[str, int] = {}
        for name in ("vllm", "ollama"):
            running.vendor.requests.clear()
            answers[name] = await running.post("/v1/completions", {"model": f"{name}/m", **asked})
            calls[name] = sum(each.path.endswith("/completions") for each in running.vendor.requests)
    has_both, has_neither = answers["vllm"], answers["ollama"]
    assert calls == {"vllm": 1, "ollama": 20}
    assert emulated_fields(has_both) == ()
    assert set(emulated_fields(has_neither)) == {"prompt", "n"}
    assert _frames(has_neither) == _frames(has_both)
    assert list(read_answer(has_neither).choices) == list(range(20))
    assert read_answer(has_neither).usage == read_answer(has_both).usage == (20, 80)


def _hang(received: Received) -> Script:
    return (Hang(),)


@pytest.mark.parametrize("switches", [{}, STREAM], ids=["whole", "streamed"])
async def test_the_clients_clock_ends_its_request_whoever_is_asked(switches: JsonObject) -> None:
    names = [name for name, profile in load_profiles().items() if profile.wires]
    async with vendors(*names) as running:
        running.vendor.default = _hang
        asked: JsonObject = {"prompt": PROMPT, "inference_timeout": 0.3, **switches}
        models = [f"{name}/{load_profiles()[name].examples[0]}" for name in names]
        answers = await asyncio.gather(
            *(running.post("/v1/completions", {"model": model, **asked}) for model in models)
        )
    ends = {name: (answer.status, answer.code) for name, answer in zip(names, answers, strict=True)}
    assert ends == dict.fromkeys(names, (504, "upstream_timeout"))
