"""The cases of the four APIs that need a whole gateway. A test's name has the numbers of its cases, from 1 to 76.

Prompts, candidates, echo and names are here. Streams and controls are in the two sibling files. The cases that a
surface decides alone are in the surfaces' tests.
"""

import asyncio
import re
from pathlib import Path

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.api_cases import (
    CHAT,
    OPENAI,
    PAIS,
    PATHS,
    SCALE_V4,
    TABLE,
    calls,
    choice,
    choices,
    either,
    emulated,
    error,
    frames,
    pieces,
    sent,
    streamed,
    texts,
    usage,
    whole,
)
from tests.proxy.kit.gateway_rig import AUTH, Rig, ask, gateway_fixture
from tests.proxy.kit.raw_client import connected, request
from tests.support.http_scripts import DONE, LAST_CHUNK, chunk, data_frames, head, json_answer, sse_answer
from tests.support.vendor_script import Hang, Received, Script, Send, Until

FILES = (
    "test_api_cases.py",
    "test_api_cases_streams.py",
    "test_api_cases_controls.py",
    "../surfaces/test_api_cases.py",
)
TOOLS: list[JsonValue] = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
BATCH: JsonObject = {"prompt": ["a", "b", "c"], "n": 2}


served = gateway_fixture(TABLE)


def test_every_case_is_a_test_by_its_number() -> None:
    here = Path(__file__).parent
    found: set[int] = set()
    for file in FILES:
        text = (here / file).read_text(encoding="utf-8")
        for names in re.findall(r"(?:def test_|^    \")(\d\d(?:_(?:and|to)_\d\d)?)[_ ]", text, re.MULTILINE):
            first, word, last = (names + "__").split("_")[:3]
            found |= set(range(int(first), int(last) + 1)) if word == "to" else {int(n) for n in (first, last) if n}
    assert sorted(found) == list(range(1, 77))


# Prompts and candidates ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
async def test_01_three_prompts_with_two_candidates_are_six_choices_in_order(served: Rig, path: str) -> None:
    native = whole(*(choice(f"{'abc'[k // 2]}{k % 2}", k) for k in (5, 0, 4, 2, 1, 3)), counts=usage(3, 6))
    served.vendor.answer(native)
    one = await served.post(path, ask("both/m", **BATCH))
    served.vendor.default = either(lambda body: f"{body['prompt']}{body['seed']}", usage(1, 1))
    six = await served.post(path, ask("single/m", **BATCH, seed=0))
    for answer in (one, six):
        assert [each["index"] for each in choices([answer.json()])] == list(range(6))
        assert answer.json()["usage"] == usage(3, 6)
        assert texts(answer) == {k: f"{'abc'[k // 2]}{k % 2}" for k in range(6)}
    assert (emulated(one), emulated(six), len(calls(served))) == (None, "prompt, n", 7)


@pytest.mark.parametrize("path", PATHS)
async def test_02_frames_of_four_choices_interleave_and_each_ends_once(served: Rig, path: str) -> None:
    gate = asyncio.Event()
    first, *rest = pieces(choice("x", ended=None), choice("y", ended=None), choice(""), counts=usage(1, 2))
    start = head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
    served.vendor.default = (Send(start + chunk(first)), Until(gate), Send(chunk(b"".join(rest))), Send(LAST_CHUNK))
    body = ask("single/m", prompt=["a", "b"], n=2, stream=True, stream_options={"include_usage": True})
    async with connected(served.port) as client:
        await client.send(request("POST", path, body, AUTH))
        await client.head()
        begun = b""
        while begun.count(b'"x"') < 4:
            begun += await client.chunk()
        gate.set()
        rest_of_body, ended_well = await client.chunks()
    events = [part.removeprefix(b"data: ") for part in (begun + rest_of_body).split(b"\n\n") if part]
    terminators = [event for event in events if event == b"[DONE]"]
    shown: list[JsonObject] = [orjson.loads(event) for event in events if event != b"[DONE]"]
    assert ended_well
    assert len(terminators) == (0 if path.startswith(("/v4", "/v5")) else 1)
    said = list(choices(shown))
    assert {each["index"] for each in said[:4]} == {0, 1, 2, 3}
    assert sorted(str(each["index"]) for each in said if each["finish_reason"] == "stop") == list("0123")
    assert [frame["usage"] for frame in shown if frame.get("usage")] == [usage(2, 8)]
    assert len(served.vendor.requests) == 4


