"""The cases about stops, usage and the ends of responses. A test's name has the numbers of its cases, from 1 to 76."""

import pytest

from providers.completion import Usage
from providers.emulation.estimate_missing_usage import BYTES_PER_TOKEN
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.request.heavy_body import MANY_COMMAS
from tests.proxy.kit.api_cases import (
    FIREWORKS,
    OPENAI,
    PATHS,
    SCALE_V4,
    SCALE_V5,
    TABLE,
    calls,
    choice,
    choices,
    emulated,
    frames,
    pieces,
    streamed,
    texts,
    usage,
    whole,
)
from tests.proxy.kit.gateway_rig import AUTH, Rig, ask, gateway_fixture
from tests.proxy.kit.raw_client import Answer, connected, request
from tests.support.http_scripts import DONE, data_frames, json_answer, sse_answer, sse_close_delimited, sse_unterminated
from tests.support.vendor_script import Fin, Hang, Script

FIVE: JsonObject = {"stop": ["v", "w", "x", "y", "END"]}
"""More stops than most vendors accept. The gateway has to find the last one."""

WITH_USAGE: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}
BOTH = pytest.mark.parametrize("stream", [False, True])


served = gateway_fixture(TABLE)


def finishes(answer: Answer) -> list[JsonValue]:
    bodies = frames(answer) if answer.body.startswith(b"data:") else [answer.json()]
    return [each["finish_reason"] for each in choices(bodies) if each["finish_reason"]]


# Stops ---------------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("path", PATHS)
async def test_24_more_stops_than_a_vendor_takes_are_found_in_its_text(served: Rig, path: str, stream: bool) -> None:
    # By the page more than 4 get a 400 except on Private AI Services. Continue sends 10, so all surfaces take up to 32.
    served.vendor.answer(streamed("one ", "END two"))
    answer = await served.post(path, ask("both/m", **FIVE, stream=stream))
    assert (answer.status, texts(answer), finishes(answer)) == (200, {0: "one "}, ["stop"])
    assert "stop" in str(emulated(answer))
    (body,) = calls(served)
    assert body["stop"] == ["v", "w", "x", "y"]
    refused = await served.post(path, ask("both/m", stop=[f"s{number}" for number in range(33)]))
    assert (refused.status, refused.error()["param"]) == (400 if path in (OPENAI, FIREWORKS) else 422, "stop")


@BOTH
async def test_27_a_stop_in_pieces_never_shows_its_beginning(served: Rig, stream: bool) -> None:
    served.vendor.answer(streamed("one E", "N", "D two"), streamed("one E", "N", "X two", " EN"))
    found = await served.post(OPENAI, ask("both/m", **FIVE, stream=stream))
    missed = await served.post(OPENAI, ask("both/m", **FIVE, stream=stream))
    assert texts(found) == {0: "one "}
    if stream:
        assert all("E" not in str(each["text"]) for each in choices(frames(found)))
    assert texts(missed) == {0: "one ENX two EN"}


@BOTH
async def test_28_a_stop_cuts_text_and_arrays_and_ends_the_upstream(served: Rig, stream: bool) -> None:
    words = ["one", " ", "E", "ND", " two"]
    gains = [
        choice(word, 0, None, {"tokens": [word], "token_logprobs": [-0.5], "top_logprobs": [{word: -0.5}]})
        for word in words
    ]
    served.vendor.answer(sse_unterminated(pieces(*gains)[: len(words)], Hang()))
    answer = await served.post(OPENAI, ask("both/m", **FIVE, logprobs=1, stream=stream))
    assert (answer.whole, texts(answer), finishes(answer)) == (True, {0: "one "}, ["stop"])
    found = [each["logprobs"] for each in choices(frames(answer) if stream else [answer.json()]) if each["logprobs"]]
    tokens = [token for part in found if isinstance(part, dict) for token in _list(part["tokens"])]
    assert tokens == ["one", " "]
    await served.vendor.requests[0].gone.wait()
    (record,) = await served.finished(1)
    # The vendor reports its count at the end of its response, which the gateway has not read.
    assert record.usage is not None
    assert (record.usage.completion_tokens, record.usage.estimated) == (1, True)


