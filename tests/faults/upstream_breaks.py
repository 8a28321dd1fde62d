"""F13 to F18: responses that break off, stall, or lack their end."""

import asyncio
from collections.abc import Iterable
from typing import Final, cast
from unittest.mock import patch

from providers.json_types import JsonObject
from tests.faults.check_answers import COMPLETIONS, SURFACES, broken, choices, committed, frames, good
from tests.faults.fault_rig import TABLE, Rig, ok
from tests.faults.registry import fault, single_fault
from tests.faults.request_outcomes import (
    ONE,
    ExpectedEnd,
    assert_accounted,
    assert_answered_elsewhere,
    assert_fails_alone,
    consecutive_failures,
    failed_attempts,
    unspent_retries,
)
from tests.proxy.kit.raw_client import Answer
from tests.support.http_scripts import LAST_CHUNK, chunk, head, json_answer
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Delay, Fin, Hang, Loop, Rst, Script, Send, Step

TEXTS: Final = ["one", "two", "three"]
*CONTENT, FINISH, USAGE, DONE = completion_frames(TEXTS)
FIRST: Final = b"".join(CONTENT)
CHUNKED: Final = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))
BARE: Final = Send(head(200, [("content-type", "text/event-stream")]))
HALF: Final = (Send(head(200, [("content-type", "application/json"), ("content-length", "100")])), Send(b'{"choices":'))
PATIENT: Final = TABLE.replace("idle: 500ms, ", "idle: 400ms, ").replace("progress: 1500ms", "progress: 600ms")

CUT: Final = ExpectedEnd(502, "upstream_error", "truncated")
STALLED: Final = ExpectedEnd(504, "upstream_timeout", "timeout", retry="false")


async def breaks(rig: Rig, script: Script, end: ExpectedEnd, paths: Iterable[str] = SURFACES.values()) -> list[Answer]:
    """Assert on each surface that a committed stream ends in an error event, without its end and without another
    attempt."""
    answers, kind = [], end.attempt
    for path in paths:
        rig.forget()
        before = len(rig.one.requests)
        aborted = f"stream_aborts_total model=both reason={kind} side=upstream"
        aborts = (await rig.series("stream_aborts")).get(aborted, 0)
        answer = await committed(rig, script, path, "both")
        assert broken(answer) == end.code
        assert [choice["text"] for choice in choices(frames(answer))] == TEXTS
        assert answer.headers["x-dragoman-deployment"] == ONE
        line = (await rig.logged())[-1]
        assert (line["status"], line["code"]) == (200, end.code)
        assert line["outcome"] == ("timeout" if kind == "timeout" else "truncated")
        assert (line["completion_tokens"], line["usage_estimated"]) == (3, True)
        assert failed_attempts(line) == [(ONE, kind, None)]
        assert (await rig.series("stream_aborts"))[aborted] == aborts + 1
        assert len(rig.one.requests) == before + 1
        assert consecutive_failures(rig) == 1
        answers.append(answer)
    assert rig.two.requests == []
    assert unspent_retries(rig) == 10
    await assert_accounted(rig)
    return answers


async def ends(rig: Rig, *steps: Step) -> Answer:
    """Assert that a committed stream is complete: it counts as a success of its deployment, and the client sees no
    error."""
    answer = await committed(rig, steps)
    assert good(answer, stream=True) == "onetwothree"
    line = (await rig.logged())[-1]
    assert (line["outcome"], failed_attempts(line)) == ("ok", [])
    assert consecutive_failures(rig) == 0
    rig.forget()
    return answer


async def fails(rig: Rig, end: ExpectedEnd, script: Script) -> None:
    """Assert that a non-streaming response without its end fails, and that another deployment responds if there is
    one."""
    rig.one.default = script
    await assert_fails_alone(rig, end)
    await assert_answered_elsewhere(rig, end)
    assert unspent_retries(rig) == 10
    assert consecutive_failures(rig) == 2
    await rig.one.connected(0)


# F13 and F14: broken off ---------------------------------------------------------------------------------------------


@single_fault(13)
async def reset_within_a_stream(rig: Rig) -> None:
    await breaks(rig, (CHUNKED, Send(chunk(FIRST)), Rst()), CUT)
    await rig.one.connected(0)


@single_fault(13)
async def reset_within_a_body(rig: Rig) -> None:
    await fails(rig, CUT, (*HALF, Rst()))


@single_fault(14)
async def end_of_a_stream_that_nothing_delimits(rig: Rig) -> None:
    await breaks(rig, (BARE, Send(FIRST), Fin()), CUT)


@single_fault(14)
async def end_within_an_event_of_a_stream_that_nothing_delimits(rig: Rig) -> None:
    await breaks(rig, (BARE, Send(FIRST), Send(FINISH[:-9]), Fin()), CUT)


