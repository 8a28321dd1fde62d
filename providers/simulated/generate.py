"""From a checked request to candidates: tokens, their log probabilities, how each one ends. Never writes JSON."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal

from providers.simulated.errors import bad_request
from providers.simulated.request import MockPrompt, MockRequest
from providers.simulated.text import Draw, alternatives, sentences, tokenize

MAX_TOKENS = 200_000
"""All choices of one request; the mock answers within the gateway's process, so an answer must stay small."""

Finish = Literal["stop", "length", "tool_calls"]


@dataclass(frozen=True, slots=True)
class Style:
    """The kind of text: the prompt's own, none, prose of exactly `length` tokens, or prose that ends by itself."""

    echo: bool = False
    empty: bool = False
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Token:
    """One token, the code points before it, its log probability (None for the first of a repeated prompt) and the
    likeliest tokens with theirs, itself first."""

    text: str
    offset: int
    logprob: float | None = None
    top: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One choice. `generated` counts the tokens that are not a repeated prompt; `matched` is the stop string hit."""

    index: int
    tokens: tuple[Token, ...]
    generated: int
    finish: Finish
    matched: str | None
    tool: str | None

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


def generate(request: MockRequest, style: Style) -> Generation:
    """Prompt-major choices: all of the first prompt, then all of the next. Raises MockError when there is too much."""
    choices: list[Candidate] = []
    made = generated = 0
    for prompt in request.prompts:
        candidates = []
        for number in range(request.best_of):
            candidate = _candidate(request, style, prompt, number)
            candidates.append(candidate)
            made += 1 + len(candidate.tokens)
            generated += candidate.generated
            if made > MAX_TOKENS:
                raise bad_request("n", f"The mock makes at most {MAX_TOKENS} tokens for one request.")
        best = sorted(candidates, key=_mean_logprob, reverse=True) if request.best_of > request.n else candidates
        choices += [replace(best[number], index=len(choices) + number) for number in range(request.n)]
    return Generation(tuple(choices), sum(len(prompt.tokens) for prompt in request.prompts), generated)


def _mean_logprob(candidate: Candidate) -> float:
    known = [token.logprob for token in candidate.tokens if token.logprob is not None]
    return sum(known) / len(known) if known else 0.0


def _candidate(request: MockRequest, style: Style, prompt: MockPrompt, number: int) -> Candidate:
    draw = Draw(prompt.text, request.suffix, request.seed, number)
    pieces = _pieces(request, style, prompt, draw)
    pieces, finish = _limited(request, pieces)
    pieces, matched = _stopped(request, pieces)
    if matched is not None:
        finish = "stop"
    elif request.tool and finish == "stop":
        finish = "tool_calls"
    tokens = _tokens(request, prompt, pieces, draw)
    return Candidate(number, tokens, len(pieces), finish, matched, request.tool)


def _pieces(request: MockRequest, style: Style, prompt: MockPrompt, draw: Draw) -> list[str]:
    """The text before limits and stops, in tokens."""
    length = style.length
    if request.options is not None:
        return tokenize(request.options[draw.below(len(request.options))])
    if style.empty:
        return []
    if style.echo:
        return tokenize(prompt.repeated)
    if request.ignore_eos and request.limit is not None:
        length = request.limit + 1
    lead = " " if not request.chat and prompt.text and not prompt.text[-1].isspace() else ""
    prose = sentences(draw)
    if length is None:
        return tokenize(lead + " ".join([next(prose) for _ in range(2 + draw.below(3))]))
    pieces: list[str] = []
    while len(pieces) < min(length, MAX_TOKENS + 1):
        pieces += tokenize((" " if pieces else lead) + next(prose))
    return pieces[:length]


def _limited(request: MockRequest, pieces: list[str]) -> tuple[list[str], Finish]:
    if request.limit is not None and len(pieces) > request.limit:
        return pieces[: request.limit], "length"
    return pieces, "stop"


def _stopped(request: MockRequest, pieces: list[str]) -> tuple[list[str], str | None]:
    """Cut at the stop string that is complete first; a token it begins within is cut too."""
    text = "".join(pieces)
    found = [(at + len(stop), at, stop) for stop in request.stop if (at := text.find(stop)) >= 0]
    if not found:
        return pieces, None
    end, start, stop = min(found)
    left = end if request.keep_stop else start
    kept: list[str] = []
    for piece in pieces:
        if left <= 0:
            break
        kept.append(piece[:left])
        left -= len(piece)
    return kept, stop


def _tokens(request: MockRequest, prompt: MockPrompt, pieces: Sequence[str], draw: Draw) -> tuple[Token, ...]:
    """Offsets count from the start of the prompt, whether it is repeated or not, as OpenAI's do."""
    repeated = prompt.tokens if request.echo else ()
    offset = 0 if request.echo else len(prompt.text)
    top = 0 if request.logprobs is None else request.logprobs.top
    tokens: list[Token] = []
    for number, piece in enumerate(chain(repeated, pieces)):
        first = number == 0 and repeated
        tokens.append(Token(piece, offset) if first else _rated(piece, offset, top, draw.below(10**6)))
        offset += len(piece)
    return tuple(tokens)


def _rated(piece: str, offset: int, top: int, drawn: int) -> Token:
    """The chosen token is always the likeliest, since the mock never samples another."""
    logprob = -(1 + drawn % 2500) / 1000
    if not top:
        return Token(piece, offset, logprob)
    others = alternatives(drawn, piece, top - 1)
    listed = [(piece, logprob)] + [(other, round(logprob - rank, 3)) for rank, other in enumerate(others, 1)]
    return Token(piece, offset, logprob, tuple(listed))
