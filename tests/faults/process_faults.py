"""F60, F67 and F68: a process that is stopped, whose output is not read, or that lacks descriptors."""

import asyncio
import os
import re
import signal
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

import orjson

from providers.json_types import JsonObject
from tests.faults.check_answers import broken, good, refusal
from tests.faults.fault_rig import AUTH, Rig, ok
from tests.faults.lifecycle import FRAMES, START
from tests.faults.process import folder, process
from tests.faults.registry import single_fault
from tests.proxy.kit.raw_client import Answer, RawClient, connected, exchange, request
from tests.proxy.kit.whole_gateway import port_of
from tests.support.gateway import RunningGateway
from tests.support.http_scripts import LAST_CHUNK, chunk, json_answer
from tests.support.openai_wire import completion
from tests.support.vendor_script import Delay, Hang, Received, Script, Send

ASK: Final[JsonObject] = {"model": "one/m", "prompt": "hi"}
STREAM: Final[JsonObject] = {**ASK, "stream": True}

PATIENT_EXIT: Final = "from proxy.process import shutdown\nshutdown.FORCED_EXIT_AFTER = 600.0\n"
"""Prevents a process that closes slowly, as on a busy machine, from ending itself. `tests/security/test_stall.py` tests
that."""


async def asked(gateway: RunningGateway, body: JsonObject) -> Answer:
    """Return the response to a completion on a fresh connection."""
    return await exchange(port_of(gateway.url), request("POST", "/v1/completions", body, AUTH))


async def ended(gateway: RunningGateway) -> int:
    """Wait for the end of the process, and return its exit code."""
    gateway.exit_code = await asyncio.to_thread(gateway.process.wait)
    return gateway.exit_code


# F60: the end --------------------------------------------------------------------------------------------------------

PIECES: Final = 16
SLOW: Final[Script] = (
    START,
    *(step for _ in range(PIECES) for step in (Send(chunk(FRAMES[0])), Delay(0.1))),
    *(Send(chunk(frame)) for frame in FRAMES[2:]),
    Send(LAST_CHUNK),
)
"""A stream that continues for a while after the listener has closed."""


def paced(received: Received) -> Script:
    """Return a slow stream, or a non-streaming response at once."""
    body = received.json()
    assert isinstance(body, dict)
    return SLOW if body.get("stream") else ok(False)


async def stay(gateway: RunningGateway, begun: asyncio.Event) -> int:
    """Send requests on one connection until the gateway closes it, and return the number of responses."""
    count = 0
    async with connected(port_of(gateway.url)) as client:
        while True:
            await client.send(request("POST", "/v1/completions", ASK, AUTH))
            answer = await client.answer()
            assert good(answer, False) == "hello"
            count += 1
            begun.set()
            if answer.headers.get("connection") == "close":
                assert await client.closed() == b""
                return count
            await asyncio.sleep(0.02)


async def upload(gateway: RunningGateway, begun: asyncio.Event) -> Answer:
    """Send a request whose body takes a second to arrive."""
    data = request("POST", "/v1/completions", {**ASK, "prompt": "x" * 20_000}, AUTH)
    async with connected(port_of(gateway.url)) as client:
        size = len(data) // 10
        for start in range(0, len(data), size):
            await client.send(data[start : start + size])
            begun.set()
            await asyncio.sleep(0.1)
        return await client.answer()


@single_fault(60)
async def stopped_under_load(rig: Rig) -> None:
    rig.one.default = paced
    async with process(rig, ["drain_grace: 200ms", "drain_timeout: 1m"]) as gateway:
        begun = [asyncio.Event() for _ in range(12)]
        async with asyncio.TaskGroup() as group:
            streams = [group.create_task(asked(gateway, STREAM)) for _ in range(20)]
            stays = [group.create_task(stay(gateway, event)) for event in begun[:8]]
            uploads = [group.create_task(upload(gateway, event)) for event in begun[8:]]
            for event in begun:
                await event.wait()
            await rig.one.received(20)
            gateway.process.send_signal(signal.SIGTERM)
        assert await ended(gateway) == 0, gateway.messages()
        for stream in streams:
            assert good(stream.result(), True) == "one" * PIECES
        for whole in uploads:
            assert good(whole.result(), False) == "hello"
        lines = gateway.log()
    assert {line["outcome"] for line in lines} == {"ok"}
    assert len(lines) == 20 + 4 + sum(client.result() for client in stays) == len(rig.one.requests)
    assert [orjson.loads(line)["message"] for line in gateway.messages().splitlines()][-1] == "stopped"


