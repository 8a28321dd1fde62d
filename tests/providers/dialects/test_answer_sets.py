"""Valid, broken and invalid responses of every dialect with an answer set, streaming and not."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from providers.completion import StreamEvent, Usage
from providers.failure import FailureKind, UpstreamError
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.kit import (
    SIZES,
    check_cuts,
    check_pieces,
    decode_failure,
    decoded,
    fixture,
    gathered,
    names_in,
    single_events,
    stream_failure,
    streamed,
    text_of,
    usage_in,
)
from tests.support.dialects import declared
from tests.support.looped import looped

SETS: Final[Mapping[str, AnswerSet]] = declared("suite_data.py", "ANSWER_SETS")
HERE: Final = Path(__file__).parent
HIDDEN: Final = ("10.0.0.7", "62bc820451dbea002b1c5421")
"""An address and an account that are in the error fixtures."""
SENSELESS_BODIES: Final = (b"", b"<html>", b"3", b"{}")
SENSELESS_EVENTS: Final[Mapping[str, tuple[bytes, ...]]] = {
    "sse": (b"data: nonsense\n\n", b"data: 3\n\n"),
    "ndjson": (b"nonsense\n", b"3\n"),
}


def each(names: Callable[[AnswerSet], Iterable[str]]) -> Callable[..., Any]:
    """Loop a test over the sets, and over the fixtures of each."""
    cases = [pytest.param(case, name, id=f"{at}-{name}") for at, case in SETS.items() for name in names(case)]
    return looped(("case", "name"), cases)


def test_each_stream_among_the_fixtures_is_in_a_set() -> None:
    named: defaultdict[str, set[str]] = defaultdict(set)
    for case in SETS.values():
        named[case.folder].update(f"{name}.{case.suffix}" for name in [*case.streams.split(), *case.broken])
    for folder, names in named.items():
        assert names_in(folder, "streams") == sorted(names)


@looped("folder", sorted({case.folder for case in SETS.values()}))
def test_each_whole_answer_among_the_fixtures_is_named_in_the_tests_of_its_dialect(folder: str) -> None:
    said = {word for path in (HERE / folder).glob("*.py") for word in re.findall(r"\w+", path.read_text("utf-8"))}
    assert {name.removesuffix(".json") for name in names_in(folder, "answers")} <= said


@each(lambda case: case.streams.split())
def test_the_events_are_the_same_whatever_the_pieces(case: AnswerSet, name: str) -> None:
    for call in case.calls:
        check_pieces(call, case.stream(name))


@each(lambda case: case.streams.split() if case.ends else ())
def test_a_stream_cut_at_any_byte_is_never_a_success(case: AnswerSet, name: str) -> None:
    data = case.stream(name)
    check_cuts(case.calls[0], data, len(data.rstrip()), case.choices)


@each(lambda case: case.alike.split())
def test_a_stream_says_what_the_whole_answer_says(case: AnswerSet, name: str) -> None:
    whole = fixture(case.folder, "answers", f"{name}.json")
    for call in case.calls:
        assert gathered(streamed(call, case.stream(name)), case.choices) == decoded(call, whole)


@looped("size", SIZES)
@each(lambda case: case.broken)
def test_an_error_in_the_stream_ends_it(case: AnswerSet, name: str, size: int) -> None:
    text, kind, status = case.broken[name]
    events, error = stream_failure(case.calls[0], case.stream(name), size)
    assert text_of(events) == text
    assert (error.failure.kind, error.failure.status) == (kind, status)
    assert not any(hidden in error.failure.message for hidden in HIDDEN)


@each(lambda case: case.broken)
def test_an_error_comes_when_the_events_are_read_and_not_before(case: AnswerSet, name: str) -> None:
    call = case.calls[0]
    decoder, events = call.target.dialect.stream(call), list[StreamEvent]()
    for piece in single_events(case.stream(name)):
        fed = decoder.feed(piece)
        try:
            events.extend(fed)
        except UpstreamError:
            break
    assert text_of(events) == case.broken[name][0]


@looped("case", [case for case in SETS.values() if case.ends and case.broken])
def test_nothing_is_read_after_the_end(case: AnswerSet) -> None:
    good, broken = case.stream(case.streams.split()[0]), case.stream(next(iter(case.broken)))
    for size in SIZES:
        assert streamed(case.calls[0], good + broken, size) == streamed(case.calls[0], good)


@looped("case", [case for case in SETS.values() if case.streams])
def test_events_that_make_no_sense_are_malformed(case: AnswerSet) -> None:
    nonsense, number = SENSELESS_EVENTS[case.suffix]
    for data in (nonsense, *(() if case.numbers_pass else (number,)), *case.events):
        assert stream_failure(case.calls[0], data)[1].failure.kind is FailureKind.MALFORMED, data


@looped("case", [case for case in SETS.values() if case.bodies])
def test_a_body_that_makes_no_sense_is_malformed(case: AnswerSet) -> None:
    for body in (*SENSELESS_BODIES, *case.bodies):
        assert decode_failure(case.calls[0], body) is FailureKind.MALFORMED, body


@looped("case", [case for case in SETS.values() if case.disguised])
def test_an_error_in_disguise_is_that_error(case: AnswerSet) -> None:
    assert case.disguised
    name, kind = case.disguised
    assert decode_failure(case.calls[0], fixture(case.folder, "errors", name)) is kind


COUNT: Final = re.compile(rb'"[a-z_]*(?:token|count|cache_n|generated)[a-z_]*"\s*:\s*(\d[\d.]*)', re.IGNORECASE)
NO_COUNTS: Final = (b"-1000000", b"true", b"2.5", b'"7"', b"1e300", b"123456789012345678", b"null")


def with_senseless_counts(data: bytes) -> Iterator[bytes]:
    """Yield a fixture with invalid values in place of its counts, one at a time and all at once."""
    places = [found.span(1) for found in COUNT.finditer(data)]
    for value in NO_COUNTS if places else ():
        for start, end in places:
            yield data[:start] + value + data[end:]
        yield COUNT.sub(lambda found, value=value: found[0].replace(found[1], value), data)  # type: ignore[misc]


def check_counts(usage: Usage | None, usual: Usage) -> None:
    """Check that every count is an integer, not negative, and at most as large as in the valid response."""
    if usage is None:
        return
    most = usual.total_tokens
    details = [*(usage.prompt_details or {}).values(), *(usage.completion_details or {}).values()]
    for count in (usage.prompt_tokens, usage.completion_tokens, *details):
        assert type(count) is int
        assert 0 <= count <= most


@each(lambda case: case.streams.split())
def test_what_is_no_count_in_a_stream_counts_nothing(case: AnswerSet, name: str) -> None:
    call, data = case.calls[0], case.stream(name)
    if (usual := usage_in(streamed(call, data))) is not None:
        for changed in with_senseless_counts(data):
            check_counts(usage_in(streamed(call, changed)), usual)


@each(lambda case: case.alike.split())
def test_what_is_no_count_in_an_answer_counts_nothing(case: AnswerSet, name: str) -> None:
    call, data = case.calls[0], fixture(case.folder, "answers", f"{name}.json")
    if (usual := decoded(call, data).usage) is not None:
        for changed in with_senseless_counts(data):
            check_counts(decoded(call, changed).usage, usual)
