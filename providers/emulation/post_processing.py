"""Post-processes responses, to emulate stop strings, ranking and echo for vendors that lack these features."""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from providers.adaptation.forced_calls import ForcedCall
from providers.adaptation.tool_calls_of_text import CallReader
from providers.completion import Choice, Chunk, Completion, StreamEvent, ToolCall, ToolCallDelta, Usage, has_content
from providers.dialect import StreamDecoder, usage_so_far
from providers.emulation.best_of import rank, strip_logprobs
from providers.emulation.check_answer import AnswerCheck
from providers.emulation.echo import EchoPrefix
from providers.emulation.estimate_missing_usage import early_usage, estimate_usage, size_written, tokens_of_size
from providers.emulation.markdown_fence import FenceFilter
from providers.emulation.stop_strings import StopScanner
from providers.failure import Failure, FailureKind, UpstreamError
from providers.frozen_record import frozen
from providers.unified_request import UnifiedRequest


@frozen
class PostProcessing:
    """The post-processing that a vendor's response requires.

    The text ends before the first stop string of `stops`, or after it if `keep` is set. `echo` holds the prompts that
    are put before the texts of their choices; it is empty if nothing is echoed. Before the echo, `check` is applied to
    each text, and `call_checks` to the arguments of calls, by function name. The vendor generates `candidates` choices
    per prompt, of which the best `n` are returned. If `drop_logprobs` is set, the log probabilities are removed, since
    only the ranking needed them. If `one_call` is set, only the first call of each choice is returned. `forced` is the
    call into which the text of each choice is converted.
    """

    stops: tuple[str, ...] = ()
    keep: bool = False
    echo: tuple[str, ...] = ()
    check: AnswerCheck | None = None
    call_checks: Mapping[str, AnswerCheck] = field(default_factory=dict)
    n: int = 1
    candidates: int = 1
    drop_logprobs: bool = False
    one_call: bool = False
    forced: ForcedCall | None = None

    @property
    def checks(self) -> tuple[AnswerCheck, ...]:
        """Every check of the response."""
        return (*(() if self.check is None else (self.check,)), *self.call_checks.values())

    def ranked(self, completion: Completion, prompts: int) -> Completion:
        """Return the completion with the best candidates. Raises UpstreamError if a candidate has no log
        probabilities."""
        if self.candidates > self.n:
            try:
                completion = rank(completion, self.n, prompts, self.candidates)
            except ValueError:
                message = "The upstream's response lacks the log probabilities for ranking."
                raise UpstreamError(Failure(FailureKind.MALFORMED, message)) from None
        return strip_logprobs(completion) if self.drop_logprobs else completion


