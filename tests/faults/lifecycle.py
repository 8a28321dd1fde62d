"""F57 to F59, F65, F69, F70: faults caused by operators, the machine and the gateway itself."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from email.utils import parsedate_to_datetime
from typing import Final, cast
from unittest.mock import patch
from urllib.parse import urlsplit

from typing_extensions import override

from providers.json_types import JsonObject
from proxy.overload.memory_usage import V2, Group, MemoryMeter
from tests.faults.check_answers import choices, frames, good, refusal
from tests.faults.fault_rig import AUTH, PATIENT, TABLE, Rig, ok
from tests.faults.registry import fault, single_fault
from tests.proxy.kit.raw_client import Answer, RawClient, connected, exchange, request
from tests.support.http_scripts import LAST_CHUNK, chunk, head, json_answer
from tests.support.openai_wire import completion_frames
from tests.support.vendor_script import Hang, Script, Send, Until

SECRET: Final = "sk-canary-of-the-file"
FRAMES: Final = completion_frames(["one", "two"])
START: Final = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))


class Lines(logging.Handler):
    """The log messages of the process."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[str] = []

    @override
    def emit(self, record: logging.LogRecord) -> None:
        self.told.append(record.getMessage())


@contextmanager
def listening() -> Iterator[list[str]]:
    """Record the process's own messages, for the duration of the block."""
    log, lines = logging.getLogger("dragoman"), Lines()
    level = log.level
    log.addHandler(lines)
    log.setLevel(logging.INFO)  # the level of a gateway that serves
    try:
        yield lines.told
    finally:
        log.setLevel(level)
        log.removeHandler(lines)


def held(stream: bool, gate: asyncio.Event) -> Script:
    """Return a good response that waits for the gate: a stream after its first content, a non-streaming response before
    its head."""
    if not stream:
        return (Until(gate), *ok(False, "onetwo"))
    rest = (Send(chunk(frame)) for frame in FRAMES[1:])
    return (START, Send(chunk(FRAMES[0])), Until(gate), *rest, Send(LAST_CHUNK))


async def reload(rig: Rig, text: str) -> Answer:
    """Write another config file and request a reload."""
    rig.path.write_text(text, encoding="utf-8")
    return await exchange(urlsplit(rig.app.admin_url).port or 0, request("POST", "/-/reload"))


# F57 to F59: config files --------------------------------------------------------------------------------------------

BAD: Final[Mapping[str, str]] = {
    TABLE.replace('"${KEY}"', f'"{SECRET}'): "8:48 not YAML: ",
    TABLE.replace('"${KEY}"', f"[{SECRET}]"): "4:12 defaults.api_key: expected text",
    TABLE.replace('"${KEY}"', f'"${{{SECRET}}}"'): "4:12 defaults.api_key: a reference is written",
    TABLE.replace("connect: 500ms", f"connect: {SECRET}"): "6:23 defaults.timeouts.connect: must be a duration",
    TABLE.replace("allow_private: true", f"allow_private: {SECRET}"): "5:18 defaults.allow_private: expected true",
    TABLE.replace("version: 1", f"version: {SECRET}"): "1:10 version: must be 1",
    TABLE + f"secrets: {SECRET}\n": "17:1 secrets: unknown key",
    TABLE + f"\t{SECRET}\n": "17:1 not YAML: ",
    "": "1:1 the configuration is empty",
}
"""Config files that are refused, and the position of the error."""


@asynccontextmanager
async def traffic(rig: Rig) -> AsyncIterator[None]:
    """Send about 50 requests a second, for the duration of the block."""
    over = asyncio.Event()

    async def client(model: str) -> None:
        while not over.is_set():
            await rig.ask(model)
            await asyncio.sleep(0.1)

    async with asyncio.TaskGroup() as group:
        for number in range(5):
            group.create_task(client(("one/m", "both")[number % 2]))
        yield
        over.set()


@fault(57, PATIENT)
async def bad_tables_between_good_ones_under_load(rig: Rig) -> None:
    more = PATIENT.replace("  two/m: {}\n", "  two/m: {}\n  one/more: {}\n")
    with listening() as told:
        async with traffic(rig):
            for number, (text, where) in enumerate((*BAD.items(), *BAD.items())):
                digest = rig.app.front.gateway._current.snapshot.digest
                refused = await reload(rig, text)
                assert (refused.status, refused.json()["digest"]) == (400, digest)
                first = str(cast(list[object], refused.json()["problems"])[0])
                assert first.startswith(f"{rig.path}:{where}")
                assert f"reload refused: {first}" in told
                assert SECRET.encode() not in refused.body
                series = await rig.series("config_")
                assert series["config_last_reload_successful"] == 0
                assert series["config_reloads_total result=failure"] == number + 1
                assert (await reload(rig, (PATIENT, more)[number % 2])).status == 200
                await asyncio.sleep(0.08)
    assert len(rig.answers) >= 50
    for answer in rig.answers:
        assert good(answer, rig.stream) == "one"
    assert {line["outcome"] for line in await rig.logged()} == {"ok"}
    assert (await rig.series("config_"))["config_reloads_total result=success"] == 2 * len(BAD)
    assert SECRET not in str(told)
    assert SECRET.encode() not in rig.log.getvalue()


