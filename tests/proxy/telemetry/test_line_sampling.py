"""Of good requests an exact share is logged, of all others each."""

import pytest

from proxy.request_record import Attempt, RequestRecord
from proxy.telemetry.line_sampling import LineSampling
from tests.support.looped import looped


def good(seconds: float = 1.0) -> RequestRecord:
    record = RequestRecord("req-1", 10.0, "openai", "/v1/completions", status=200, finished=10.0 + seconds)
    record.attempts.append(Attempt("a/m/eu", 10.0))
    return record


@looped("share", [0.001, 0.1, 0.3, 0.5, 0.999])
def test_as_many_good_requests_are_chosen_as_the_share_says_and_say_it(share: float) -> None:
    sampling = LineSampling(share, 5.0)
    records = [good() for _ in range(10_000)]
    taken = [record for record in records if sampling.takes(record)]
    assert abs(len(taken) - share * 10_000) <= 1
    assert sum(1 / record.sample for record in taken if record.sample) == pytest.approx(10_000, rel=0.1)
    assert all((record.sample == share) == (record in taken) for record in taken[:5])


def test_one_of_ten_is_every_tenth() -> None:
    sampling = LineSampling(0.1, 5.0)
    assert [place for place in range(1, 41) if sampling.takes(good())] == [10, 20, 30, 40]


def test_what_failed_was_slow_or_needed_more_than_one_call_is_always_chosen_and_stands_for_itself() -> None:
    sampling = LineSampling(0.001, 5.0)
    failed, limited, slow, elsewhere, again, gone = good(), good(), good(5.0), good(), good(), good()
    failed.outcome, limited.outcome, gone.outcome = "upstream_error", "limited", "client_gone"
    elsewhere.attempts.insert(0, Attempt("a/m/us", 10.0, outcome="server"))
    again.attempts[0].repeats = ("stale_connection",)
    for record in (failed, limited, slow, elsewhere, again, gone):
        assert sampling.takes(record)
        assert record.sample is None
    assert not sampling.takes(good())
