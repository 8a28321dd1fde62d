"""F18, F31, F33, F34, F36 to F39 and F43: faults in the middle of a response."""

import re
import time
from collections.abc import Callable, Mapping
from typing import Final, cast

import orjson

from providers.framing.parse_sse import MAX_EVENT
from providers.json_types import JsonObject, JsonValue
from proxy.upstream.transport import MAX_BODY
from tests.faults.check_answers import SURFACES, broken, choices, committed, fails_over, frames, good, refusal
from tests.faults.fault_rig import TABLE, Rig, ok
from tests.faults.memory import growth
from tests.faults.registry import fault, single_fault
from tests.proxy.kit.raw_client import Answer
from tests.support.http_scripts import LAST_CHUNK, body_answer, chunk, head, sse_answer
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Delay, Hang, Loop, Send

FRAMES: Final = completion_frames(["one", "two"])
CONTENT, MORE, FINISH, USAGE, DONE = FRAMES
START: Final = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))
JSON_START: Final = Send(head(200, [("content-type", "application/json"), ("transfer-encoding", "chunked")]))
ERROR: Final = b'data: {"error":{"message":"engine lost","type":"server_error","code":null}}\n\n'


async def breaks(rig: Rig, rest: bytes, code: str, kind: str) -> None:
    """Assert on every surface that `rest` after the first content breaks the stream, without another attempt."""
    for path in SURFACES.values():
        rig.forget()
        before = len(rig.one.requests), await rig.series("stream_aborts")
        answer = await committed(rig, (START, Send(chunk(CONTENT)), Send(chunk(rest)), Hang()), path)
        assert broken(answer) == code
        assert [choice["text"] for choice in choices(frames(answer))] == ["one", "two"]
        assert b"engine lost" in answer.body or ERROR not in rest
        await rig.one.requests[-1].gone.wait()
        *_, line = await rig.logged()
        assert (line["status"], line["outcome"], line["code"]) == (200, "truncated", code)
        assert line["usage_estimated"] is True
        name = f"stream_aborts_total model=one/m reason={kind} side=upstream"
        assert (await rig.series("stream_aborts"))[name] == before[1].get(name, 0) + 1
        assert len(rig.one.requests) == before[0] + 1
    assert rig.two.requests == []


@fault(31)
async def error_in_the_middle_of_an_answer(rig: Rig) -> None:
    if rig.stream:
        await breaks(rig, MORE + ERROR + FINISH + DONE, "upstream_error", "server")
    else:
        script = sse_answer([CONTENT, MORE, ERROR, FINISH, DONE])
        await fails_over(rig, script, 502, "upstream_error", "server", calls=2)


