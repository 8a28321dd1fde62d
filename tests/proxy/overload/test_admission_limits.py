"""The requests that admission refuses, and why: each limit at its boundary, the curve of the lag, and counts that
return to zero."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import OverloadReason
from proxy.overload.admission_limits import Admission, AdmissionLimits, Admitted, ShedRules
from tests.support.looped import looped

RULES = ShedRules()
SMALL = AdmissionLimits(requests=2, streams=2, body_bytes=1000)
ROOMY = AdmissionLimits(requests=20, streams=2, body_bytes=1000)


@dataclass
class Gauge:
    """A lag, a queue and a memory whose values a test sets."""

    steady: float = 0.0
    too_long: bool = False
    share: float = 0.0
    drawn: float = 0.0

    def draw(self) -> float:
        """Return the number set by the test."""
        return self.drawn


def small_admission(gauge: Gauge | None = None, limits: AdmissionLimits = SMALL) -> Admission:
    """Return an admission with small limits."""
    gauge = gauge or Gauge()
    return Admission(limits, RULES, gauge, gauge, gauge, gauge.draw)


@pytest.fixture
def admission() -> Admission:
    return small_admission()


def test_requests_are_let_in_up_to_their_lid_and_again_when_one_ends(admission: Admission) -> None:
    first = admission.begin(0)
    assert admission.refusal() is None
    admission.begin(0)
    assert admission.refusal() is OverloadReason.REQUESTS
    first.end()
    assert admission.refusal() is None


def test_a_committed_stream_makes_room_for_a_request(admission: Admission) -> None:
    admission.begin(0)
    admission.begin(0).commit()
    assert (admission.requests, admission.streams) == (1, 1)
    assert admission.refusal() is None


def test_what_a_request_needs_besides_its_body_counts_with_bodies_until_it_ends(admission: Admission) -> None:
    other, held = admission.begin(100), admission.begin(200)
    assert held.hold_more(50)
    assert admission.bodies.total == 350
    assert not held.hold_more(10_000)
    held.end()
    assert admission.bodies.total == 100
    other.end()
    assert admission.bodies.total == 0


def test_streams_begin_up_to_their_lid_and_others_are_let_in_beyond_it(admission: Admission) -> None:
    first = admission.begin(0)
    first.commit()
    assert admission.refuses_streams() is None
    admission.begin(0).commit()
    assert admission.refuses_streams() is OverloadReason.STREAMS
    assert admission.refusal() is None
    first.end()
    assert admission.refuses_streams() is None


def test_a_body_keeps_its_bytes_until_its_stream_ends(admission: Admission) -> None:
    held = admission.begin(600)
    held.commit()
    assert not admission.begin(0).hold_body(401)
    held.end()
    assert admission.bodies.total == 401


def test_a_body_beyond_the_lid_is_let_in_alone(admission: Admission) -> None:
    assert admission.begin(0).hold_body(5000)
    assert not admission.begin(0).hold_body(1)


def test_a_body_counts_as_it_comes_and_never_less_than_before(admission: Admission) -> None:
    held = admission.expect()
    assert admission.bodies.total == 0
    assert held.hold_body(300)
    assert held.hold_body(700)
    assert held.hold_body(500)
    assert admission.bodies.total == 700
    held.end()
    assert admission.bodies.total == 0


def test_a_whole_body_counts_with_its_request(admission: Admission) -> None:
    assert admission.begin(0).hold_whole(400) is None
    assert admission.expect().hold_whole(400) is None
    assert (admission.requests, admission.arriving.total, admission.bodies.total) == (2, 0, 800)
    assert admission.expect().hold_whole(0) is OverloadReason.REQUESTS


def test_a_whole_body_that_does_not_fit_is_refused_and_its_request_not_counted() -> None:
    admission = small_admission(limits=ROOMY)
    pending_request(admission, "a").hold_body(1000)
    arriving = pending_request(admission, "a")
    assert arriving.hold_whole(1) is OverloadReason.BODY_BYTES
    assert (admission.requests, admission.arriving.total) == (0, 2)


def pending_request(admission: Admission, tenant: str) -> Admitted:
    """Return a tenant's request whose body has not arrived."""
    admitted = admission.expect()
    assert admitted.assign(tenant) is None
    return admitted


def test_one_tenant_may_fill_the_bytes_while_no_other_holds_any() -> None:
    admission = small_admission(limits=ROOMY)
    assert pending_request(admission, "a").hold_body(400)
    assert pending_request(admission, "a").hold_body(600)
    assert not pending_request(admission, "a").hold_body(1)


def test_where_they_are_full_the_tenant_above_its_share_gets_no_more_and_one_below_it_does() -> None:
    admission = small_admission(limits=ROOMY)
    first = pending_request(admission, "a")
    assert first.hold_body(1000)
    newcomer = pending_request(admission, "b")
    assert newcomer.hold_body(500)
    assert not first.hold_body(1001)
    assert not newcomer.hold_body(501)
    third = pending_request(admission, "c")
    assert third.hold_body(333)
    assert not third.hold_body(334)


