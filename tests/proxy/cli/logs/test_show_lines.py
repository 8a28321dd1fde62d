"""A request's outcome is printed in one line, and no line sends control sequences to the terminal."""

import json

import orjson
from hypothesis import given
from hypothesis import strategies as st

from proxy.cli.logs.show_lines import LineForm, coloured, escaped_json, for_people, for_programs, parsed
from proxy.telemetry.access_log import malformed_line, refusal_line, request_line
from tests.proxy.telemetry.test_line_fields import full_record
from tests.support.looped import looped

PLAIN = LineForm()


def printed_lines(line: bytes, form: LineForm = PLAIN) -> list[str]:
    return list(for_people(line, parsed(line), form))


def test_a_request_is_a_line_with_its_failed_attempts_below() -> None:
    record = full_record()
    record.outcome, record.status = "upstream_error", 502
    first, attempt = printed_lines(request_line(record, record.cost))
    assert first.split("  ")[1:] == [
        *("502 upstream_error upstream_error", "search/ci", "fast -> a/m/us", "first 500 ms", "1.50 s", "6+2 tokens"),
        *("$2.8e-05", f"trace_id={0xABC:032x}", "upstream_request_id=a-2", "plugin=redact", "reason=a number"),
        *("sample=0.1", "client_ms=1000.0", "limit_ms=1000.0"),
        *(
            "keep_alives=2",
            "cached_tokens=4",
            "cache_write_tokens=2",
            "cache_write_1h_tokens=1",
            "usage_estimated=true",
        ),
        *(
            "unpriced=audio",
            "cache=miss",
            "affinity=none",
            "hedge=failed",
            "emulated=n",
            "dropped=user",
            "tokens_per_second=2.0",
            "stalls=1",
            "stalled_ms=1500.0",
            'repeated={"stale_connection":1}',
            "req-1",
        ),
    ]
    assert attempt == "    a/m/eu: connect (refused) (hedge) (maybe executed): Refused."


def test_a_narrow_terminal_has_it_in_several_lines_and_in_colours() -> None:
    record = full_record()
    line = request_line(record, record.cost)
    wrapped = printed_lines(line, LineForm(width=66))
    assert max(map(len, wrapped)) <= 66
    assert "  ".join(part.strip() for part in wrapped) == "  ".join(part.strip() for part in printed_lines(line))
    assert "\x1b[31m200 limited upstream_error\x1b[0m" in printed_lines(line, LineForm(coloured, 200))[0]


def test_messages_of_the_process_have_their_level_and_their_traceback() -> None:
    message = {"time": "2026-11-23T06:00:00.125Z", "level": "error", "logger": "asyncio", "message": "x"}
    assert printed_lines(orjson.dumps({**message, "traceback": "a\n  b"})) == [
        *("2026-11-23 06:00:00.125  error  x  logger=asyncio", "    a", "      b")
    ]
    assert printed_lines(refusal_line("openai", 503, "queue", 3))[0].partition("  ")[2] == (
        "warning  refused at the door  surface=openai  reason=queue  status=503  code=overloaded  outcome=shed  count=3"
    )
    assert 'statuses={"400":2}' in printed_lines(malformed_line({400: 2}))[0]


@looped("line", ["", "plain\ttext", '{"a": 1}', "[1]", '{"torn', "žluťoučký kůň", '{"message":5}'])
def test_other_lines_are_shown_as_they_are(line: str) -> None:
    assert printed_lines(line.encode()) == [line]


@given(
    st.binary(max_size=40)
    | st.text(max_size=40).map(lambda text: json.dumps({"message": "request", "outcome": text, "key": text}).encode())
    | st.dictionaries(
        st.sampled_from(
            ["message", "outcome", "level", "attempts", "status", "duration_ms", "cost_usd", "time", "\x9b"]
        ),
        st.sampled_from(["request", "\x1b[2J", "\u202e", "\n", [], {}, [{"message": "\x07"}], 10**30, -1, None, True]),
    ).map(lambda fields: json.dumps(fields).encode())
)
def test_nothing_but_printable_characters_and_tabs_comes_out(line: bytes) -> None:
    for text in (*printed_lines(line), *for_programs(line, parsed(line))):
        assert text.replace("\t", "").isprintable()


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9), max_size=3))
def test_programs_get_the_json_that_was_there(fields: dict[str, str]) -> None:
    line = json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for text in for_programs(line, parsed(line)):
        assert json.loads(text) == fields
        assert text.isascii()


def test_programs_get_nothing_else() -> None:
    assert list(for_programs(b"text", parsed(b"text"))) == []
    assert escaped_json('{"\U0001f600": 1}\r'.encode()) == '{"\\ud83d\\ude00": 1}'
