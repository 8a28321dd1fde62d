"""The access log: the fields of a request's line, and that no text of a client breaks its form."""

import json
import logging
import re
from typing import cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Usage
from providers.pricing import Price
from proxy.process.request_observer import LINE_WRITERS
from proxy.request_outcomes import CacheUse, RefusingLimit
from proxy.request_record import Attempt, RequestRecord
from proxy.telemetry.access_log import EARLY_REFUSAL_LINES, request_line, request_text
from proxy.telemetry.log_writer import MAX_LINE
from proxy.telemetry.process_log import FORMATTERS
from proxy.upstream.transport import RepeatCause
from tests.proxy.kit.odd_texts import ODD
from tests.support.looped import looped


def finished(asked: str = "fast", path: str = "/v1/completions") -> RequestRecord:
    """Return a non-streaming response that took 1.5 s, of which 1.25 were the upstream's."""
    return RequestRecord(
        "req-1",
        10.0,
        "openai",
        path,
        client="192.0.2.7",
        team="search",
        asked=asked,
        model="fast",
        status=200,
        attempts=[Attempt("openai/gpt-4o-mini/default", 10.1, 11.4)],
        usage=Usage(6, 2),
        waited=1.25,
        finished=11.5,
    )


def fields(record: RequestRecord) -> dict[str, object]:
    line = request_line(record, record.cost)
    assert b"\n" not in line
    parsed: dict[str, object] = orjson.loads(line)
    return parsed


@pytest.fixture
def record() -> RequestRecord:
    return finished()


def test_a_request_is_one_line_of_json() -> None:
    line = fields(finished())
    assert isinstance(line.pop("time"), str)
    assert line == {
        "level": "info",
        "message": "request",
        "request_id": "req-1",
        "team": "search",
        "surface": "openai",
        "path": "/v1/completions",
        "client": "192.0.2.7",
        "model": "fast",
        "deployment": "openai/gpt-4o-mini/default",
        "stream": False,
        "status": 200,
        "outcome": "ok",
        "duration_ms": 1500.0,
        "upstream_ms": 1250.0,
        "prompt_tokens": 6,
        "completion_tokens": 2,
        "unpriced": ["tokens"],
    }


def test_a_failure_names_its_code_and_the_attempts_that_failed(record: RequestRecord) -> None:
    record.code = "upstream_error"
    record.attempts.insert(0, Attempt("a/m/eu", 10.0, 10.1, "auth", 401, "No."))
    record.attempts.insert(0, Attempt("a/m/eu", 10.0, 10.1, "server", 500, "The upstream failed.", True))
    line = fields(record)
    assert line["code"] == "upstream_error"
    failed = {"deployment": "a/m/eu", "outcome": "server", "status": 500, "message": "The upstream failed."}
    assert line["attempts"] == [
        {**failed, "maybe_executed": True},
        {"deployment": "a/m/eu", "outcome": "auth", "status": 401, "message": "No."},
    ]


def test_an_attempt_says_why_there_was_no_connection(record: RequestRecord) -> None:
    record.attempts.insert(0, Attempt("a/m/eu", 10.0, 10.1, "connect", None, "Refused (h:1).", cause="refused"))
    told = {"deployment": "a/m/eu", "outcome": "connect", "status": None, "message": "Refused (h:1)."}
    assert fields(record)["attempts"] == [{**told, "cause": "refused"}]


def test_under_a_row_for_any_model_the_log_says_which_one_it_was() -> None:
    record = finished("local/some/model")
    record.attempts = [
        Attempt("local/*/eu", 10.0, 10.1, "server", 500, "No.", name="local/some/model/eu"),
        Attempt("local/*/us", 10.1, 11.4, name="local/some/model/us"),
    ]
    line = json.loads(request_line(record, record.cost))
    assert line["deployment"] == "local/some/model/us"
    assert [failed["deployment"] for failed in line["attempts"]] == ["local/some/model/eu"]
    assert " -> local/some/model/us ok " in request_text(record).decode()


