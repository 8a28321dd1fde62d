"""The gateway's HTTP client reads vendors' responses as aiohttp's client does, except for the listed `DIFFERENCES`.

Bytes arrive whole, one by one and cut anywhere; the vendor keeps, closes or resets the connection.
"""

import asyncio
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.proxy.kit.byte_vendor import Ending
from tests.proxy.kit.call_outcomes import Outcome, Rig, rig
from tests.proxy.kit.eager_tasks import LOOPS
from tests.proxy.kit.http_answers import CHUNKED, FIVE, HAND_WRITTEN, LAST, OK, PLAIN, recorded
from tests.proxy.kit.http_differences import DIFFERENCES, Difference, read
from tests.support.examples import examples
from tests.support.nightly import by_day

ENDINGS: tuple[Ending, ...] = ("stays", "fin", "rst")


@dataclass(frozen=True)
class Lab:
    """A rig in a loop of its own, for thousands of examples. A `thorough` lab runs on the loop that gateways use, and
    tries all of them.
    """

    runner: asyncio.Runner
    rig: Rig
    thorough: bool

    def ours(self, pieces: Sequence[bytes], ending: Ending, method: str = "POST") -> Outcome:
        """Return the outcome of a response in the gateway's client."""
        outcome = self.runner.run(self.rig.outcome(self.rig.ours, pieces, ending, method))
        assert not outcome.mixed_up, "the next call got another answer"
        return outcome

    def theirs(self, pieces: Sequence[bytes], ending: Ending, method: str = "POST") -> Outcome:
        """Return the outcome of a response in aiohttp's client."""
        return self.runner.run(self.rig.outcome(self.rig.theirs, pieces, ending, method))

    def explanations(self, answer: bytes, ending: Ending, method: str = "POST") -> list[Difference] | None:
        """Return the differences that explain why the two disagree; `None` if they agree."""
        ours, theirs = self.ours([answer], ending, method), self.theirs([answer], ending, method)
        if both_broke_off(ours, theirs) or ours == theirs:
            return None
        found = [
            difference for difference in DIFFERENCES if difference.explains(read(answer, ending, method), ours, theirs)
        ]
        assert found, f"{method} {ending} {answer[:2_000]!r}: {ours} here, {theirs} there"
        return found


def both_broke_off(ours: Outcome, theirs: Outcome) -> bool:
    """Return whether both saw the body begin and break off. How much of it they returned before is chance."""
    return (
        ours.end == theirs.end == "truncated"
        and (ours.status, ours.headers) == (theirs.status, theirs.headers)
        and (ours.body.startswith(theirs.body) or theirs.body.startswith(ours.body))
    )


@pytest.fixture(scope="module", params=by_day(["asyncio"], [*LOOPS]))
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    """Yield the lab on the loop that gateways use, and in the nightly run on the other loop too."""
    with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
        made = rig()
        yield Lab(runner, runner.run(made.__aenter__()), request.param == "asyncio")
        runner.run(made.__aexit__(None, None, None))


def test_every_odd_answer_is_read_as_aiohttp_reads_it_and_every_difference_occurs(lab: Lab) -> None:
    calls = [(answer, ending, "POST") for answer in HAND_WRITTEN.values() for ending in ENDINGS]
    calls += [(answer, ending, "HEAD") for answer in PLAIN.values() for ending in ENDINGS]
    occurred = {id(found) for each in calls for found in lab.explanations(*each) or ()}
    assert [difference.why for difference in DIFFERENCES if id(difference) not in occurred] == []


def test_every_recorded_answer_is_read_as_aiohttp_reads_it(lab: Lab) -> None:
    every = 1 if lab.thorough else 5
    for name, answer in list(recorded().items())[::every]:
        ours, theirs = lab.ours([answer], "fin"), lab.theirs([answer], "fin")
        assert ours == theirs, name
        assert ours.end == "ok", name


EVENTS = b"".join(b"%x\r\n%s\r\n" % (len(event), event) for event in (b'data: {"a": 1}\n\n', b"data: [DONE]\n\n"))
CUT = {
    "length": OK + FIVE + b"\r\nhello",
    "chunks": OK + CHUNKED + b"\r\n" + EVENTS + LAST,
    "interim, extension and trailer": b"HTTP/1.1 100 Continue\r\n\r\n"
    + OK
    + CHUNKED
    + b"\r\n5;a=b\r\nhello\r\n0\r\nA: 1\r\n\r\n",
    "end": b"HTTP/1.0 200 OK\r\nA: 1\r\n\r\nhello",
}


@pytest.mark.parametrize("name", CUT)
@pytest.mark.parametrize("ending", ["stays", "fin"])
def test_an_answer_that_breaks_off_anywhere_is_told_from_a_whole_one(lab: Lab, name: str, ending: Ending) -> None:
    answer = CUT[name]
    for size in range(0, len(answer), 1 if lab.thorough else 3):
        ours, theirs = lab.ours([answer[:size]], ending), lab.theirs([answer[:size]], ending)
        assert both_broke_off(ours, theirs) or ours == theirs, answer[:size]
        assert ours.end != "ok" or (name == "end" and ending == "fin")


