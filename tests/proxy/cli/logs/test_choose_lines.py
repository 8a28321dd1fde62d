"""Filters select the requests that they name. Filters by time also cover lines without a time."""

from datetime import UTC, datetime

import orjson
import pytest

from proxy.cli.logs.choose_lines import LogsOptions, line_choice
from proxy.cli.logs.show_lines import parsed
from proxy.cli.terminal import CommandError
from tests.support.looped import looped

NOW = datetime(2026, 11, 23, 6, 10, tzinfo=UTC)


def request(name: str, **fields: object) -> bytes:
    usual = {"time": "2026-11-23T06:00:00.125Z", "message": "request", "team": "search", "status": 200, "outcome": "ok"}
    named = {"model": "fast", "deployment": "openai/gpt/eu", "duration_ms": 1500.0, "request_id": name}
    return orjson.dumps({**usual, **named, **fields})


LINES = {
    "good": request("good"),
    "data": request("data", team="data", time="2026-11-23T06:05:00.000Z"),
    "limited": request("limited", status=429, outcome="limited", deployment=None, duration_ms=1.0),
    "broken": request(
        "broken", status=502, outcome="upstream_error", model="a/m", deployment="a/m/eu", duration_ms=2000.0
    ),
    "traced": request(
        "traced",
        trace_id="0af7651916cd43dd",
        attempts=[{"deployment": "a/m/eu", "upstream_request_id": "req_of_the_vendor"}],
        upstream_request_id="req_2",
    ),
    "door": b'{"time":"2026-11-23T06:06:00.000Z","message":"refused at the door","status":503,"outcome":"shed"}',
    "process": b'{"time":"2026-11-23T06:04:00.000Z","level":"info","message":"table in force"}',
    "text": b"2026-11-23T06:07:00.000Z 200 openai search fast ok 1.0 ms req-1",
    "torn": b'{"team":"search","outcome":"ok',
    "odd": b'{"time":[],"status":{},"outcome":[],"model":7,"duration_ms":"x","team":null}',
}


def chosen(options: LogsOptions) -> set[str]:
    choice = line_choice(options, NOW)
    return {name for name, line in LINES.items() if choice.takes(line, parsed(line))}


def test_without_a_filter_every_line_is_shown() -> None:
    assert chosen(LogsOptions()) == set(LINES)


@looped(
    ("options", "names"),
    [
        (LogsOptions(team="data"), {"data"}),
        (LogsOptions(status="429"), {"limited"}),
        (LogsOptions(status="5xx, 429"), {"limited", "broken", "door"}),
        (LogsOptions(model="openai/gpt"), {"good", "data", "traced"}),
        (LogsOptions(model="a/*"), {"broken"}),
        (LogsOptions(id="broken"), {"broken"}),
        (LogsOptions(id="0af7651916cd43dd"), {"traced"}),
        (LogsOptions(id="req_of_the_vendor"), {"traced"}),
        (LogsOptions(id="req_2"), {"traced"}),
        (LogsOptions(id="nobody"), set()),
        (LogsOptions(model="fast", slow="1.5s"), {"good", "data", "traced"}),
        (LogsOptions(slow="2s"), {"broken"}),
        (LogsOptions(failed=True), {"limited", "broken", "door", "odd"}),
        (LogsOptions(failed=True, team="search", status="5xx"), {"broken"}),
        # A line without a time belongs to the line before it.
        (LogsOptions(since="6m"), {"data", "door", "process", "text", "torn", "odd"}),
        (LogsOptions(since="2026-11-23T06:05:30"), {"door", "text", "torn", "odd"}),
        (LogsOptions(since="2026-11-23T08:06:30+02:00"), {"text", "torn", "odd"}),
        (LogsOptions(since="1d", team="data"), {"data"}),
    ],
)
def test_a_filter_shows_what_it_names(options: LogsOptions, names: set[str]) -> None:
    assert chosen(options) == names


@looped(
    ("options", "told"),
    [
        (LogsOptions(status="6xx"), "--status takes"),
        (LogsOptions(status="5xx,"), "--status takes"),
        (LogsOptions(slow="2"), "--slow takes"),
        (LogsOptions(since="yesterday"), "--since takes 10m, 1d or a time such as 2026-11-28T05:00Z, not 'yesterday'"),
        (LogsOptions(since="2026-13-01"), "--since takes"),
        (LogsOptions(since="999999999w"), "before all time"),
    ],
)
def test_a_filter_that_means_nothing_is_refused(options: LogsOptions, told: str) -> None:
    with pytest.raises(CommandError, match=told):
        line_choice(options, NOW)