@fault(33)
async def half_an_event_between_good_ones(rig: Rig) -> None:
    half = FINISH[: len(FINISH) // 2] + b"\n\n"
    if rig.stream:
        await breaks(rig, MORE + half + FINISH + DONE, "malformed_upstream", "malformed")
    else:
        script = sse_answer([CONTENT, MORE, half, FINISH, DONE])
        await fails_over(rig, script, 502, "malformed_upstream", "malformed")


OTHERS: Final = (b"1", b"-1", b"2.5")


@fault(33)
async def text_for_a_choice_that_nobody_asked_for(rig: Rig) -> None:
    for number in OTHERS:
        other = MORE.replace(b'"index":0', b'"index":%b' % number).replace(b"two", b"three")
        if rig.stream:
            await breaks(rig, MORE + other + FINISH + DONE, "malformed_upstream", "malformed")
        else:
            script = sse_answer([CONTENT, MORE, other, FINISH, DONE])
            await fails_over(rig, script, 502, "malformed_upstream", "malformed")
            whole = orjson.dumps(completion("hello", "m"))
            choice = whole[whole.index(b'{"index"') : whole.index(b'],"usage"')]
            both = whole.replace(choice, choice + b"," + choice.replace(b":0", b":" + number, 1))
            script = body_answer(200, both, [("content-type", "application/json")])
            await fails_over(rig, script, 502, "malformed_upstream", "malformed")


@fault(18)
async def text_after_the_end_of_its_choice(rig: Rig) -> None:
    """The client may have received the end already. It must see that the response is broken."""
    if not rig.stream:
        script = sse_answer([CONTENT, FINISH, MORE, USAGE, DONE])
        return await fails_over(rig, script, 502, "malformed_upstream", "malformed")
    for path in SURFACES.values():
        rig.forget()
        answer = await committed(rig, (START, Send(chunk(CONTENT)), Send(chunk(FINISH + MORE + USAGE + DONE))), path)
        parts = frames(answer)
        assert not answer.whole
        assert b"[DONE]" not in answer.events()
        assert cast(JsonObject, parts[-1]["error"])["code"] == "malformed_upstream"
        assert "two" not in [choice["text"] for choice in choices(parts)]
        *_, line = await rig.logged()
        assert (line["outcome"], line["code"]) == ("truncated", "malformed_upstream")


HALVES: Final = [data.replace(b"two", half) for data, half in ((MORE, rb"a\ud83d"), (MORE, rb"\ude00b"))]


@fault(34)
async def half_a_character_in_each_of_two_events(rig: Rig) -> None:
    for path in SURFACES.values():
        for size in (None, 1):
            rig.one.answer(sse_answer([CONTENT, *HALVES, MORE, FINISH, USAGE, DONE], size))
            answer = await rig.ask(path=path)
            assert (answer.status, answer.whole) == (200, True)
            found = choices(frames(answer) if rig.stream else [answer.json()])
            assert "".join(str(choice["text"]) for choice in found) == "onea\U0001f600btwo"
    assert {line["outcome"] for line in await rig.logged()} == {"ok"}
    alone = MORE + HALVES[1] + FINISH + DONE
    if rig.stream:
        await breaks(rig, alone, "malformed_upstream", "malformed")
    else:
        await fails_over(rig, sse_answer([CONTENT, alone]), 502, "malformed_upstream", "malformed")


SPOILT: Final = {b"h\xffi": "h\ufffdi", b"h\xe2\x82i": "h\ufffdi", b"\xc3": "\ufffd", b"h\xc3\xa9": "h\u00e9"}


@fault(34)
async def bytes_that_are_no_utf8(rig: Rig) -> None:
    for said, shown in SPOILT.items():
        for size in (None, 1):
            whole = orjson.dumps(completion("TEXT", "m")).replace(b"TEXT", said)
            parts = [frame.replace(b"TEXT", said) for frame in completion_frames(["TEXT"])]
            json = body_answer(200, whole, [("content-type", "application/json")])
            rig.one.answer(sse_answer(parts, size) if rig.stream else json)
            answer = await rig.ask()
            answer.body.decode("utf-8")
            assert good(answer, rig.stream) == shown
    assert {line["outcome"] for line in await rig.logged()} == {"ok"}


@fault(36)
async def other_kind_of_answer_than_was_asked_for(rig: Rig) -> None:
    for path in SURFACES.values():
        rig.one.answer(ok(not rig.stream, "hello"))
        answer = await rig.ask(path=path)
        assert (answer.status, answer.whole) == (200, True)
        found = choices(frames(answer) if rig.stream else [answer.json()])
        assert "".join(str(choice["text"]) for choice in found) == "hello"
        assert [choice["finish_reason"] for choice in found if choice["finish_reason"]] == ["stop"]
        assert (answer.events()[-1:] == [b"[DONE]"]) is (rig.stream and not path.startswith(("/v4", "/v5")))
    for line in await rig.logged():
        assert (line["outcome"], line["completion_tokens"]) == ("ok", 2)
        assert "usage_estimated" not in line


@fault(37)
async def event_without_end(rig: Rig) -> None:
    """The limit is 16 MiB for an event, because images and embeddings come in one, and 32 MiB for a non-streaming
    response."""
    cap, start = (MAX_EVENT, START) if rig.stream else (MAX_BODY, JSON_START)
    flood = Loop((Send(chunk(b"x" * 65_536)),))
    with growth() as grown:
        if rig.stream:
            answer = await committed(rig, (start, Send(chunk(CONTENT)), Send(chunk(b"data: ")), flood))
            assert broken(answer) == "malformed_upstream"
        else:
            rig.one.answer((start, flood))
            assert refusal(await rig.ask()) == (502, "malformed_upstream")
    assert grown.bytes <= 2.5 * cap
    await rig.one.requests[0].gone.wait()
    (line,) = await rig.logged()
    assert line["outcome"] == ("truncated" if rig.stream else "upstream_error")
    await fails_over(rig, (start, Send(chunk(b'data: "')), flood), 502, "malformed_upstream", "malformed")


@fault(38)
async def a_byte_a_chunk(rig: Rig) -> None:
    text = "x" * 200
    body = b"".join(completion_frames([text] * 130)) if rig.stream else orjson.dumps(completion(text * 249, "m"))
    assert len(body) >= 50_000
    single = b"".join(chunk(body[at : at + 1]) for at in range(len(body)))
    sends = [Send(single[at : at + 6000]) for at in range(0, len(single), 6000)]
    rig.one.answer((START if rig.stream else JSON_START, *sends, Send(LAST_CHUNK)))
    before = time.process_time()
    answer = await rig.ask()
    assert time.process_time() - before < 1.0
    assert good(answer, rig.stream) == text * (130 if rig.stream else 249)


def _lines(join: bytes) -> Callable[[bytes], bytes]:
    return lambda stream: stream.replace(b"\n", join)


SPELLINGS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "LF": lambda stream: stream,
    "CRLF": _lines(b"\r\n"),
    "CR": _lines(b"\r"),
    "byte order mark": lambda stream: b"\xef\xbb\xbf" + stream,
    "data in two lines": lambda stream: re.sub(rb'("choices":)', rb"\ndata: \1", stream),
    "no space": lambda stream: stream.replace(b"data: ", b"data:"),
    "comments": lambda stream: b": hello\n\n" + stream.replace(b"\n\n", b"\n: ping\n\n:\n\n"),
    "unknown fields": lambda stream: stream.replace(b"data: ", b"id: 7\nretry: 10\nfoo: bar\nbar\ndata: "),
    "more blank lines": lambda stream: b"\n\n" + stream.replace(b"\n\n", b"\n\n\n\n"),
}


