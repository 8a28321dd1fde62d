"""F44 to F49: clients that leave, do not read, do not send, or send too much."""

import asyncio
import itertools
import socket
import warnings
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from statistics import median
from typing import Final, cast

import orjson
import pytest

from providers.json_types import JsonObject
from proxy import deadlines
from proxy.listener import http_connection as server
from proxy.listener import request_body
from tests.faults.check_answers import SURFACES, good, refusal
from tests.faults.fault_rig import AUTH, PATIENT, TABLE, Rig
from tests.faults.memory import growth
from tests.faults.registry import fault, single_fault
from tests.proxy.kit.raw_client import RawClient, connected, request
from tests.support.http_scripts import chunk, head, json_answer
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Hang, Loop, Script, Send

FRAMES: Final = completion_frames(["one", "two"])
CONTENT: Final = Send(chunk(FRAMES[0]))
START: Final = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))
ONE: Final = "one/m/default"

AT_ONCE: Final = 2.0
"""Seconds within which a vendor must see that the client is gone, even if the machine is slow. It is far less than any
limit of the configuration."""

Leave = Callable[[RawClient], Awaitable[None]]


async def leave(client: RawClient) -> None:
    await client.leave()


async def vanish(client: RawClient) -> None:
    client.writer.transport.abort()


async def begin(rig: Rig, client: RawClient, model: str = "one/m", stream: bool | None = None) -> None:
    """Send a request and wait until the vendor has received it."""
    rig.asked += 1
    body: JsonObject = {"model": model, "prompt": "hi", "stream": rig.stream if stream is None else stream}
    before = len(rig.one.requests)
    await client.send(request("POST", "/v1/completions", body, AUTH))
    await rig.one.received(before + 1)


async def gone_at_once(rig: Rig, script: Script, seen: Leave, status: int = 499) -> None:
    """Assert that the vendor notices when clients leave, each after it has received `seen`, without another attempt or
    an effect on health.

    There are more clients than failures that would open the circuit.
    """
    times: list[float] = []
    clock = asyncio.get_running_loop().time
    for way in (leave, vanish) * 4:
        rig.one.answer(script)
        async with connected(rig.port) as client:
            await begin(rig, client, "both")
            await seen(client)
            left = clock()
            await way(client)
            await rig.one.requests[-1].gone.wait()
            times.append(clock() - left)
    assert median(times) <= AT_ONCE
    lines = await rig.logged()
    assert {(line["status"], line["outcome"]) for line in lines} == {(status, "client_gone")}
    attempts = [attempt for line in lines for attempt in cast(list[JsonObject], line["attempts"])]
    assert [(attempt["deployment"], attempt["outcome"]) for attempt in attempts] == [(ONE, "cancelled")] * 8
    assert await rig.attempts(ONE, "cancelled") == len(rig.one.requests) == 8
    assert rig.two.requests == []
    assert await rig.series("fallbacks") == {}
    assert (await rig.series("deployment_state"))[f"deployment_state deployment={ONE}"] == 0
    assert good(await rig.ask("both"), rig.stream) == "one"


@fault(44, PATIENT)
async def gone_before_the_answer(rig: Rig) -> None:
    async def nothing(client: RawClient) -> None:
        await asyncio.sleep(0.02)

    await gone_at_once(rig, (Hang(),), nothing)


@single_fault(45, PATIENT)
async def gone_in_the_middle_of_a_stream(rig: Rig) -> None:
    async def content(client: RawClient) -> None:
        await client.head()
        await client.chunk()

    rig.stream = True
    await gone_at_once(rig, (START, CONTENT, Hang()), content, 200)
    aborts = {"stream_aborts_total model=both reason=disconnect side=client": 8.0}
    assert await rig.series("stream_aborts") == aborts
    for line in rig.lines()[:8]:
        assert (line["usage_estimated"], line["completion_tokens"]) == (True, 1)