@asynccontextmanager
async def under_way(rig: Rig, count: int) -> AsyncIterator[list[RawClient]]:
    """Run clients that wait for responses of `one/m`. For a stream they have received the head and the first
    content."""
    async with AsyncExitStack() as stack:
        before = len(rig.one.requests)
        clients = [await stack.enter_async_context(connected(rig.port)) for _ in range(count)]
        for client in clients:
            rig.asked += 1
            body: JsonObject = {"model": "one/m", "prompt": "hi", "stream": rig.stream}
            await client.send(request("POST", "/v1/completions", body, AUTH))
        await rig.one.received(before + count)
        for client in clients if rig.stream else ():
            assert (await client.head())[0] == 200
            assert await client.chunk()
        yield clients


@fault(58, PATIENT)
async def table_without_a_deployment_that_is_in_use(rig: Rig) -> None:
    gate = asyncio.Event()
    rig.one.answer(*[held(rig.stream, gate)] * 5)
    deployments = rig.app.front.dispatcher.deployments
    without = PATIENT.replace("  one/m: {}\n", "").replace('"one/m", ', "").replace("one/m, ", "")
    async with under_way(rig, 5) as clients:
        known = dict(deployments.breakers._known)
        for text in (without, without.replace("stream: 9s", "stream: 8s"), without):
            assert (await reload(rig, text)).status == 200
            assert refusal(await rig.ask("one/m")) == (404, "model_not_found")
            assert good(await rig.ask("both"), rig.stream) == "two"
        assert [name for name, *_ in (*deployments.breakers._known, *deployments._queues)] == ["two/m/default"] * 2
        assert [health.in_flight for (name, *_), health in known.items() if name == "one/m/default"] == [5]
        gate.set()
        for client in clients:
            if rig.stream:
                rest, whole = await client.chunks()
                assert (whole, rest.endswith(b"data: [DONE]\n\n")) == (True, True)
                parts = frames(Answer(200, {}, rest, whole))
                assert "".join(str(choice["text"]) for choice in choices(parts)) == "two"
            else:
                assert good(await client.answer(), False) == "onetwo"
    while any(health.in_flight for health in known.values()):  # noqa: ASYNC110 - the client has its end before that
        await asyncio.sleep(0.001)
    assert len(rig.one.requests) == 5
    outcomes = [line["outcome"] for line in await rig.logged()]
    assert (outcomes.count("ok"), outcomes.count("client_error")) == (8, 3)


BOMB: Final = "version: 1\na: &a [1, 1]\n" + "".join(
    f"b{depth}: &b{depth} [{', '.join([f'*b{depth - 1}' if depth else '*a'] * 10)}]\n" for depth in range(9)
)
ODD: Final[Mapping[str, str]] = {
    TABLE.replace("  one/m: {}\n", "  one/m: {}\n  one/m: {weight: 2}\n"): "12:3 models.one/m: key written twice",
    TABLE.replace("version: 1\n", "version: 1\nversion: 1\n"): "2:1 version: key written twice",
    TABLE.replace("one/m: {}", "one/m: {wieght: 1}"): "11:11 models.one/m.wieght: unknown key",
    TABLE + "server_: {}\n": "17:1 server_: unknown key; did you mean server?",
    BOMB: "8:15 b5.1: more than 400000 values, with every alias written out",
    TABLE + "x: &a [*a]\n": "17:8 x.0: this alias (*) stands inside its own anchor (&)",
    TABLE + "---\nversion: 1\n": "17:1 a second document (---) starts here",
    TABLE.replace("version: 1", "version: !!python/object:os.system 1"): "1:10 version: an unknown YAML tag",
    TABLE + "#" * 2**20: "1:1 cannot read the file: larger than 1024 KiB",
}
"""Config files that a plain YAML parser would accept, and the position of the error."""


@single_fault(59)
async def tables_that_say_two_things_nothing_or_too_much(rig: Rig) -> None:
    before = rig.app.front.gateway._current.snapshot
    for text, where in ODD.items():
        refused = await reload(rig, text)
        assert (refused.status, refused.json()["result"]) == (400, "refused")
        assert str(cast(list[object], refused.json()["problems"])[0]).startswith(f"{rig.path}:{where}")
        assert rig.app.front.gateway._current.snapshot is before
    assert good(await rig.ask(), False) == "one"


# F65, F69, F70: the machine ------------------------------------------------------------------------------------------

HOUR: Final = 3600.0


