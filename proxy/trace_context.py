"""The trace that a request is part of, and the headers in which traces travel. Pure: no clock, no randomness.

Sources: W3C Trace Context (Recommendation, 23 November 2021) for `traceparent` and `tracestate`; its Level 2 (Candidate
Recommendation, 2024) for the flag that says that an id is random; W3C Trace Response (editors' draft) for
`traceresponse`; OpenTelemetry's TraceIdRatioBased sampler, whose decision about an id is the same in every process.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SAMPLED: Final = 0x01
RANDOM: Final = 0x02
_KNOWN: Final = SAMPLED | RANDOM

MOST_STATE: Final = 512
MOST_MEMBERS: Final = 32
"""Characters and members of a `tracestate` that is passed on; a larger one is left out."""

MOST_REASONS: Final = 16
"""Finish reasons that are noted, of as many choices."""

_PARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_LONGEST_PARENT: Final = 256
_MEMBER: Final = re.compile(
    r"([a-z][a-z0-9_*/-]{0,255}|[a-z0-9][a-z0-9_*/-]{0,240}@[a-z][a-z0-9_*/-]{0,13})"
    r"=[ -+\--<>-~]{0,255}[!-+\--<>-~]"
)

HALF: Final = 16
"""Hex digits of an id of a trace, the last ones, by which it is decided whether it is sampled."""

NoteValue = str | bool | int | float | Sequence[str]
"""What a span may say under one name."""


@dataclass(frozen=True, slots=True)
class TraceParent:
    """The caller's place in a trace: `span_id` is that of its own span, `hex_id` the trace's as it is written."""

    hex_id: str
    span_id: int
    flags: int


@dataclass(slots=True, eq=False)
class SpanNotes:
    """What the span of a sampled request says besides the request's record. `keeps_content` says that the texts of the
    prompt and of the answer are noted too: `prompt` and `answer` are JSON."""

    keeps_content: bool = False
    params: Mapping[str, NoteValue] | None = None
    finish_reasons: tuple[str, ...] = ()
    prompt: str = ""
    answer: str = ""

    def ended(self, reason: str) -> None:
        """Note why a choice ended."""
        if len(self.finish_reasons) < MOST_REASONS:
            self.finish_reasons = (*self.finish_reasons, reason)


class Trace:
    """The trace that one request is part of.

    `hex_id` is the trace's id as it is written, `line` what a call that is part of it has in its head. Of a request
    that is not sampled no span is ever told, so that all its calls have one line: nine of ten requests are such, and
    each object and call more costs them 1 to 2 us in a running gateway.
    """

    __slots__ = ("hex_id", "line", "method")

    def __init__(self, hex_id: str, line: str, method: str) -> None:
        self.hex_id = hex_id
        self.line = line
        self.method = method

    def lines(self, attempt: int) -> str:
        """Return lines of the head of a call that an attempt makes; `attempt` counts from 1, 0 is the request."""
        return self.line


class SampledTrace(Trace):
    """The trace of a request whose spans are told. `line` is empty.

    `span_id` is that of the request's own span; those of its attempts follow it. `parent_id` is the caller's span (0:
    there is none), `state` its `tracestate`. `text` is the `traceresponse` of the answer.
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

    def lines(self, attempt: int) -> str:
        """See Trace."""
        line = f"traceparent: 00-{self.hex_id}-{self.span_id + attempt:016x}-{self.flags:02x}\r\n"
        return f"{line}tracestate: {self.state}\r\n" if self.state else line


def parse_parent(lines: Sequence[str]) -> TraceParent | None:
    """Return what the `traceparent` headers of a request say; None where there is no single valid one."""
    if len(lines) != 1 or len(lines[0]) > _LONGEST_PARENT:
        return None
    found = _PARENT.fullmatch(lines[0].strip(" \t"))
    if found is None:
        return None
    version, trace, span, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest is not None):
        return None
    span_id = int(span, 16)
    return TraceParent(trace, span_id, int(flags, 16) & _KNOWN) if int(trace, 16) and span_id else None


def parse_state(lines: Sequence[str]) -> str:
    """Return the `tracestate` headers of a request as one line, empty where they are not valid or too large."""
    if sum(map(len, lines)) > MOST_STATE:
        return ""
    members = [member for line in lines for each in line.split(",") if (member := each.strip(" \t"))]
    if len(members) > MOST_MEMBERS or not all(map(_MEMBER.fullmatch, members)):
        return ""
    names = {member.partition("=")[0] for member in members}
    return ",".join(members) if len(names) == len(members) else ""


def bound_of(share: float) -> str:
    """Return before which text the last HALF digits of the id of a trace stand that is among a share of all."""
    bound = round(share * 16**HALF)
    return f"{bound:016x}" if bound < 16**HALF else "g"