@fault(45, PATIENT)
async def gone_while_the_gateway_waits_to_try_again(rig: Rig) -> None:
    clock = asyncio.get_running_loop().time
    limited = json_answer(429, {"error": {"message": "slow down"}}, [("retry-after", "1")])
    for way in (leave, vanish):
        rig.forget()
        rig.one.answer(limited)
        async with connected(rig.port) as client:
            await begin(rig, client)
            await asyncio.sleep(0.1)
            assert rig.app.front.gateway.in_flight == 1
            left = clock()
            await way(client)
            await rig.app.front.gateway.idle.wait()
            assert clock() - left <= 0.5
    for line in await rig.logged():
        assert (line["status"], line["outcome"]) == (499, "client_gone")
        assert [attempt["outcome"] for attempt in cast(list[JsonObject], line["attempts"])] == ["rate_limited"]
    assert len(rig.one.requests) == 2


@asynccontextmanager
async def deaf(rig: Rig) -> AsyncIterator[RawClient]:
    """Run a client with a receive buffer of 4 KiB that never reads."""
    with socket.socket() as small:
        small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        small.setblocking(False)
        await asyncio.get_running_loop().sock_connect(small, ("127.0.0.1", rig.port))
        reader, writer = await asyncio.open_connection(sock=small)
        writer.transport.pause_reading()  # type: ignore[attr-defined]  # a transport of sockets has it
        try:
            yield RawClient(reader, writer)
        finally:
            writer.transport.abort()


def hurry(rig: Rig, patch: pytest.MonkeyPatch, **limits: float) -> None:
    """Set these limits of the public listener, in seconds, and let it check its connections often from now on."""
    for name, seconds in (*limits.items(), ("LOOK_EVERY", 0.05)):
        patch.setattr(server, name, seconds)
    rig.app.front.public._timer.cancel()
    rig.app.front.public._look()


DEAF: Final = 20
MOST: Final = 512 * 1024
"""Bytes that a client which does not read may cost."""


@single_fault(46)
async def stream_that_nobody_reads(rig: Rig) -> None:
    flood = (START, Loop((Send(CONTENT.data * 100),)))
    clock = asyncio.get_running_loop().time
    rig.stream = True
    assert rig.one._server is not None
    for listening in (*rig.one._server.sockets, *rig.app.front.listener.sockets):
        # With larger buffers the kernel would take megabytes of each stream before the gateway had to wait.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65_536)
    with pytest.MonkeyPatch.context() as patch, growth() as grown:
        patch.setattr(deadlines, "CLIENT_STALL", 0.8)
        async with AsyncExitStack() as stack:
            for _ in range(DEAF):
                rig.one.answer(flood)
                await begin(rig, await stack.enter_async_context(deaf(rig)))
            while any(connection._writable.is_set() for connection in rig.one._open):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.01)
            begun = clock()
            for received in rig.one.requests:
                await received.gone.wait()
            assert clock() - begun < 20.0
            lines = await rig.logged()
    assert grown.bytes <= DEAF * MOST
    assert {(line["status"], line["outcome"]) for line in lines} == {(200, "client_gone")}
    assert await rig.series("stream_aborts") == {"stream_aborts_total model=one/m reason=disconnect side=client": DEAF}
    assert await rig.attempts(ONE, "cancelled") == len(rig.one.requests) == DEAF
    assert (await rig.series("deployment_state"))[f"deployment_state deployment={ONE}"] == 0


@single_fault(46, PATIENT)
async def whole_answer_that_nobody_reads(rig: Rig) -> None:
    rig.one.answer(json_answer(200, completion("x" * 16 * 2**20, "m")))
    with pytest.MonkeyPatch.context() as patch:
        hurry(rig, patch, CLIENT_STALL=0.4)
        async with deaf(rig) as client:
            await begin(rig, client)
            (held,) = rig.app.front.public.connections
            while held in rig.app.front.public.connections:  # noqa: ASYNC110 - a server has no event
                await asyncio.sleep(0.02)
    assert len(await rig.logged()) == 1


def head_of(path: str, *headers: str) -> bytes:
    """Return a request's head with the team's key and these headers."""
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Authorization: {AUTH['Authorization']}", *headers]
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n"


