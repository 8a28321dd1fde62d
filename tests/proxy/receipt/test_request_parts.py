"""The parts of a request do not overlap, and together they are its duration, whatever happened in it."""

import random
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from proxy.receipt.request_parts import (
    merged,
    milliseconds_of_parts,
    parts_of,
    tokens_per_second,
    units_of,
)
from proxy.request_outcomes import CacheUse
from proxy.request_record import Attempt, RequestRecord
from tests.proxy.receipt.kit import START, attempt, marks, record, streamed, whole, with_fields
from tests.support.looped import looped

END = START + 1.0


def found(made: RequestRecord, end: float = END) -> Mapping[str, float]:
    return {part.name: part.units / 100 for part in parts_of(made, end)}


def connected(made: RequestRecord, seconds: float) -> RequestRecord:
    made.attempts[-1].connect = seconds
    return made


def late_body() -> RequestRecord:
    made = whole()
    made.attempts[0].begun = START + 0.65
    return made


def broken_stream() -> RequestRecord:
    made = streamed()
    made.attempts[0].outcome = "truncated"
    return made


@looped(
    ("made", "parts"),
    [
        (whole(), {"gateway": 100.0, "vendor": 900.0}),
        (connected(whole(), 0.2), {"gateway": 100.0, "connect": 200.0, "vendor": 700.0}),
        (connected(whole(), 7.0), {"gateway": 100.0, "connect": 900.0, "vendor": 0.0}),
        (late_body(), {"gateway": 100.0, "vendor": 600.0, "body": 300.0}),
        (streamed(), {"gateway": 60.0, "vendor": 440.0, "stream": 500.0}),
        (broken_stream(), {"gateway": 60.0, "vendor": 440.0, "stream": 500.0}),
        (
            streamed(client_waited=0.22, marks=marks(upload=0.02)),
            {"gateway": 40.0, "client": 220.0, "vendor": 440.0, "stream": 300.0},
        ),
        (whole(limit_waited=0.01, marks=marks(queued=0.02)), {"gateway": 70.0, "queue": 30.0, "vendor": 900.0}),
        (record(), {"gateway": 1000.0}),
        (
            with_fields(record(), cache=CacheUse("hit"), marks=marks(cached=0.4)),
            {"gateway": 600.0, "cache": 400.0},
        ),
        (
            with_fields(record(attempt(0.1, 0.4, "timeout")), cache=CacheUse("stale"), first_content=START + 0.5),
            {"gateway": 200.0, "cache": 0.0, "attempt1": 300.0, "stream": 500.0},
        ),
        (
            with_fields(record(attempt(0, 0.2, "server"), attempt(0.3, 0.9)), marks=marks(paused=0.1)),
            {"gateway": 100.0, "attempt1": 200.0, "backoff": 100.0, "vendor": 600.0},
        ),
        (
            record(attempt(0, 0.2, "server"), attempt(0.2, 0.2, "busy"), attempt(0.2, 0.9, "server")),
            {"gateway": 100.0, "attempt1": 200.0, "attempt2": 0.0, "attempt3": 700.0},
        ),
    ],
    ids=str,
)
def test_parts(made: RequestRecord, parts: Mapping[str, float]) -> None:
    assert found(made) == parts


def test_of_two_attempts_at_a_time_each_moment_counts_once() -> None:
    late = attempt(0.1, 0.8, "superseded")
    assert found(record(late, attempt(0.4, 0.8))) == {"gateway": 300.0, "attempt1": 300.0, "vendor": 400.0}
    # The first attempt succeeded after all: the second, which began later, took no part of the request's time.
    first, second = attempt(0.1, 0.8), attempt(0.4, 0.8, "superseded")
    assert found(record(second, first)) == {"gateway": 300.0, "attempt2": 0.0, "vendor": 700.0}


def test_the_first_of_two_attempts_goes_on_after_the_second_has_failed() -> None:
    first, second = attempt(0.1, 0.8, "server"), attempt(0.3, 0.5, "server")
    parts = {"gateway": 100.0, "attempt1": 500.0, "attempt2": 200.0}
    assert found(record(second, first), START + 0.8) == parts
    assert found(record(second, first, attempt(0.8, 1.0))) == {**parts, "vendor": 200.0}


def held_back(outcome: str = "ok") -> RequestRecord:
    """Return a stream whose content was there after 0.3 and is held back for 0.5: guards take 0.2 of that, and took
    0.1 before."""
    one = attempt(0.15, 0.8, outcome)
    one.begun = START + 0.3
    return with_fields(record(one), marks=marks(guarded=0.3, held=0.3))