def cut(answer: bytes, places: Sequence[int]) -> list[bytes]:
    """Return the response in chunks that end at `places`."""
    marks = sorted({0, len(answer), *(place % (len(answer) + 1) for place in places)})
    return [answer[start:end] for start, end in pairwise(marks)]


def same(whole: Outcome, cut_up: Outcome) -> bool:
    """Return whether the chunks made no difference. A fault in the same read as the head hides the status from the
    caller. Bytes behind a response close the connection, except for a line end in the same read.
    """
    if whole.end in ("malformed", "truncated"):
        return cut_up.end in ("malformed", "truncated", "unanswered")
    return (whole.end, whole.status, whole.headers, whole.body) == (
        cut_up.end,
        cut_up.status,
        cut_up.headers,
        cut_up.body,
    ) and (whole.reused or not cut_up.reused)


COUNTED_BY_READ = {"extension of 100 KB", "5,000 trailers"}
"""Framing without content is limited by the reads in which it arrives, so these may or may not exceed the limit."""


def test_pieces_make_no_difference(lab: Lab) -> None:
    chance = random.Random(16)
    for name in HAND_WRITTEN.keys() - COUNTED_BY_READ:
        answer = HAND_WRITTEN[name]
        for ending in ENDINGS[:2]:
            whole = lab.ours([answer], ending)
            cuts = [[chance.randrange(len(answer) + 1) for _ in range(3)] for _ in range(2)]
            if len(answer) < 200 and lab.thorough:
                cuts.append(list(range(len(answer))))
            for places in cuts:
                pieces = cut(answer, places)
                assert same(whole, lab.ours(pieces, ending)), (name, ending, pieces)


def test_framing_without_a_body_is_never_waited_for(lab: Lab) -> None:
    chance = random.Random(16)
    for name in COUNTED_BY_READ:
        answer = HAND_WRITTEN[name]
        for _ in range(60):
            places = [chance.randrange(len(answer) + 1) for _ in range(3)]
            assert lab.ours(cut(answer, places), "fin").end in ("ok", "truncated"), places


def test_recorded_answers_may_come_in_any_pieces(lab: Lab) -> None:
    chance = random.Random(16)
    for name, answer in list(recorded().items())[::7]:
        places = [chance.randrange(len(answer) + 1) for _ in range(10)]
        outcome = lab.ours(cut(answer, places), "fin")
        assert outcome.end == "ok", name
        assert outcome.body == lab.ours([answer], "fin").body, name


PARTS = (
    *(b"\r\n", b"\n", b"\r", b" ", b"\t", b"\0", b":", b";", b",", b"0", b"5", b"-", b"\x7f", b"\xff", b"\r\n\r\n"),
    *(FIVE, CHUNKED, LAST, OK, b"Connection: close\r\n", b"5\r\nhello\r\n"),
)
SHORT = [answer for answer in HAND_WRITTEN.values() if len(answer) < 1_000]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """Draw a mutated response: bits flipped, parts inserted, left out or doubled, or the end cut off."""
    answer = bytearray(draw(st.sampled_from(SHORT)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(answer)))
        kind = draw(st.sampled_from(["flip", "put in", "leave out", "double", "cut off"]))
        if kind == "flip":
            answer[at : at + 1] = bytes(byte ^ (1 << draw(st.integers(0, 7))) for byte in answer[at : at + 1])
        elif kind == "put in":
            answer[at:at] = draw(st.sampled_from(PARTS))
        elif kind == "leave out":
            del answer[at : at + draw(st.integers(1, 5))]
        elif kind == "double":
            answer[at:at] = answer[at : at + draw(st.integers(1, 30))]
        else:
            del answer[at:]
    return bytes(answer)


@given(answer=mutated(), ending=st.sampled_from(ENDINGS), method=st.sampled_from(["POST", "POST", "POST", "HEAD"]))
@example(answer=OK + FIVE + b"\r\nhello", ending="stays", method="HEAD")
@settings(examples(400), derandomize=True)  # new findings belong in DIFFERENCES, not in an unrelated change
def test_mutated_answers_are_read_as_aiohttp_reads_them(lab: Lab, answer: bytes, ending: Ending, method: str) -> None:
    lab.explanations(answer, ending, method)


@given(answer=mutated(), ending=st.sampled_from(ENDINGS[:2]), places=st.lists(st.integers(0, 999), max_size=8))
@examples(250)
def test_pieces_of_mutants_make_no_difference(lab: Lab, answer: bytes, ending: Ending, places: list[int]) -> None:
    whole, cut_up = lab.ours([answer], ending), lab.ours(cut(answer, places), ending)
    assert same(whole, cut_up), (whole, cut_up)
