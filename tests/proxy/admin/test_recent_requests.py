"""Counts and quantiles of the last minutes: the counted events, their expiry, and the bound of the memory."""

import pytest

from providers.completion import Usage
from proxy.admin import recent_requests
from proxy.admin.recent_requests import (
    BOUNDS,
    MINUTES,
    NO_USE,
    MinuteRing,
    RecentRequests,
    RecentUse,
    RecentUses,
    quantile,
    sum_of,
    summed,
)
from proxy.request_record import OTHER, Attempt, Outcome, RequestRecord
from tests.support.looped import looped


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def record(finished: float, *attempts: Attempt, outcome: Outcome = "ok", tokens: int = 0) -> RequestRecord:
    made = RequestRecord("r", finished - 2.0, "openai", "/v1/completions", finished=finished, outcome=outcome)
    made.attempts = list(attempts)
    made.first_content = finished - 1.5
    made.usage = Usage(40, tokens, {"cached_tokens": 30})
    return made


def call(finished: float, label: str = "v/m/a", outcome: str = "ok") -> Attempt:
    return Attempt(label, finished - 1.0, finished, outcome)


def test_a_request_counts_for_the_whole_and_each_attempt_for_its_deployment() -> None:
    clock = Clock(600.0)
    requests = RecentRequests(clock)
    requests.add(record(601.0, call(600.5, "v/m/a", "timeout"), call(601.0, "v/m/b"), tokens=30), None)
    clock.now = 610.0
    uses = requests.uses()
    assert (uses.seconds, uses.whole.requests, uses.whole.errors, uses.whole.tokens) == (10.0, 1, 0, 30)
    failed, answered = uses.deployments["v/m/a"], uses.deployments["v/m/b"]
    assert (failed.requests, failed.errors, failed.tokens, failed.durations) == (1, 1, 0, ())
    assert (answered.requests, answered.errors, answered.tokens) == (1, 0, 30)
    # The failed vendor has counted no prompt.
    assert [each.cached_share for each in (uses.whole, answered, failed)] == [0.75, 0.75, None]
    # The figures of the request as a whole, and of the call that got its response.
    assert uses.whole.duration(0.5) == pytest.approx(2.0)
    assert answered.duration(0.5) == pytest.approx(1.0)
    assert uses.whole.first(0.5) == pytest.approx(0.5)


@looped(
    ("outcome", "errors", "refused"),
    [
        *(("upstream_error", 1, 0), ("truncated", 1, 0), ("error", 1, 0), ("denied", 0, 1), ("limited", 0, 1)),
        *(("client_gone", 0, 0), ("ok", 0, 0)),
    ],
)
def test_who_is_to_blame_is_counted_apart(outcome: Outcome, errors: int, refused: int) -> None:
    requests = RecentRequests(Clock(60.0))
    requests.add(record(61.0, outcome=outcome), None)
    whole = requests.uses().whole
    assert (whole.requests, whole.errors, whole.refused) == (1, errors, refused)


def test_a_vendor_that_refuses_what_a_client_sent_has_made_no_error() -> None:
    requests = RecentRequests(Clock(60.0))
    requests.add(record(61.0, call(61.0, outcome="invalid_request"), outcome="client_error"), None)
    use = requests.uses().deployments["v/m/a"]
    assert (use.requests, use.errors, use.refused) == (1, 0, 1)


def test_a_request_that_was_shed_is_not_counted() -> None:
    requests = RecentRequests(Clock(60.0))
    requests.add(record(61.0, outcome="shed"), None)
    assert requests.uses().whole == NO_USE


def test_what_is_older_than_the_window_is_forgotten_minute_by_minute() -> None:
    clock = Clock(0.0)
    requests = RecentRequests(clock)
    for minute in range(MINUTES + 2):
        requests.add(record(60.0 * minute + 30, call(60.0 * minute + 30)), None)
    clock.now = 60.0 * (MINUTES + 1) + 30
    uses = requests.uses()
    assert uses.whole.requests == uses.deployments["v/m/a"].requests == MINUTES
    assert uses.seconds == 60.0 * (MINUTES - 1) + 30
    clock.now += 60.0 * MINUTES
    assert requests.uses() == RecentUses(clock.now % 60 + 60 * (MINUTES - 1))


