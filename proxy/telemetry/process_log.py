"""The log messages of the process on standard error, as JSON or as text. The text of an exception is never written."""

import atexit
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from copy import copy
from types import TracebackType

from proxy.telemetry.log_format import json_line, timestamp
from proxy.telemetry.log_writer import MAX_LINE, LineStream, LineWriter, no_pause, unbuffered


def trace(error: BaseException) -> str:
    """Return the frames and class names of an exception and of its causes, with the number of an OSError.

    The result never contains the text or the notes of exceptions, which may quote a request or a key.
    """
    parts: list[str] = []
    current: BaseException | None = error
    seen: set[int] = set()
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        number = f" [Errno {current.errno}]" if isinstance(current, OSError) and current.errno is not None else ""
        parts.append("".join(traceback.format_tb(current.__traceback__)) + type(current).__qualname__ + number)
        if isinstance(current, BaseExceptionGroup):
            parts.extend(trace(inner) for inner in reversed(current.exceptions))
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return "\n".join(["Traceback (most recent call last):", *reversed(parts)])


MAX_MESSAGE, MAX_TRACEBACK = 2000, 2000
"""The most characters of a message, and the most characters of a traceback, of which the end is written."""


class TextFormatter(logging.Formatter):
    """Formats the messages of the process as text: one line each, and below it the frames of an exception without its
    text."""

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
    """Formats the messages of the process as JSON lines of at most MAX_LINE bytes. A traceback is a field of its
    line."""

    def format(self, record: logging.LogRecord) -> str:
        fields: dict[str, object] = {
            "time": timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        line = json_line(fields)
        if len(line) > MAX_LINE:
            line = json_line({**fields, "message": ascii(fields["message"])[1:-1][: MAX_MESSAGE // 2], "cut": True})
        return line.decode()


FORMATTERS: Mapping[str, Callable[[], logging.Formatter]] = {"json": JsonFormatter, "text": TextFormatter}
"""The formatter for each log format of the setting `server.log`."""


def set_up(form: str) -> logging.Logger:
    """Set up logging to standard error in the form `json` or `text`, and return the gateway's logger."""
    writer = LineWriter(unbuffered(sys.stderr), _ignore, no_pause)
    atexit.register(writer.close)
    handler = logging.StreamHandler(LineStream(writer))
    handler.setFormatter(FORMATTERS[form]())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logger = logging.getLogger("dragoman")
    logger.setLevel(logging.INFO)
    sys.excepthook = _log_fatal
    threading.excepthook = _log_thread_fatal
    return logger


def _ignore(message: str) -> None:
    """Drop a message of the log writer, because it would be written to this same log."""


def _message(record: logging.LogRecord) -> str:
    message = record.getMessage()
    # asyncio's messages quote exceptions from their second line on.
    return message.partition("\n")[0] if record.name == "asyncio" else message


def _log_fatal(kind: type[BaseException], error: BaseException, frames: TracebackType | None) -> None:
    """Log the exception that ends the process; the interpreter would print its text."""
    if isinstance(error, Exception):
        logging.getLogger("dragoman").critical("the gateway ended on a fault of its own", exc_info=error)
    else:
        sys.__excepthook__(kind, error, frames)


def _log_thread_fatal(ended: threading.ExceptHookArgs) -> None:
    """Log the exception that ended a thread; the interpreter would print its text."""
    logging.getLogger("dragoman").critical("a thread ended on a fault of its own", exc_info=ended.exc_value)
