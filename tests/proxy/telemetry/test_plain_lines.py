"""Whatever a request was like, its line is the one that `request_line` writes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from providers.pricing import Price
from proxy.request_outcomes import CacheUse
from proxy.request_record import Attempt, Outcome, RequestRecord
from proxy.telemetry import access_log, plain_lines
from proxy.telemetry.access_log import request_line
from proxy.telemetry.log_writer import MAX_LINE
from proxy.telemetry.plain_lines import PlainLines
from tests.proxy.kit.odd_texts import ODD

TIME = "2026-11-23T06:00:00.125Z"


@pytest.fixture(autouse=True)
def _same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (access_log, plain_lines):
        monkeypatch.setattr(module, "timestamp", lambda: TIME)


TEXTS = st.sampled_from(["", "a", '"},{"client":"x', ',"client":"192.0.2.7",', *ODD]) | st.text(max_size=9)
LONG = TEXTS | TEXTS.map(lambda text: text * 300)
SECONDS = st.floats(0, 1e4) | st.sampled_from([0.0, 0.000004, 0.000005, 0.0009, 0.001, 0.00115, 1.5, 2.675])
COUNTS = st.integers(0, 10**6) | st.sampled_from([2**53 + 1, 2**63, 2**64, 10**30])
DETAILS = st.none() | st.dictionaries(st.sampled_from(["cached_tokens", "cache_write_tokens", "audio_tokens"]), COUNTS)
NAMES = st.lists(LONG, max_size=2).map(tuple)
OUTCOMES: list[Outcome] = ["ok", "upstream_error", "client_gone", "shed"]


@st.composite
def records(draw: st.DrawFn) -> RequestRecord:
    """Any record: mostly of a request that went well, with texts that repeat."""
    record = RequestRecord(draw(st.sampled_from(["0" * 24, "A-1_b.c:d"])), draw(SECONDS), "openai", draw(LONG))
    record.client, record.team, record.key = draw(TEXTS), draw(TEXTS), draw(TEXTS)
    record.asked, record.stream = draw(LONG), draw(st.booleans())
    record.status, record.outcome = draw(st.sampled_from([200, 502])), draw(st.sampled_from(OUTCOMES))
    record.code = draw(st.none() | TEXTS)
    record.attempts = draw(st.lists(attempts(), max_size=3))
    usage = st.none() | st.builds(Usage, COUNTS, COUNTS, DETAILS, estimated=st.booleans())
    record.usage, record.billed = draw(usage), draw(st.none() | usage)
    record.price = draw(st.none() | st.builds(Price, st.floats(0, 1e3), st.none() | st.floats(0, 1e-3)))
    record.waited, record.client_waited, record.limit_waited = draw(SECONDS), draw(SECONDS), draw(SECONDS)
    record.first_content = draw(st.none() | SECONDS.map(lambda wait: record.started + wait))
    record.finished = record.started + draw(SECONDS)
    record.emulated, record.dropped = draw(NAMES), draw(NAMES)
    record.sample = draw(st.sampled_from([None, 0.1, 0.001]))
    record.cache = draw(st.sampled_from([None, CacheUse("miss"), CacheUse("hit", 1.5), CacheUse("stale", 9.0)]))
    record.called = draw(st.none() | LONG)
    return record


def attempts() -> st.SearchStrategy[Attempt]:
    return st.builds(
        Attempt,
        TEXTS,
        st.just(1.0),
        outcome=st.sampled_from(["ok", "server"]),
        status=st.none() | st.just(500),
        message=st.none() | LONG,
        name=LONG,
        repeats=st.lists(st.sampled_from(["closed", "refused"]), max_size=2).map(tuple),
    )


@given(st.lists(records(), max_size=5), st.sampled_from([1, 4096]))
def test_the_line_of_any_request_is_that_of_the_full_writer(several: list[RequestRecord], kept: int) -> None:
    lines = PlainLines()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain_lines, "MAX_KEPT", kept)
        for record in (*several, *several):
            assert lines.line(record, record.cost) == request_line(record)


def finished(model: str = "fast", client: str = "192.0.2.7") -> RequestRecord:
    record = RequestRecord("req-1", 10.0, "openai", "/v1/completions", client, "search", asked=model, status=200)
    record.attempts = [Attempt("openai/gpt/default", 10.1)]
    record.usage, record.price, record.waited, record.finished = Usage(6, 2), Price(0.1, 0.2), 1.25, 11.5
    return record


@pytest.fixture
def fully_written(monkeypatch: pytest.MonkeyPatch) -> list[RequestRecord]:
    """The records whose lines are written in full."""
    written: list[RequestRecord] = []

    def write(record: RequestRecord) -> bytes:
        written.append(record)
        return request_line(record)

    monkeypatch.setattr(plain_lines, "request_line", write)
    return written


def test_only_the_first_line_with_the_same_names_is_written_in_full(fully_written: list[RequestRecord]) -> None:
    lines, record = PlainLines(), finished()
    first = lines.line(record, record.cost)
    assert first == lines.line(record, record.cost) == request_line(record)
    record.key, record.dropped, record.client_waited, record.first_content = "ci", ("user",), 0.5, 10.5
    assert lines.line(record, None).endswith(b',"completion_tokens":2,"dropped":["user"]}')
    assert len(fully_written) == 1


def test_names_that_clients_make_up_are_not_kept_beyond_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plain_lines, "MAX_KEPT", 10)
    lines = PlainLines()
    for number in range(100):
        record = finished(f"local/m{number}", f"192.0.2.{number}")
        lines.line(record, None)
        assert lines.line(record, None) == lines.line(record, None)
    assert len(lines._names) <= 10
    assert len(lines._clients) <= 10


@pytest.mark.parametrize("long", ["path", "asked"])
def test_a_long_name_is_not_kept(long: str, fully_written: list[RequestRecord]) -> None:
    lines, record = PlainLines(), finished()
    setattr(record, long, "n" * 100_000)
    for _ in range(3):
        assert len(lines.line(record, None)) <= MAX_LINE
    assert len(fully_written) == 3
    assert not lines._names
