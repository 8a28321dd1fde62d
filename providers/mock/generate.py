"""Generates candidates for a checked request: tokens, their log probabilities, and how each one ends."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from providers.mock.errors import bad_request
from providers.mock.request import MockPrompt, MockRequest
from providers.mock.script import ScriptedTurn
from providers.mock.vocabulary import Draw, alternatives, sentences, tokenize

MAX_TOKENS = 4096
"""The most tokens of all candidates of one request, each alternative of a log probability counting as one more: the
mock answers on the gateway's own event loop, and 4,096 take it 10 ms."""

Finish = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class MockStyle:
    """The kind of text: the prompt's own, none, prose of exactly `length` tokens, or prose that ends by itself."""

    echo: bool = False
    empty: bool = False
    length: int | None = None


@dataclass(frozen=True, slots=True)
class MockToken:
    """One token, its offset in code points, its log probability (None for the first of a repeated prompt) and the
    likeliest tokens with theirs, itself first."""

    text: str
    offset: int
    logprob: float | None = None
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class MockCall:
    """A call of a scripted turn; `arguments` in tokens."""

    name: str
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """One choice. `generated` counts the tokens that are not a repeated prompt; `matched` is the stop string hit.

    Of a scripted turn `tokens` are its text, beside `thought` and `calls`.
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
    """All choices in order, and the tokens of every candidate, also of those that `best_of` left out."""

    choices: tuple[Candidate, ...]
    prompt_tokens: int
    completion_tokens: int


def generate(request: MockRequest, style: MockStyle) -> Generation:
    """Return the choices ordered by prompt. Raises MockError when there are too many tokens."""
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
    """The tokens that are left to one request; each counts `weight`."""

    def __init__(self, weight: int) -> None:
        self._weight = weight
        self.left = MAX_TOKENS // weight

    def spend(self, tokens: int) -> None:
        """Count more tokens. Raises MockError where they are too many."""
        self.left -= tokens
        if self.left < 0:
            what = "tokens for one request" if self._weight == 1 else "tokens and alternatives for one request"
            raise bad_request("n", f"The mock makes at most {MAX_TOKENS} {what}.")


@dataclass(frozen=True, slots=True)
class _Source:
    """What one candidate is made of; `echoed` are the tokens of the prompt's repeated text, where that is wanted."""

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
    pieces = _pieces(request, style, source)
    pieces, finish = _limited(request, pieces)
    pieces, matched = _stopped(request, pieces)
    if matched is not None:
        finish = "stop"
    elif request.tool and finish == "stop":
        finish = "tool_calls"
    source.budget.spend(len(pieces) + len(source.prompt.tokens) * request.echo)
    tokens = _tokens(request, source.prompt, pieces, source.draw)
    return Candidate(number, tokens, len(pieces), finish, matched, request.tool)


def _scripted(request: MockRequest, turn: ScriptedTurn, source: _Source, number: int) -> Candidate:
    """Return a scripted turn, which a stop string in its text ends, and which is cut where the limit is reached."""
    text, matched = _stopped(request, tokenize(turn.text))
    made = () if matched is not None else turn.calls
    parts = [tokenize(turn.thinking), text, *[tokenize(call.arguments) for call in made]]
    size = sum(map(len, parts))
    left = size if request.limit is None else request.limit
    kept: list[tuple[str, ...]] = []
    for part in parts:
        kept.append(tuple(part[: max(0, left)]))
        left -= len(part)
    thought, said, *given = kept
    calls = [MockCall(call.name, arguments) for call, arguments in zip(made, given, strict=True)]
    finish: Finish = "tool_calls" if calls else "stop"
    if left < 0:
        # Calls that were not begun are not there; the last one that was may be cut within its arguments.
        calls, finish, matched = [call for call in calls if call.arguments], "length", None
    generated = sum(map(len, kept))
    source.budget.spend(generated)
    tokens = _tokens(request, source.prompt, said, source.draw)
    return Candidate(number, tokens, generated, finish, matched, None, thought, tuple(calls))


def _pieces(request: MockRequest, style: MockStyle, source: _Source) -> list[str]:
    """Return the text before limits and stops, in tokens; of a text of a given length no more than the limit needs."""
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
    pieces: list[str] = []
    if request.limit is not None:
        length = min(length, request.limit + 1)
    while len(pieces) < min(length, source.budget.left + 1):
        pieces += tokenize((" " if pieces else lead) + next(prose))
    return pieces[:length]


def _limited(request: MockRequest, pieces: list[str]) -> tuple[list[str], Finish]:
    if request.limit is not None and len(pieces) > request.limit:
        return pieces[: request.limit], "length"
    return pieces, "stop"


def _stopped(request: MockRequest, pieces: list[str]) -> tuple[list[str], str | None]:
    """Cut at the stop string that is complete first, also within a token."""
    text = "".join(pieces)
    found = [(at + len(stop), at, stop) for stop in request.stop if (at := text.find(stop)) >= 0]
    if not found:
        return pieces, None
    end, start, stop = min(found)
    left = end if request.emulate_stop_string else start
    kept: list[str] = []
    for piece in pieces:
        if left <= 0:
            break
        kept.append(piece[:left])
        left -= len(piece)
    return kept, stop


def _tokens(request: MockRequest, prompt: MockPrompt, pieces: Sequence[str], draw: Draw) -> tuple[MockToken, ...]:
    """Return the tokens. Offsets count from the start of the prompt, whether it is repeated or not, as OpenAI's do."""
    repeated = prompt.tokens if request.echo else ()
    offset = 0 if request.echo else len(prompt.text)
    top = 0 if request.logprobs is None else request.logprobs.top
    tokens: list[MockToken] = []
    for number, piece in enumerate(chain(repeated, pieces)):
        first = number == 0 and repeated
        tokens.append(MockToken(piece, offset) if first else _rated(piece, offset, top, draw.below(10**6)))
        offset += len(piece)
    return tuple(tokens)


def _rated(piece: str, offset: int, top: int, drawn: int) -> MockToken:
    """Return a token that is always the likeliest, since the mock never samples another."""
    logprob = -(1 + drawn % 2500) / 1000
    if not top:
        return MockToken(piece, offset, logprob)
    others = alternatives(drawn, piece, top - 1)
    listed = [(piece, logprob)] + [(other, round(logprob - rank, 3)) for rank, other in enumerate(others, 1)]
    return MockToken(piece, offset, logprob, tuple(listed))