async def test_03_scoring_requests_of_token_lists_reach_native_completions_unchanged(served: Rig) -> None:
    asked: JsonObject = {"prompt": [[1, 2], [3]], "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 0}

    def scores(count: int) -> JsonObject:
        numbers: list[JsonValue] = [None, *[-0.5] * count]
        top: JsonObject = {"t": -0.5}
        tops: list[JsonValue] = [None, *[top] * count]
        return {"tokens": ["t"] * (count + 1), "token_logprobs": numbers, "top_logprobs": tops}

    # The order is wrong on purpose: the harness sorts by index, other clients do not.
    served.vendor.answer(whole(choice("t t", 1, "length", scores(1)), choice("t t t", 0, "length", scores(2))))
    answer = await served.post(OPENAI, {"model": "vllm/m", **asked, "seed": 1234})
    assert calls(served) == [{"model": "m", **asked, "seed": 1234}]
    first, second = choices([answer.json()])
    assert (first["index"], second["index"]) == (0, 1)
    for each, length in ((first, 2), (second, 1)):
        found = each["logprobs"]
        assert isinstance(found, dict)
        assert [len(values) for values in found.values() if isinstance(values, list)] == [length + 1] * 4
        assert (found["token_logprobs"], found["top_logprobs"]) == (
            [None] + [-0.5] * length,
            [None] + [{"t": -0.5}] * length,
        )
    for model in ("talker/m", "openai/gpt-4o", "single/m"):
        refused = await served.post(OPENAI, {"model": model, **asked})
        assert (refused.status, refused.error()["param"]) == (400, "echo")
    assert len(calls(served)) == 1


async def test_04_scoring_alone_is_for_those_who_score_prompts(served: Rig) -> None:
    scored: JsonObject = {"tokens": ["hi"], "token_logprobs": [None], "top_logprobs": [None], "text_offset": [0]}
    served.vendor.answer(whole(choice("hi", 0, "length", scored), counts=usage(1, 0)))
    wanted: JsonObject = {"echo": True, "max_tokens": 0, "logprobs": 5}
    answer = await served.post(OPENAI, ask("vllm/m", **wanted))
    assert calls(served) == [{"model": "m", "prompt": "hi", **wanted}]
    assert list(choices([answer.json()])) == [choice("hi", 0, "length", scored)]
    for model in ("single/m", "talker/m", "sglang/m", "openai/gpt-4o", "claude/m"):
        refused = await served.post(OPENAI, ask(model, **wanted))
        assert (refused.status, refused.error()["param"]) == (400, "echo"), model
    assert len(calls(served)) == 1


@pytest.mark.parametrize("path", [path for path in PATHS if path != PAIS])  # a limit of 0 is a 422 there
@pytest.mark.parametrize("stream", [False, True])
async def test_05_an_echo_alone_of_a_chat_vendor_is_answered_without_it(served: Rig, path: str, stream: bool) -> None:
    body = ask("talker/m", prompt=["hi there", "ho"], echo=True, max_tokens=0, stream=stream)
    answer = await served.post(path, body)
    assert (answer.status, texts(answer), calls(served)) == (200, {0: "hi there", 1: "ho"}, [])
    shown = frames(answer) if stream else [answer.json()]
    assert [each["finish_reason"] for each in choices(shown)] == ["length", "length"]
    # The count is an estimate, and the usage says so. The head of a stream has been sent before.
    assert emulated(answer) == ("echo" if stream else "echo, usage")
    (record,) = await served.finished(1)
    assert record.usage is not None
    assert (record.usage.prompt_tokens, record.usage.completion_tokens, record.usage.estimated) == (3, 0, True)
    if not stream:
        assert answer.json()["usage"] == {**usage(3, 0), "estimated": True}


async def test_06_an_echo_with_log_probabilities_passes_sglang_over(served: Rig) -> None:
    refused = await served.post(OPENAI, ask("sglang/m", echo=True, logprobs=1))
    assert (refused.status, refused.error()["param"], calls(served)) == (400, "echo", [])
    served.vendor.answer(whole(choice("hi you")))
    answer = await served.post(OPENAI, ask("scored", echo=True, logprobs=1))
    assert answer.headers["x-dragoman-deployment"] == "vllm/m/default"


@pytest.mark.parametrize("model", ["talker/m", "claude/m", "single/m"])
async def test_07_an_echo_of_token_ids_needs_a_vendor_that_knows_their_text(served: Rig, model: str) -> None:
    refused = await served.post(OPENAI, ask(model, prompt=[1, 2], echo=True))
    assert (refused.status, refused.code, refused.error()["param"]) == (400, "unsupported_parameter", "echo")
    assert calls(served) == []


@pytest.mark.parametrize("path", PATHS)
async def test_08_an_echoed_prompt_comes_once_in_each_choices_first_frame(served: Rig, path: str) -> None:
    served.vendor.default = streamed("one", " two")
    answer = await served.post(path, ask("single/m", prompt=["P ", "Q "], n=2, echo=True, stream=True))
    assert emulated(answer) == "echo, prompt, n"
    prompts = {0: "P ", 1: "P ", 2: "Q ", 3: "Q "}
    assert texts(answer) == {index: f"{prompt}one two" for index, prompt in prompts.items()}
    begun: dict[JsonValue, JsonValue] = {}
    for each in choices(frames(answer)):
        begun.setdefault(each["index"], each["text"])
    assert begun == {index: f"{prompt}one" for index, prompt in prompts.items()}


async def test_09_a_limit_of_nothing_is_openais_and_no_chats(served: Rig) -> None:
    served.vendor.answer(whole(choice("", 0, "length"), counts=usage(1, 0)))
    answer = await served.post(OPENAI, ask("both/m", max_tokens=0))
    assert calls(served)[0]["max_tokens"] == 0
    assert list(choices([answer.json()])) == [choice("", 0, "length")]
    for path, model, status in ((OPENAI, "talker/m", 400), (OPENAI, "claude/m", 400), (PAIS, "both/m", 422)):
        refused = await served.post(path, ask(model, max_tokens=0))
        assert (refused.status, refused.error()["param"]) == (status, "max_tokens")
    assert len(calls(served)) == 1


def ranked(received: Received) -> Script:
    assert sent(received)["n"] == 3
    lists = ([-0.1, -0.2, -3.0], [-0.9, -0.9], [-1.0] * 10)
    return whole(
        *(
            choice("abc"[index], index, logprobs={"tokens": ["x"] * len(numbers), "token_logprobs": [*numbers]})
            for index, numbers in enumerate(lists)
        ),
        counts=usage(3, 15),
    )


async def test_16_best_of_is_chosen_here_where_the_vendor_would_ignore_it(served: Rig) -> None:
    served.vendor.default = ranked
    answer = await served.post(OPENAI, ask("vllm/m", best_of=3))
    (body,) = calls(served)
    assert "best_of" not in body
    assert "logprobs" in body
    assert list(choices([answer.json()])) == [choice("b")]
    assert (answer.json()["usage"], emulated(answer)) == (usage(3, 15), "best_of")
    for model in ("router/m", "talker/m", "claude/m"):
        refused = await served.post(OPENAI, ask(model, best_of=3))
        assert (refused.status, refused.error()["param"]) == (400, "best_of")


async def test_17_an_empty_prompt_is_for_those_who_continue_text(served: Rig) -> None:
    served.vendor.answer(whole(choice("Once")))
    await served.post(OPENAI, ask("both/m", prompt=""))
    assert calls(served)[0]["prompt"] == ""
    for model in ("talker/m", "claude/m"):
        refused = await served.post(OPENAI, ask(model, prompt=""))
        assert (refused.status, refused.code, refused.error()["param"]) == (400, "invalid_value", "prompt")
    assert len(calls(served)) == 1


@pytest.mark.parametrize("prompt", [[1, 2, 3], [[1], [2]]])
async def test_21_token_ids_are_refused_by_those_who_take_only_text(served: Rig, prompt: JsonValue) -> None:
    for model in ("talker/m", "claude/m", "router/m", "openai/gpt-4o"):
        refused = await served.post(OPENAI, ask(model, prompt=prompt))
        assert (refused.status, refused.code) == (400, "unsupported_parameter")
        assert refused.error()["param"] == "prompt"
    assert calls(served) == []


async def test_52_candidates_of_one_seed_get_seeds_of_their_own(served: Rig) -> None:
    served.vendor.default = either(lambda body: f"seed {body['seed']}")
    answer = await served.post(OPENAI, ask("single/m", prompt=["a", "b"], n=2, seed=7))
    assert texts(answer) == {0: "seed 7", 1: "seed 8", 2: "seed 7", 3: "seed 8"}
    last = await served.post(OPENAI, ask("single/m", n=2, seed=2**63 - 1))
    assert texts(last) == {0: f"seed {2**63 - 1}", 1: "seed 0"}


async def test_53_one_failed_call_fails_the_whole_request(served: Rig) -> None:
    served.vendor.answer(whole(choice("good")), error(500, "no"), (Hang(),))
    answer = await served.post(OPENAI, ask("single/m", n=3))
    assert (answer.status, answer.code) == (502, "upstream_error")
    assert b"good" not in answer.body
    await asyncio.gather(*(received.gone.wait() for received in served.vendor.requests[2:]))


@pytest.mark.parametrize(("fingerprints", "shown"), [("ab", None), ("aa", "a")])
async def test_54_a_fingerprint_is_shown_where_calls_agree(served: Rig, fingerprints: str, shown: str | None) -> None:
    served.vendor.answer(*(whole(choice("x"), system_fingerprint=each) for each in fingerprints))
    answer = await served.post(OPENAI, ask("single/m", n=2))
    assert answer.json().get("system_fingerprint") == shown


# Names, defaults and tools --------------------------------------------------------------------------------------------


async def test_46_a_third_segment_is_a_deployment_where_there_is_one(served: Rig) -> None:
    answer = json_answer(200, {"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}]})
    served.vendor.default = answer
    found = await served.post(SCALE_V4, ask("openai/gpt-x/my-deployment"))
    assert (found.status, calls(served)[0]["model"]) == (200, "gpt-x-prod")
    assert found.headers["x-dragoman-deployment"] == "openai/gpt-x/my-deployment"
    # `openai/*` is configured: the vendor decides on any name behind it.
    await served.post(SCALE_V4, ask("openai/gpt-y/my-deployment"))
    assert calls(served)[1]["model"] == "gpt-y/my-deployment"
    missing = await served.post(SCALE_V4, ask("nobody/gpt-y/my-deployment"))
    assert (missing.status, missing.code) == (404, "model_not_found")


async def test_50_pais_own_temperature_is_a_wish_and_the_clients_a_word(served: Rig) -> None:
    served.vendor.default = json_answer(
        200, {"choices": [{"index": 0, "message": {"content": "x"}, "finish_reason": "stop"}]}
    )
    for model, given in (("openai/gpt-4o", 0), ("openai/o3", None)):
        assert (await served.post(PAIS, ask(model))).status == 200
        assert calls(served)[-1].get("temperature") == given
    refused = await served.post(PAIS, ask("openai/o3", temperature=0))
    assert (refused.status, refused.error()["param"], len(calls(served))) == (422, "temperature", 2)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
async def test_59_tools_on_a_text_path_show_as_an_extra(served: Rig, path: str, stream: bool) -> None:
    call: JsonObject = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message: JsonObject = {"role": "assistant", "content": None, "tool_calls": [{**call, "index": 0}]}
    ended: JsonObject = {"index": 0, "finish_reason": "tool_calls"}
    if stream:
        gained: JsonObject = {"choices": [{**ended, "delta": message, "finish_reason": None}]}
        script = sse_answer([*data_frames(gained, {"choices": [{**ended, "delta": {}}]}), DONE])
    else:
        script = json_answer(200, {"choices": [{**ended, "message": message}], "usage": usage(3, 2)})
    served.vendor.answer(script)
    answer = await served.post(path, ask("openai/gpt-4o", tools=TOOLS, stream=stream))
    assert (await served.vendor.received(1))[0].path == CHAT
    *_, last = choices(frames(answer) if stream else [answer.json()])
    assert (last["text"], last["tool_calls"]) == ("", [call])
    if path == SCALE_V4:
        assert last["finish_reason"] == "tool_calls"
    else:
        assert (last["finish_reason"], last["native_finish_reason"]) == ("stop", "tool_calls")
