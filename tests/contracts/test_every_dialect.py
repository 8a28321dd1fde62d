"""The sixteen checks that every dialect must pass with its fixtures, two of them also through the gateway.

A vendor's own fields are checked in the dialect's own tests.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Final, cast

import orjson
import pytest

from providers.completion import Choice, Completion, StreamEvent, Usage
from providers.dialect import usage_so_far
from providers.dialects.registry import DIALECTS
from providers.failure import VERDICTS, Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject
from providers.unified_request import Operation
from tests.conformance.fake_engine import fake_dialect_of
from tests.conformance.run_matrix import api_path
from tests.contracts.conftest import Checked
from tests.contracts.fixture_sets import FixtureSet
from tests.providers.dialects.kit import SIZES, chunks, gathered, pieces, text_of
from tests.proxy.kit.gateway_rig import rig
from tests.proxy.kit.raw_client import connected, request
from tests.support.dialects import declared, fixture_path
from tests.support.http_scripts import body_answer, chunk, head, json_answer
from tests.support.looped import looped
from tests.support.vendor_script import Hang, Received, Script, Send

# Reading --------------------------------------------------------------------------------------------------------------


def read_events(fixtures: FixtureSet, *parts: bytes) -> tuple[list[StreamEvent], Failure | None]:
    """Return the events of a stream in these chunks, and how it broke."""
    decoder = fixtures.target.dialect.stream(fixtures.call(stream=True))
    events: list[StreamEvent] = []
    try:
        for part in parts:
            events.extend(decoder.feed(part))
        events.extend(decoder.finish())
    except UpstreamError as broken:
        assert not decoder.complete
        return events, broken.failure
    assert decoder.complete
    return events, None


def feed_events(fixtures: FixtureSet, data: bytes) -> tuple[list[StreamEvent], bool]:
    """Return the events of a stream whose end has not been seen, and whether the decoder needs no further bytes."""
    decoder = fixtures.target.dialect.stream(fixtures.call(stream=True))
    return list(decoder.feed(data)), decoder.complete


def completions_of(fixtures: FixtureSet, name: str) -> list[Completion]:
    """Return the response of the fixtures of that name, non-streaming and streamed."""
    events, failure = read_events(fixtures, fixtures.stream(name))
    assert failure is None, failure
    return [fixtures.target.dialect.decode(fixtures.call(stream=False), fixtures.body(name)), gathered(events)]


def choices(fixtures: FixtureSet, name: str) -> list[Choice]:
    found = completions_of(fixtures, name)
    assert all(len(answer.choices) == 1 for answer in found)
    return [answer.choices[0] for answer in found]


def failure_of(fixtures: FixtureSet, status: int, headers: dict[str, str], body: bytes) -> Failure:
    """Return the failure of a response with that status; one vendor reports errors with status 200."""
    dialect, sent = fixtures.target.dialect, fixtures.call(stream=False)
    if status != 200:
        return dialect.classify(sent, status, headers, body)
    with pytest.raises(UpstreamError) as caught:
        dialect.decode(sent, body)
    return caught.value.failure


# The checks -----------------------------------------------------------------------------------------------------------


async def a_text_has_its_end_and_its_usage(fixtures: FixtureSet) -> None:
    """A text is complete, with the reason `stop` and counted tokens, streamed and non-streaming."""
    for answer in completions_of(fixtures, "text"):
        (choice,) = answer.choices
        assert (choice.finish_reason, choice.tool_calls) == ("stop", ())
        assert choice.text.strip()
        assert answer.usage is not None


async def a_tool_call_has_its_id_name_and_arguments(fixtures: FixtureSet) -> None:
    """A function call has an id, a name and an object of arguments, and sets the finish reason."""
    for choice in choices(fixtures, "tool" if "tool" in fixtures.whole else "tools"):
        assert choice.finish_reason == "tool_calls"
        call = choice.tool_calls[0]
        assert call.id
        assert call.name
        assert isinstance(orjson.loads(call.arguments), dict)


async def two_tool_calls_stay_apart(fixtures: FixtureSet) -> None:
    """Two calls of one response keep their own ids and arguments."""
    for choice in choices(fixtures, "tools"):
        assert choice.finish_reason == "tool_calls"
        assert len({call.id for call in choice.tool_calls}) == len(choice.tool_calls) == 2
        assert all(isinstance(orjson.loads(call.arguments), dict) for call in choice.tool_calls)


async def a_limit_is_told_as_length(fixtures: FixtureSet) -> None:
    """A response that reached its limit has the finish reason `length`."""
    assert [choice.finish_reason for choice in choices(fixtures, "length")] == ["length"] * 2


async def a_filter_is_told_as_content_filter(fixtures: FixtureSet) -> None:
    """A response that a filter or a refusal ended has the finish reason `content_filter`."""
    assert [choice.finish_reason for choice in choices(fixtures, "filtered")] == ["content_filter"] * 2


async def an_error_before_content_is_a_failure(fixtures: FixtureSet) -> None:
    """An error is a failure of its own kind: by its status whatever the body, and as the first event of a stream."""
    for status, kind in ((500, FailureKind.SERVER), (502, FailureKind.SERVER), (401, FailureKind.AUTH)):
        assert failure_of(fixtures, status, {}, PAGE).kind is kind
    events, failure = read_events(fixtures, fixtures.stream("error_first"))
    assert chunks(events) == []
    assert failure is not None
    assert failure.kind not in (FailureKind.TRUNCATED, FailureKind.MALFORMED)


async def an_error_after_content_leaves_the_text_without_an_end(fixtures: FixtureSet) -> None:
    """An error after some text is a failure, and the text before it has no finish reason."""
    events, failure = read_events(fixtures, fixtures.stream("error_after_text"))
    assert text_of(events)
    assert all(piece.finish_reason is None for piece in chunks(events))
    assert failure is not None
    assert failure.kind not in (FailureKind.TRUNCATED, FailureKind.MALFORMED)


async def a_stream_cut_off_is_never_taken_for_whole(fixtures: FixtureSet) -> None:
    """If a stream is cut, a finish reason is reported with the whole text or not at all.

    Only data after the last finish reason may be missing then. The transport detects a body that breaks off, so the
    decoder must only be incomplete. The decoder must report a failure if the body ends without an error, unless the end
    of the body is the only end of a response. The usage up to the cut is at most the usage of the whole stream.
    """
    data = fixtures.stream("text")
    whole, _ = read_events(fixtures, data)
    (usage,) = [event for event in whole if isinstance(event, Usage)][-1:]
    for place in range(len(data)):
        decoder = fixtures.target.dialect.stream(fixtures.call(stream=True))
        events, complete = list(decoder.feed(data[:place])), decoder.complete
        early = usage_so_far(decoder)
        assert early is None or early.prompt_tokens <= usage.prompt_tokens, place
        assert early is None or early.completion_tokens <= usage.completion_tokens, place
        assert chunks(events) == chunks(whole) or not (complete or _finished(events)), place
        if not fixtures.ends_with_its_body:
            events, failure = read_events(fixtures, data[:place])
            assert failure is None or failure.kind is FailureKind.TRUNCATED, place
            assert chunks(events) == chunks(whole) or (failure is not None and not _finished(events)), place


async def noise_between_events_says_nothing(fixtures: FixtureSet) -> None:
    """Comments, keep-alives and events of unknown kinds leave the text unchanged."""
    events, failure = read_events(fixtures, fixtures.stream("unknown"))
    assert failure is None
    assert text_of(events) in UNDISTURBED


async def pieces_of_any_size_give_the_same(fixtures: FixtureSet) -> None:
    """Every stream reads the same, or breaks the same, in chunks of one, seven and 4096 bytes."""
    for name in fixtures.streams:
        data = fixtures.stream(name)
        whole = read_events(fixtures, data)
        for size in SIZES:
            assert read_events(fixtures, *pieces(data, size)) == whole, (name, size)


async def characters_of_several_bytes_survive_any_cut(fixtures: FixtureSet) -> None:
    """A text with characters of two, three and four bytes reads the same in two chunks, at any boundary."""
    assert not any(choice.text.isascii() for choice in choices(fixtures, "text"))
    data = fixtures.stream("text")
    whole = read_events(fixtures, data)
    for place in range(len(data)):
        assert read_events(fixtures, data[:place], data[place:]) == whole, place


async def unknown_words_change_nothing(fixtures: FixtureSet) -> None:
    """Fields, events and finish reasons that no version has break no response, and an unknown finish reason is passed
    on unchanged."""
    word = re.search(b"sunset", fixtures.body("unknown"), re.IGNORECASE)
    for choice in choices(fixtures, "unknown"):
        assert choice.text in UNDISTURBED
        assert choice.finish_reason == (word[0].decode() if word else "stop")


async def missing_usage_is_not_zero(fixtures: FixtureSet) -> None:
    """A response without counts has no usage, which the gateway then estimates."""
    assert [answer.usage for answer in completions_of(fixtures, "uncounted")] == [None, None]


async def an_overflow_tells_its_sizes(fixtures: FixtureSet) -> None:
    """A prompt that is too long is distinguished from other bad requests, with the sizes that the vendor reports."""
    status, path = fixtures.context
    failure = failure_of(fixtures, status, {}, fixture_path(path).read_bytes())
    assert failure.kind is FailureKind.CONTEXT_LENGTH
    assert failure.overflow is not None


async def a_rate_limit_reaches_the_client_with_the_vendor_s_hint_alone(fixtures: FixtureSet) -> None:
    """The client gets the surface's error, with the vendor's `retry-after` if it sent one, and otherwise without it."""
    vendor_says: list[tuple[bytes, dict[str, str]]] = [(fixtures.too_many(), {"retry-after": WAIT}), (PAGE, {})]
    kinds = [failure_of(fixtures, 429, headers, body).kind for body, headers in vendor_says]
    assert [(VERDICTS[kind].status, VERDICTS[kind].code) for kind in kinds] == [fixtures.limits] * 2
    for body, headers in vendor_says:
        async with rig(_table(fixtures)) as served:
            served.vendor.default = body_answer(429, body, list(headers.items()))
            answer = await served.post(*_question(fixtures))
            assert (answer.status, answer.code) == fixtures.limits
            assert answer.headers.get("retry-after") == headers.get("retry-after")


async def a_client_that_leaves_takes_the_call_with_it(fixtures: FixtureSet) -> None:
    """If the client disconnects, before or during a response, the vendor sees its connection close and the record
    names the client as the cause."""
    for started in sorted({b"", _until_content(fixtures)}):
        await _disconnect(fixtures, started)


# Shared by the checks -------------------------------------------------------------------------------------------------


async def _disconnect(fixtures: FixtureSet, started: bytes) -> None:
    """Send a request, and disconnect after `started` of a stream was received; if `started` is empty, before a
    non-streaming response begins."""
    calls: asyncio.Queue[Received] = asyncio.Queue()
    wire = fake_dialect_of(fixtures.target.profile.name)
    begin = (Send(head(200, [("transfer-encoding", "chunked")])), Send(chunk(started))) if started else ()

    def behave(received: Received) -> Script:
        if received.path.endswith(tuple(wire.questions)):
            body = cast(JsonObject, received.json()) if received.body else {}
            return json_answer(200, wire.answer(received.path, body))
        calls.put_nowait(received)
        return (*begin, Hang())

    path, body = _question(fixtures)
    async with rig(_table(fixtures)) as served, connected(served.port) as client:
        served.vendor.default = behave
        await client.send(request("POST", path, {**body, "stream": bool(started)}))
        call = await calls.get()
        if started:
            assert (await client.head())[0] == 200
            await client.chunk()
        await client.leave()
        (record,) = await served.finished(1)
        await call.gone.wait()
        assert (record.outcome, record.attempts[-1].outcome) == ("client_gone", "cancelled")


def _until_content(fixtures: FixtureSet) -> bytes:
    """Return the shortest prefix of a stream that contains text; empty if a stream is made of a non-streaming
    response."""
    data = fixtures.stream("text")
    return next((data[:place] for place in range(len(data)) if text_of(feed_events(fixtures, data[:place])[0])), b"")


def _finished(events: list[StreamEvent]) -> bool:
    return any(piece.finish_reason is not None for piece in chunks(events))


def _table(fixtures: FixtureSet) -> str:
    """Return a configuration with the fixture set's model, at a fake that is called once."""
    target = fixtures.target
    path = api_path(target.profile.name)
    vendor = f'{{api_key: sk-a, base_url: "http://127.0.0.1:PORT{path}", allow_private: true}}'
    model = f'"{target.profile.name}/{target.upstream_model}": {{max_output_tokens: 1024}}'
    return f"defaults: {{retries: {{attempts: 1}}}}\nvendors:\n  {target.profile.name}: {vendor}\nmodels:\n  {model}\n"


