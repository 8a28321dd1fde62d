"""The process's own messages: one line each in both forms, and without the text of an exception."""

import json
import logging
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator

import orjson
import pytest

from proxy.telemetry.log_format import timestamp
from proxy.telemetry.log_writer import MAX_LINE
from proxy.telemetry.process_log import FORMATTERS, JsonFormatter, TextFormatter, set_up, trace
from tests.proxy.kit.odd_texts import ODD
from tests.support.looped import looped


@pytest.mark.parametrize("form", ["json", "text"])
def test_one_clock_is_in_all_lines_wherever_the_process_runs(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "XXX5")
    time.tzset()
    try:
        record = logging.LogRecord("dragoman", logging.INFO, "f", 1, "up", (), None)
        told = FORMATTERS[form]().format(record)
        assert timestamp(record.created) in told
        assert re.search(r"\d\d\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\b", told)
    finally:
        monkeypatch.undo()
        time.tzset()


@looped("odd", ["r", "a\nb", "\udcff"])
def test_messages_of_the_process_are_json_and_a_traceback_stays_in_its_line(odd: str) -> None:
    try:
        raise LookupError("inside")
    except LookupError:
        record = logging.LogRecord("dragoman", logging.ERROR, "f", 1, "request %s failed", (odd,), sys.exc_info())
    text = JsonFormatter().format(record)
    line = json.loads(text)
    assert "\n" not in text
    assert (line["level"], line["logger"], line["message"]) == ("error", "dragoman", f"request {odd} failed")
    assert line["traceback"].endswith("LookupError")
    assert "inside" not in line["traceback"].replace('LookupError("inside")', "")


def chained_group() -> BaseException:
    """Return an exception group caused by a chain of two failures, whose texts contain `canary`."""
    name = "canary"
    try:
        try:
            try:
                raise KeyError(name)
            except KeyError as cause:
                raise ValueError(f"bad {name}") from cause
        except ValueError as error:
            error.add_note(f"about {name}")
            raise ExceptionGroup(name, [error, OSError(24, name)]) from None
    except ExceptionGroup as group:
        return group


def test_an_exception_is_told_by_frames_and_classes_and_never_by_its_text() -> None:
    told = trace(chained_group())
    assert "canary" not in told.replace('name = "canary"', "")
    lines = told.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1] == "ExceptionGroup"
    assert {"ValueError", "KeyError", "OSError [Errno 24]"} <= set(lines)
    assert lines.index("KeyError") < lines.index("ValueError") < lines.index("ExceptionGroup")
    assert any("in chained_group" in line for line in lines)


def test_an_exception_that_is_its_own_cause_is_told_once() -> None:
    error = ValueError("x")
    error.__cause__ = error
    assert trace(error) == "Traceback (most recent call last):\nValueError"


@pytest.mark.parametrize("form", ["json", "text"])
def test_no_line_quotes_an_exception(form: str, finish: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    log = set_up(form)
    error = chained_group()
    log.error("failed", exc_info=error)
    logging.getLogger("asyncio").error("Task was lost\nfuture: %r", error)
    logging.getLogger("aiohttp.server").error("Unhandled", exc_info=error)
    sys.excepthook(type(error), error, error.__traceback__)
    threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, None)))
    finish()
    written = capsys.readouterr().err
    assert "canary" not in written
    for message in ("failed", "Task was lost", "Unhandled", "the gateway ended on a", "a thread ended on a"):
        assert written.count(message) == 1


def test_an_interrupt_is_the_interpreter_s(finish: Callable[[], None], capsys: pytest.CaptureFixture[str]) -> None:
    set_up("json")
    sys.excepthook(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert capsys.readouterr().err.strip() == "KeyboardInterrupt"


@looped("odd", [*ODD, "\U0001f600" * 9000, "a" * 9000, "\\" * 9000, '"' * 9000])
def test_messages_of_the_process_are_short_single_lines_in_both_forms(odd: str) -> None:
    record = logging.LogRecord("dragoman", logging.ERROR, "f", 1, "path %s", (odd,), None)
    told = [formatter.format(record) for formatter in (JsonFormatter(), TextFormatter())]
    for line in told:
        assert line.isprintable()
        assert line.isascii()
        assert len(line) <= MAX_LINE
    assert json.loads(told[0])["message"].startswith("path ")
    assert " ERROR path " in told[1]


def test_a_long_message_leaves_room_for_its_traceback() -> None:
    try:
        raise LookupError
    except LookupError:
        record = logging.LogRecord("dragoman", logging.ERROR, "f", 1, "\0" * 9000, (), sys.exc_info())
    line = JsonFormatter().format(record)
    assert len(line) <= MAX_LINE
    assert orjson.loads(line)["traceback"].endswith("LookupError")
    assert orjson.loads(line)["cut"] is True


@pytest.fixture
def finish(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Yield a function that runs the interpreter's exit handlers. Everything else that `set_up` changes is restored
    afterwards."""
    root = logging.getLogger()
    handlers, level, hooks = root.handlers[:], root.level, (sys.excepthook, threading.excepthook)
    last: list[Callable[[], None]] = []
    monkeypatch.setattr("proxy.telemetry.process_log.atexit.register", last.append)
    yield lambda: last.pop()()
    sys.excepthook, threading.excepthook = hooks
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("dragoman").setLevel(logging.NOTSET)


@pytest.mark.parametrize(("form", "is_json"), [("json", True), ("text", False)])
def test_the_process_writes_the_form_of_the_table_to_standard_error(
    form: str, is_json: bool, finish: Callable[[], None], capsys: pytest.CaptureFixture[str]
) -> None:
    log = set_up(form)
    log.info("listening on %s", "here")
    logging.getLogger("aiohttp.server").info("not ours to tell")
    finish()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("{") is is_json
    assert "listening on here" in line
    assert log.name == "dragoman"
