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

_HALF: Final = 2**64

NoteValue = str | bool | int | float | Sequence[str]
"""What a span may say under one name."""


@dataclass(frozen=True, slots=True)
class TraceParent:
    """The caller's place in a trace: `span_id` is that of its own span."""

    trace_id: int
    span_id: int
    flags: int


@dataclass(slots=True, eq=False)
class Trace:
    """The trace that one request is part of, and what its span says besides the request's record, where it is sampled.

    `span_id` is that of the request's own span; those of its attempts follow it. `parent_id` is the caller's span (0:
    there is none), `state` its `tracestate`. `keeps_content` says that the texts of the prompt and of the answer are
    noted too: `prompt` and `answer` are JSON.
    """

    trace_id: int
    span_id: int
    parent_id: int
    flags: int
    state: str = ""
    method: str = ""
    keeps_content: bool = False
    params: Mapping[str, NoteValue] | None = None
    finish_reasons: tuple[str, ...] = ()
    prompt: str = ""
    answer: str = ""

    @property
    def sampled(self) -> bool:
        """Whether its spans are exported."""
        return self.flags & SAMPLED != 0

    @property
    def hex_id(self) -> str:
        """The trace's id as it is written."""
        return f"{self.trace_id:032x}"

    def lines(self, attempt: int) -> str:
        """Return lines of the head of a call that an attempt makes; `attempt` counts from 1, 0 is the request."""
        line = f"traceparent: 00-{self.trace_id:032x}-{self.span_id + attempt:016x}-{self.flags:02x}\r\n"
        return f"{line}tracestate: {self.state}\r\n" if self.state else line

    def response(self) -> str:
        """Return the `traceresponse` of the answer."""
        return f"00-{self.trace_id:032x}-{self.span_id:016x}-{self.flags:02x}"

    def ended(self, reason: str) -> None:
        """Note why a choice ended."""
        if self.flags & SAMPLED and len(self.finish_reasons) < MOST_REASONS:
            self.finish_reasons = (*self.finish_reasons, reason)


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
    trace_id, span_id = int(trace, 16), int(span, 16)
    return TraceParent(trace_id, span_id, int(flags, 16) & _KNOWN) if trace_id and span_id else None


def parse_state(lines: Sequence[str]) -> str:
    """Return the `tracestate` headers of a request as one line, empty where they are not valid or too large."""
    if sum(map(len, lines)) > MOST_STATE:
        return ""
    members = [member for line in lines for each in line.split(",") if (member := each.strip(" \t"))]
    if len(members) > MOST_MEMBERS or not all(map(_MEMBER.fullmatch, members)):
        return ""
    names = {member.partition("=")[0] for member in members}
    return ",".join(members) if len(names) == len(members) else ""


def is_chosen(trace_id: int, bound: int) -> bool:
    """Return whether a trace is among those that are sampled. See `bound_of`."""
    return trace_id % _HALF < bound


def bound_of(share: float) -> int:
    """Return below which number the lower half of the ids of a share of all traces is."""
    return round(share * _HALF)
