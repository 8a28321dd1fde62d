"""One JSON line per request, and the process's own messages in the same form.

Never a prompt, an answer or a key; and never how a line gets to its reader.
"""

import atexit
import json
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from copy import copy
from datetime import UTC, datetime
from functools import lru_cache
from types import TracebackType

import orjson

from proxy.record import Attempt, RequestRecord
from proxy.writer import MAX_LINE, LineStream, LineWriter, at_once, unbuffered

TOLD_FROM = 0.001
"""Seconds of waiting for a client that are worth a field."""


def _dump(fields: Mapping[str, object]) -> bytes:
    """One line of JSON that is one line to every reader: U+2028, U+2029 and controls beyond ASCII's are escaped.

    Bytes of a client that were no UTF-8 live on as lone surrogates, which orjson refuses.
    """
    try:
        line = orjson.dumps(fields)
    except orjson.JSONEncodeError:
        line = b"\xff"
    if not line.isascii():
        line = json.dumps(fields, separators=(",", ":")).encode("ascii")
    return line.replace(b"\x7f", b"\\u007f")


def request_line(record: RequestRecord) -> bytes:
    """The access log's line: times in milliseconds, names of the table, no content."""
    fields: dict[str, object] = {
        "time": timestamp(),
        "level": "info",
        "message": "request",
        "request_id": record.request_id,
        "team": record.team,
        "surface": record.surface,
        "path": record.path[:256],
        "client": record.client,
        "model": record.asked[:256],
        "deployment": record.answered_by,
        "stream": record.stream,
        "status": record.status,
        "outcome": record.outcome,
        "duration_ms": _milliseconds(record.duration),
        "upstream_ms": _milliseconds(record.waited),
    }
    if record.key:
        fields["key"] = record.key
    if record.code is not None:
        fields["code"] = record.code
    if record.outcome == "shed":
        return _dump(fields)
    _tell_of_answer(fields, record)
    failed = [_attempt(attempt) for attempt in record.attempts if attempt.outcome != "ok"]
    if failed:
        fields["attempts"] = failed
    line = _dump(fields)
    return line if len(line) <= MAX_LINE else _dump(_briefly(fields, record))


def _tell_of_answer(fields: dict[str, object], record: RequestRecord) -> None:
    """What there is to tell of some answers only."""
    if record.client_waited >= TOLD_FROM:
        fields["client_ms"] = _milliseconds(record.client_waited)
    if record.first_content is not None:
        fields["first_content_ms"] = _milliseconds(record.first_content - record.started)
    if record.usage is not None:
        fields["prompt_tokens"] = record.usage.prompt_tokens
        fields["completion_tokens"] = record.usage.completion_tokens
        if record.usage.estimated:
            fields["usage_estimated"] = True
    if (cost := record.cost) is not None:
        fields["cost_usd"] = round(cost, 12)
    if record.emulated:
        fields["emulated"] = record.emulated
    if record.dropped:
        fields["dropped"] = record.dropped


def _milliseconds(seconds: float) -> float:
    """With two places; rounding as it is written takes three times as long."""
    return int(seconds * 100_000 + 0.5) / 100


def _attempt(attempt: Attempt) -> dict[str, object]:
    told: dict[str, object] = {
        "deployment": attempt.name or attempt.deployment,
        "outcome": attempt.outcome,
        "status": attempt.status,
        "message": attempt.message,
    }
    if attempt.cause is not None:
        told["cause"] = attempt.cause
    if attempt.maybe_executed:
        told["maybe_executed"] = True
    return told


def _briefly(fields: Mapping[str, object], record: RequestRecord) -> dict[str, object]:
    """A line's fields without its lists, and with less of what the client chose: within MAX_LINE whatever it was."""
    kept = {name: value for name, value in fields.items() if not isinstance(value, list | tuple)}
    return {**kept, "path": record.path[:64], "model": record.asked[:64], "deployment": record.deployment, "cut": True}


SHOWN_NAME, SHOWN_MESSAGE, SHOWN_ATTEMPTS = 256, 160, 5
"""Characters of a name and of a message in the line for people, and the attempts it tells of: within MAX_LINE together,
with a few dozen bytes for each of the rest."""


def request_text(record: RequestRecord) -> bytes:
    """The same line for people: time, status, who asked for what, who answered, how long it took, and what failed."""
    code = f" {record.code}" if record.code else ""
    who = f"{record.team}/{record.key}" if record.key else record.team
    where = f" -> {_shown(record.answered_by, SHOWN_NAME)}" if record.answered_by else ""
    asked = _shown(record.asked or record.path, SHOWN_NAME)
    line = (
        f"{timestamp()} {record.status}{code} {record.surface} {who} {asked}{where} "
        f"{record.outcome} {record.duration * 1000:.1f} ms {record.request_id}"
    )
    failed = [attempt for attempt in record.attempts if attempt.outcome != "ok"]
    told = "".join(f"; {_attempt_text(attempt)}" for attempt in failed[:SHOWN_ATTEMPTS])
    more = f"; {len(failed) - SHOWN_ATTEMPTS} more failed" if len(failed) > SHOWN_ATTEMPTS else ""
    return f"{line}{told}{more}".encode()


def _attempt_text(attempt: Attempt) -> str:
    """`a/m/eu: server 500: The upstream failed.`"""
    status = f" {attempt.status}" if attempt.status is not None else ""
    message = f": {_shown(attempt.message, SHOWN_MESSAGE)}" if attempt.message else ""
    return f"{_shown(attempt.name or attempt.deployment, SHOWN_NAME)}: {attempt.outcome}{status}{message}"