def test_the_line_for_people_says_whose_key_it_was_and_what_failed_before(record: RequestRecord) -> None:
    record.key = "ci"
    record.attempts.insert(0, Attempt("a/m/us", 10.0, 10.1, "server", 500, "The upstream\nfailed."))
    record.attempts.insert(0, Attempt("a/m/eu", 10.0, 10.1, "connect", None, "Refused (h:1).", cause="refused"))
    assert request_text(record).decode().split(" ", 1)[1] == (
        "200 openai search/ci fast -> openai/gpt-4o-mini/default ok 1500.0 ms req-1"
        "; a/m/eu: connect (refused): Refused (h:1).; a/m/us: server 500: The upstream\\nfailed."
    )
    record.attempts = [Attempt("a/m/us", 10.0, 10.1, "timeout", 504, "Late.", maybe_executed=True)]
    assert request_text(record).decode().endswith("; a/m/us: timeout 504 (maybe executed): Late.")


@looped(("name", "shown"), [("a/m/eu", 5), ("a/m/" + "e" * 1000, 2), ("e" * 5000, 0)])
def test_a_line_that_is_cut_has_the_attempts_that_fit(name: str, shown: int) -> None:
    record = finished("m" * 9000)
    record.attempts = [
        Attempt(name, 10.0, 10.1, "connect", None, "No.\x00" * 900, cause="refused", maybe_executed=True)
        for _ in range(9)
    ]
    record.attempts.append(Attempt("a/m/us", 10.1, 11.4))
    line = fields(record)
    assert len(request_line(record, record.cost)) <= MAX_LINE
    attempts = line.get("attempts", [])
    assert isinstance(attempts, list)
    assert (line["cut"], len(attempts)) == (True, shown)
    for attempt in attempts:
        assert (attempt["deployment"], attempt["outcome"], attempt["cause"]) == (name, "connect", "refused")
        assert attempt["maybe_executed"] is True


@pytest.mark.parametrize("form", ["json", "text"])
def test_one_time_format_is_in_the_access_log_and_in_the_processs_own(form: str) -> None:
    own = FORMATTERS[form]().format(logging.LogRecord("dragoman", logging.INFO, "f", 1, "up", (), None))
    access = LINE_WRITERS[form](finished(), None).decode()
    times = [re.findall(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told) for told in (own, access)]
    assert [len(found) for found in times] == [1, 1]


@looped("odd", ["m", "\U0001f600", "\0", "\\"])
def test_the_line_for_people_is_within_its_bounds_whatever_failed(odd: str) -> None:
    record = finished(odd * 9000, "/" + odd * 9000)
    record.attempts = [Attempt("", 10.0, 10.1, "server", 500, odd * 9000, name=odd * 9000) for _ in range(9)]
    record.attempts[0].repeats = tuple(RepeatCause) * 999
    line = request_text(record).decode()
    assert len(line) <= MAX_LINE
    assert line.isprintable()
    told = "".join(f"; repeated 999x: {cause}" for cause in RepeatCause)
    assert line.endswith(f"...; 4 more failed{told}")


def test_a_line_has_one_style_whatever_stands_in_it() -> None:
    record = finished("modèle")
    assert b'","level":"info","message":"request",' in request_line(record, record.cost)
    assert request_line(record, record.cost).isascii()


def test_a_name_that_a_client_made_up_cannot_break_a_line() -> None:
    record = finished("local/" + "\U0001f600" * 250)
    record.attempts = [Attempt("local/*/eu", 10.0, 11.0, name=f"{record.asked}/eu")]
    line = request_line(record, record.cost)
    assert len(line) <= MAX_LINE
    assert json.loads(line)["deployment"] == "local/*/eu"
    record.attempts[0].name = "local/a\nb\x1b[0m\u2028/eu"
    assert request_line(record, record.cost).isascii()
    assert request_text(record).decode().isprintable()


def test_a_key_that_has_a_name_is_named(record: RequestRecord) -> None:
    assert "key" not in fields(record)
    record.key = "ci"
    assert fields(record)["key"] == "ci"


