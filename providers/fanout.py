"""One answer out of the answers of several calls: a call for each prompt, for some of its candidates, or for more
candidates than the client gets.

Never makes a call, splits a request or chooses a seed, and never decides whether several calls are needed.

The order of choices and the meaning of usage are OpenAI's (OpenAPI 2.3.0 `CreateCompletionResponse`, `best_of`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, inf

from providers.completion import Choice, Chunk, Completion, LegacyLogprobs, Logprobs, Usage
from providers.logprobs import floored


@dataclass(frozen=True, slots=True)
class Part:
    """What one call answers: the candidates `first` to `first + count - 1` of the prompt numbered `prompt`.

    With n candidates to a prompt, candidate k of prompt p has the index p * n + k in the merged answer.
    """

    prompt: int
    first: int
    count: int


def renumber(part: Part, chunk: Chunk, n: int) -> Chunk:
    """A chunk of the call's stream with its index in the merged one.

    Without the fingerprint: a stream has begun before it is known whether every call will name the same one. Raises
    ValueError for an index beyond the call's own.
    """
    return replace(chunk, index=_final(part, chunk.index, n), system_fingerprint=None)


def _final(part: Part, index: int, n: int) -> int:
    if not 0 <= index < part.count:
        raise ValueError(f"choice {index} was not asked for, {part.count} of prompt {part.prompt} were")
    return part.prompt * n + part.first + index


def merge(parts: Sequence[Part], completions: Sequence[Completion], n: int) -> Completion:
    """The answer that one call for everything would have given; fingerprint and tier only where all calls agree.

    Raises ValueError for a call that did not answer with exactly its part.
    """
    choices: list[Choice] = []
    for part, completion in zip(parts, completions, strict=True):
        indices = {choice.index for choice in completion.choices}
        if not (len(indices) == len(completion.choices) == part.count and _within(indices, part.count)):
            given = sorted(indices)[:10]
            raise ValueError(f"prompt {part.prompt} was answered with the choices {given} instead of {part.count}")
        choices += [replace(choice, index=_final(part, choice.index, n)) for choice in completion.choices]
    return Completion(
        tuple(sorted(choices, key=_index)),
        _answered(parts, [completion.usage for completion in completions]),
        _agreed([completion.system_fingerprint for completion in completions]),
        _agreed([completion.service_tier for completion in completions]),
    )


def _within(indices: Iterable[int], count: int) -> bool:
    return all(0 <= index < count for index in indices)


def _index(choice: Choice) -> int:
    return choice.index


def _agreed(values: Sequence[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else None


def billed(completions: Iterable[Completion]) -> Usage | None:
    """What the vendor charges for: the sums over all calls. None when one of them gave no usage."""
    return _total([completion.usage for completion in completions])


class UsageTally:
    """The usage of a merged stream, from the calls' own; a later usage of a call replaces its earlier one."""

    __slots__ = ("_parts", "_usages")

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._usages: list[Usage | None] = [None] * len(parts)

    def note(self, number: int, usage: Usage) -> None:
        """The usage of the call for `parts[number]`."""
        self._usages[number] = usage

    @property
    def merged(self) -> Usage | None:
        """As `merge` reports it; None until every call has reported."""
        return _answered(self._parts, self._usages)

    @property
    def billed(self) -> Usage | None:
        """What the vendor charges for; None until every call has reported."""
        return _total(self._usages)


def _answered(parts: Sequence[Part], usages: Sequence[Usage | None]) -> Usage | None:
    """Every prompt once, as its first call counted it, and all that was generated."""
    total = _total(usages)
    first: dict[int, Usage | None] = {}
    for part, usage in zip(parts, usages, strict=True):
        first.setdefault(part.prompt, usage)
    prompts = _total(list(first.values()))
    if total is None or prompts is None:
        return None
    return replace(total, prompt_tokens=prompts.prompt_tokens, prompt_details=prompts.prompt_details)


def _total(usages: Sequence[Usage | None]) -> Usage | None:
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) < len(usages):
        return None
    return Usage(
        sum([usage.prompt_tokens for usage in known]),
        sum([usage.completion_tokens for usage in known]),
        _sums([usage.prompt_details for usage in known]),
        _sums([usage.completion_details for usage in known]),
        any(usage.estimated for usage in known),
    )


def _sums(details: Sequence[Mapping[str, int] | None]) -> Mapping[str, int] | None:
    """Member by member; None when no call gave any."""
    sums: dict[str, int] = {}
    for given in details:
        for name, count in (given or {}).items():
            sums[name] = sums.get(name, 0) + count
    return sums or None


def rank(completion: Completion, n: int, prompts: int, best_of: int) -> Completion:
    """The `n` likeliest of each prompt's `best_of` candidates, by the mean log probability of their tokens.

    The likeliest is the first, and of equals the one with the lower index. The usage counts all candidates. A candidate
    without any token comes last. The log probabilities must not cover an echoed prompt, which would weigh short
    candidates differently from long ones. Raises ValueError for a candidate with text or tool calls, but no log
    probabilities.
    """
    by_index = {choice.index: choice for choice in completion.choices}
    if len(by_index) != prompts * best_of or not _within(by_index, prompts * best_of):
        raise ValueError(f"{len(by_index)} candidates are not {best_of} for each of {prompts} prompts")
    means = {index: _mean(choice) for index, choice in by_index.items()}
    chosen: list[Choice] = []
    for prompt in range(prompts):
        order = sorted(range(prompt * best_of, (prompt + 1) * best_of), key=lambda index: (-means[index], index))
        chosen += [replace(by_index[index], index=prompt * n + place) for place, index in enumerate(order[:n])]
    return replace(completion, choices=tuple(chosen))


def _mean(choice: Choice) -> float:
    numbers = _numbers(choice.logprobs)
    if numbers:
        return fsum(numbers) / len(numbers)
    if choice.text or choice.tool_calls:
        raise ValueError(f"candidate {choice.index} has no log probabilities to be ranked by")
    return -inf


def _numbers(logprobs: Logprobs | None) -> list[float]:
    if logprobs is None:
        return []
    if isinstance(logprobs, LegacyLogprobs):
        return [floored(value) for value in logprobs.token_logprobs if value is not None]
    return [floored(token.logprob) for token in logprobs.content or logprobs.refusal]


def strip_logprobs(completion: Completion) -> Completion:
    """The completion without the log probabilities that only the ranking needed."""
    return replace(completion, choices=tuple([replace(choice, logprobs=None) for choice in completion.choices]))
