"""What the gateway does to an answer that a vendor cannot give by itself: the parts put together, by choice.

Never a call, a clock or a socket. Each part stands in a file of its own; here they meet the choices they are for.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import orjson

from providers.completion import Choice, Chunk, Completion, StreamEvent, Usage
from providers.dialect import StreamDecoder
from providers.echo import EchoPrefix
from providers.failure import Failure, FailureKind, UpstreamError
from providers.fanout import rank, strip_logprobs
from providers.stops import StopScanner
from providers.unified import ChatPrompt, TextPrompt, TokenPrompt, UnifiedRequest
from providers.verify import AnswerCheck

BYTES_PER_TOKEN = 4
"""UTF-8 bytes that a token of common vocabularies stands for, roughly, in English prose."""


@dataclass(frozen=True, slots=True)
class Finishing:
    """What an answer still needs.

    `stops` are looked for in the text, which then ends before them, or after them when `keep` says so. `echo` holds the
    prompts' texts, to be put before the text of their choices; empty for none. `check` is what each text is held
    against before that. Of `candidates` choices a prompt the best `n` are kept when there are more, and their log
    probabilities are dropped when only the ranking needed them.
    """

    stops: tuple[str, ...] = ()
    keep: bool = False
    echo: tuple[str, ...] = ()
    check: AnswerCheck | None = None
    n: int = 1
    candidates: int = 1
    drop_logprobs: bool = False

    def ranked(self, completion: Completion, prompts: int) -> Completion:
        """The best of the candidates. Raises UpstreamError when some came without log probabilities."""
        if self.candidates > self.n:
            try:
                completion = rank(completion, self.n, prompts, self.candidates)
            except ValueError:
                message = "The upstream's answer lacks the log probabilities to choose by."
                raise UpstreamError(Failure(FailureKind.MALFORMED, message)) from None
        return strip_logprobs(completion) if self.drop_logprobs else completion


class Scanned:
    """A decoder whose choices end at the stops that the gateway looks for. See providers.dialect.StreamDecoder.

    It is complete as soon as every one of the `count` choices has ended, whatever the vendor goes on to generate; `cut`
    holds the choices of which it still does.
    """

    __slots__ = ("_count", "_ended", "_finishing", "_inner", "_scanners", "cut")

    def __init__(self, inner: StreamDecoder, finishing: Finishing, count: int) -> None:
        self._inner = inner
        self._finishing = finishing
        self._count = count
        self._scanners: dict[int, StopScanner] = {}
        self._ended: set[int] = set()
        self.cut: set[int] = set()

    @property
    def complete(self) -> bool:
        """See StreamDecoder."""
        return self._inner.complete or self._over

    @property
    def _over(self) -> bool:
        return bool(self.cut) and len(self._ended) == self._count

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        return self._filtered(self._inner.feed(data))

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        return self._filtered(self._inner.finish())

    def _filtered(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        try:
            yield from self._searched(events)
        except UpstreamError:
            # Behind the last cut even an error is of no use.
            if not self._over:
                raise

    def _searched(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        for event in events:
            if not isinstance(event, Chunk):
                yield event
                continue
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
            elif index in self._ended:
                self.cut.add(index)


class Finisher:
    """The last hand on the choices of one answer: puts before them what the client wants repeated. Choices have their
    final numbers here."""

    __slots__ = ("_finishing", "_prefixes")

    def __init__(self, finishing: Finishing) -> None:
        self._finishing = finishing
        self._prefixes: dict[int, EchoPrefix] = {}

    def feed(self, chunk: Chunk) -> Iterator[Chunk]:
        """One chunk as the client gets it."""
        finishing = self._finishing
        if not finishing.echo:
            return iter((chunk,))
        prefix = self._prefixes.get(chunk.index)
        if prefix is None:
            prefix = self._prefixes[chunk.index] = EchoPrefix(finishing.echo[chunk.index // finishing.n])
        return prefix.feed(chunk)

    def whole(self, completion: Completion) -> Completion:
        """The same for an answer that is not streamed."""
        return replace(completion, choices=tuple([self._choice(choice) for choice in completion.choices]))

    def _choice(self, choice: Choice) -> Choice:
        (chunk,) = self.feed(Chunk(choice.index, choice.text, choice.finish_reason, refusal=choice.refusal))
        return replace(choice, text=chunk.text)


def alone(request: UnifiedRequest) -> Completion:
    """The answer to prompts that are only to be repeated: nothing, once for each choice. Nobody counted their
    tokens."""
    choices = tuple([Choice(index, "", "length") for index in range(request.choices)])
    return Completion(choices, estimate(request, 0))


def estimated(request: UnifiedRequest, completion: Completion) -> Completion:
    """The answer with a usage: the vendor's, or an estimate where it gave none."""
    if completion.usage is not None:
        return completion
    size = sum([size_of(choice.text) for choice in completion.choices])
    return replace(completion, usage=estimate(request, size))


def estimate(request: UnifiedRequest, size: int) -> Usage:
    """A guess at the usage of an answer whose texts are `size` bytes long together, marked as one. Prompts that they
    repeat were not generated."""
    return Usage(_prompt_tokens(request), _tokens(max(0, size - _repeated(request))), estimated=True)


def _repeated(request: UnifiedRequest) -> int:
    if not request.params.get("echo") or not isinstance(request.prompt, TextPrompt):
        return 0
    return request.params.get("n", 1) * sum(map(size_of, request.prompt.texts))


def size_of(text: str) -> int:
    """The length of a text in UTF-8 bytes."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def _tokens(size: int) -> int:
    return -(-size // BYTES_PER_TOKEN)


def _prompt_tokens(request: UnifiedRequest) -> int:
    match request.prompt:
        case TextPrompt(texts):
            return sum([_tokens(size_of(text)) for text in texts])
        case TokenPrompt(sequences):
            return sum(map(len, sequences))
        case ChatPrompt(messages):
            return sum([_tokens(len(orjson.dumps(message))) for message in messages])
