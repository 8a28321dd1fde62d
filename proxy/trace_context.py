"""The trace that a request is part of, and the headers in which traces travel. Pure: no clock, no randomness.

Sources: W3C Trace Context (Recommendation, 23 November 2021) for `traceparent` and `tracestate`; its Level 2 (Candidate
Recommendation, 2024) for the flag of a random id; W3C Trace Response (editors' draft) for `traceresponse`;
OpenTelemetry's TraceIdRatioBased sampler, whose decision about an id is the same in every process.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SAMPLED: Final = 0x01
RANDOM: Final = 0x02
_KNOWN: Final = SAMPLED | RANDOM

MAX_STATE_CHARS: Final = 512
MAX_STATE_ENTRIES: Final = 32
"""The most characters, and the most entries, of a `tracestate` that is passed on. A larger one is left out."""

MAX_FINISH_REASONS: Final = 16
"""The most finish reasons that are noted, one for each choice."""

_PARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_LONGEST_PARENT: Final = 256
_ENTRY: Final = re.compile(
    r"([a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
    r"=[ -+\--<>-~]{0,255}[!-+\--<>-~]"
)

SAMPLED_DIGITS: Final = 16
"""The number of hex digits at the end of a trace id that decide whether the trace is sampled."""

NoteValue = str | bool | int | float | Sequence[str]
"""The value of an attribute of a span."""


@dataclass(frozen=True, slots=True)
class TraceParent:
    """The caller's position in a trace: `span_id` is the id of the caller's span, `hex_id` the id of the trace in
    hex."""

    hex_id: str
    span_id: int
    flags: int


@dataclass(slots=True, eq=False)
class SpanNotes:
    """Attributes for the span of a sampled request that its record does not have. If `keeps_content` is true, the texts
    of the prompt and of the response are noted too: `prompt` and `answer` are JSON."""

    keeps_content: bool = False
    params: Mapping[str, NoteValue] | None = None
    finish_reasons: tuple[str, ...] = ()
    prompt: str = ""
    answer: str = ""

    def ended(self, reason: str) -> None:
        """Note the finish reason of a choice."""
        if len(self.finish_reasons) < MAX_FINISH_REASONS:
            self.finish_reasons = (*self.finish_reasons, reason)


class Trace:
    """The trace that one request is part of.

    `hex_id` is the id of the trace in hex, `line` the header lines of each call that is part of it. Spans of a request
    that is not sampled are never reported, so that all of its calls have the same line. Nine of ten requests are not
    sampled, and each extra object and call costs them 1 to 2 us in a running gateway.
    """

    __slots__ = ("hex_id", "line", "method")

    def __init__(self, hex_id: str, line: str, method: str) -> None:
        self.hex_id = hex_id
        self.line = line
        self.method = method

    def lines(self, number: int) -> str:
        """Return the header lines of a call that an attempt makes. `attempt` counts from 1; 0 is the request itself."""
        return self.line


class SampledTrace(Trace):
    """The trace of a request whose spans are reported. `line` is empty.

    `span_id` is the id of the request's own span; the ids of its attempts follow it. `parent_id` is the caller's span
    (0 if there is none), `state` its `tracestate`. `text` is the `traceresponse` of the response.
    """

    __slots__ = ("flags", "notes", "parent_id", "span_id", "state", "text")

    def __init__(
        self, hex_id: str, span_id: int, parent_id: int, flags: int, state: str = "", method: str = ""
    ) -> None:
        self.hex_id = hex_id
        self.line = ""
        self.method = method
        self.span_id = span_id
        self.parent_id = parent_id
        self.flags = flags
        self.state = state
        self.text = f"00-{hex_id}-{span_id:016x}-{flags:02x}"
        self.notes = SpanNotes()

    def lines(self, number: int) -> str:
        line = f"traceparent: 00-{self.hex_id}-{self.span_id + number:016x}-{self.flags:02x}\r\n"
        return f"{line}tracestate: {self.state}\r\n" if self.state else line


def parse_parent(lines: Sequence[str]) -> TraceParent | None:
    """Return the parsed `traceparent` header of a request; `None` unless there is exactly one and it is valid."""
    if len(lines) != 1 or len(lines[0]) > _LONGEST_PARENT:
        return None
    match = _PARENT.fullmatch(lines[0].strip(" \t"))
    if match is None:
        return None
    version, trace, span, flags, rest = match.groups()
    if version == "ff" or (version == "00" and rest is not None):
        return None
    span_id = int(span, 16)
    return TraceParent(trace, span_id, int(flags, 16) & _KNOWN) if int(trace, 16) and span_id else None


def parse_state(lines: Sequence[str]) -> str:
    """Return the `tracestate` headers of a request as one line; empty if they are invalid or too large."""
    if sum(map(len, lines)) > MAX_STATE_CHARS:
        return ""
    entries = [entry for line in lines for each in line.split(",") if (entry := each.strip(" \t"))]
    if len(entries) > MAX_STATE_ENTRIES or not all(map(_ENTRY.fullmatch, entries)):
        return ""
    names = {entry.partition("=")[0] for entry in entries}
    return ",".join(entries) if len(names) == len(entries) else ""


def sampling_bound(share: float) -> str:
    """Return the bound of a sampling share: a trace is sampled if the last SAMPLED_DIGITS of its id sort before it."""
    bound = round(share * 16**SAMPLED_DIGITS)
    return f"{bound:016x}" if bound < 16**SAMPLED_DIGITS else "g"