async def late(rig: Rig, data: bytes, drip: bytes, path: str) -> None:
    """Assert that a request which stops or comes too slowly gets this response, and that its connection closes."""
    async with connected(rig.port) as client:
        await client.send(data)

        async def go_on() -> None:
            for byte in itertools.cycle(drip):
                await client.send(bytes([byte]))
                await asyncio.sleep(0.05)

        dripping = asyncio.ensure_future(go_on())
        answer = await client.answer()
        dripping.cancel()
        assert refusal(answer, path) == (408, "bad_request")
        # A byte of the drip that arrives after the close causes a reset.
        with suppress(*([ConnectionResetError] if drip else ())):
            assert await client.closed() == b""


async def silent(rig: Rig, before: bytes) -> None:
    """Assert that a silent client is disconnected without a response."""
    async with connected(rig.port) as client:
        if before:
            await client.send(before)
            assert (await client.answer()).status == 200
        assert await client.closed() == b""


@single_fault(47)
async def request_that_does_not_come(rig: Rig) -> None:
    """The limits are a tenth or less of the built-in times: 10 s for a head, 15 s for a body, 75 s of silence."""
    slow = head_of("/v1/completions", "Content-Length: 1000")
    with pytest.MonkeyPatch.context() as patch:
        hurry(rig, patch, HEAD_WAIT=0.5)
        patch.setattr(request_body, "BODY_WAIT", 0.5)
        for name, seconds in (("keepalive_timeout", 1.0), ("lingering_time", 0.1)):
            patch.setitem(rig.app.front.public._kwargs, name, seconds)
        async with asyncio.TaskGroup() as clients:
            for data, drip in (
                (b"P", b""),
                (b"", b"POST /v1/completions"),
                (slow[:-2], b""),
                (slow[:-2], b"X: ab\r\n"),
            ):
                clients.create_task(late(rig, data, drip, "/v1/completions"))
            for path in SURFACES.values():
                rig.asked += 3
                sized = head_of(path, "Content-Length: 1000")
                clients.create_task(late(rig, sized, b"", path))
                clients.create_task(late(rig, sized + b'{"model":', b" ", path))
                clients.create_task(late(rig, head_of(path, "Transfer-Encoding: chunked") + b"3e8\r\n{", b" ", path))
            for before in (b"", request("GET", "/v1/models", None, AUTH)):
                rig.asked += bool(before)
                clients.create_task(silent(rig, before))
    lines = await rig.logged()
    assert [line["outcome"] for line in lines].count("client_error") == 3 * len(SURFACES)
    assert rig.one.requests == []


PIPELINED: Final = 2000