def essence(answer: Answer) -> list[JsonValue]:
    """Return the frames without the fields that may differ between responses."""
    assert (answer.status, answer.whole, answer.events()[-1]) == (200, True, b"[DONE]")
    return [{key: value for key, value in frame.items() if key not in ("id", "created")} for frame in frames(answer)]


@single_fault(39)
async def every_spelling_of_a_stream_cut_everywhere(rig: Rig) -> None:
    async def essence_of(stream: bytes | list[bytes], size: int | None = None) -> list[JsonValue]:
        rig.one.answer(sse_answer(stream, size))
        return essence(await rig.ask(stream=True, stream_options={"include_usage": True}))

    usual = await essence_of(FRAMES)
    assert len(usual) == 4
    for spell in SPELLINGS.values():
        for size in (1, 2, 7, None):
            assert await essence_of(spell(b"".join(FRAMES)), size) == usual
    spelt = SPELLINGS["CRLF"](b"".join(FRAMES))
    # Cut from the first event over its end into the second. The tests of the decoders cut at every position.
    for at in range(1, len(CONTENT) + 20):
        assert await essence_of([spelt[:at], spelt[at:]]) == usual
    assert {line["outcome"] for line in await rig.logged()} == {"ok"}


PATIENT: Final = TABLE.replace("total: 4s, progress: 1500ms", "total: 1s, progress: 800ms")
DRIP: Final = Loop((Send(chunk(b" ")), Delay(0.02)))


@fault(43, PATIENT)
async def trickle(rig: Rig) -> None:
    """Bytes keep coming, so no idle limit ends the request. The deadline of a non-streaming response does, or a
    stream's limit for its first content."""
    if rig.stream:
        answer = await committed(rig, (START, Send(chunk(CONTENT)), Send(chunk(b":")), DRIP))
        assert broken(answer) == "upstream_timeout"
        assert b"no content for 0.8 s" in answer.body
    rig.one.answer((START, DRIP) if rig.stream else (JSON_START, DRIP))
    assert refusal(await rig.ask()) == (504, "upstream_timeout")
    for received in rig.one.requests:
        await received.gone.wait()
    assert {line["outcome"] for line in await rig.logged()} == {"timeout"}
    assert await rig.attempts("one/m/default", "timeout") == len(rig.one.requests)
    assert rig.two.requests == []