class StopScanningDecoder:
    """A stream decoder that ends choices at the stop strings for which the gateway searches.

    The decoder is complete as soon as each of the `count` choices has ended, even if the vendor continues to generate.
    `cut` holds the choices that have ended here but that the vendor is still generating. If there are such choices, the
    usage is the part that the vendor has reported so far.
    """

    __slots__ = ("_count", "_ended", "_finishing", "_inner", "_scanners", "_size", "cut")

    def __init__(self, inner: StreamDecoder, finishing: PostProcessing, count: int) -> None:
        self._inner = inner
        self._finishing = finishing
        self._count = count
        self._scanners: dict[int, StopScanner] = {}
        self._ended: set[int] = set()
        self.cut: set[int] = set()
        self._size = 0

    @property
    def complete(self) -> bool:
        return self._inner.complete or self._over

    @property
    def _over(self) -> bool:
        return bool(self.cut) and len(self._ended) == self._count

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        return self._filtered(self._inner.feed(data))

    def finish(self) -> Iterator[StreamEvent]:
        return self._filtered(self._inner.finish())

    def _filtered(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        try:
            yield from self._searched(events)
        except UpstreamError:
            # Once every choice has ended, an error of the vendor does not matter.
            if not self._over:
                raise

    def _searched(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        for event in events:
            if not isinstance(event, Chunk):
                yield event
                continue
            self._size += size_written(event)
            index = event.index
            scanner = self._scanners.get(index)
            if scanner is None:
                scanner = self._scanners[index] = StopScanner(self._finishing.stops, self._finishing.keep)
            for chunk in scanner.feed(event):
                yield chunk
                if chunk.finish_reason is not None:
                    self._ended.add(index)
            if event.finish_reason is not None:
                self.cut.discard(index)
            elif index in self._ended and has_content(event) and index not in self.cut:
                self.cut.add(index)
                yield from self._early_usage()

    def _early_usage(self) -> Iterator[Usage]:
        """Yield the usage of a response that is complete for the client, if the vendor has reported any."""
        reported = usage_so_far(self._inner) if self._over else None
        if reported is not None and reported.prompt_tokens:
            yield early_usage(reported, Usage(0, tokens_of_size(self._size), estimated=True))

    def usage_so_far(self) -> Usage | None:
        return usage_so_far(self._inner)


class PostProcessor:
    """Post-processes the choices of one response: removes Markdown fences, converts texts into forced calls, drops all
    calls but the first, and puts the echoed prompts before the texts. The choices that it receives already have their
    final indices."""

    __slots__ = ("_calls", "_fenced", "_fences", "_finishing", "_prefixes")

    def __init__(self, finishing: PostProcessing) -> None:
        self._finishing = finishing
        self._fenced = finishing.check is not None and finishing.check.fenced
        self._fences: dict[int, FenceFilter] = {}
        self._prefixes: dict[int, EchoPrefix] = {}
        self._calls: dict[int, CallReader] = {}

    def feed(self, chunk: Chunk) -> Iterator[Chunk]:
        """Return the chunks that the client gets in place of one chunk."""
        finishing = self._finishing
        if finishing.one_call and chunk.tool_calls:
            # The finish reason and the other fields of the chunk are returned unchanged.
            chunk = replace(chunk, tool_calls=tuple([call for call in chunk.tool_calls if call.index == 0]))
        if self._fenced:
            (chunk,) = self._fences.setdefault(chunk.index, FenceFilter()).feed(chunk)
        if finishing.forced is not None:
            reader = self._calls.get(chunk.index)
            if reader is None:
                reader = self._calls[chunk.index] = CallReader(finishing.forced)
            chunk = reader.feed(chunk)
        if not finishing.echo:
            return iter((chunk,))
        prefix = self._prefixes.get(chunk.index)
        if prefix is None:
            prefix = self._prefixes[chunk.index] = EchoPrefix(finishing.echo[chunk.index // finishing.n])
        return prefix.feed(chunk)

    def whole(self, completion: Completion) -> Completion:
        """Return the completion that the client gets."""
        return replace(completion, choices=tuple([self._choice(choice) for choice in completion.choices]))

    def _choice(self, choice: Choice) -> Choice:
        calls = choice.tool_calls[:1] if self._finishing.one_call else choice.tool_calls
        (chunk,) = self.feed(
            Chunk(
                choice.index,
                choice.text,
                choice.finish_reason,
                refusal=choice.refusal,
                tool_calls=tuple([ToolCallDelta(at, each.id, each.name) for at, each in enumerate(calls)]),
                matched_stop=choice.matched_stop,
                extras=choice.extras,
            )
        )
        if not calls:
            calls = tuple([ToolCall(str(each.id), str(each.name), each.arguments) for each in chunk.tool_calls])
        reason = str(chunk.finish_reason)
        return replace(choice, text=chunk.text, finish_reason=reason, tool_calls=calls, extras=chunk.extras)


def echo_only(request: UnifiedRequest) -> Completion:
    """Return the response to a request that only echoes its prompts: an empty text per choice, with an estimated
    usage."""
    choices = tuple([Choice(index, "", "length") for index in range(request.choices)])
    return Completion(choices, estimate_usage(request, 0))