def test_a_line_says_what_became_of_the_fields_and_that_a_usage_is_a_guess(record: RequestRecord) -> None:
    record.emulated, record.dropped, record.usage = ("n", "usage"), ("seed",), Usage(6, 2, estimated=True)
    line = fields(record)
    assert (line["emulated"], line["dropped"], line["usage_estimated"]) == (["n", "usage"], ["seed"], True)


def test_a_line_says_what_the_request_cost_where_that_is_known(record: RequestRecord) -> None:
    record.price = Price(0.1, 0.2)
    assert fields(record)["cost_usd"] == 1e-06
    record.price = Price(0, 0)
    assert fields(record)["cost_usd"] == 0
    record.price = None
    assert "cost_usd" not in fields(record)


CACHED = {"cached_tokens": 3000, "cache_write_tokens": 500, "ephemeral_1h_input_tokens": 200, "audio_tokens": 9}


def test_an_answer_out_of_the_cache_is_told_with_the_deployment_that_gave_it(record: RequestRecord) -> None:
    record.called, record.attempts, record.cache = "v/m/default", [], CacheUse("hit", 7.0)
    assert (fields(record)["deployment"], fields(record)["cache"]) == ("v/m/default", "hit")
    assert b" fast -> v/m/default ok " in request_text(record)
    record.attempts = [Attempt("v/n/default", 10.1, 11.4, "server", 500, "x" * 200) for _ in range(30)]
    record.cache = CacheUse("stale", 70.0)
    line = fields(record)
    assert (line["deployment"], line["cache"], line["cut"]) == ("v/m/default", "stale", True)
    assert record.deployment == "v/n/default"


def test_what_a_cached_prompt_cost_can_be_computed_from_its_line(record: RequestRecord) -> None:
    record.usage, record.price = Usage(4000, 20, CACHED), Price(3, 15, 0.3, 3.75, 6)
    line = fields(record)
    assert "audio_tokens" not in line
    prompt, read, written, hour, answer = (
        int(str(line[f"{name}_tokens"])) for name in ("prompt", "cached", "cache_write", "cache_write_1h", "completion")
    )
    assert (prompt, read, written, hour, answer) == (4000, 3000, 500, 200, 20)
    fresh = prompt - read - written
    told = fresh * 3 + read * 0.3 + (written - hour) * 3.75 + hour * 6 + answer * 15
    assert line["cost_usd"] == pytest.approx(told / 1e6)


def test_what_a_vendor_did_not_report_of_its_cache_is_not_told(record: RequestRecord) -> None:
    record.usage = Usage(6, 2, {"cached_tokens": 0})
    line = fields(record)
    assert line["cached_tokens"] == 0
    assert not line.keys() & {"cache_write_tokens", "cache_write_1h_tokens"}
    assert b"tokens" not in request_text(record)


def test_people_read_what_the_vendor_s_cache_did(record: RequestRecord) -> None:
    record.usage = Usage(4000, 20, CACHED)
    told = b"; prompt_tokens 4000, cached_tokens 3000, cache_write_tokens 500, cache_write_1h_tokens 200"
    assert told in request_text(record)


def test_a_line_says_how_long_the_request_waited_for_a_limit(record: RequestRecord) -> None:
    assert "limit_ms" not in fields(record)
    record.limit_waited = 0.25
    assert fields(record)["limit_ms"] == 250.0


def test_a_stream_says_when_its_content_began(record: RequestRecord) -> None:
    record.stream, record.first_content = True, 10.5
    assert fields(record)["first_content_ms"] == 500.0


def test_names_of_the_client_are_cut() -> None:
    line = fields(finished("m" * 1000, "/" + "p" * 1000))
    assert (line["model"], line["path"]) == ("m" * 256, "/" + "p" * 255)


@looped("form", sorted(LINE_WRITERS))
@looped("odd", ODD)
def test_whatever_a_client_calls_things_the_line_is_one_line(form: str, odd: str) -> None:
    line = LINE_WRITERS[form](finished(odd, "/" + odd), None).decode("ascii")
    assert line.isprintable()
    assert line.splitlines() == [line]
    if form == "json":
        assert json.loads(line)["path"] == "/" + odd