@single_fault(48)
async def many_requests_before_the_first_answer(rig: Rig) -> None:
    """One request in ten goes to the vendor. They use one connection, because they are processed one at a time."""
    rig.asked += PIPELINED
    ask: JsonObject = {"model": "one/m", "prompt": "hi"}
    with growth() as grown:
        async with connected(rig.port) as client:

            async def send() -> None:
                for number in range(PIPELINED):
                    own = {**AUTH, "x-request-id": f"r{number}"}
                    data = request("POST", "/v1/completions", ask, own) if number % 10 == 0 else None
                    await client.send(data or request("GET", "/v1/models/one/m", None, own))

            sending = asyncio.ensure_future(send())
            for number in range(PIPELINED):
                answer = await client.answer()
                assert (answer.status, answer.headers["x-request-id"]) == (200, f"r{number}")
                assert ("choices" in answer.json()) is (number % 10 == 0)
            await sending
        lines = await rig.logged()
    assert [line["request_id"] for line in lines] == [f"r{number}" for number in range(PIPELINED)]
    assert (len(rig.one.requests), rig.one.connections) == (PIPELINED // 10, 1)
    assert grown.bytes <= 16 * 2**20


MAX_BODY: Final = 32 * 2**20


async def too_large(rig: Rig, path: str, *headers: str) -> None:
    """Send requests that are refused before a byte of the body has come, and without `100 Continue`."""
    rig.asked += 1
    async with connected(rig.port) as client:
        await client.send(head_of(path, f"Content-Length: {MAX_BODY + 1}", *headers))
        answer = await client.answer()
    assert refusal(answer, path) == (413, "request_too_large")


@single_fault(49)
async def body_above_the_limit(rig: Rig) -> None:
    for path in SURFACES.values():
        await too_large(rig, path)
        await too_large(rig, path, "Expect: 100-continue")
    rig.asked += 1
    async with connected(rig.port) as client:
        await client.send(head_of("/v1/completions", "Transfer-Encoding: chunked"))
        for _ in range(33):
            await client.send(chunk(b" " * 2**20))
        assert refusal(await client.answer()) == (413, "request_too_large")
    assert {(line["status"], line["outcome"]) for line in await rig.logged()} == {(413, "client_error")}
    assert rig.one.requests == []


@fault(49, PATIENT)
async def body_at_the_limit(rig: Rig) -> None:
    # aiohttp warns about a body of this size
    warnings.simplefilter("ignore", ResourceWarning)
    rig.one.answer(await rig.good())
    body = orjson.dumps({"model": "one/m", "stream": rig.stream, "prompt": ""})
    whole = body[:-2] + b"x" * (MAX_BODY - len(body)) + body[-2:]
    async with connected(rig.port) as client:
        rig.asked += 1
        await client.send(head_of("/v1/completions", f"Content-Length: {len(whole)}", "Expect: 100-continue"))
        assert await client.head() == (100, {})
        await client.send(whole)
        assert good(await client.answer(), rig.stream) == "hello"
    assert len(rig.one.requests[0].body) >= MAX_BODY - len(body)


LITTLE: Final = TABLE.replace("server: {", "server: {limits: {body_bytes: 1MiB}, ", 1)


@single_fault(49, LITTLE)
async def bodies_that_are_too_much_together_and_say_no_length(rig: Rig) -> None:
    """Such bodies are counted as they arrive: if the limit is 1 MiB, ten of 100 KiB are accepted, and the eleventh is
    not."""
    rig.asked += 11
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(rig.port)) for _ in range(11)]
        for number, client in enumerate(clients):
            while rig.app.front.admission.bodies.total < number * 100 * 1024:  # noqa: ASYNC110 - a count has no event
                await asyncio.sleep(0.001)
            await client.send(head_of("/v5/completions", "Transfer-Encoding: chunked") + chunk(b" " * 100 * 1024))
        answer = await clients[-1].answer()
        assert refusal(answer, "/v5/completions") == (503, "overloaded")
        assert (answer.headers["retry-after"], answer.headers.get("x-should-retry")) == ("1", None)
        assert rig.app.front.admission.bodies.total == 1000 * 1024
    lines = await rig.logged()
    assert sorted(str(line["outcome"]) for line in lines) == ["client_gone"] * 10 + ["shed"]
    assert good(await rig.ask(), False) == "one"


@single_fault(49, LITTLE)
async def bodies_that_are_announced_and_do_not_come(rig: Rig) -> None:
    """No memory is reserved for an announced length. Of 50 bodies of 20 MiB, ten send 100 KiB, and no other request is
    refused until the eleventh sends as much."""
    rig.asked += 50
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(rig.port)) for _ in range(50)]
        paths = itertools.cycle(SURFACES.values())
        for client, path in zip(clients, paths, strict=False):
            await client.send(head_of(path, f"Content-Length: {20 * 2**20}"))
        assert good(await rig.ask(), False) == "one"
        for number, client in enumerate(clients[:11]):
            while rig.app.front.admission.bodies.total < number * 100 * 1024:  # noqa: ASYNC110 - a count has no event
                await asyncio.sleep(0.001)
            await client.send(b" " * 100 * 1024)
        answer = await clients[10].answer()
        assert refusal(answer, [*itertools.islice(itertools.cycle(SURFACES.values()), 11)][10]) == (503, "overloaded")
        assert (answer.headers["retry-after"], answer.headers.get("x-should-retry")) == ("1", None)
        assert good(await rig.ask(), False) == "one"
        await too_large(rig, "/v1/completions")
    lines = await rig.logged()
    assert Counter(str(line["outcome"]) for line in lines) == {"client_gone": 49, "shed": 1, "client_error": 1, "ok": 2}
    sheds = {name: count for name, count in (await rig.series("shed")).items() if count}
    assert sheds == {"shed_total reason=body_bytes": 1}
