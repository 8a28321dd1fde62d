"""Generator of candidates for a checked request: tokens, their log probabilities, and how each candidate ends."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from providers.mock.errors import bad_request
from providers.mock.request import MockPrompt, MockRequest
from providers.mock.script import ScriptedTurn
from providers.mock.vocabulary import Draw, alternatives, sentences, tokenize

MAX_TOKENS = 4096
"""The maximum number of tokens of all candidates of one request. Each alternative of a log probability counts as one
more token. The mock runs on the gateway's own event loop, and 4,096 tokens take 10 ms."""

Finish = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class MockStyle:
    """The kind of text that the mock generates: the prompt's own text, no text, prose of exactly `length` tokens, or
    prose that ends by itself."""

    echo: bool = False
    empty: bool = False
    length: int | None = None


@dataclass(frozen=True, slots=True)
class MockToken:
    """One token, its offset in code points, its log probability, and the most likely tokens with their log
    probabilities, itself first. The log probability is `None` for the first token of a repeated prompt."""

    text: str
    offset: int
    logprob: float | None = None
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class MockCall:
    """A call of a scripted turn. `arguments` are tokens."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One choice. `generated` counts the tokens that are not a repeated prompt. `matched` is the stop string that ended
    the text.

    In a scripted turn, `tokens` are the text, `thought` the reasoning and `calls` the calls.
    """

    index: int
    tokens: tuple[MockToken, ...]
    generated: int
    finish: Finish
    matched: str | None
    tool: str | None
    thought: tuple[str, ...] = ()
    calls: tuple[MockCall, ...] = ()

    @property
    def text(self) -> str:
        """The whole text, or the arguments of the call."""
        return "".join([token.text for token in self.tokens])


@dataclass(frozen=True, slots=True)
class Generation:
    """All choices in order, and the number of tokens of every candidate, including candidates that `best_of` left
    out."""

    choices: tuple[Candidate, ...]
    prompt_tokens: int
    completion_tokens: int


def generate(request: MockRequest, style: MockStyle) -> Generation:
    """Return the choices, ordered by prompt. Raises MockError if there are too many tokens."""
    choices: list[Candidate] = []
    budget = _Budget(1 if request.logprobs is None else 1 + request.logprobs.top)
    generated = 0
    for prompt in request.prompts:
        candidates = []
        draws = Draw.each(prompt.text, request.suffix, request.seed)
        echoed = _echoed(prompt) if style.echo else []
        for number in range(request.best_of):
            candidate = _candidate(request, style, _Source(prompt, echoed, draws(number), budget), number)
            candidates.append(candidate)
            generated += candidate.generated
        best = sorted(candidates, key=_mean_logprob, reverse=True) if request.best_of > request.n else candidates
        choices += [replace(best[number], index=len(choices) + number) for number in range(request.n)]
    return Generation(tuple(choices), sum(prompt.size for prompt in request.prompts), generated)


def _echoed(prompt: MockPrompt) -> list[str]:
    return [*prompt.tokens] if prompt.repeated == prompt.text else tokenize(prompt.repeated)


class _Budget:
    """The number of tokens that one request may still generate. Each token counts `weight`."""

    def __init__(self, weight: int) -> None:
        self._weight = weight
        self.left = MAX_TOKENS // weight

    def spend(self, tokens: int) -> None:
        """Count more tokens. Raises MockError if there are too many."""
        self.left -= tokens
        if self.left < 0:
            unit = "tokens for one request" if self._weight == 1 else "tokens and alternatives for one request"
            raise bad_request("n", f"The mock makes at most {MAX_TOKENS} {unit}.")


@dataclass(frozen=True, slots=True)
class _Source:
    """The inputs of one candidate. `echoed` are the tokens of the prompt's repeated text, if the style repeats it."""

    prompt: MockPrompt
    echoed: list[str]
    draw: Draw
    budget: _Budget


def _mean_logprob(candidate: Candidate) -> float:
    known = [token.logprob for token in candidate.tokens if token.logprob is not None]
    return sum(known) / len(known) if known else 0.0


def _candidate(request: MockRequest, style: MockStyle, source: _Source, number: int) -> Candidate:
    source.budget.spend(1)
    if request.turn is not None:
        return _scripted(request, request.turn, source, number)
    texts = _text_tokens(request, style, source)
    texts, finish = _limited(request, texts)
    texts, matched = _stopped(request, texts)
    if matched is not None:
        finish = "stop"
    elif request.tool and finish == "stop":
        finish = "tool_calls"
    source.budget.spend(len(texts) + len(source.prompt.tokens) * request.echo)
    tokens = _tokens(request, source.prompt, texts, source.draw)
    return Candidate(number, tokens, len(texts), finish, matched, request.tool)


