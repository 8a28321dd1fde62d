"""Streamed responses checked against constraints: a choice ends only if its text satisfies the constraint."""

from collections.abc import Awaitable, Callable, Iterator, Sequence

import pytest

from providers.completion import Choice, Chunk, Completion, StreamEvent, ToolCall, ToolCallDelta, Usage
from providers.emulation.check_answer import AnswerCheck, CheckKind
from providers.emulation.post_processing import PostProcessing, PostProcessor
from providers.failure import Failure, FailureKind, UpstreamError
from proxy.off_loop.answer_check_pool import CheckFailed, TooCostly
from proxy.upstream.check_streamed_answers import Constraint, HeldStream
from tests.proxy.kit.in_process_checks import InlineChecks
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped

AB = AnswerCheck("guided_choice", CheckKind.CHOICE, choices=frozenset({"ab"}))
USAGE = Usage(1, 1)


class Failing(InlineChecks):
    """A checker that raises instead of returning a result."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    async def breach(self, check: AnswerCheck, text: str, owner: str) -> str | None:
        raise self._error


class ChunkedStream:
    """A stream that arrives in chunks; an error among the events breaks it there. See
    proxy.upstream.vendor_stream.Stream."""

    def __init__(self, *pieces: Sequence[StreamEvent | UpstreamError]) -> None:
        self._pieces = list(pieces)

    @property
    def over(self) -> bool:
        return not self._pieces

    def first(self) -> Iterator[StreamEvent]:
        return self.take()

    async def wait(self) -> None:
        """Return at once: the next chunk is there."""

    def take(self) -> Iterator[StreamEvent]:
        for event in self._pieces.pop(0):
            if isinstance(event, UpstreamError):
                raise event
            yield event

    def conclude(self) -> Iterator[StreamEvent]:
        return iter(())

    async def finish(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def held(stream: ChunkedStream, checks: InlineChecks | None = None, echo: tuple[str, ...] = ()) -> HeldStream:
    return HeldStream(
        stream,
        Constraint(checks or InlineChecks(), PostProcessing(check=AB), "team"),
        PostProcessor(PostProcessing(echo=echo, check=AB)),
    )


async def read(stream: HeldStream) -> tuple[list[StreamEvent], Failure | None]:
    events: list[StreamEvent] = []
    await stream.begin()
    try:
        events.extend(stream.first())
        while not stream.over:
            await stream.wait()
            for event in stream.take():
                events.append(event)
        events.extend(stream.conclude())
    except UpstreamError as error:
        return events, error.failure
    return events, None


def test_a_text_that_keeps_to_its_constraint_passes_in_any_pieces() -> None:
    chunks: list[StreamEvent] = [Chunk(text="a"), Chunk(text="b"), Chunk(finish_reason="stop"), USAGE]
    assert run(read(held(ChunkedStream([*chunks])))) == (chunks, None)
    assert run(read(held(ChunkedStream(*[[chunk] for chunk in chunks])))) == (chunks, None)


def test_a_choice_that_breaks_it_never_ends() -> None:
    events, failure = run(
        read(held(ChunkedStream([Chunk(text="a")], [Chunk(text="c"), Chunk(finish_reason="stop"), USAGE])))
    )
    assert events == [Chunk(text="a"), Chunk(text="c"), USAGE]  # which is billed anyway
    assert failure == Failure(
        FailureKind.NONCONFORMING, "The upstream's answer breaks 'guided_choice': it is none of the choices."
    )


def test_what_came_before_a_break_of_the_upstream_s_own_is_given_out_first() -> None:
    broken = UpstreamError(Failure(FailureKind.TRUNCATED, "gone"))
    events, failure = run(read(held(ChunkedStream([Chunk(text="a")], [Chunk(text="b"), broken]))))
    assert (events, failure) == ([Chunk(text="a"), Chunk(text="b")], broken.failure)


def test_the_prompt_is_no_part_of_what_is_held() -> None:
    events, failure = run(read(held(ChunkedStream([Chunk(text="ab", finish_reason="stop")]), echo=("Q:",))))
    assert (events, failure) == ([Chunk(text="Q:ab", finish_reason="stop")], None)


def test_the_owner_is_told_to_the_checks() -> None:
    checks = InlineChecks()
    run(read(held(ChunkedStream([Chunk(text="ab", finish_reason="stop")]), checks)))
    assert checks.owners == ["team"]


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            TooCostly("takes too much time"),
            FailureKind.INVALID_REQUEST,
            "against 'guided_choice': it takes too much time",
        ),
        (
            CheckFailed("no process"),
            FailureKind.BUSY,
            "The gateway could not check the response against 'guided_choice'",
        ),
    ],
)
def test_a_check_that_cannot_be_made_is_no_deployment_s_fault(error: Exception, kind: FailureKind, words: str) -> None:
    events, failure = run(read(held(ChunkedStream([Chunk(text="ab", finish_reason="stop")]), Failing(error))))
    assert events == []
    assert failure is not None
    assert failure.kind is kind
    assert words in failure.message


def test_a_whole_answer_is_held_choice_by_choice() -> None:
    def all_of(*choices: Choice) -> Callable[[], Awaitable[None]]:
        return lambda: Constraint(InlineChecks(), PostProcessing(check=AB), "team").check_all(Completion(choices, None))

    async def main() -> None:
        await all_of(Choice(0, "ab", "stop"), Choice(1, "ab", "stop"), Choice(2, "zz", "length"))()
        with pytest.raises(UpstreamError):
            await all_of(Choice(0, "ab", "stop"), Choice(1, "", "stop"))()

    run(main())


# Texts in a fence, and calls of strict tools --------------------------------------------------------------------------

OBJECT = PostProcessing(check=AnswerCheck("response_format", CheckKind.OBJECT, fenced=True))
INTEGER = AnswerCheck("tools.strict", CheckKind.SCHEMA, b'{"properties":{"a":{"type":"integer"}}}')
CALLS = PostProcessing(call_checks={"f": INTEGER})


async def read_held(finishing: PostProcessing, *chunks: Chunk) -> tuple[list[StreamEvent], Failure | None]:
    stream = ChunkedStream([], list(chunks))
    return await read(HeldStream(stream, Constraint(InlineChecks(), finishing, "team"), PostProcessor(finishing)))


def test_a_fence_is_taken_from_a_stream_and_what_is_in_it_is_checked() -> None:
    good = (Chunk(0, "```json\n{"), Chunk(0, '"a": 1}'), Chunk(0, "\n```", "stop"))
    events, failure = run(read_held(OBJECT, *good))
    assert "".join(event.text for event in events if isinstance(event, Chunk)) == '{"a": 1}'
    assert failure is None
    _, failure = run(read_held(OBJECT, Chunk(0, "```json\n[1]\n```", "stop")))
    assert failure is not None
    assert failure.kind is FailureKind.NONCONFORMING


@looped(("arguments", "kept"), [('{"a": 1}', True), ('{"a": "1"}', False), ('{"a"', False)])
def test_a_call_of_a_strict_tool_that_breaks_its_parameters_breaks_the_answer(arguments: str, kept: bool) -> None:
    chunks = (
        Chunk(0, tool_calls=(ToolCallDelta(0, "c1", "f", arguments[:3]),)),
        Chunk(0, tool_calls=(ToolCallDelta(0, arguments=arguments[3:]),)),
        Chunk(0, finish_reason="tool_calls"),
    )
    _, failure = run(read_held(CALLS, *chunks))
    assert (failure is None) is kept
    choice = Choice(0, "", "tool_calls", tool_calls=(ToolCall("c1", "f", arguments),))
    check = Constraint(InlineChecks(), CALLS, "team").check_all
    if kept:
        run(check(Completion((choice,), USAGE)))
        return
    with pytest.raises(UpstreamError) as caught:
        run(check(Completion((choice,), USAGE)))
    assert caught.value.failure.kind is FailureKind.NONCONFORMING
    assert "'tools.strict'" in caught.value.failure.message
    assert arguments not in caught.value.failure.message


def test_calls_of_other_tools_and_calls_that_were_cut_are_not_checked() -> None:
    other = Chunk(0, finish_reason="tool_calls", tool_calls=(ToolCallDelta(0, "c1", "g", "x"),))
    cut = Chunk(0, finish_reason="length", tool_calls=(ToolCallDelta(0, "c1", "f", "x"),))
    for chunk in (other, cut):
        _, failure = run(read_held(CALLS, chunk))
        assert failure is None
