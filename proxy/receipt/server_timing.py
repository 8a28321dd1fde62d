"""The receipt of a request for the client: the header `Server-Timing`, and a comment at the end of a stream if the
client requests it. Pure.

Source: W3C Server Timing, "The Server-Timing Header Field": `name;dur=milliseconds;desc="quoted string"`, in a list.
The sum of all `dur` is the time up to the head of the response, or, for a stream, up to its first content.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from proxy.errors import FieldProblem, invalid_request
from proxy.receipt.request_parts import Part, merged, parts_of, tokens_per_second, units_of
from proxy.request_outcomes import Receipt
from proxy.request_record import Attempt, RequestRecord

MOST_BYTES: Final = 300
"""The number of bytes that the header line, with its line end, must stay below."""

MOST_NAME: Final = 120
"""The most characters of a deployment's name; for a longer name only the outcome is sent."""

_TEXTS: Final = tuple([str(units / 100) for units in range(1024)])
"""The texts of the times from 0 to 10.23 ms in steps of 0.01 ms, made once because formatting a float takes 0.2 us."""

_AROUND: Final = len("Server-Timing: \r\n")
_UNPRINTABLE: Final = re.compile(r"[^ -~]")


RECEIPT_HEADER: Final = "x-dragoman-receipt"
"""The request header with which a client requests a receipt at the end of a stream; its value is LAST."""

LAST: Final = "last"


def names_nothing(name: str) -> bool:
    """Return whether a client may know the name of a deployment if its team is unknown."""
    return False


NAMELESS: Final = Receipt(names_nothing)
"""The receipt of an unknown client, and of a request that has ended."""


def wants_last(text: str) -> bool:
    """Return whether the header requests a comment at the end of a stream. Raises GatewayError for any other value."""
    if text.strip().lower() != LAST:
        raise invalid_request((FieldProblem((RECEIPT_HEADER,), f"'{RECEIPT_HEADER}' must be {LAST}."),))
    return True


def timing_line(record: RequestRecord, end: float, texts: Sequence[str] = _TEXTS) -> str:
    """Return the header line for a response whose head is sent at `end`, seconds of the loop's clock. `texts` are the
    texts of times below 1024 hundredths of a millisecond."""
    attempts = record.attempts
    if len(attempts) == 1 and record.marks is None and record.cache is None and not record.limit_waited:
        # The case of nearly every request. The result is the same as from `parts_of`, without its objects, and with few
        # bytecodes: each of them runs once a request, and is therefore rarely in the processor's nearest caches.
        attempt = attempts[0]
        stop = attempt.begun if record.first_content is not None else 0.0 if attempt.begun else attempt.finished
        if stop and attempt.outcome == "ok" and not attempt.connect:
            vendor = int((stop - attempt.started) * 100_000 + 0.5)
            own = int((end - record.started) * 100_000 + 0.5) - vendor
            if 0 <= own < 1024 and vendor >= 0:
                if vendor < 1024:
                    return f"Server-Timing: gateway;dur={texts[own]}, vendor;dur={texts[vendor]}\r\n"
                took = f"{vendor}"
                return f"Server-Timing: gateway;dur={texts[own]}, vendor;dur={took[:-2]}.{took[-2:]}\r\n"
    return f"Server-Timing: {timing_value(record, end)}\r\n"


def stream_line(record: RequestRecord) -> str:
    """Return the header line for the head of a stream whose first content has arrived; empty for a client without a
    receipt."""
    first = record.first_content
    return "" if record.receipt is None or first is None else timing_line(record, first)


def stream_header(record: RequestRecord) -> Mapping[str, str]:
    """Return the header of `stream_line`."""
    return {} if record.first_content is None else timing_header(record, record.first_content)


def timing_header(record: RequestRecord, end: float) -> Mapping[str, str]:
    """Return the header with the parts up to `end`; empty for a client without a receipt."""
    return {} if record.receipt is None else {"Server-Timing": timing_value(record, end)}


def timing_value(record: RequestRecord, end: float) -> str:
    """Return the value of the header. The attempts in the middle are merged if it would be too long otherwise."""
    parts, value = parts_of(record, end), ""
    failed = [part for part in parts if part.attempt is not None]
    for shown in range(len(failed), -1, -1):
        value = ", ".join([_entry(record, part) for part in merged(parts, shown)])
        if len(value) < MOST_BYTES - _AROUND:
            break
    return value


def closing_comment(record: RequestRecord, end: float) -> bytes:
    """Return the comment after the last event of a stream: the parts of the complete stream, and the figures that
    became known after the head, in milliseconds. It is empty for a client that did not request it or gets no
    receipt."""
    if record.receipt is None or not record.receipt.last:
        return b""
    figures = {"total": _text(units_of(end - record.started))}
    if record.first_content is not None:
        figures["first_content"] = _text(units_of(record.first_content - record.started))
    if (pace := tokens_per_second(record, end)) is not None:
        figures["tokens_per_second"] = f"{pace:.1f}"
    if record.marks is not None and record.marks.stalls:
        figures |= {"stalls": str(record.marks.stalls), "stalled": _text(units_of(record.marks.stalled))}
    rest = ", ".join([f"{name}={value}" for name, value in figures.items()])
    return f": server-timing: {timing_value(record, end)}\n: x-dragoman-receipt: {rest}\n\n".encode()


def _entry(record: RequestRecord, part: Part) -> str:
    entry = f"{part.name};dur={_text(part.units)}"
    if part.hidden:
        return f'{entry};desc="{part.hidden} more"'
    if part.attempt is not None:
        return f'{entry};desc="{quotable(failure_text(record, part.attempt))}"'
    if part.name == "cache" and record.cache is not None:
        return f"{entry};desc={record.cache.result}"
    return entry


def failure_text(record: RequestRecord, attempt: Attempt) -> str:
    """Return the description of an attempt that gave no response: the failure, after the deployment's name if the
    client's team may know it."""
    why, name = attempt.phase or attempt.outcome, attempt.full_name
    may_name = NAMELESS.may_name if record.receipt is None else record.receipt.may_name
    known = len(name) <= MOST_NAME and (may_name(name.rpartition("/")[0]) or may_name(name))
    return f"{name} {why}" if known else why


def quotable(text: str) -> str:
    """Return a text for a quoted string (RFC 9110, 5.6.4), with a question mark for each character that is not
    printable ASCII."""
    return _UNPRINTABLE.sub("?", text).replace("\\", "\\\\").replace('"', '\\"')


def _text(units: int) -> str:
    """Return a time in milliseconds as text."""
    return str(units / 100)