def _shown(text: str, most: int) -> str:
    """A text in printable ASCII, cut to `most` characters."""
    clean = ascii(text[:most])[1:-1]
    return clean if len(clean) <= most and len(text) <= most else clean[: most - 3] + "..."


def door_line(surface: str, reason: str, count: int) -> bytes:
    """The access log's line for requests of a second that were refused before they were parsed."""
    return _dump(
        {
            "time": timestamp(),
            "level": "warning",
            "message": "refused at the door",
            "surface": surface,
            "reason": reason,
            "status": 503,
            "code": "overloaded",
            "outcome": "shed",
            "count": count,
        }
    )


def door_text(surface: str, reason: str, count: int) -> bytes:
    """The same line for people."""
    return f"{timestamp()} 503 overloaded {surface} refused {count} at the door: {reason}".encode()


def malformed_line(counts: Mapping[int, int]) -> bytes:
    """The access log's line for what came within a second and was no HTTP request, by the status of its answer."""
    return _dump(
        {
            "time": timestamp(),
            "level": "warning",
            "message": "malformed HTTP",
            "count": sum(counts.values()),
            "statuses": {str(status): counts[status] for status in sorted(counts)},
        }
    )


def malformed_text(counts: Mapping[int, int]) -> bytes:
    """The same line for people."""
    told = ", ".join(f"{counts[status]} with {status}" for status in sorted(counts))
    return f"{timestamp()} malformed HTTP refused: {told}".encode()


MALFORMED_LINES: Mapping[str, Callable[[Mapping[int, int]], bytes]] = {"json": malformed_line, "text": malformed_text}
"""The forms of the lines about what is no HTTP, by the table's `server.log`."""

DOOR_LINES: Mapping[str, Callable[[str, str, int], bytes]] = {"json": door_line, "text": door_text}
"""The forms of the lines about the door, by the table's `server.log`."""

LINES: Mapping[str, Callable[[RequestRecord], bytes]] = {"json": request_line, "text": request_text}
"""The access log's forms, by the table's `server.log`."""


def timestamp(now: float | None = None) -> str:
    """A moment in unix seconds, or now, in UTC, RFC 3339 with milliseconds."""
    if now is None:
        now = time.time()
    return f"{_second(int(now))}.{int(now % 1 * 1000):03d}Z"


@lru_cache(maxsize=2)
def _second(unix: int) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def trace(error: BaseException) -> str:
    """Where an exception came from: the frames and the class of it and of those behind it, with an OSError's number.

    Never its text, which may quote a request or a key; nor, therefore, its notes.
    """
    told: list[str] = []
    behind: BaseException | None = error
    seen: set[int] = set()
    while behind is not None and id(behind) not in seen:
        seen.add(id(behind))
        number = f" [Errno {behind.errno}]" if isinstance(behind, OSError) and behind.errno is not None else ""
        told.append("".join(traceback.format_tb(behind.__traceback__)) + type(behind).__qualname__ + number)
        if isinstance(behind, BaseExceptionGroup):
            told.extend(trace(inner) for inner in reversed(behind.exceptions))
        behind = behind.__cause__ or (None if behind.__suppress_context__ else behind.__context__)
    return "\n".join(["Traceback (most recent call last):", *reversed(told)])


MAX_MESSAGE, MAX_TRACEBACK = 2000, 2000
"""Characters of what the process says of itself, and of a traceback from its end on."""


class TextFormatter(logging.Formatter):
    """The process's own messages for people, each in one line, exceptions as frames below it and without their text."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return timestamp(record.created)

    def format(self, record: logging.LogRecord) -> str:
        record = copy(record)
        record.msg, record.args = ascii(_message(record))[1:-1][:MAX_MESSAGE], None
        return super().format(record)

    def formatException(
        self, ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
    ) -> str:
        return "" if ei[1] is None else trace(ei[1])[-MAX_TRACEBACK:]


class JsonFormatter(TextFormatter):
    """The same as JSON lines; a traceback stays within its line, and a line within MAX_LINE."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": timestamp(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        line = _dump(fields)
        if len(line) > MAX_LINE:
            line = _dump({**fields, "message": ascii(fields["message"])[1:-1][: MAX_MESSAGE // 2], "cut": True})
        return line.decode()


FORMATTERS: Mapping[str, Callable[[], logging.Formatter]] = {"json": JsonFormatter, "text": TextFormatter}
"""What formats the process's own messages, by the form of the log."""


def set_up(form: str) -> logging.Logger:
    """The gateway's logger, writing lines of the form `json` or `text` to standard error."""
    writer = LineWriter(unbuffered(sys.stderr), _untold, at_once)
    atexit.register(writer.close)
    handler = logging.StreamHandler(LineStream(writer))
    handler.setFormatter(FORMATTERS[form]())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logger = logging.getLogger("dragoman")
    logger.setLevel(logging.INFO)
    sys.excepthook = _last_words
    threading.excepthook = _thread_ended
    return logger


def _untold(message: str) -> None:
    """What cannot be written of the process's own messages, there is nobody to tell."""


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    # asyncio's own messages quote exceptions from their second line on.
    return message.partition("\n")[0] if record.name == "asyncio" else message


def _last_words(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
    """What ends the process is logged as any exception is: the interpreter would print its text."""
    if isinstance(error, Exception):
        logging.getLogger("dragoman").critical("the gateway ended on a fault of its own", exc_info=error)
    else:
        sys.__excepthook__(kind, error, frames)


def _thread_ended(ended: threading.ExceptHookArgs) -> None:
    """The same of a thread."""
    logging.getLogger("dragoman").critical("a thread ended on a fault of its own", exc_info=ended.exc_value)
