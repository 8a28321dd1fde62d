"""The fields that few requests have in their record."""

from proxy.request_outcomes import STALL, GuardMarks, RefusingLimit
from proxy.request_record import RequestRecord


def test_each_plugin_is_named_once() -> None:
    marks = GuardMarks()
    marks.note(["a", "b"], ["user"])
    marks.note(["b", "c"], ["user", "n"])
    assert (marks.names, marks.dropped) == (["a", "b", "c"], ["user", "n"])


def test_a_limit_in_words() -> None:
    assert RefusingLimit("team a", "limit", "requests", "minute", "60").words == "limit of team a: 60 per minute"
    assert RefusingLimit("team a", "limit", "concurrent", "", "4").words == "limit of team a: 4 at once"


def test_a_long_silence_is_a_stall_once_content_has_begun() -> None:
    record = RequestRecord("req-1", 0.0, "openai", "/")
    record.note_waited(STALL + 1)
    assert record.marks is None
    record.first_content = 2.0
    for seconds in (STALL, STALL + 0.5, STALL + 1):
        record.note_waited(seconds)
    marks = record.waits()
    assert (marks.stalls, marks.stalled) == (2, 2 * STALL + 1.5)
    assert record.waited == 4 * STALL + 2.5
