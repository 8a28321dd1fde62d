"""Streams through the gateway over real sockets: the client's 200 waits for content, and a broken stream looks
broken.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from providers.completion import TextRun
from providers.json_types import JsonValue
from proxy import deadlines
from proxy.surfaces.response.text import TextRenderer
from tests.proxy.kit.gateway_rig import AUTH, Rig, ask, gateway_fixture
from tests.proxy.kit.raw_client import Answer, RawClient, connected, request
from tests.support.http_scripts import (
    DONE,
    LAST_CHUNK,
    chunk,
    cut,
    data_frames,
    head,
    json_answer,
    size_of,
    sse_answer,
    sse_close_delimited,
    sse_unterminated,
)
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Delay, Fin, Hang, Loop, Rst, Script, Send, Until

FRAMES = completion_frames(["one", "two"])
CONTENT, MORE, FINISH, USAGE_FRAME, _ = FRAMES
START = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))
COMMENT = Send(chunk(b": ping\n\n"))
IN_BAND = b'data: {"error":{"message":"it broke","type":"server_error","code":null}}\n\n'

SURFACES = {
    "openai": "/v1/completions",
    "scale v4": "/v4/beta/completions",
    "scale v5": "/v5/completions",
    "fireworks": "/inference/v1/completions",
    "pais": "/api/v1/compatibility/openai/v1/completions",
}


served = gateway_fixture()


async def streamed(served: Rig, script: Script, model: str = "v/m", path: str = "/v1/completions") -> Answer:
    """Return the response to a streamed request whose vendor sends `script`."""
    served.vendor.answer(script)
    return await served.post(path, ask(model, stream=True))


async def streamed_after_commit(served: Rig, script: Script, path: str = "/v1/completions") -> Answer:
    """Do the same as `streamed`, but hold the script after two steps until the client has the first content."""
    gate = asyncio.Event()
    served.vendor.answer((*script[:2], Until(gate), *script[2:]))
    async with connected(served.port) as client:
        await client.send(request("POST", path, ask(stream=True), AUTH))
        status, headers = await client.head()
        first = await client.chunk()
        gate.set()
        rest, whole = await client.chunks()
    return Answer(status, headers, first + rest, whole)


async def begin(served: Rig, client: RawClient, script: Script, model: str = "v/m", stream: bool = True) -> None:
    """Send a request whose vendor sends `script`, and wait until it has arrived there."""
    served.vendor.answer(script)
    before = len(served.vendor.requests)
    await client.send(request("POST", "/v1/completions", ask(model, stream=stream), AUTH))
    await served.vendor.received(before + 1)


# Before any content --------------------------------------------------------------------------------------------------

BEFORE: dict[str, tuple[Script, int, str]] = {
    "in-band error": ((START, COMMENT, Send(chunk(IN_BAND))), 502, "upstream_error"),
    "in-band error with the content": ((START, Send(chunk(CONTENT + IN_BAND))), 502, "upstream_error"),
    "status 500": (json_answer(500, {"error": {"message": "no"}}), 502, "upstream_error"),
    "status 503": (json_answer(503, {"error": {"message": "no"}}), 503, "overloaded"),
    "status 429": (json_answer(429, {"error": {"message": "no"}}), 429, "rate_limit_exceeded"),
    "status 400": (json_answer(400, {"error": {"message": "no"}}), 400, "invalid_value"),
    "our key is wrong": (json_answer(401, {"error": {"message": "no"}}), 502, "upstream_auth_failed"),
    "redirect": (json_answer(307, {}, [("location", "http://169.254.169.254/")]), 502, "malformed_upstream"),
    "reset": ((Rst(),), 502, "upstream_error"),
    "reset after the head": ((START, COMMENT, Rst()), 502, "upstream_error"),
    "end after the head": ((START, COMMENT, Send(LAST_CHUNK)), 502, "upstream_error"),
    "only a terminator": ((START, Send(chunk(DONE))), 502, "upstream_error"),
    "not a stream": (json_answer(200, {"nothing": "here"}), 502, "malformed_upstream"),
    "nonsense": ((START, Send(chunk(b"data: {nonsense\n\n"))), 502, "malformed_upstream"),
    "endless error": (
        (Send(head(500, [("transfer-encoding", "chunked")])), Loop((Send(chunk(b"x" * 4000)),))),
        502,
        "upstream_error",
    ),
}


@pytest.mark.parametrize(("script", "status", "code"), BEFORE.values(), ids=BEFORE.keys())
async def test_what_fails_before_content_is_a_real_error(served: Rig, script: Script, status: int, code: str) -> None:
    answer = await streamed(served, script)
    assert (answer.status, answer.code, answer.whole) == (status, code, True)
    assert answer.headers["content-type"] == "application/json"
    (record,) = await served.finished(1)
    assert (record.status, record.code, record.first_content) == (status, code, None)
    assert len(served.vendor.requests) == 1


@pytest.mark.parametrize("path", SURFACES.values(), ids=SURFACES.keys())
async def test_an_error_before_any_content_wears_the_surface_s_envelope(served: Rig, path: str) -> None:
    answer = await streamed(served, json_answer(429, {}, [("retry-after", "7")]), path=path)
    assert (answer.status, answer.code) == (429, "rate_limit_exceeded")
    assert answer.headers["retry-after"] == "7"


async def test_comments_and_empty_frames_are_no_content(served: Rig) -> None:
    role = data_frames({"choices": [{"index": 0, "text": "", "finish_reason": None}]})
    script = (START, Loop((COMMENT, Send(chunk(role[0])), Delay(0.01))))
    answer = await streamed(served, script, "v/hasty")
    assert (answer.status, answer.code) == (504, "upstream_timeout")
    assert "0.3 s" in answer.message
    await served.vendor.requests[0].gone.wait()


async def test_silence_before_the_head_passes_the_limit_of_the_first_content(served: Rig) -> None:
    answer = await streamed(served, (Hang(),), "v/hasty")
    assert (answer.status, answer.code) == (504, "upstream_timeout")
    (record,) = await served.finished(1)
    assert (record.outcome, record.attempts[0].outcome) == ("timeout", "timeout")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "asked"), [("v/short", None), ("v/short", 60), ("v/m", 0.3), ("v/m", "0.3")])
async def test_a_request_has_a_total_to_be_shortened(served: Rig, stream: bool, model: str, asked: JsonValue) -> None:
    served.vendor.answer((Hang(),))
    answer = await served.post("/v5/completions", ask(model, stream=stream, inference_timeout=asked))
    assert (answer.status, answer.code) == (504, "upstream_timeout")
    assert "0.3 s" in answer.message
    await served.vendor.requests[0].gone.wait()


async def test_the_total_ends_at_the_first_content(served: Rig) -> None:
    rest = [Send(chunk(frame)) for frame in FRAMES[1:]]
    answer = await streamed(served, (START, Send(chunk(CONTENT)), Delay(0.6), *rest, Send(LAST_CHUNK)), "v/short")
    assert (answer.status, answer.whole, answer.events()[-1]) == (200, True, b"[DONE]")


# After content -------------------------------------------------------------------------------------------------------

BROKEN: dict[str, Script] = {
    "reset": (START, Send(chunk(CONTENT)), Rst()),
    "end of the connection": (START, Send(chunk(CONTENT)), Fin()),
    "end in the middle of a chunk": cut(sse_answer(FRAMES), size_of(sse_answer(FRAMES[:1])) + 20),
    "end of the body": sse_answer([CONTENT]),
    "end of the connection as the body's end": sse_close_delimited([CONTENT]),
    "terminator too early": sse_answer([CONTENT, DONE]),
    "error in-band": (START, Send(chunk(CONTENT)), Send(chunk(IN_BAND)), Send(LAST_CHUNK)),
    "error in-band, then a terminator": sse_answer([CONTENT, IN_BAND, DONE]),
    "nonsense": (START, Send(chunk(CONTENT)), Send(chunk(b"data: {nonsense\n\n")), Hang()),
    "chunks that are none": (START, Send(chunk(CONTENT)), Send(b"zz\r\n"), Hang()),
}


def looks_broken(answer: Answer) -> None:
    """Assert two independent signs, an error in-band and a body without its end, and no sign of success."""
    assert answer.status == 200
    assert not answer.whole
    assert b'"text":"one"' in answer.body
    assert b'"error"' in answer.events()[-1]
    assert b"[DONE]" not in answer.body
    assert b'"finish_reason":"' not in answer.body


@pytest.mark.parametrize("script", BROKEN.values(), ids=BROKEN.keys())
async def test_a_stream_that_broke_looks_broken(served: Rig, script: Script) -> None:
    looks_broken(await streamed_after_commit(served, script))
    (record,) = await served.finished(1)
    assert (record.status, record.outcome) == (200, "truncated")
    assert record.code in ("upstream_error", "malformed_upstream")
    assert sum(served.series("stream_aborts_total").values()) == 1


@pytest.mark.parametrize("path", SURFACES.values(), ids=SURFACES.keys())
async def test_a_broken_stream_looks_broken_on_every_surface(served: Rig, path: str) -> None:
    looks_broken(await streamed_after_commit(served, (START, Send(chunk(CONTENT)), Rst()), path))


async def test_silence_after_content_breaks_the_stream(served: Rig) -> None:
    answer = await streamed(served, (START, Send(chunk(CONTENT)), Hang()), "v/hasty")
    looks_broken(answer)
    assert b"upstream_timeout" in answer.events()[-1]
    (record,) = await served.finished(1)
    assert (record.outcome, record.code) == ("timeout", "upstream_timeout")
    await served.vendor.requests[0].gone.wait()


async def test_comments_keep_a_quiet_stream_alive(served: Rig) -> None:
    quiet: Sequence[Send | Delay] = [COMMENT, Delay(0.05)] * 10
    rest = [Send(chunk(frame)) for frame in FRAMES[1:]]
    answer = await streamed(served, (START, Send(chunk(CONTENT)), *quiet, *rest, Send(LAST_CHUNK)), "v/hasty")
    assert (answer.whole, answer.events()[-1]) == (True, b"[DONE]")


COMPLETE: dict[str, Script] = {
    "to the letter": sse_answer(FRAMES),
    "a byte at a time": sse_answer(FRAMES, 1),
    "left open after the terminator": sse_unterminated(FRAMES, Hang()),
    "cut after the terminator": sse_unterminated(FRAMES, Rst()),
    "no terminator, end of the body": sse_answer(FRAMES[:-1]),
    "no terminator, end of the connection": sse_close_delimited(FRAMES[:-1]),
    "no terminator, left open": sse_unterminated(FRAMES[:-1], Hang()),
    "no terminator, reset": (*sse_answer(FRAMES[:-1])[:-1], Delay(0.02), Rst()),
    "no terminator, cut in the middle of a frame": (*sse_answer([*FRAMES[:-1], b'data: {"cho'])[:-1], Fin()),
    "no terminator, comments without end": (*sse_answer(FRAMES[:-1])[:-1], Loop((COMMENT, Delay(0.01)))),
    "a whole answer": json_answer(200, completion("onetwo", "m")),
}


@pytest.mark.parametrize("script", COMPLETE.values(), ids=COMPLETE.keys())
async def test_a_finished_answer_is_complete_however_its_connection_ends(
    served: Rig, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.upstream.vendor_stream.TAIL_WAIT", 0.25)
    answer = await streamed(served, script)
    assert (answer.status, answer.whole, answer.events()[-1]) == (200, True, b"[DONE]")
    assert b'"finish_reason":"stop"' in answer.body
    (record,) = await served.finished(1)
    assert record.outcome == "ok"
    assert record.usage is not None


async def test_a_fault_of_ours_after_content_breaks_the_stream(served: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    def faulty(self: TextRenderer, run: TextRun) -> bytes:
        raise LookupError("ours")

    monkeypatch.setattr(TextRenderer, "run", faulty)
    answer = await streamed_after_commit(served, (START, Send(chunk(CONTENT)), Send(chunk(MORE)), Hang()))
    looks_broken(answer)
    assert b"HTTP/1.1" not in answer.body
    assert b"internal_error" in answer.events()[-1]
    (record,) = await served.finished(1)
    assert (record.outcome, record.code) == ("error", "internal_error")
    await served.vendor.requests[0].gone.wait()


# Clients that leave --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
async def test_a_client_that_leaves_while_the_vendor_thinks_cancels_it(served: Rig, stream: bool) -> None:
    async with connected(served.port) as client:
        await begin(served, client, (Hang(),), stream=stream)
        await client.leave()
        await served.vendor.requests[0].gone.wait()
    (record,) = await served.finished(1)
    assert (record.status, record.outcome, record.attempts[0].outcome) == (499, "client_gone", "cancelled")
    assert served.series("inflight_requests") == {"inflight_requests deployment=v/m/default": 0}


@pytest.mark.parametrize("how", ["fin", "rst"])
async def test_a_client_that_leaves_in_the_middle_of_a_stream_cancels_the_vendor(served: Rig, how: str) -> None:
    async with connected(served.port) as client:
        await begin(served, client, (START, Send(chunk(CONTENT)), Hang()))
        await client.head()
        await client.chunk()
        if how == "rst":
            client.writer.transport.abort()
        else:
            await client.leave()
        await served.vendor.requests[0].gone.wait()
    (record,) = await served.finished(1)
    assert record.outcome == "client_gone"
    assert served.series("stream_aborts_total") == {"stream_aborts_total model=v/m reason=disconnect side=client": 1}


async def test_a_client_that_leaves_while_the_vendor_talks_cancels_it(served: Rig) -> None:
    async with connected(served.port) as client:
        await begin(served, client, (START, Loop((Send(chunk(CONTENT)),))))
        await client.head()
        await client.leave()
        await served.vendor.requests[0].gone.wait()
    (record,) = await served.finished(1)
    assert record.outcome == "client_gone"
    assert served.series("stream_aborts_total") == {"stream_aborts_total model=v/m reason=disconnect side=client": 1}


@asynccontextmanager
async def small_reader(served: Rig) -> AsyncIterator[RawClient]:
    with socket.socket() as small:
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.setblocking(False)
        await asyncio.get_running_loop().sock_connect(small, ("127.0.0.1", served.port))
        reader, writer = await asyncio.open_connection(sock=small)
        yield RawClient(reader, writer)
        writer.close()


async def test_a_client_that_reads_nothing_cancels_the_vendor(served: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "CLIENT_STALL", 0.2)
    async with small_reader(served) as client:
        await begin(served, client, (START, Loop((Send(chunk(CONTENT * 100)),))), model="v/hasty")
        await served.vendor.requests[0].gone.wait()
        (record,) = await served.finished(1)
    assert (record.status, record.outcome, record.attempts[0].outcome) == (200, "client_gone", "cancelled")
    assert served.series("stream_aborts_total") == {
        "stream_aborts_total model=v/hasty reason=disconnect side=client": 1
    }


async def test_a_client_that_reads_slowly_is_waited_for_and_holds_the_vendor_back(served: Rig) -> None:
    big = completion_frames(["x" * 16_000] * 600)
    async with small_reader(served) as client:
        await begin(served, client, sse_answer(big), model="v/hasty")
        # Longer than the vendor may be silent: here the client causes the silence.
        await asyncio.sleep(0.7)
        answer = await client.answer()
    assert (answer.status, answer.whole, answer.events()[-1]) == (200, True, b"[DONE]")
    assert len(answer.body) > 600 * 16_000


async def test_a_connection_serves_on_after_a_good_stream(served: Rig) -> None:
    for _ in range(3):
        assert (await streamed(served, sse_answer(FRAMES))).whole
    await served.finished(3)
    assert served.vendor.connections == 1


# The configuration may change meanwhile ------------------------------------------------------------------------------


async def test_a_running_stream_finishes_on_the_table_it_began_with(served: Rig) -> None:
    gate = asyncio.Event()
    rest = [Send(chunk(frame)) for frame in FRAMES[1:]]
    async with connected(served.port) as client:
        await begin(served, client, (START, Send(chunk(CONTENT)), Until(gate), *rest, Send(LAST_CHUNK)))
        await client.head()
        served.table("vendors: {mock: {}}\nmodels: {mock/only: {}}")
        assert (await served.post("/v1/completions", ask())).status == 404
        gate.set()
        body, whole = await client.chunks()
    assert whole
    assert body.endswith(DONE)
    record = next(record for record in await served.finished(2) if record.stream)
    assert (record.team, record.model, record.outcome) == ("search", "v/m", "ok")
