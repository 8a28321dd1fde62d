"""Merges the answers of several calls into one: of a call for each prompt, or for some of a prompt's candidates.

The order of choices and the meaning of usage are OpenAI's (OpenAPI 2.3.0 `CreateCompletionResponse`, `best_of`).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from providers.completion import Choice, Chunk, Completion, Usage
from providers.emulation.join_extras import overlay
from providers.failure import Refusal
from providers.frozen_record import frozen
from providers.json_types import JsonObject
from providers.target import Target

MAX_CALLS = 256
"""The most calls that one request may become."""


@frozen
class CallShare:
    """The candidates that one call answers: `first` to `first + count - 1` of the prompt numbered `prompt`.

    With n candidates to a prompt, candidate k of prompt p has the index p * n + k in the merged answer.
    """

    prompt: int
    first: int
    count: int


def too_many_calls(param: str, calls: int, target: Target) -> Refusal:
    """Return the refusal of a request that would become more than MAX_CALLS calls because of a parameter."""
    message = f"This request would become {calls} calls of {target.name}; at most {MAX_CALLS} can be."
    return Refusal(param, message, "invalid_value")


def as_asked(completion: Completion, count: int) -> Completion:
    """Return the answer of a call for so many choices. Raises ValueError where it has others."""
    indices = [choice.index for choice in completion.choices]
    if len(indices) != count:
        raise ValueError(f"{len(indices)} of {count} choices")
    if indices != [*range(count)]:
        raise ValueError("a choice that was not asked for")
    return completion


def renumber(part: CallShare, chunk: Chunk, n: int) -> Chunk:
    """Return a chunk of a call's stream with its index in the merged answer. Raises ValueError for an index beyond the
    call's.

    The fingerprint is left out: the stream begins before it is known whether every call names the same one.
    """
    return replace(chunk, index=_final(part, chunk.index, n), system_fingerprint=None)


def _final(part: CallShare, index: int, n: int) -> int:
    if not 0 <= index < part.count:
        raise ValueError(f"choice {index} was not asked for, {part.count} of prompt {part.prompt} were")
    return part.prompt * n + part.first + index


def merge(parts: Sequence[CallShare], completions: Sequence[Completion], n: int) -> Completion:
    """Return the answer that one call for everything would have given; fingerprint and tier only where all
    calls agree, other members of every call.

    Raises ValueError for a call that did not answer with exactly its share.
    """
    choices: list[Choice] = []
    for part, completion in zip(parts, completions, strict=True):
        indices = {choice.index for choice in completion.choices}
        if len(completion.choices) != part.count or indices != set(range(part.count)):
            given = sorted(indices)[:10]
            raise ValueError(f"prompt {part.prompt} was answered with the choices {given} instead of {part.count}")
        choices += [replace(choice, index=_final(part, choice.index, n)) for choice in completion.choices]
    return Completion(
        tuple(sorted(choices, key=_index)),
        _answered(parts, [completion.usage for completion in completions]),
        _agreed([completion.system_fingerprint for completion in completions]),
        _agreed([completion.service_tier for completion in completions]),
        _all_members(completions),
    )


def _all_members(completions: Iterable[Completion]) -> JsonObject | None:
    together: JsonObject = {}
    for completion in completions:
        overlay(together, completion.extra)
    return together or None


def _index(choice: Choice) -> int:
    return choice.index


def _agreed(values: Sequence[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else None


def billed_usage(completions: Iterable[Completion]) -> Usage | None:
    """Return the usage that the vendor charges for: the sums over all calls, None when one of them reported none."""
    return total_usage([completion.usage for completion in completions])


class UsageTally:
    """The usage of a merged stream, from the calls' own; a later usage of a call replaces its earlier one."""

    __slots__ = ("_parts", "_usages")

    def __init__(self, parts: Sequence[CallShare]) -> None:
        self._parts = parts
        self._usages: list[Usage | None] = [None] * len(parts)

    def note(self, number: int, usage: Usage) -> None:
        """Record the usage of the call for `parts[number]`."""
        self._usages[number] = usage

    def told(self, number: int) -> Usage | None:
        """Return the usage of the call for `parts[number]`, None if it has reported none."""
        return self._usages[number]

    @property
    def merged(self) -> Usage | None:
        """The usage that `merge` reports; None until every call has reported."""
        return _answered(self._parts, self._usages)

    @property
    def billed(self) -> Usage | None:
        """The usage that the vendor charges for; None until every call has reported."""
        return total_usage(self._usages)


def _answered(parts: Sequence[CallShare], usages: Sequence[Usage | None]) -> Usage | None:
    """Count every prompt once, as its first call counted it, and all that was generated."""
    total = total_usage(usages)
    first: dict[int, Usage | None] = {}
    for part, usage in zip(parts, usages, strict=True):
        first.setdefault(part.prompt, usage)
    prompts = total_usage(list(first.values()))
    if total is None or prompts is None:
        return None
    return replace(total, prompt_tokens=prompts.prompt_tokens, prompt_details=prompts.prompt_details, calls=())


def total_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """Return the sums of usages, None if one of them is not known."""
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) < len(usages):
        return None
    return Usage(
        sum([usage.prompt_tokens for usage in known]),
        sum([usage.completion_tokens for usage in known]),
        _sums([usage.prompt_details for usage in known]),
        _sums([usage.completion_details for usage in known]),
        any(usage.estimated for usage in known),
        calls=tuple(each for usage in known for each in usage.calls or (usage,)),
    )


def _sums(details: Sequence[Mapping[str, int] | None]) -> Mapping[str, int] | None:
    """Add up the details by member; None when no call reported any."""
    sums: dict[str, int] = {}
    for given in details:
        for name, count in (given or {}).items():
            sums[name] = sums.get(name, 0) + count
    return sums or None