@contextmanager
def jump(seconds: float) -> Iterator[None]:
    """Shift the wall clock by that many seconds, for the duration of the block."""
    real = time.time
    with patch("time.time", lambda: real() + seconds):
        yield


def dated(answer: Answer) -> float:
    """Return the unix time of a response's Date."""
    return parsedate_to_datetime(answer.headers["date"]).timestamp()


@fault(65, PATIENT)
async def wall_clock_that_jumps(rig: Rig) -> None:
    """Waits and limits continue unchanged. Only timestamps show the jump."""
    loop = asyncio.get_running_loop()
    limited = json_answer(429, {"error": {"message": "slow down"}}, [("retry-after", "6")])
    hasty: JsonObject = {"model": "one/m", "prompt": "hi", "stream": rig.stream}
    for seconds in (HOUR, -HOUR):
        rig.forget()
        gate = asyncio.Event()
        rig.one.answer(held(rig.stream, gate), limited)
        before = len(rig.one.requests)
        async with under_way(rig, 1) as (client,):
            assert refusal(await rig.ask("one/m"))[0] == 429
            with jump(seconds):
                assert abs(dated(await rig.ask("one/m")) - time.time()) < 60
                assert refusal(rig.answers[-1]) == (429, "rate_limit_exceeded")
                assert rig.answers[-1].headers["retry-after"] in ("5", "6")
                assert good(await rig.ask("both"), rig.stream) == "two"
                gate.set()
                assert (await client.chunks())[1] if rig.stream else (await client.answer()).whole
                rig.forget()
                rig.one.answer((Hang(),))
                asked = loop.time()
                late = await rig.post(hasty, headers={"x-request-timeout": "0.5"})
                assert refusal(late) == (504, "upstream_timeout")
                assert loop.time() - asked >= 0.5
        assert len(rig.one.requests) == before + 3
        assert good(await rig.ask("one/m"), rig.stream) == "one"
    lines = await rig.logged()
    times = [str(line["time"]) for line in lines]
    assert times != sorted(times)
    for line in lines:
        assert 0 <= cast(float, line["duration_ms"]) < 10_000
        assert 0 <= cast(float, line["upstream_ms"]) < 10_000


def stand_still(password: str) -> None:
    """Block the loop for twice as long as the watchdog tolerates."""
    assert password
    time.sleep(2)


@single_fault(69)
async def loop_that_stands_still(rig: Rig) -> None:
    with listening() as told:
        async with connected(rig.port) as client:
            await client.send(request("GET", "/health/live"))
            await client.answer()
            stand_still("hunter2")
            while not (await rig.series("event_loop_lag"))["event_loop_lag_seconds"]:
                pass
            assert (await rig.series("event_loop_lag"))["event_loop_lag_seconds"] >= 0.5
            assert good(await rig.ask(), False) == "one"
    (line,) = [line for line in told if "stood still" in line]
    assert line.startswith("the event loop has stood still for ")
    assert " at faults/lifecycle.py:" in line
    assert " stand_still < " in line
    assert "hunter2" not in line
    assert "\n" not in line


def fill(rig: Rig, used: int) -> None:
    """Set the memory in use, in thousandths of the limit, as a control group reports it."""
    folder = rig.path.parent
    for name, text in ((V2.limit, "1000"), (V2.usage, str(used)), ("memory.stat", "inactive_file 0")):
        (folder / name).write_text(text, encoding="ascii")
    meter = cast(MemoryMeter, rig.app.front.admission._memory)
    meter._groups = (Group(folder, V2),)
    meter.read()


@single_fault(70, PATIENT)
async def memory_near_its_limit(rig: Rig) -> None:
    rig.stream = True
    gate = asyncio.Event()
    rig.one.answer(held(True, gate))
    async with under_way(rig, 1) as (client,):
        for used, streams, wholes in (
            (849, 200, 200),
            (850, 503, 200),
            (949, 503, 200),
            (950, 503, 503),
            (2000, 503, 503),
        ):
            fill(rig, used)
            for stream, status in ((True, streams), (False, wholes)):
                before = len(rig.two.requests)
                answer = await rig.ask("two/m", stream=stream)
                if status == 200:
                    assert good(answer, stream) == "two"
                else:
                    assert refusal(answer) == (503, "overloaded")
                    assert (answer.headers["retry-after"], "x-should-retry" in answer.headers) == ("1", False)
                assert len(rig.two.requests) == before + (status == 200)
            assert (await exchange(rig.port, request("GET", "/health"))).status == 200
        gate.set()
        assert (await client.chunks())[1]
    fill(rig, 500)
    assert good(await rig.ask("two/m"), True) == "two"
    outcomes = [line["outcome"] for line in await rig.logged()]
    assert (outcomes.count("shed"), outcomes.count("ok"), len(outcomes)) == (6, 6, 12)
    assert (await rig.series("shed_total"))["shed_total reason=memory"] == 6