def _list(value: JsonValue) -> list[JsonValue]:
    assert isinstance(value, list)
    return value


@BOTH
async def test_29_a_stop_that_did_not_match_is_not_appended(served: Rig, stream: bool) -> None:
    keep: JsonObject = {"include_stop_str_in_output": True, "stream": stream}
    cut = pieces(choice("one two", ended=None), choice("", ended="length"))
    ended = pieces(choice("one END two", ended=None), choice(""))
    served.vendor.answer(sse_answer(cut), sse_answer(ended))
    limited = await served.post(OPENAI, ask("single/m", stop="END", **keep))
    stopped = await served.post(OPENAI, ask("single/m", stop="END", **keep))
    assert (texts(limited), finishes(limited)) == ({0: "one two"}, ["length"])
    assert (texts(stopped), finishes(stopped)) == ({0: "one END"}, ["stop"])


@BOTH
async def test_29_a_stop_that_the_vendor_names_is_appended_only_where_it_stopped(served: Rig, stream: bool) -> None:
    def message(reason: str, stop: str | None) -> Script:
        said: JsonObject = {"stop_reason": reason, "stop_sequence": stop}
        counts: JsonObject = {"input_tokens": 3, "output_tokens": 2}
        start: JsonObject = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "usage": counts}
        if not stream:
            return json_answer(200, {**start, **said, "content": [{"type": "text", "text": "one "}]})
        block: JsonObject = {"type": "text", "text": ""}
        events: list[JsonObject] = [
            {"type": "message_start", "message": {**start, "content": [], "stop_reason": None, "stop_sequence": None}},
            {"type": "content_block_start", "index": 0, "content_block": block},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "one "}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": said, "usage": counts},
            {"type": "message_stop"},
        ]
        return sse_answer(data_frames(*events))

    served.vendor.answer(message("max_tokens", None), message("stop_sequence", "END"))
    asked = ask("claude/m", stop="END", include_stop_str_in_output=True, stream=stream)
    limited, stopped = [await served.post(OPENAI, asked) for _ in range(2)]
    assert (texts(limited), finishes(limited)) == ({0: "one "}, ["length"])
    assert (texts(stopped), finishes(stopped)) == ({0: "one END"}, ["stop"])


# Text and usage ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", PATHS)
async def test_36_a_character_split_over_pieces_comes_whole(served: Rig, path: str) -> None:
    served.vendor.answer(sse_answer(pieces(choice("Hi 👋", ended=None), choice("")), 1))
    answer = await served.post(path, ask("both/m", stream=True))
    assert texts(answer) == {0: "Hi 👋"}
    assert answer.body.isascii()