@looped("form", sorted(LINE_WRITERS))
@looped("character", ["a", "\0", "ü", "\U0001f600", "\\", '"', "\udcff"])
def test_whatever_a_client_calls_things_and_whatever_failed_the_line_is_short(form: str, character: str) -> None:
    record = finished(character * 9000, "/" + character * 9000)
    record.request_id = "r" * 128
    name = "v" * 64 + "/" + "m" * 126 + "/" + "d" * 64
    record.attempts = [Attempt(name, 1.0, 2.0, "server", 500, character * 9000) for _ in range(9)]
    record.emulated, record.dropped = ("n",) * 900, (character * 900,) * 900
    line = LINE_WRITERS[form](record, record.cost)
    assert len(line) <= MAX_LINE
    assert b"r" * 128 in line
    if form == "json":
        read = json.loads(line)
        assert (read["cut"], read["status"], read["deployment"]) == (True, 200, name)


@given(st.text(), st.text())
def test_no_text_makes_a_second_line(asked: str, path: str) -> None:
    for write in LINE_WRITERS.values():
        line = write(finished(asked, path), None).decode("ascii")
        assert line.isprintable()


def test_people_read_who_asked_who_answered_and_how_long_it_took() -> None:
    text = request_text(finished()).decode()
    assert text.split(" ", 1)[1] == "200 openai search fast -> openai/gpt-4o-mini/default ok 1500.0 ms req-1"


def test_people_read_the_code_of_a_failure_that_reached_no_deployment() -> None:
    record = RequestRecord("req-2", 1.0, "openai", "/nowhere", status=404, code="not_found", finished=1.001)
    assert request_text(record).decode().split(" ", 1)[1] == "404 not_found openai unknown /nowhere ok 1.0 ms req-2"


def test_refusals_at_the_door_are_one_line_for_all_of_a_second() -> None:
    line = json.loads(EARLY_REFUSAL_LINES["json"]("openai", 503, "queue", 5408))
    assert re.fullmatch(r"[-\dT:.]+Z", line.pop("time"))
    assert line == {
        "level": "warning",
        "message": "refused at the door",
        "surface": "openai",
        "reason": "queue",
        "status": 503,
        "code": "overloaded",
        "outcome": "shed",
        "count": 5408,
    }
    text = EARLY_REFUSAL_LINES["text"]("openai", 503, "queue", 5408).decode()
    assert text.split(" ", 1)[1] == "503 overloaded openai refused 5408 at the door: queue"
    assert sorted(EARLY_REFUSAL_LINES) == sorted(LINE_WRITERS)


@looped(
    "scope",
    [
        *("all clients", "team search", "team search model fast", "key search/ci"),
        *("vendor openai", "model openai/gpt-4o", "deployment openai/gpt-4o/eu"),
    ],
)
def test_a_request_beyond_a_limit_names_it(scope: str) -> None:
    record = finished()
    record.status, record.code, record.outcome = 429, "insufficient_quota", "limited"
    record.limit = RefusingLimit(scope, "budget", "usd", "month", "500.00 USD")
    named = {"scope": scope, "kind": "budget", "unit": "usd", "period": "month", "limit": "500.00 USD"}
    assert fields(record)["limit"] == named
    assert f"; budget of {scope}: 500.00 USD per month" in request_text(record).decode()
    record.limit = RefusingLimit(scope, "concurrent", "requests", "", "6 requests")
    assert "period" not in cast(dict[str, object], fields(record)["limit"])
    assert f"; concurrent of {scope}: 6 requests at once" in request_text(record).decode()
    record.outcome = "ok"
    assert "limit" not in fields(record)


def test_a_request_whose_key_is_refused_names_the_client_in_text_too() -> None:
    record = finished()
    assert b"192.0.2.7" not in request_text(record)
    record.status, record.code, record.outcome = 401, "missing_api_key", "denied"
    assert b"denied from 192.0.2.7 " in request_text(record)
