"""R49: the parts of a receipt match the actual times, by a clock that advances only while something waits.

The dispatcher, the queue, the waits between attempts and the response cache are the gateway's; vendors take exactly the
time that each test sets. So every part is known, and together they are all the time that passed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace

import pytest
from typing_extensions import override

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind, UpstreamError
from proxy.dispatch.single_attempt import Dispatcher
from proxy.receipt.request_parts import milliseconds_of_parts
from proxy.receipt.server_timing import timing_line
from proxy.request_outcomes import Receipt
from proxy.request_record import RequestRecord
from proxy.upstream.transport import Repeats, UpstreamResponse
from tests.proxy.kit.dispatch_rig import Behaviour, Rig, fails, hangs, refuses
from tests.proxy.kit.mark_streams import Body
from tests.proxy.kit.virtual_time import run
from tests.proxy.receipt.kit import told
from tests.support.looped import looped

CONNECTING = 0.03


@dataclass
class Dialled(Rig):
    """A rig whose calls use new connections, which take CONNECTING seconds each."""

    @override
    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        await asyncio.sleep(CONNECTING)
        request.note_connected(CONNECTING)
        return await super().open(request, request_id, repeats)


def after(seconds: float, *then: bytes | float) -> Behaviour:
    """Return a response whose head arrives after `seconds`."""
    return lambda: Body(*then, b"", headers={"after": str(seconds)})


async def whole(dispatcher: Dispatcher, rig: Rig) -> None:
    """Read a non-streaming response."""
    job = rig.job()
    with job.deadlines:
        await dispatcher.whole(job)


async def streamed(dispatcher: Dispatcher, rig: Rig) -> None:
    """Read a stream up to its first content."""
    job = rig.job()
    with job.deadlines:
        async with await dispatcher.streamed(job):
            rig.record.first_content = asyncio.get_running_loop().time()


Ask = Callable[[Dispatcher, Rig], Awaitable[None]]


def receipt(rig: Rig, ask: Ask) -> tuple[Mapping[str, float], float]:
    """Return the parts of a request up to its head, and the milliseconds that it took."""

    async def main() -> float:
        dispatcher, loop = rig.dispatcher(), asyncio.get_running_loop()
        with suppress(UpstreamError):
            await ask(dispatcher, rig)
        return rig.record.first_content or loop.time()

    head = run(main())
    rig.record.receipt = Receipt(lambda name: True, last=True)
    parts = told(timing_line(rig.record, head).removeprefix("Server-Timing: ").strip())
    parts = {name: took for name, took in parts.items() if took}
    assert parts == {name: took for name, took in milliseconds_of_parts(rig.record, head).items() if took}
    return parts, head * 1000


SLOW_FIRST = {"a": [refuses("server", 503, 0.25)], "b": [after(0.8, b"+hi")]}

CASES: Mapping[str, tuple[dict[str, list[Behaviour]], type[Rig], Mapping[str, float]]] = {
    "one": ({"a": [after(0.8, b"+hi")]}, Rig, {"vendor": 800}),
    "new connection": ({"a": [after(0.8, b"+hi")]}, Dialled, {"connect": 30, "vendor": 800}),
    "slow body": ({"a": [after(0.8, 2.0, b"+hi")]}, Rig, {"vendor": 800, "body": 2000}),
    "failover": (SLOW_FIRST, Rig, {"attempt1": 250, "vendor": 800}),
    "failover over new connections": (SLOW_FIRST, Dialled, {"attempt1": 280, "connect": 30, "vendor": 800}),
    "refused at once": (
        {"a": [fails(FailureKind.CONNECT, unsent=True)], "b": [after(0.8, b"+hi")]},
        Rig,
        {"vendor": 800},
    ),
    "the same again": (
        {"a": [refuses("rate_limited", 429, 0.2), after(0.8, b"+hi")]},
        Rig,
        {"attempt1": 200, "vendor": 800},
    ),
}


@looped(("behaviours", "rig", "parts"), list(CASES.values()), ids=list(CASES))
def test_parts_of_a_whole_response(
    behaviours: dict[str, list[Behaviour]], rig: type[Rig], parts: Mapping[str, float]
) -> None:
    found, took = receipt(rig({name: [*each] for name, each in behaviours.items()}), whole)
    backoff = took - sum(parts.values())
    assert found == pytest.approx(with_backoff(parts, backoff))


@looped(("behaviours", "rig", "parts"), list(CASES.values()), ids=list(CASES))
def test_parts_of_a_stream(behaviours: dict[str, list[Behaviour]], rig: type[Rig], parts: Mapping[str, float]) -> None:
    found, took = receipt(rig({name: [*each] for name, each in behaviours.items()}), streamed)
    # Its first content counts, not its head.
    vendor = parts["vendor"] + parts.get("body", 0)
    expected = {**{name: each for name, each in parts.items() if name != "body"}, "vendor": vendor}
    backoff = took - sum(expected.values())
    assert found == pytest.approx(with_backoff(expected, backoff))


def with_backoff(parts: Mapping[str, float], milliseconds: float) -> Mapping[str, float]:
    """Return the parts with a wait between attempts, if there was one: the gateway chooses its length at random."""
    assert milliseconds >= -1e-6
    return {**parts, "backoff": milliseconds} if milliseconds > 1e-6 else parts


def test_a_time_limit_names_itself() -> None:
    rig = Rig({"a": [hangs()], "b": [after(0.8, b"+hi")]})
    found, _ = receipt(rig, streamed)
    assert found["vendor"] == 800
    assert (rig.record.attempts[0].outcome, rig.record.attempts[0].phase) == ("timeout", "first_event")
    rig.record.receipt = Receipt(lambda name: name == "v/m", last=True)
    line = timing_line(rig.record, rig.record.first_content or 0.0)
    assert f'attempt1;dur={found["attempt1"]};desc="v/m/a first_event"' in line


def test_all_fail() -> None:
    found, took = receipt(Rig({"a": [refuses("server", 503, 0.25)], "b": [refuses("server", 503, 0.5)]}), whole)
    assert (found["attempt1"], found["attempt2"]) == (250, 500)
    assert sum(found.values()) == pytest.approx(took)
    assert "vendor" not in found


def test_a_wait_for_a_slot_is_none_of_the_gateways_nor_of_the_vendors() -> None:
    rig = Rig({"narrow": [after(0.8, b"+hi")]})
    first, second = (RequestRecord(name, 0.0, "openai", "/") for name in ("first", "second"))

    async def main() -> None:
        dispatcher = rig.dispatcher()
        jobs = [replace(rig.job(), record=each, deadlines=rig.job().deadlines) for each in (first, second)]

        async def answered(number: int) -> float:
            with jobs[number].deadlines:
                await dispatcher.whole(jobs[number])
            return asyncio.get_running_loop().time()

        assert [*await asyncio.gather(answered(0), answered(1))] == [0.8, 1.6]

    run(main())
    assert milliseconds_of_parts(first, 0.8) == {"gateway": 0, "vendor": 800}
    assert milliseconds_of_parts(second, 1.6) == {"gateway": 0, "queue": 800, "vendor": 800}
