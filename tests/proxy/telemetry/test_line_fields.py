"""The list of fields has every field that a line can have, and no other."""

import dataclasses
import logging
import sys
from collections.abc import Iterable, Mapping, Sequence

import orjson

from providers.completion import Usage
from providers.pricing import Price
from proxy.receipt.server_timing import NAMELESS
from proxy.request_outcomes import CacheUse, GuardMarks, RefusingLimit, WaitMarks
from proxy.request_record import Attempt, RequestRecord
from proxy.routing.session_load import PlacedSession
from proxy.telemetry import line_fields
from proxy.telemetry.access_log import malformed_line, refusal_line, request_line
from proxy.telemetry.line_fields import LineField
from proxy.telemetry.process_log import JsonFormatter
from proxy.trace_context import SAMPLED, SampledTrace
from tests.support.looped import looped

Line = Mapping[str, object]

KINDS: Mapping[str, tuple[type, ...]] = {
    "text": (str, type(None)),
    "number": (int, float),
    "integer": (int, type(None)),
    "true": (bool,),
    "true or false": (bool,),
    "list of texts": (list,),
    "list": (list,),
    "object": (dict,),
}


CACHED = {"cached_tokens": 4, "cache_write_tokens": 2, "ephemeral_1h_input_tokens": 1, "audio_tokens": 1}
FULL_USAGE = Usage(6, 2, CACHED, estimated=True)


NOT_IN_LINES = {
    *("billed", "max_tokens", "user", "routed", "held", "key_label", "content", "paid", "tags", "unanswered", "passed"),
    *("heavy", "lacking", "session", "hooks", "hook_lines"),
}
"""The fields that a record may hold and that are in no line."""


def full_record() -> RequestRecord:
    """Return a record in which every field has a value."""
    record = RequestRecord("req-1", 10.0, "openai", "/v1/completions", "192.0.2.7", "search", "ci", "fast", "fast")
    failed = Attempt(
        "a/m/eu", 10.0, 10.1, "connect", None, "Refused.", maybe_executed=True, cause="refused", vendor_id="a-1"
    )
    failed.hedge = True
    again = Attempt("a/m/us", 10.1, 11.4, repeats=("stale_connection",), vendor_id="a-2")
    record.attempts, record.usage, record.price = [failed, again], FULL_USAGE, Price(2, 8, unknown=("audio",))
    record.waited = record.client_waited = record.limit_waited = 1.0
    record.code, record.sample, record.first_content, record.finished = "upstream_error", 0.1, 10.5, 11.5
    record.stream, record.status, record.emulated, record.dropped = True, 200, ("n",), ("user",)
    record.trace = record.sampled = SampledTrace(f"{0xABC:032x}", 0x10, 0, SAMPLED)
    record.cache, record.called = CacheUse("miss"), "a/m/us"
    record.guarded = GuardMarks(plugin="redact", reason="a number")
    record.outcome, record.limit = "limited", RefusingLimit("team search", "budget", "usd", "month", "500.00 USD")
    record.placed, record.keep_alives, record.hedge = PlacedSession(), 2, "failed"
    record.marks, record.receipt = WaitMarks(stalls=1, stalled=1.5), NAMELESS
    named = [each.name for each in dataclasses.fields(record)]
    assert {name for name in named if getattr(record, name) in (None, "", (), [])} == NOT_IN_LINES
    return record


def request_lines() -> list[Line]:
    record = full_record()
    bare = RequestRecord("req-2", 10.0, "openai", "/v1/completions", finished=11.0)
    lines = [request_line(record, record.cost), request_line(record, 0.5), request_line(bare, bare.cost)]
    record.path = "/" + "\0" * 9000
    record.attempts[0].message = "\0" * 9000
    return [orjson.loads(line) for line in (*lines, request_line(record, record.cost))]


def attempt_entries() -> list[Line]:
    with_cause = request_lines()[0]["attempts"]
    assert isinstance(with_cause, list)
    record = full_record()
    record.attempts[0] = Attempt("a/m/eu", 10.0, 10.1, "server", 500, "The upstream failed.")
    return [*with_cause, *orjson.loads(request_line(record, record.cost))["attempts"]]


def process_lines() -> list[Line]:
    try:
        raise ValueError("canary")
    except ValueError:
        fault = sys.exc_info()
    records = [
        logging.LogRecord("dragoman", logging.INFO, "f", 1, "up", (), None),
        logging.LogRecord("dragoman", logging.ERROR, "f", 1, "\0" * 9000, (), fault),
    ]
    return [orjson.loads(JsonFormatter().format(record)) for record in records]


LINES = {
    "REQUEST_FIELDS": request_lines,
    "ATTEMPT_FIELDS": attempt_entries,
    "REFUSAL_FIELDS": lambda: [orjson.loads(refusal_line("openai", 503, "queue", 3))],
    "MALFORMED_FIELDS": lambda: [orjson.loads(malformed_line({400: 2}))],
    "PROCESS_FIELDS": process_lines,
}


def fields_of(name: str) -> Sequence[LineField]:
    found: Sequence[LineField] = getattr(line_fields, name)
    return found


def names(fields: Iterable[LineField]) -> set[str]:
    return {field.name for field in fields}


def test_every_table_of_fields_is_held_against_lines() -> None:
    assert LINES.keys() == {name for name in vars(line_fields) if name.endswith("_FIELDS")}


@looped("table", sorted(LINES))
def test_the_table_has_every_field_that_is_written_and_no_other(table: str) -> None:
    fields, lines = fields_of(table), LINES[table]()
    assert set().union(*lines) == names(fields)
    assert set(lines[0]).intersection(*lines) == names(field for field in fields if field.when == line_fields.ALWAYS)


@looped("table", sorted(LINES))
def test_values_and_examples_are_of_the_kind_that_the_table_says(table: str) -> None:
    for field in fields_of(table):
        values = [line[field.name] for line in LINES[table]() if field.name in line]
        for value in (*values, orjson.loads(field.example)):
            assert isinstance(value, KINDS[field.kind]), field
        assert field.kind != "true" or values == [True] * len(values)
