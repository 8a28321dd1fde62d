"""The calls of a task in virtual time: concurrent, under one deadline, and the first failure ends all."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pytest

from providers.dialect import TaskCalls, UpstreamRequest
from providers.failure import FailureKind, UpstreamError
from providers.unified_request import Task
from proxy.deadlines import DeadlinePassed, Deadlines, Phase
from proxy.request_record import Attempt, RequestRecord
from proxy.upstream import call_task
from proxy.upstream.call_task import AnsweredParts, TaskCaller
from proxy.upstream.call_vendor import MAX_CONCURRENT_CALLS
from proxy.upstream.send_call import CallSender
from proxy.upstream.transport import RepeatableError, RepeatCause, Repeats, Take, UpstreamResponse, fail, read_each
from tests.providers.tasks.kit import at
from tests.proxy.kit.in_process_checks import off_loop
from tests.proxy.kit.virtual_time import run

TARGET = at("openai")


@dataclass
class _Answering:
    """A response whose body arrives after some seconds."""

    seconds: float
    pieces: list[bytes]
    released: bool = False
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"count": "7"})
    head: bytes = b""

    def take_all(self) -> bytes | None:
        return None

    async def read(self) -> bytes:
        await asyncio.sleep(self.seconds)
        return self.pieces.pop(0) if self.pieces else b""

    async def each(self, take: Take) -> None:
        await read_each(self, take)

    def release(self) -> None:
        self.released = True

    def close(self) -> None:
        self.released = True


@dataclass
class _Vendor:
    """A transport whose response depends on the body of the call."""

    answer: Callable[[bytes], UpstreamResponse]
    seen: list[bytes] = field(default_factory=list)
    repeats: list[Repeats] = field(default_factory=list)

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        self.seen.append(request.body)
        self.repeats.append(repeats)
        return self.answer(request.body)

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""


def _calls(count: int) -> TaskCalls[str]:
    calls = [
        UpstreamRequest(TARGET, Task.EMBEDDINGS, "https://v.example/e", b"%d" % number, stream=False)
        for number in range(count)
    ]

    def decode(sent: UpstreamRequest, headers: object, body: bytes) -> str:
        if body == b"bad":
            raise UpstreamError(fail(FailureKind.MALFORMED, "bad").failure)
        return f"{sent.body.decode()}={body.decode()}"

    def join(parts: Sequence[str]) -> str:
        return " ".join(parts)

    return TaskCalls(TARGET, tuple(calls), decode, join, 2**30)


def _timed_call(
    vendor: _Vendor, count: int, total: float = 100.0, answer: float | None = None
) -> tuple[str, float, float]:
    """Return the response, its duration, and the time spent waiting."""

    async def asked() -> tuple[str, float, float]:
        loop = asyncio.get_running_loop()
        record = RequestRecord("r", loop.time(), "openai", "/", attempts=[Attempt("v/m", 0.0)])
        begun = loop.time()
        with Deadlines(total) as deadlines:
            caller = TaskCaller(CallSender(vendor), off_loop())
            found = await caller.answer(_calls(count), record, deadlines, answer, AnsweredParts())
        return found, loop.time() - begun, record.waited

    return run(asked())


def test_the_answers_are_joined_in_the_order_of_the_calls() -> None:
    vendor = _Vendor(lambda body: _Answering(3.0 - int(body), [b"x"]))
    found, seconds, waited = _timed_call(vendor, 3)
    assert found == "0=x 1=x 2=x"
    assert seconds == waited == 6.0  # a chunk and the end of the body, three seconds each


def test_so_many_run_at_once_and_no_more() -> None:
    vendor = _Vendor(lambda body: _Answering(1.0, [b"x"]))
    assert _timed_call(vendor, 2 * MAX_CONCURRENT_CALLS)[1] == 4.0


def test_the_first_failure_ends_all() -> None:
    vendor = _Vendor(lambda body: _Answering(1.0 if body == b"1" else 50.0, [b"bad"]))
    with pytest.raises(UpstreamError) as caught:
        _timed_call(vendor, 3)
    assert caught.value.failure.status == 200


def _again(vendor: _Vendor, *asked: TaskCalls[str]) -> list[str]:
    """Return the results of the calls of one request, one attempt after the other."""

    async def attempts() -> list[str]:
        kept: AnsweredParts[str] = AnsweredParts()
        caller = TaskCaller(CallSender(vendor), off_loop())
        record = RequestRecord("r", 0.0, "openai", "/", attempts=[Attempt("v/m", 0.0)])
        found: list[str] = []
        for prepared in asked:
            with Deadlines(100.0) as deadlines:
                try:
                    found.append(await caller.answer(prepared, record, deadlines, None, kept))
                except UpstreamError as error:
                    found.append(error.failure.message)
        return found

    return run(attempts())


def test_a_repeat_at_the_same_target_makes_only_the_calls_that_were_not_answered() -> None:
    vendor = _Vendor(lambda body: _Answering(1.0, [b"bad" if body == b"2" and len(vendor.seen) <= 3 else b"x"]))
    assert _again(vendor, _calls(3), _calls(3)) == ["bad", "0=x 1=x 2=x"]
    assert vendor.seen == [b"0", b"1", b"2", b"2"]


def test_another_target_and_answers_that_do_not_fit_together_make_all_calls_again() -> None:
    vendor = _Vendor(lambda body: _Answering(1.0, [b"x"]))
    other = replace(_calls(2), target=at("mistral"))
    assert _again(vendor, _calls(2), other) == ["0=x 1=x"] * 2
    assert len(vendor.seen) == 4

    def unfit(parts: Sequence[str]) -> str:
        raise UpstreamError(fail(FailureKind.MALFORMED, "unfit").failure)

    vendor.seen.clear()
    assert _again(vendor, replace(_calls(2), join=unfit), _calls(2)) == ["unfit", "0=x 1=x"]
    assert len(vendor.seen) == 4


def test_one_deadline_holds_for_all() -> None:
    vendor = _Vendor(lambda body: _Answering(30.0, [b"x"]))
    with pytest.raises(DeadlinePassed) as caught:
        _timed_call(vendor, 3, total=20.0)
    assert caught.value.phase is Phase.TOTAL


@pytest.mark.parametrize("count", [1, 3])
def test_each_call_must_begin_to_be_answered_in_time(count: int) -> None:
    vendor = _Vendor(lambda body: _Answering(30.0, [b"x"]))
    with pytest.raises(DeadlinePassed) as caught:
        _timed_call(vendor, count, answer=5.0)
    assert caught.value.phase is Phase.ANSWER


def test_a_connection_that_was_closed_while_idle_costs_one_more_call() -> None:
    def answer(body: bytes) -> UpstreamResponse:
        if len(vendor.seen) == 1:
            raise RepeatableError(fail(FailureKind.STALE, "stale").failure, RepeatCause.STALE_CONNECTION)
        return _Answering(0.0, [b"x"])

    vendor = _Vendor(answer)
    assert _timed_call(vendor, 1)[0] == "0=x"
    assert vendor.repeats == [(), (RepeatCause.STALE_CONNECTION,)]


def test_a_web_page_and_a_body_without_end_are_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UpstreamError, match="web page"):
        _timed_call(_Vendor(lambda body: _Answering(0.0, [b"<html>"])), 1)
    monkeypatch.setattr(call_task, "MOST_BYTES", 10)
    made = _Answering(0.0, [b"12345678", b"90123", b"x"])
    with pytest.raises(UpstreamError, match="larger than 10"):
        _timed_call(_Vendor(lambda body: made), 1)
    assert made.released
    assert made.pieces == [b"x"]


@pytest.mark.parametrize("count", [1, 2])
def test_an_answer_larger_than_was_asked_for_is_not_read_to_its_end(count: int) -> None:
    made: list[_Answering] = []

    def answer(body: bytes) -> UpstreamResponse:
        made.append(_Answering(0.0, [b"12345678", b"90123", b"x"]))
        return made[-1]

    (found,) = _again(_Vendor(answer), replace(_calls(count), most_bytes=10))
    assert "larger than 10" in found
    assert all(b"x" in each.pieces for each in made)


def test_a_long_answer_is_decoded_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_task, "LONG", 2)
    assert _timed_call(_Vendor(lambda body: _Answering(0.0, [b"long enough"])), 1)[0] == "0=long enough"