@asynccontextmanager
async def hanging(
    rig: Rig, gateway: RunningGateway, count: int
) -> AsyncIterator[tuple[list[RawClient], list[RawClient]]]:
    """Run `count` clients of streams that stop after their first content, and as many of non-streaming responses that
    never come."""
    rig.one.answer(*[(START, Send(chunk(FRAMES[0])), Hang())] * count)
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(connected(port_of(gateway.url))) for _ in range(2 * count)]
        streams, wholes = clients[:count], clients[count:]
        for client in streams:
            await client.send(request("POST", "/v1/completions", STREAM, AUTH))
        for client in streams:
            assert (await client.head())[0] == 200
            assert await client.chunk()
        rig.one.default = (Hang(),)
        for client in wholes:
            await client.send(request("POST", "/v1/completions", ASK, AUTH))
        await rig.one.received(2 * count)
        yield streams, wholes


@single_fault(60)
async def stopped_with_more_to_do_than_the_drain_allows(rig: Rig) -> None:
    drain = ["drain_grace: 0s", "drain_timeout: 200ms"]
    async with process(rig, drain) as gateway, hanging(rig, gateway, 5) as (streams, wholes):
        gateway.process.send_signal(signal.SIGTERM)
        for client in streams:
            rest, whole = await client.chunks()
            assert broken(Answer(200, {"transfer-encoding": "chunked"}, rest, whole)) == "overloaded"
            assert b"The gateway is shutting down." in rest
        for client in wholes:
            answer = await client.answer()
            assert refusal(answer) == (503, "overloaded")
            assert answer.headers["connection"] == "close"
        assert await ended(gateway) == 0, gateway.messages()
        outcomes = sorted(str(line["outcome"]) for line in gateway.log())
    assert outcomes == ["error"] * 5 + ["truncated"] * 5
    for received in rig.one.requests:
        await received.gone.wait()


@single_fault(60)
async def stopped_twice(rig: Rig) -> None:
    async with (
        process(rig, ["drain_grace: 1m", "drain_timeout: 1m"], PATIENT_EXIT) as gateway,
        hanging(rig, gateway, 5) as (streams, wholes),
    ):
        gateway.process.send_signal(signal.SIGTERM)
        ready = request("GET", "/health/ready")
        while (await exchange(port_of(gateway.admin_url), ready)).status == 200:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
        gateway.process.send_signal(signal.SIGINT)
        for client in streams:
            rest, whole = await client.chunks()
            assert (whole, b"[DONE]" in rest) == (False, False)
        for client in wholes:
            assert b"200 OK" not in await client.closed()
        assert await ended(gateway) == 0, gateway.messages()
        assert len(gateway.log()) == 10
    for received in rig.one.requests:
        await received.gone.wait()


# F67: output that is not read ----------------------------------------------------------------------------------------

AGAIN: Final = r"the access log is written again; (\d+) lines of it were dropped"
HASTY: Final = ("drain_grace: 0s", "drain_timeout: 100ms")
FEW_LINES: Final = """\
import proxy.telemetry.log_writer
proxy.telemetry.log_writer.MAX_QUEUED = 100
proxy.telemetry.log_writer.LineWriter.close.__defaults__ = (0.5,)
"""


async def status(gateway: RunningGateway) -> JsonObject:
    return (await exchange(port_of(gateway.admin_url), request("GET", "/status"))).json()


async def dropping(gateway: RunningGateway) -> int:
    """Send requests until lines are dropped, and a few hundred more. Return their number."""
    count = 0
    async with connected(port_of(gateway.url)) as client:
        while not (await status(gateway))["log_lines_dropped"] or count < 300:
            for _ in range(50):
                await client.send(request("POST", "/v1/completions", ASK, AUTH))
                assert good(await client.answer(), False) == "one"
            count += 50
    return count


@asynccontextmanager
async def unread(rig: Rig) -> AsyncIterator[tuple[RunningGateway, int]]:
    """Run a process whose two outputs lead into one pipe, as with `2>&1`, and yield it with the unread end of the
    pipe."""
    place = folder(rig)
    os.mkfifo(place / "stdout.log")
    (place / "stderr.log").symlink_to("stdout.log")
    pipe = os.open(place / "stdout.log", os.O_RDONLY | os.O_NONBLOCK)
    try:
        async with process(rig, HASTY, FEW_LINES) as gateway:
            yield gateway, pipe
            (place / "stderr.log").unlink()
            (place / "stderr.log").write_text("")
    finally:
        os.close(pipe)


def dropped_lines(text: bytes) -> int:
    """Return the number of dropped lines that a log reports when it is written again."""
    return sum(map(int, re.findall(AGAIN, text.decode())))