@pytest.mark.parametrize(("model", "count"), [("both/m", 1), ("single/m", 6)])
async def test_38_usage_of_many_choices_comes_once_and_each_prompt_once(served: Rig, model: str, count: int) -> None:
    each = usage(2, 3) if count > 1 else usage(6, 18)
    gains = [choice("x", index) for index in range(6 // count)]
    served.vendor.default = sse_answer(pieces(*gains, counts=each))
    answer = await served.post(OPENAI, ask(model, prompt=["a", "b", "c"], n=2, **WITH_USAGE))
    shown = frames(answer)
    assert shown[-1]["choices"] == []
    assert [frame["usage"] for frame in shown] == [None] * (len(shown) - 1) + [usage(6, 18)]
    assert len(calls(served)) == count
    (record,) = await served.finished(1)
    # The vendor bills each prompt once for each candidate.
    assert (record.billed and record.billed.prompt_tokens) == (12 if count > 1 else None)


async def test_39_a_client_that_left_is_accounted_by_what_was_generated_for_it(served: Rig) -> None:
    served.vendor.answer(sse_unterminated(pieces(choice("twelve bytes", ended=None))[:1], Hang()))
    async with connected(served.port) as client:
        await client.send(request("POST", OPENAI, ask("both/m", **WITH_USAGE), AUTH))
        await client.head()
        await client.chunk()
        await client.leave()
        await served.vendor.requests[0].gone.wait()
    (record,) = await served.finished(1)
    assert (record.outcome, record.usage, record.chunks) == ("client_gone", Usage(1, 3, estimated=True), 1)
    assert sorted(served.series("tokens_total").values()) == [1, 3]


@pytest.mark.parametrize("model", ["both/m", "single/m"])
async def test_40_fireworks_reports_usage_on_the_last_finish_unasked(served: Rig, model: str) -> None:
    served.vendor.default = sse_answer(pieces(choice("x", ended=None), choice("")))
    answer = await served.post(FIREWORKS, ask(model, prompt=["a"], stream=True))
    *others, last = frames(answer)
    assert answer.events()[-1] == b"[DONE]"
    assert (last["usage"], finishes(answer)) == (usage(3, 2), ["stop"])
    assert all("usage" not in frame for frame in others)


@pytest.mark.parametrize("path", [SCALE_V4, SCALE_V5])
@pytest.mark.parametrize("options", [{}, WITH_USAGE])
async def test_41_scale_reports_usage_on_the_last_finish_and_ends(served: Rig, path: str, options: JsonObject) -> None:
    served.vendor.default = sse_answer(pieces(choice("x", ended=None), choice("")))
    answer = await served.post(path, ask("single/m", n=2, **{**options, "stream": True}))
    *others, last = frames(answer)
    assert b"[DONE]" not in answer.body
    assert answer.whole
    # Two calls of 3 prompt tokens each, for one prompt.
    assert (last["usage"], finishes(answer)) == (usage(3, 4), ["stop", "stop"])
    assert all(not frame.get("usage") for frame in others)


# Ends ----------------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("path", PATHS)
async def test_58_a_guided_answer_that_was_cut_is_given_as_it_is(served: Rig, path: str, stream: bool) -> None:
    def said(text: str, reason: str) -> Script:
        return sse_answer(pieces(choice(text, 0, reason))) if stream else whole(choice(text, 0, reason))

    schema: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    served.vendor.answer(said('{"a":', "length"), said('{"a":1}', "stop"), said('{"a":', "stop"))
    asked = ask("vllm/m", guided_json=schema, stream=stream)
    cut, good = [await served.post(path, asked) for _ in range(2)]
    assert (texts(cut), finishes(cut)) == ({0: '{"a":'}, ["length"])
    assert (texts(good), finishes(good)) == ({0: '{"a":1}'}, ["stop"])
    broken = await served.post(path, asked)
    if stream:
        assert (broken.whole, finishes(broken)) == (False, [])
        assert b"malformed_upstream" in broken.body
    else:
        assert (broken.status, broken.code) == (502, "malformed_upstream")


IN_DISGUISE: JsonObject = {"error": {"message": "it broke", "type": "server_error", "code": 500}}


@pytest.mark.parametrize("model", ["both/m", "single/m"])
@pytest.mark.parametrize("script", [json_answer(200, IN_DISGUISE), sse_answer(data_frames(IN_DISGUISE))])
async def test_66_an_error_within_a_200_is_no_answer(served: Rig, model: str, script: Script) -> None:
    served.vendor.default = script
    streaming = await served.post(OPENAI, ask(model, n=2, stream=True))
    assert (streaming.status, streaming.code) == (502, "upstream_error")
    if script[0] == json_answer(200, IN_DISGUISE)[0]:
        answer = await served.post(OPENAI, ask(model, n=2))
        assert (answer.status, answer.code) == (502, "upstream_error")


UNFINISHED = data_frames({"choices": [choice("one", ended=None)]})
COUNTED = data_frames({"choices": [], "usage": usage(3, 1)})


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "script",
    [
        sse_answer(UNFINISHED),
        sse_close_delimited(UNFINISHED),
        sse_answer([*UNFINISHED, DONE]),
        sse_answer([*UNFINISHED, *COUNTED, DONE]),
    ],
    ids=["end of the body", "end of the connection", "terminator", "usage and terminator"],
)
async def test_67_a_stream_without_a_finish_is_a_failure(served: Rig, path: str, script: Script) -> None:
    # By the page, usage or a terminator proves a clean end. Clients need the finish reason, and no vendor of the
    # profiles is known to leave it out, so its absence counts as a truncated stream, whatever else came.
    served.vendor.answer(script)
    answer = await served.post(path, ask("both/m", stream=True))
    assert b'"stop"' not in answer.body
    assert b"[DONE]" not in answer.body
    assert b"upstream_error" in answer.body
    assert answer.status == 502 or not answer.whole
    (record,) = await served.finished(1)
    assert record.attempts[0].outcome == "truncated"


@pytest.mark.parametrize("script", [sse_answer([]), sse_unterminated([b": hello\n\n"], Fin()), sse_answer([DONE])])
async def test_68_an_upstream_that_ends_before_any_text_costs_the_client_nothing(served: Rig, script: Script) -> None:
    served.vendor.answer(script)
    answer = await served.post(OPENAI, ask("both/m", stream=True))
    # An error status, and no header against a retry: nothing of the response was sent.
    assert (answer.status, answer.code, answer.whole) == (502, "upstream_error", True)
    assert "x-should-retry" not in answer.headers
    (record,) = await served.finished(1)
    assert record.first_content is None


async def test_69_a_clients_second_try_is_a_request_of_its_own(served: Rig) -> None:
    served.vendor.answer(json_answer(503, IN_DISGUISE), whole(choice("x")))
    first = await served.post(OPENAI, ask("both/m"))
    second = await served.post(OPENAI, ask("both/m"), {"x-stainless-retry-count": "1"})
    assert (first.status, second.status) == (503, 200)
    records = await served.finished(2)
    assert [record.status for record in records] == [503, 200]
    assert len({record.request_id for record in records}) == 2
    assert served.vendor.requests[1].header("x-stainless-retry-count") is None


@pytest.mark.parametrize("path", [path for path in PATHS if path not in (SCALE_V4, SCALE_V5)])
async def test_76_the_body_ends_with_the_terminator_and_the_connection_serves_on(served: Rig, path: str) -> None:
    # The vendor's connection stays open after its terminator; the client's body ends anyway.
    ended = sse_unterminated(pieces(choice("x", ended=None), choice("")), Hang())
    served.vendor.answer(ended, whole(choice("y")))
    async with connected(served.port) as client:
        await client.send(request("POST", path, ask("both/m", stream=True), AUTH))
        streaming = await client.answer()
        await client.send(request("POST", path, ask("both/m"), AUTH))
        again = await client.answer()
    assert (streaming.whole, streaming.events()[-1]) == (True, b"[DONE]")
    assert (again.status, texts(again)) == (200, {0: "y"})


async def test_the_prompt_of_a_heavy_stream_without_a_usage_counts_by_its_length(served: Rig) -> None:
    served.vendor.answer(sse_answer([pieces(choice("ab"))[0], DONE]))
    answer = await served.post(OPENAI, ask("both/m", prompt=[7] * (MANY_COMMAS + 2), stream=True))
    assert texts(answer) == {0: "ab"}
    (record,) = await served.finished(1)
    sent = len(served.vendor.requests[0].body)
    assert record.usage == Usage(-(-sent // BYTES_PER_TOKEN), 1, estimated=True)