def _question(fixtures: FixtureSet) -> tuple[str, JsonObject]:
    model = f"{fixtures.target.profile.name}/{fixtures.target.upstream_model}"
    if fixtures.request.operation is Operation.CHAT:
        return "/v1/chat/completions", {"model": model, "messages": [{"role": "user", "content": "hi"}], "stream": True}
    return "/v1/completions", {"model": model, "prompt": "hi", "stream": True}


UNDISTURBED: Final = {"Still here.", "Good night", "Oslo."}
"""The texts around which the fixtures put unknown events and fields."""

PAGE: Final = b"<html>Bad gateway</html>"
"""A page that a proxy in front of a vendor sends, whatever the status."""

WAIT: Final = "30"
"""A retry time in seconds that is too long for the gateway to wait itself."""

Check = Callable[[FixtureSet], Awaitable[None]]
CHECKS: Final[dict[Check, str]] = {
    a_text_has_its_end_and_its_usage: "text",
    a_tool_call_has_its_id_name_and_arguments: "tool",
    two_tool_calls_stay_apart: "tools",
    a_limit_is_told_as_length: "length",
    a_filter_is_told_as_content_filter: "filtered",
    an_error_before_content_is_a_failure: "error_first",
    an_error_after_content_leaves_the_text_without_an_end: "error_after_text",
    a_stream_cut_off_is_never_taken_for_whole: "text",
    noise_between_events_says_nothing: "unknown",
    pieces_of_any_size_give_the_same: "text",
    characters_of_several_bytes_survive_any_cut: "text",
    unknown_words_change_nothing: "unknown",
    missing_usage_is_not_zero: "uncounted",
    an_overflow_tells_its_sizes: "text",
    a_rate_limit_reaches_the_client_with_the_vendor_s_hint_alone: "text",
    a_client_that_leaves_takes_the_call_with_it: "text",
}
"""The checks in their usual order, each with the fixture that a fixture set may be unable to have."""

