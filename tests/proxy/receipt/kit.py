"""Records of requests whose times are known, and receipts as clients read them."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from proxy.request_outcomes import Receipt, WaitMarks
from proxy.request_record import Attempt, RequestRecord

START = 1000.0

_ENTRY = re.compile(r'([a-z]+[0-9]*);dur=([0-9]+(?:\.[0-9]+)?)(?:;desc=(?:([a-z]+)|"((?:[^"\\]|\\.)*)"))?')


class Timing(NamedTuple):
    """One entry of the header, as a browser reads it."""

    name: str
    milliseconds: float
    text: str


def timings(value: str) -> list[Timing]:
    """Return the entries of a header's value, which contains nothing else."""
    entries = []
    rest = value
    while rest:
        found = _ENTRY.match(rest)
        assert found is not None, rest
        name, took, word, quoted = found.groups()
        entries.append(Timing(name, float(took), word or re.sub(r"\\(.)", r"\1", quoted or "")))
        rest = rest[found.end() :]
        assert rest == "" or rest.startswith(", "), rest
        rest = rest.removeprefix(", ")
    return entries


def told(value: str) -> Mapping[str, float]:
    """Return the milliseconds of each part."""
    found = {each.name: each.milliseconds for each in timings(value)}
    assert len(found) == len(timings(value))
    return found


def whole(**fields: object) -> RequestRecord:
    """Return a non-streaming response of one second, of which the vendor took 0.9."""
    return with_fields(record(attempt(0.05, 0.95)), finished=START + 1.0, **fields)


def streamed(**fields: object) -> RequestRecord:
    """Return a stream of one second, whose content begins after 0.5."""
    one = attempt(0.05, 0.99)
    one.begun = START + 0.49
    return with_fields(record(one), first_content=START + 0.5, finished=START + 1.0, **fields)


def attempt(started: float, finished: float, outcome: str = "ok", name: str = "v/m/d") -> Attempt:
    """Return an attempt, by seconds since the request began."""
    return Attempt(name, START + started, START + finished, outcome, name=name)


def record(*attempts: Attempt) -> RequestRecord:
    """Return a request with these attempts, whose client may see every name."""
    made = RequestRecord("req-1", START, "openai", "/v1/chat/completions")
    made.attempts = [*attempts]
    made.receipt = Receipt(lambda name: True, last=True)
    return made


def marks(**fields: float) -> WaitMarks:
    """Return these waits as marks."""
    made = WaitMarks()
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def with_fields(made: RequestRecord, **fields: object) -> RequestRecord:
    """Return the record with these fields."""
    for name, value in fields.items():
        setattr(made, name, value)
    return made