def _scripted(request: MockRequest, turn: ScriptedTurn, source: _Source, number: int) -> Candidate:
    """Return the candidate of a scripted turn. A stop string in its text ends the turn, and the token limit cuts it."""
    text, matched = _stopped(request, tokenize(turn.text))
    calls_made = () if matched is not None else turn.calls
    parts = [tokenize(turn.thinking), text, *[tokenize(call.arguments) for call in calls_made]]
    size = sum(map(len, parts))
    remaining_tokens = size if request.limit is None else request.limit
    parts_within_limit: list[tuple[str, ...]] = []
    for part in parts:
        parts_within_limit.append(tuple(part[: max(0, remaining_tokens)]))
        remaining_tokens -= len(part)
    thought, text_tokens, *argument_tokens = parts_within_limit
    calls = [MockCall(call.name, arguments) for call, arguments in zip(calls_made, argument_tokens, strict=True)]
    finish: Finish = "tool_calls" if calls else "stop"
    if remaining_tokens < 0:
        # Calls that were not begun are left out. The last call that was begun may be cut within its arguments.
        calls, finish, matched = [call for call in calls if call.arguments], "length", None
    generated = sum(map(len, parts_within_limit))
    source.budget.spend(generated)
    tokens = _tokens(request, source.prompt, text_tokens, source.draw)
    return Candidate(number, tokens, generated, finish, matched, None, thought, tuple(calls))


def _text_tokens(request: MockRequest, style: MockStyle, source: _Source) -> list[str]:
    """Return the tokens of the text before limits and stop strings. A text of a given length has no more tokens than
    the limit needs."""
    length, prompt, draw = style.length, source.prompt, source.draw
    if request.options is not None:
        return tokenize(request.options[draw.below(len(request.options))])
    if style.empty:
        return []
    if style.echo:
        return source.echoed
    if request.ignore_eos and request.limit is not None:
        length = request.limit + 1
    lead = " " if not request.chat and prompt.text and not prompt.text[-1].isspace() else ""
    prose = sentences(draw)
    if length is None:
        return tokenize(lead + " ".join([next(prose) for _ in range(2 + draw.below(3))]))
    tokens: list[str] = []
    if request.limit is not None:
        length = min(length, request.limit + 1)
    while len(tokens) < min(length, source.budget.left + 1):
        tokens += tokenize((" " if tokens else lead) + next(prose))
    return tokens[:length]


def _limited(request: MockRequest, tokens: list[str]) -> tuple[list[str], Finish]:
    if request.limit is not None and len(tokens) > request.limit:
        return tokens[: request.limit], "length"
    return tokens, "stop"


def _stopped(request: MockRequest, tokens: list[str]) -> tuple[list[str], str | None]:
    """Cut the tokens at the stop string that is complete first, also within a token."""
    text = "".join(tokens)
    found = [(at + len(stop), at, stop) for stop in request.stop if (at := text.find(stop)) >= 0]
    if not found:
        return tokens, None
    end, start, stop = min(found)
    remaining_length = end if request.keep_stop else start
    remaining: list[str] = []
    for token in tokens:
        if remaining_length <= 0:
            break
        remaining.append(token[:remaining_length])
        remaining_length -= len(token)
    return remaining, stop


def _tokens(request: MockRequest, prompt: MockPrompt, texts: Sequence[str], draw: Draw) -> tuple[MockToken, ...]:
    """Return the tokens. As in OpenAI's API, offsets count from the start of the prompt, whether it is repeated or
    not."""
    repeated = prompt.tokens if request.echo else ()
    offset = 0 if request.echo else len(prompt.text)
    top = 0 if request.logprobs is None else request.logprobs.top
    tokens: list[MockToken] = []
    for number, text in enumerate(chain(repeated, texts)):
        first = number == 0 and repeated
        tokens.append(MockToken(text, offset) if first else _rated(text, offset, top, draw.below(10**6)))
        offset += len(text)
    return tuple(tokens)


def _rated(text: str, offset: int, top: int, number: int) -> MockToken:
    """Return a token that is always the most likely one, because the mock never samples another."""
    logprob = -(1 + number % 2500) / 1000
    if not top:
        return MockToken(text, offset, logprob)
    others = alternatives(number, text, top - 1)
    top_tokens = [(text, logprob)] + [(other, round(logprob - rank, 3)) for rank, other in enumerate(others, 1)]
    return MockToken(text, offset, logprob, tuple(top_tokens))
