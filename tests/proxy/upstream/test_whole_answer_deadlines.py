"""How long the gateway waits for one target's non-streaming response, in virtual time, whether the call is a stream
or not."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest
from typing_extensions import override

from providers.completion import Choice, Completion
from providers.dialect import UpstreamRequest
from providers.emulation.plan_calls import plan_calls
from providers.failure import Failure, FailureKind
from proxy.deadlines import DeadlinePassed, Phase
from proxy.upstream.transport import Repeats, UpstreamResponse
from tests.proxy.kit.mark_streams import CUT, USAGE, Body, Step, often
from tests.proxy.kit.mark_vendor import Door, Scripted
from tests.proxy.kit.vendor_caller import ASKED, GOOD, Rig, answers, body_of
from tests.support.looped import looped


def passes(rig: Rig) -> tuple[Phase, float, float]:
    """Return the deadline that ends a non-streaming response, its limit, and when it does."""
    with pytest.raises(DeadlinePassed) as caught:
        rig.whole()
    assert body_of(rig).closed + body_of(rig).released == len(rig.door.seen) - (rig.time < rig.door.delay)
    return caught.value.phase, caught.value.limit, rig.time


def limited(rig: Rig, begins: float | None = None, **limits: float) -> Rig:
    """Return the rig with these limits of its deployment, which an operator wrote, and this time limit for a response
    to begin."""
    changed: dict[str, Any] = {**limits, "written": frozenset(limits)}  # Any: names known at run time
    timeouts = replace(GOOD.target.timeouts, **changed)
    rig.prepared, rig.answer = plan_calls(ASKED, replace(rig.prepared.target, timeouts=timeouts)), begins
    return rig


@looped("delay", [0.0, 2.0, 10.0])
def test_an_answer_that_does_not_begin_in_its_time_is_given_up(delay: float) -> None:
    assert passes(limited(answers(10.0, b"+a", b"", delay=delay), 3.0)) == (Phase.ANSWER, 3.0, 3.0)


def test_blanks_are_signs_of_life_and_not_yet_the_answer_which_may_take_longer_once_begun() -> None:
    assert passes(limited(answers(*often(9, 1.0, b" \r\n")), 3.5)) == (Phase.ANSWER, 3.5, 3.5)
    assert passes(limited(answers(1.0, b"\n"), 500.0)) == (Phase.IDLE, 120.0, 121.0)
    rig = limited(answers(*often(9, 1.0, b"+"), b"a", b""), 3.0)
    assert (len(rig.whole().choices), rig.time) == (1, 9.0)


def test_after_its_head_an_answer_may_be_silent_as_long_as_the_operator_says_or_as_it_takes() -> None:
    assert passes(limited(answers(5.0, b"+a", delay=2.0), 60.0, idle=4.0)) == (Phase.IDLE, 4.0, 6.0)
    rig = answers(599.0, b"+a", b"")
    assert (len(rig.whole().choices), rig.time) == (1, 599.0)


# Non-streaming responses made from streams ----------------------------------------------------------------------------


def out_of_a_stream(rig: Rig, begins: float | None = None, **limits: float) -> Rig:
    """Return the rig with a deployment that allows streaming for non-streaming requests."""
    rig = limited(rig, begins, **limits)
    rig.prepared = plan_calls(ASKED, replace(rig.prepared.target, stream_upstream="auto"))
    return rig


def test_a_whole_answer_can_be_asked_for_as_a_stream() -> None:
    rig = out_of_a_stream(answers(b":", b"+a", 100.0, b"+b", 100.0, b". #", b"$", b""))
    assert rig.whole() == Completion((Choice(0, "ab", "stop"),), USAGE)
    assert [request.stream for request, _ in rig.door.seen] == [True]
    assert rig.prepared.request.stream is False


@looped(
    ("limits", "answer", "end"),
    [
        ({}, None, (Phase.FIRST_EVENT, 60.0)),
        ({"first_event": 3.0}, None, (Phase.FIRST_EVENT, 3.0)),
        ({"first_event": 3.0}, 120.0, (Phase.FIRST_EVENT, 3.0)),
        ({"first_event": 9.0, "answer": 4.0}, 4.0, (Phase.ANSWER, 4.0)),
        ({"answer": 90.0}, 90.0, (Phase.ANSWER, 90.0)),
    ],
)
def test_a_stream_read_whole_is_timed(limits: dict[str, float], answer: float | None, end: tuple[Phase, float]) -> None:
    assert passes(out_of_a_stream(answers(*often(99, 1.0, b":")), answer, **limits)) == (*end, end[1])


def test_a_stream_read_whole_may_not_fall_silent() -> None:
    rig = out_of_a_stream(answers(b"+a", *often(9, 6.0, b":"), b"+b", 9.0), 3.0, idle=7.0)
    assert passes(rig) == (Phase.IDLE, 7.0, 61.0)


@pytest.mark.parametrize(("steps", "kind"), [((b"+a", CUT), "truncated"), ((b"+a", b"!"), "server")])
def test_a_stream_that_breaks_is_no_whole_answer(steps: tuple[Step, ...], kind: str) -> None:
    rig = out_of_a_stream(answers(*steps))
    assert rig.fails(rig.whole).kind.value == kind
    assert body_of(rig).closed == 1


def test_a_stream_read_whole_is_no_longer_than_a_whole_answer_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.upstream.call_vendor.MAX_BODY", 100)
    rig = out_of_a_stream(answers(b"+a", *often(99, b"+" + b"x" * 9)))
    assert rig.fails(rig.whole).kind is FailureKind.MALFORMED
    assert body_of(rig).left > 80


class Unverified(Scripted):
    """A vendor that does not stream for every client."""

    @override
    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return Failure(FailureKind.INVALID_REQUEST, body.decode(), status)


@dataclass
class Unstreamed(Door):
    @override
    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        self.seen.append((request, request_id))
        return Body(b"You may not stream this model.", b"", status=400) if request.stream else self._whole()

    def _whole(self) -> UpstreamResponse:
        assert isinstance(self.answer, Body)
        return self.answer


def test_a_vendor_that_will_not_stream_is_asked_for_the_answer_in_one_piece() -> None:
    rig = Rig(Unstreamed(Body(b"+a", b"")))
    rig.prepared = plan_calls(ASKED, replace(GOOD.target, dialect=Unverified()))
    rig = out_of_a_stream(rig)
    assert [choice.text for choice in rig.whole().choices] == ["a"]
    assert [request.stream for request, _ in rig.door.seen] == [True, False]


def test_a_request_that_is_refused_for_itself_is_not_repeated() -> None:
    rig = out_of_a_stream(answers(b"no", status=400))
    rig.fails(rig.whole)
    assert [request.stream for request, _ in rig.door.seen] == [True]