def test_what_guards_take_and_hold_back_is_none_of_the_gateways() -> None:
    shown = with_fields(held_back(), first_content=START + 0.8)
    before = {"gateway": 50.0, "guards": 300.0, "vendor": 150.0, "body": 300.0}
    assert found(shown, START + 0.8) == before
    assert found(shown) == {**before, "stream": 200.0}
    # Refused: the stream is closed after the guards' verdict.
    assert found(held_back(), START + 0.8) == before
    # The vendor broke off meanwhile: its attempt gets all of that time.
    broken = found(held_back("truncated"), START + 0.8)
    assert broken == {"gateway": 0.0, "guards": 150.0, "attempt1": 650.0}
    whole_response = whole(marks=marks(guarded=0.08))
    assert found(whole_response) == {"gateway": 20.0, "guards": 80.0, "vendor": 900.0}


def test_an_attempt_that_runs_has_taken_what_has_passed() -> None:
    running = attempt(0.1, 0)
    running.finished = 0.0
    assert found(record(running), START + 0.3) == {"gateway": 100.0, "vendor": 200.0}


def test_a_head_has_no_part_of_what_comes_after_it() -> None:
    made = streamed()
    made.attempts[0].finished = 0.0
    assert found(made, made.first_content or 0.0) == {"gateway": 60.0, "vendor": 440.0}


TIME = st.floats(0, 100)
OUTCOMES = st.sampled_from(("ok", "server", "timeout", "superseded", "cancelled"))


@st.composite
def records(draw: st.DrawFn) -> tuple[RequestRecord, float]:
    """Generate a request that waited for anything in any order, and its end: marks of one clock, so all are
    in order."""
    now = START
    made = record()

    def passed() -> float:
        nonlocal now
        now += draw(TIME)
        return now

    waits = made.waits()
    for name in ("upload", "queued", "paused", "cached", "guarded"):
        before = now
        setattr(waits, name, passed() - before)
    made.client_waited = waits.upload
    for number in range(draw(st.integers(0, 7))):
        one = Attempt(f"v/m/{number}", passed(), outcome=draw(OUTCOMES))
        one.connect = passed() - one.started if draw(st.booleans()) else 0.0
        one.begun = passed() if draw(st.booleans()) else 0.0
        one.finished = passed()
        made.attempts.append(one)
    if draw(st.booleans()):
        made.first_content = passed()
        before = passed()
        made.client_waited += passed() - before
    return made, passed()


@given(records())
def test_parts_are_the_whole_time_and_none_is_negative(case: tuple[RequestRecord, float]) -> None:
    made, end = case
    parts = parts_of(made, end)
    whole_units = units_of(end - made.started)
    assert all(part.units >= 0 for part in parts)
    # Each part is rounded separately, and the gateway's own part is the remainder.
    assert whole_units <= sum(part.units for part in parts) <= whole_units + len(parts)
    assert len({part.name for part in parts}) == len(parts)


@given(records(), st.integers(0, 7))
def test_attempts_told_together_keep_their_time(case: tuple[RequestRecord, float], shown: int) -> None:
    parts = parts_of(*case)
    fewer = merged(parts, shown)
    assert sum(part.units for part in fewer) == sum(part.units for part in parts)
    failed = [part for part in parts if part.attempt is not None]
    assert sum(part.attempt is not None for part in fewer) == min(shown, len(failed))
    assert sum(part.hidden for part in fewer) == max(0, len(failed) - shown)


@looped("made", [whole(), streamed(), late_body(), broken_stream(), connected(whole(), 0.2), record()], ids=str)
def test_the_short_way_to_the_parts_gives_the_same(made: RequestRecord) -> None:
    assert milliseconds_of_parts(made, END) == found(made)


@given(st.randoms(use_true_random=False))
def test_the_short_way_gives_the_same_at_any_time(draw: random.Random) -> None:
    first, second, third, fourth, end = sorted(draw.uniform(0, 50) for _ in range(5))
    for made in (whole(), streamed()):
        one = made.attempts[0]
        one.started, one.finished, made.finished = START + first, START + fourth, START + end
        if made.first_content is not None:
            one.begun, made.first_content = START + second, START + third
        short = milliseconds_of_parts(made, START + end)
        assert {name: took for name, took in short.items() if took} == {
            name: took for name, took in found(made, START + end).items() if took
        }


def test_tokens_a_second() -> None:
    made = streamed(usage=Usage(10, 30))
    assert tokens_per_second(made, END) == 60
    assert tokens_per_second(whole(usage=Usage(10, 30)), END) is None
    assert tokens_per_second(streamed(), END) is None
    made.first_content = END - 0.019  # all of it arrived at once
    assert tokens_per_second(made, END) is None
    made.first_content = END
    assert tokens_per_second(made, END) is None