FIXTURE_SETS: Final[Mapping[str, FixtureSet]] = declared("suite_data.py", "FIXTURE_SETS")
"""The fixture sets, by the dialect's name; a second wire format of a dialect follows a comma."""

POSSIBLE = [
    pytest.param(fixtures, check, id=f"{name}-{number}-{check.__name__}")
    for name, fixtures in FIXTURE_SETS.items()
    for number, (check, fixture) in zip(count(1), CHECKS.items())
    if fixture not in fixtures.cannot
]


@looped(("fixtures", "check"), POSSIBLE)
async def test_a_dialect_passes(fixtures: FixtureSet, check: Check, checked: Checked) -> None:
    await check(fixtures)
    checked.passed.add((fixtures.target.profile.dialect, check.__name__))


def test_every_dialect_has_a_fixture_set() -> None:
    assert {fixtures.target.profile.dialect for fixtures in FIXTURE_SETS.values()} == set(DIALECTS)


def test_there_are_sixteen_checks() -> None:
    assert len(CHECKS) == 16


@looped("fixtures", FIXTURE_SETS.values(), ids=FIXTURE_SETS)
def test_a_fixture_set_lacks_what_it_says_it_cannot_have(fixtures: FixtureSet, checked: Checked) -> None:
    assert all(fixtures.cannot.values())
    assert not fixtures.cannot.keys() & (fixtures.whole.keys() | fixtures.streams.keys())
    assert fixtures.cannot.keys() <= {"tool", "tools", "filtered", "error_after_text"}
    impossible = (check for check, fixture in CHECKS.items() if fixture in fixtures.cannot)
    checked.cannot.update((fixtures.target.profile.dialect, check.__name__) for check in impossible)


def test_a_check_that_another_fixture_set_of_the_dialect_passes_is_not_one_it_cannot_have() -> None:
    checked = Checked({("a", "first"), ("a", "second"), ("b", "first")}, {("a", "second"), ("b", "second")})
    reasons = "(reasons in tests/providers/dialects/*/suite_data.py)"
    assert checked.summary() == f"shelves: 2 dialects x 2 checks: 3 passed, 1 cannot {reasons}"