@single_fault(14)
async def end_of_a_chunked_stream_without_its_terminator(rig: Rig) -> None:
    await breaks(rig, (CHUNKED, Send(chunk(FIRST)), Send(LAST_CHUNK)), CUT)


@single_fault(14)
async def end_within_a_body_that_nothing_delimits(rig: Rig) -> None:
    end = ExpectedEnd(502, "malformed_upstream", "malformed", 200, retry="false")
    start = head(200, [("content-type", "application/json")])
    await fails(rig, end, (Send(start), Send(b'{"choices":'), Fin()))


# F15: the message is whole, its framing is not -----------------------------------------------------------------------


@single_fault(15)
async def stream_that_is_whole_without_its_last_chunk(rig: Rig) -> None:
    for rest in (FINISH + USAGE + DONE, FINISH + USAGE, FINISH + DONE):
        for ending in (Fin(), Rst()):
            await ends(rig, CHUNKED, Send(chunk(FIRST)), Send(chunk(rest)), Delay(0.02), ending)
    await rig.one.connected(0)
    used = rig.one.requests[-1].connection
    assert good(await rig.ask(), stream=False) == "one"
    assert rig.one.requests[-1].connection == used + 1
    await assert_accounted(rig)


@single_fault(15)
async def stream_that_is_whole_and_that_nothing_delimits(rig: Rig) -> None:
    await ends(rig, BARE, Send(FIRST), Send(FINISH + USAGE + DONE), Fin())


@single_fault(15)
async def body_without_its_last_chunk(rig: Rig) -> None:
    start = head(200, [("content-type", "application/json"), ("transfer-encoding", "chunked")])
    await fails(rig, CUT, (Send(start), Send(chunk(json_bytes())), Fin()))


def json_bytes() -> bytes:
    """Return a good body."""
    (step,) = json_answer(200, completion("one"))
    return cast(Send, step).data.partition(b"\r\n\r\n")[2]


# F16: silence --------------------------------------------------------------------------------------------------------


@single_fault(16, PATIENT)
async def silence_within_a_stream(rig: Rig) -> None:
    for answer in await breaks(rig, (CHUNKED, Send(chunk(FIRST)), Hang()), STALLED, [COMPLETIONS]):
        assert b"sent nothing for 0.4 s" in answer.body
    await rig.one.connected(0)


@single_fault(16, PATIENT)
async def comments_for_ever(rig: Rig) -> None:
    pings = Loop((Send(chunk(b": ping\n\n")), Delay(0.02)))
    for answer in await breaks(rig, (CHUNKED, Send(chunk(FIRST)), pings), STALLED, [COMPLETIONS]):
        assert b"sent no content for 0.6 s" in answer.body
        assert b"ping" not in answer.body
    await rig.one.connected(0)


@single_fault(16, PATIENT)
async def silence_within_a_body(rig: Rig) -> None:
    await fails(rig, STALLED, (*HALF, Hang()))


# F17 and F18: more or less than there should be ----------------------------------------------------------------------


@single_fault(17)
async def finish_and_then_silence(rig: Rig) -> None:
    with patch("proxy.upstream.vendor_stream.TAIL_WAIT", 0.05):
        for rest in (FINISH, FINISH + USAGE):
            await ends(rig, CHUNKED, Send(chunk(FIRST)), Send(chunk(rest)), Hang())
            await rig.one.requests[-1].gone.wait()
    guessed, told = await rig.logged()
    assert guessed["usage_estimated"] is True
    assert "usage_estimated" not in told
    await assert_accounted(rig)


@single_fault(17)
async def silence_after_a_whole_body(rig: Rig) -> None:
    rig.one.answer((*ok(stream=False, text="one"), Hang()))
    assert good(await rig.ask(), stream=False) == "one"


@single_fault(18)
async def finish_twice_and_bytes_after_the_end(rig: Rig) -> None:
    again = completion_frames(["more"], finish_reason="length")
    for rest in (
        FINISH + FINISH + DONE,
        FINISH + b"".join(completion_frames([""], finish_reason="length")),
        FINISH + USAGE + DONE + b"".join(again) + b"data: {",
    ):
        for size in (len(rest), 16):
            pieces = [Send(chunk(rest[at : at + size])) for at in range(0, len(rest), size)]
            answer = await ends(rig, CHUNKED, Send(chunk(FIRST)), *pieces, Send(LAST_CHUNK))
            assert answer.body.count(b"[DONE]") == 1
            assert b"more" not in answer.body
    await assert_accounted(rig)


@fault(18)
async def a_second_answer_behind_the_first(rig: Rig) -> None:
    stray = b"".join(cast(Send, step).data for step in ok(rig.stream, "stray"))
    rig.one.answer((*ok(rig.stream, "one"), Send(stray)))
    for _ in range(3):
        assert good(await rig.ask(), rig.stream) == "one"
        await asyncio.sleep(0.01)
    assert {cast(JsonObject, request.json())["model"] for request in rig.one.requests} == {"m"}