def test_a_deployment_that_is_not_called_any_more_leaves_nothing_behind() -> None:
    requests = RecentRequests(Clock(0.0))
    requests.add(record(30.0, call(30.0, "old/m/a")), None)
    requests.add(record(60.0 * MINUTES + 30, call(30.0, "new/m/a")), None)
    assert list(requests._deployments) == ["new/m/a"]


def test_deployments_beyond_the_most_are_counted_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recent_requests, "MOST", 2)
    requests = RecentRequests(Clock(0.0))
    for number in range(5):
        requests.add(record(30.0, call(30.0, f"v/m/{number}")), None)
    counts = {label: use.requests for label, use in requests.uses().deployments.items()}
    assert counts == {"v/m/0": 1, "v/m/1": 1, OTHER: 3}


def test_a_ring_keeps_as_many_arrays_whatever_it_counts() -> None:
    ring = MinuteRing()
    sizes = set()
    for minute in range(1, 50):
        ring.at(minute)[0] += 1
        sizes.add(sum(len(row) for row in ring._rows))
    assert max(sizes) == MINUTES * len(ring.at(49))
    assert ring.newest == 49
    assert ring.since(48) == RecentUse(requests=2)
    assert ring.since(50) is None


def test_the_counts_of_several_processes_are_added_up() -> None:
    one = RecentUses(60.0, RecentUse(2, 1, 0, 7, (1, 1), (), (0.004, 0.012)), {"a": RecentUse(2, 1)})
    use = RecentUse(3, 0, 1, 5, (0, 0, 3), (1,), (0.015, 0.018), (0.002, 0.002), 80, 20)
    other = RecentUses(90.0, use, {"a": RecentUse(1), "b": RecentUse(2)})
    both = RecentUse(5, 1, 1, 12, (1, 1, 3), (1,), (0.004, 0.018), (0.002, 0.002), 80, 20)
    assert summed([one, other]) == RecentUses(90.0, both, {"a": RecentUse(3, 1), "b": RecentUse(2)})
    assert summed([]) == RecentUses()
    assert sum_of([]) == NO_USE


@looped(
    ("counts", "share", "seconds"),
    [
        ((), 0.5, None),
        ((0, 0), 0.5, None),
        ((4,), 0.5, BOUNDS[0] / 2),
        ((0, 2), 1.0, BOUNDS[1]),
        ((1, 1), 0.5, BOUNDS[0]),
        ((95, 5), 0.95, BOUNDS[0]),
        ((0,) * len(BOUNDS) + (3,), 0.5, BOUNDS[-1]),
    ],
)
def test_a_quantile_is_interpolated_in_its_class(counts: tuple[int, ...], share: float, seconds: float | None) -> None:
    assert quantile(counts, share) == (None if seconds is None else pytest.approx(seconds))


@looped(
    "seconds",
    [(0.0022,), (0.0022, 0.0031), (0.0, 0.004), (0.005, 2.0, 2.1), (3.0, 0.011, 0.0111), (0.003,) * 40, (900.0,)],
)
def test_no_quantile_is_outside_of_what_was_measured(seconds: tuple[float, ...]) -> None:
    requests = RecentRequests(Clock(0.0))
    for each in seconds:
        made = record(30.0, call(30.0))
        made.started, made.finished = 0.0, each
        made.first_content = each
        made.attempts = [Attempt("v/m/a", 0.0, each)]
        requests.add(made, None)
    least, most = min(*seconds, BOUNDS[-1]), min(max(seconds), BOUNDS[-1])
    for use in (requests.uses().whole, requests.uses().deployments["v/m/a"]):
        for share in (0.0, 0.5, 0.95, 1.0):
            for found in (use.duration(share), use.first(share)):
                assert found is not None
                assert least <= found <= most
