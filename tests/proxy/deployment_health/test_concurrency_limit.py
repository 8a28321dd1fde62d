"""The learned limit on concurrent requests: the failures that teach it, its changes, and its expiry."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import override

from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from proxy.deployment_health.concurrency_limit import UNLIMITED, ConcurrencyRules, Limit, shows_overload
from proxy.errors import GatewayError
from proxy.upstream.transport import Repeats, UpstreamResponse
from tests.proxy.kit.dispatch_rig import Rig
from tests.proxy.kit.mark_streams import Body
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped

RULES = ConcurrencyRules()
SAID = FailureKind.RATE_LIMITED


def learned(in_flight: int, bound: int | None = None) -> Limit:
    """Return a limit that was learned at second 0 with `in_flight` requests in flight."""
    limit = Limit(RULES, bound)
    limit.lost(SAID, 0.0, 0.0, in_flight)
    return limit


def test_nobody_is_held_up_until_somebody_has_said_how_many_are_too_many() -> None:
    limit = Limit(RULES)
    for second in range(100):
        limit.won(float(second))
    assert (limit.current, limit.seen(100.0)) == (UNLIMITED, None)


def test_the_first_sign_teaches_nine_tenths_of_what_was_under_way() -> None:
    limit = learned(200)
    assert limit.current == 180
    assert limit.seen(12.0) == (180, "learned after rate_limited 12 s ago")


def test_each_later_sign_shrinks_the_limit_whatever_is_under_way_then() -> None:
    limit = learned(200)
    limit.lost(SAID, 5.0, 4.0, 20)
    assert limit.current == 162


def test_the_signs_of_one_second_and_of_requests_begun_before_the_last_one_are_the_same_sign() -> None:
    limit = learned(200)
    for now, began in ((0.0, 0.0), (0.5, 0.1), (0.999, 0.5), (30.0, -0.5)):
        limit.lost(SAID, now, began, 199)
        assert limit.current == 180
    limit.lost(SAID, 1.0, 0.5, 199)
    assert limit.current == 162


@pytest.mark.parametrize("in_flight", [1, 4])
def test_a_sign_with_hardly_anything_under_way_says_nothing_of_its_number(in_flight: int) -> None:
    assert learned(in_flight).current == UNLIMITED
    limit = learned(50)
    limit.lost(SAID, 10.0, 9.0, in_flight)
    assert limit.current == 45


def test_signs_alone_end_at_the_least() -> None:
    limit = learned(100)
    for second in range(1, 60):
        limit.lost(SAID, float(second), float(second), 100)
    assert limit.current == 4


def test_every_ten_seconds_in_which_requests_go_well_raise_the_limit_by_a_twentieth_and_by_one_at_least() -> None:
    few, many = learned(5), learned(112)
    for now in (1.0, 9.9):
        many.won(now)
    assert (few.current, many.current) == (4, 100)
    for now in (10.0, 10.1, 19.9, 20.0):
        few.won(now)
        many.won(now)
    assert (few.current, many.current) == (6, 110)


def test_one_success_raises_the_limit_once_however_long_it_took_to_come() -> None:
    limit = learned(100)
    limit.won(30.0)
    assert limit.current == 94


def test_a_minute_after_the_last_sign_the_limit_is_forgotten() -> None:
    limit = learned(100)
    limit.lost(SAID, 40.0, 39.0, 90)
    limit.lapse(99.9)
    assert limit.seen(99.9) == (81, "learned after rate_limited 60 s ago")
    assert limit.current == 81
    assert limit.seen(100.0) is None
    limit.lapse(100.0)
    assert limit.current == UNLIMITED


def test_after_it_was_forgotten_the_next_sign_begins_with_what_is_under_way_then() -> None:
    limit = learned(100)
    limit.lost(SAID, 300.0, 299.0, 1000)
    assert limit.current == 900


def test_what_is_learned_may_go_below_the_operators_word_and_never_above() -> None:
    limit = learned(50, bound=50)
    assert limit.seen(1.0) == (45, "learned after rate_limited 1 s ago")
    for now in (10.0, 20.0, 30.0):
        limit.won(now)
    assert (limit.current, limit.seen(30.0)) == (50, (50, "operator"))
    limit.lost(SAID, 40.0, 39.0, 50)
    assert limit.current == 45
    limit.lapse(100.0)
    assert limit.current == 50


@given(st.lists(st.none() | st.tuples(st.floats(0, 90), st.integers(1, 99)), max_size=400))
def test_the_limit_stays_between_the_least_and_the_operators_word(story: list[tuple[float, int] | None]) -> None:
    limit, now = Limit(RULES, 60), 0.0
    for step in story:
        if step is None:
            limit.won(now)
        else:
            now += step[0]
            limit.lost(SAID, now, now, step[1])
        assert 4 <= limit.current <= 60


def test_a_timeout_says_that_it_has_too_much_only_while_others_go_well() -> None:
    gone, busy = Limit(RULES), Limit(RULES)
    for limit in (gone, busy):
        limit.won(1.0)
    busy.won(30.0)
    for limit in (gone, busy):
        limit.lost(FailureKind.TIMEOUT, 62.0, 2.0, 100)
    assert (gone.current, busy.current) == (UNLIMITED, 90)


def test_what_one_team_alone_has_met_neither_tightens_a_limit_for_all_nor_outlives_a_sign_for_all() -> None:
    limit = learned(100)
    limit.lost(SAID, 5.0, 5.0, 90, "loud")
    assert limit.current == 90
    assert limit.only_team is None
    other = Limit(RULES)
    other.lost(SAID, 0.0, 0.0, 100, "loud")
    assert other.only_team == "loud"
    other.lost(SAID, 5.0, 5.0, 90)
    assert other.current == 81
    assert other.only_team is None


@looped(
    ("failure", "ejected", "expected"),
    [
        (Failure(FailureKind.RATE_LIMITED, "m", 429), False, True),
        (Failure(FailureKind.OVERLOADED, "m", 529), False, True),
        (Failure(FailureKind.OVERLOADED, "m", 429), False, True),
        (Failure(FailureKind.OVERLOADED, "in a stream"), False, True),
        (Failure(FailureKind.OVERLOADED, "m", 503, retry_after=2.0), False, True),
        (Failure(FailureKind.OVERLOADED, "no replica is up", 503), True, False),
        (Failure(FailureKind.TIMEOUT, "one of many"), False, False),
        (Failure(FailureKind.TIMEOUT, "m"), True, True),
        (Failure(FailureKind.TIMEOUT, "no connection", unsent=True), True, False),
        (Failure(FailureKind.SERVER, "m", 500), True, False),
        (Failure(FailureKind.QUOTA, "m", 429), False, False),
        (Failure(FailureKind.TOO_LARGE, "m", 429), False, False),
    ],
)
def test_what_says_that_a_deployment_has_too_much(failure: Failure, ejected: bool, expected: bool) -> None:
    assert shows_overload(failure, ejected) is expected


class Crowded(Rig):
    """A vendor that serves fifty requests at once, each for five seconds, and refuses any further one."""

    under_way = 0

    @override
    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        if self.under_way >= 50:
            return Body(b"rate_limited 1", b"", status=429)
        self.under_way += 1
        try:
            await asyncio.sleep(5)
        finally:
            self.under_way -= 1
        return Body(b"+ok", b"")


def test_a_vendor_that_takes_fifty_at_once_is_kept_busy_by_a_crowd_of_more() -> None:
    rig = Crowded({"never": []})
    served: list[float] = []

    async def main() -> None:
        dispatcher, clock = rig.dispatcher(), asyncio.get_running_loop().time

        async def client() -> None:
            while clock() < 120:
                job = rig.job()
                try:
                    with job.deadlines:
                        await dispatcher.whole(job)
                    served.append(clock())
                except (UpstreamError, GatewayError):
                    await asyncio.sleep(1)

        async with asyncio.TaskGroup() as group:
            for _ in range(120):
                group.create_task(client())

    run(main())
    assert sum(60 <= when < 120 for when in served) >= 500, "of 600 that it could"