def test_the_bytes_of_all_never_pass_twice_the_lid() -> None:
    admission = small_admission(limits=ROOMY)
    for tenant, share in (("a", 1000), ("b", 500), ("c", 333)):
        assert pending_request(admission, tenant).hold_body(share)
    last = pending_request(admission, "d")
    assert last.hold_body(167)
    assert admission.bodies.total == 2000
    assert not last.hold_body(168)


def test_bytes_that_came_before_their_tenant_was_known_become_the_tenant_s() -> None:
    admission = small_admission(limits=ROOMY)
    early = admission.begin(900)
    assert early.assign("a") is None
    assert pending_request(admission, "b").hold_body(500)
    assert not early.hold_body(901)
    early.end()
    assert admission.bodies.total == 500


def test_a_body_that_is_still_arriving_takes_no_place_of_a_request(admission: Admission) -> None:
    arriving = [pending_request(admission, "a") for _ in range(2)]
    assert (admission.requests, admission.arriving.total) == (0, 2)
    assert admission.expect().assign("a") is OverloadReason.REQUESTS
    assert admission.refusal() is None
    other = pending_request(admission, "b")
    assert other.complete() is None
    assert [each.complete() for each in arriving] == [None, OverloadReason.REQUESTS]
    assert (admission.requests, admission.arriving.total) == (3, 1)


@looped(
    ("share", "stream", "request_"),
    [
        (0.0, None, None),
        (0.849, None, None),
        (0.85, OverloadReason.MEMORY, None),
        (0.949, OverloadReason.MEMORY, None),
        (0.95, OverloadReason.MEMORY, OverloadReason.MEMORY),
        (1.5, OverloadReason.MEMORY, OverloadReason.MEMORY),
    ],
)
def test_f70_full_memory_refuses_streams_first_and_then_everything(
    share: float, stream: OverloadReason | None, request_: OverloadReason | None
) -> None:
    admission = small_admission(Gauge(share=share))
    assert admission.refuses_streams() is stream
    assert admission.refusal() is request_


@looped(
    ("lag", "share"),
    [(0.0, 0.0), (0.1, 0.0), (0.1001, 0.1), (0.2, 0.275), (0.3, 0.45), (0.4, 0.625), (0.5, 0.8), (9.0, 0.8)],
)
def test_a_late_loop_refuses_the_share_of_its_lag(lag: float, share: float) -> None:
    assert RULES.share(lag) == pytest.approx(share, abs=1e-3)
    gauge = Gauge(steady=lag)
    admission = small_admission(gauge)
    refused = 0
    for step in range(1000):
        gauge.drawn = (step + 0.5) / 1000
        refused += admission.refusal() is OverloadReason.LOOP_LAG
    assert refused / 1000 == pytest.approx(share, abs=2e-3)


def test_a_line_that_is_too_long_takes_nobody_else_and_lets_streams_go_on() -> None:
    gauge = Gauge(too_long=True)
    assert small_admission(gauge).refusal() is OverloadReason.QUEUE
    assert small_admission(gauge).refuses_streams() is None
    gauge.too_long = False
    assert small_admission(gauge).refusal() is None


def test_what_has_been_refused_is_known_for_one_to_two_looks() -> None:
    gauge = Gauge()
    admission = small_admission(gauge)
    seen = [admission.sheds]
    for gauge.share in (1.0, 0.0):
        admission.refusal()
        seen.append(admission.sheds)
        seen.append(admission.look())
        seen.append(admission.sheds)
    assert seen == [False, True, True, True, True, False, False]


def test_a_late_loop_lets_streams_go_on() -> None:
    assert small_admission(Gauge(steady=9.0)).refuses_streams() is None


@given(st.floats(0, 10), st.floats(0, 10))
def test_a_later_loop_never_refuses_less(one: float, other: float) -> None:
    less, more = sorted((one, other))
    assert 0.0 <= RULES.share(less) <= RULES.share(more) <= RULES.most


def test_the_lids_that_are_built_in() -> None:
    admission = small_admission(limits=AdmissionLimits())
    for _ in range(1999):
        admission.begin(0)
    assert admission.refusal() is None
    admission.begin(2**20)
    assert admission.refusal() is OverloadReason.REQUESTS


@given(st.lists(st.tuples(st.sampled_from(["begin", "holds", "commit", "end"]), st.integers(0, 3000)), max_size=60))
def test_what_is_under_the_lids_is_what_has_begun_and_not_ended(steps: list[tuple[str, int]]) -> None:
    admission = small_admission()
    waiting: list[tuple[Admitted, int]] = []
    streaming: list[tuple[Admitted, int]] = []
    for step, number in steps:
        match step:
            case "begin" if admission.refusal() is None:
                waiting.append((admission.begin(number), number))
            case "holds" if waiting:
                admitted, length = waiting.pop()
                admitted.hold_body(number)
                waiting.append((admitted, max(length, number)))
            case "commit" if waiting and admission.refuses_streams() is None:
                admitted, length = waiting.pop(number % len(waiting))
                admitted.commit()
                streaming.append((admitted, length))
            case "end" if waiting + streaming:
                side = waiting or streaming
                side.pop(number % len(side))[0].end()
        assert (admission.requests, admission.streams) == (len(waiting), len(streaming))
        assert admission.bodies.total == sum(length for _, length in waiting + streaming)
        assert admission.requests <= SMALL.requests
        assert admission.streams <= SMALL.streams