@single_fault(67)
async def output_that_nobody_reads_for_a_while(rig: Rig) -> None:
    async with unread(rig) as (gateway, pipe):
        count = await dropping(gateway)
        text = b""
        # The writer may fall behind for a moment before the pipe is full, so the first report need not be the last.
        # Neither is the first counter value: a line is written, or dropped, a moment after its response.
        while dropped_lines(text) != (await status(gateway))["log_lines_dropped"]:
            text += await read(pipe)
        assert good(await asked(gateway, ASK), False) == "one"
        assert await gateway.stop() == 0
        text += await read(pipe)
    dropped = dropped_lines(text)
    lines = [orjson.loads(line) for line in text.splitlines()]
    assert sum(line["message"] == "request" for line in lines) == count + 1 - dropped
    assert dropped
    told = [line["message"] for line in lines if "access log" in line["message"]]
    begun, ended = told[::2], [re.fullmatch(AGAIN, each) for each in told[1::2]]
    assert begun == ["lines of the access log are dropped: nothing reads them"] * len(ended)
    assert all(ended)


@single_fault(67)
async def output_that_nobody_ever_reads(rig: Rig) -> None:
    async with unread(rig) as (gateway, _):
        await dropping(gateway)
        assert await gateway.stop() == 0


async def read(pipe: int) -> bytes:
    await asyncio.sleep(0.1)
    text = b""
    try:
        while piece := os.read(pipe, 2**16):
            text += piece
    except BlockingIOError:
        pass
    return text


@single_fault(67)
async def disk_that_is_full(rig: Rig) -> None:
    (folder(rig) / "stdout.log").symlink_to("/dev/full")
    async with process(rig, HASTY) as gateway:
        for _ in range(20):
            assert good(await asked(gateway, ASK), False) == "one"
        while (await status(gateway))["log_lines_dropped"] != 20:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
        assert await gateway.stop() == 0
    told = [orjson.loads(line)["message"] for line in gateway.messages().splitlines()]
    assert [line for line in told if "log" in line] == ["lines of the access log are dropped: No space left on device"]


# F68: no descriptor --------------------------------------------------------------------------------------------------

FEW: Final = 64
FEW_DESCRIPTORS: Final = f"import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, ({FEW}, {FEW}))\n"


async def served(gateway: RunningGateway) -> bool:
    try:
        return (await asked(gateway, ASK)).status == 200
    except (ConnectionResetError, asyncio.IncompleteReadError):
        return False


async def status_of(client: RawClient, data: bytes) -> int:
    """Send data and return the status of the response. A status other than 200 must be a valid refusal. Return 0
    without a response."""
    try:
        await client.send(data)
        answer = await client.answer()
    except (ConnectionResetError, asyncio.IncompleteReadError):
        return 0
    if answer.status != 200:
        assert refusal(answer) == (503, "overloaded")
    return answer.status


WHOLE: Final = request("POST", "/v1/completions", ASK, AUTH)


@single_fault(68)
async def no_descriptor_left(rig: Rig) -> None:
    """A client that has reached the gateway gets a valid refusal. After other clients have left, every client is served
    again."""
    # Each request needs another descriptor for its upstream connection.
    rig.one.default = json_answer(200, completion("one", "m"), [("connection", "close")])
    async with process(rig, first=FEW_DESCRIPTORS) as gateway:
        async with AsyncExitStack() as crowd:
            begun: deque[RawClient] = deque()
            # uvloop closes connections that it cannot accept, so a descriptor may be free after the last client has
            # come.
            while len(begun) < FEW or await status_of(begun.popleft(), WHOLE[-1:]) != 503:
                begun.append(await crowd.enter_async_context(connected(port_of(gateway.url))))
                await begun[-1].send(WHOLE[:-1])
        while not await served(gateway):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.05)
        assert await served(gateway)
        told = gateway.messages().splitlines()
        assert sum("no connection can be accepted" in line for line in told) <= 1
        assert len(told) < 10


@single_fault(68)
async def idle_clients_everywhere(rig: Rig) -> None:
    """Idle clients are disconnected in favour of clients that were served before, and of new clients."""
    rig.one.default = json_answer(200, completion("one", "m"), [("connection", "close")])
    async with process(rig, first=FEW_DESCRIPTORS) as gateway, connected(port_of(gateway.url)) as inside:
        assert await status_of(inside, WHOLE) == 200
        async with AsyncExitStack() as idle:
            for _ in range(FEW):
                await idle.enter_async_context(connected(port_of(gateway.url)))
            while await status_of(inside, WHOLE) != 200:  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.05)
            while not await served(gateway):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.05)
