"""Who is refused at the door, and why: each lid at its edge, the curve of the lag, counts that come back to zero."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.admission import Admission, Admitted, Lids, Reason, ShedRules

RULES = ShedRules()
SMALL = Lids(requests=2, streams=2, body_bytes=1000)


@dataclass
class Gauge:
    """A lag, a line and a memory that say what a test wants."""

    steady: float = 0.0
    too_long: bool = False
    share: float = 0.0
    drawn: float = 0.0

    def draw(self) -> float:
        """The number drawn next."""
        return self.drawn


def door(gauge: Gauge | None = None, lids: Lids = SMALL) -> Admission:
    """An admission under small lids."""
    gauge = gauge or Gauge()
    return Admission(lids, RULES, gauge, gauge, gauge, gauge.draw)


def test_requests_are_let_in_up_to_their_lid_and_again_when_one_ends() -> None:
    admission = door()
    first = admission.begin(0)
    assert admission.refusal(0) is None
    admission.begin(0)
    assert admission.refusal(0) is Reason.REQUESTS
    first.end()
    assert admission.refusal(0) is None


def test_a_committed_stream_makes_room_for_a_request() -> None:
    admission = door()
    admission.begin(0)
    admission.begin(0).commit()
    assert (admission.requests, admission.streams) == (1, 1)
    assert admission.refusal(0) is None


def test_streams_begin_up_to_their_lid_and_others_are_let_in_beyond_it() -> None:
    admission = door()
    first = admission.begin(0)
    first.commit()
    assert admission.refuses_streams() is None
    admission.begin(0).commit()
    assert admission.refuses_streams() is Reason.STREAMS
    assert admission.refusal(0) is None
    first.end()
    assert admission.refuses_streams() is None


def test_bodies_are_let_in_up_to_their_bytes() -> None:
    admission = door()
    held = admission.begin(600)
    assert admission.refusal(400) is None
    assert admission.refusal(401) is Reason.BODY_BYTES
    held.end()
    assert admission.refusal(1000) is None


def test_a_body_keeps_its_bytes_until_its_stream_ends() -> None:
    admission = door()
    held = admission.begin(600)
    held.commit()
    assert admission.refusal(401) is Reason.BODY_BYTES
    held.end()
    assert admission.body_bytes == 0


def test_a_body_beyond_the_lid_is_let_in_alone() -> None:
    admission = door()
    assert admission.refusal(5000) is None
    admission.begin(5000)
    assert admission.refusal(1) is Reason.BODY_BYTES


def test_a_body_whose_length_was_not_announced_counts_when_it_came() -> None:
    admission = door()
    held = admission.begin(0)
    assert held.holds(300)
    assert held.holds(700)
    assert held.holds(500)
    assert admission.body_bytes == 700
    held.end()
    assert admission.body_bytes == 0


def test_bodies_that_nobody_announced_are_refused_where_they_are_too_much_together() -> None:
    admission = door()
    alone = admission.begin(0)
    assert alone.holds(5000)
    alone.end()
    first, second = admission.begin(0), admission.begin(600)
    assert first.holds(400)
    assert second.holds(600)
    assert not first.holds(401)
    assert admission.body_bytes == 1001


@pytest.mark.parametrize(
    ("share", "stream", "request_"),
    [
        (0.0, None, None),
        (0.849, None, None),
        (0.85, Reason.MEMORY, None),
        (0.949, Reason.MEMORY, None),
        (0.95, Reason.MEMORY, Reason.MEMORY),
        (1.5, Reason.MEMORY, Reason.MEMORY),
    ],
)
def test_f70_full_memory_refuses_streams_first_and_then_everything(
    share: float, stream: Reason | None, request_: Reason | None
) -> None:
    admission = door(Gauge(share=share))
    assert admission.refuses_streams() is stream
    assert admission.refusal(0) is request_


@pytest.mark.parametrize(
    ("lag", "share"),
    [(0.0, 0.0), (0.1, 0.0), (0.1001, 0.1), (0.2, 0.275), (0.3, 0.45), (0.4, 0.625), (0.5, 0.8), (9.0, 0.8)],
)
def test_a_late_loop_refuses_the_share_of_its_lag(lag: float, share: float) -> None:
    assert RULES.share(lag) == pytest.approx(share, abs=1e-3)
    gauge = Gauge(steady=lag)
    admission = door(gauge)
    refused = 0
    for step in range(1000):
        gauge.drawn = (step + 0.5) / 1000
        refused += admission.refusal(0) is Reason.LOOP_LAG
    assert refused / 1000 == pytest.approx(share, abs=2e-3)


def test_a_line_that_is_too_long_takes_nobody_else_and_lets_streams_go_on() -> None:
    gauge = Gauge(too_long=True)
    assert door(gauge).refusal(0) is Reason.QUEUE
    assert door(gauge).refuses_streams() is None
    gauge.too_long = False
    assert door(gauge).refusal(0) is None


def test_what_has_been_refused_is_known_for_one_to_two_looks() -> None:
    gauge = Gauge()
    admission = door(gauge)
    seen = [admission.sheds]
    for gauge.share in (1.0, 0.0):
        admission.refusal(0)
        seen.append(admission.sheds)
        seen.append(admission.look())
        seen.append(admission.sheds)
    assert seen == [False, True, True, True, True, False, False]


def test_a_late_loop_lets_streams_go_on() -> None:
    assert door(Gauge(steady=9.0)).refuses_streams() is None


@given(st.floats(0, 10), st.floats(0, 10))
def test_a_later_loop_never_refuses_less(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert 0.0 <= RULES.share(less) <= RULES.share(more) <= RULES.most


def test_the_lids_that_are_built_in() -> None:
    admission = door(lids=Lids())
    for _ in range(1999):
        admission.begin(0)
    assert admission.refusal(256 * 2**20) is None
    admission.begin(2**20)
    assert admission.refusal(0) is Reason.REQUESTS


@given(st.lists(st.tuples(st.sampled_from(["begin", "holds", "commit", "end"]), st.integers(0, 3000)), max_size=60))
def test_what_is_under_the_lids_is_what_has_begun_and_not_ended(steps: list[tuple[str, int]]) -> None:
    admission = door()
    waiting: list[tuple[Admitted, int]] = []
    streaming: list[tuple[Admitted, int]] = []
    for step, number in steps:
        match step:
            case "begin" if admission.refusal(number) is None:
                waiting.append((admission.begin(number), number))
            case "holds" if waiting:
                admitted, length = waiting.pop()
                admitted.holds(number)
                waiting.append((admitted, max(length, number)))
            case "commit" if waiting and admission.refuses_streams() is None:
                admitted, length = waiting.pop(number % len(waiting))
                admitted.commit()
                streaming.append((admitted, length))
            case "end" if waiting + streaming:
                side = waiting or streaming
                side.pop(number % len(side))[0].end()
        assert (admission.requests, admission.streams) == (len(waiting), len(streaming))
        assert admission.body_bytes == sum(length for _, length in waiting + streaming)
        assert admission.requests <= SMALL.requests
        assert admission.streams <= SMALL.streams
