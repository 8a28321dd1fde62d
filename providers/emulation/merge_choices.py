"""Merges the responses of several calls into one. Each call generates the candidates of one prompt, or some of them.

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
    """The candidates that one call generates: the candidates `first` to `first + count - 1` of the prompt with the
    number `prompt`.

    With n candidates per prompt, candidate k of prompt p has the index p * n + k in the merged response.
    """

    prompt: int
    first: int
    count: int


def too_many_calls(param: str, calls: int, target: Target) -> Refusal:
    """Return the refusal of a request that would become more than MAX_CALLS calls because of one parameter."""
    message = f"This request would become {calls} calls of {target.name}; at most {MAX_CALLS} can be."
    return Refusal(param, message, "invalid_value")


def require_choices(completion: Completion, count: int) -> Completion:
    """Return the response unchanged. Raises ValueError unless the response has exactly the choices 0 to `count - 1`, in
    this order."""
    indices = [choice.index for choice in completion.choices]
    if len(indices) != count:
        raise ValueError(f"{len(indices)} of {count} choices")
    if indices != [*range(count)]:
        raise ValueError("a choice that was not requested")
    return completion


def renumber(part: CallShare, chunk: Chunk, n: int) -> Chunk:
    """Return a chunk of a call's stream with its index in the merged response. Raises ValueError for an index beyond
    the call's choices.

    The fingerprint is left out, since the merged stream begins before it is known whether all calls report the same
    fingerprint.
    """
    return replace(chunk, index=_merged_index(part, chunk.index, n), system_fingerprint=None)


def _merged_index(part: CallShare, index: int, n: int) -> int:
    if not 0 <= index < part.count:
        raise ValueError(f"choice {index} was not requested, {part.count} of prompt {part.prompt} were")
    return part.prompt * n + part.first + index


def merge(parts: Sequence[CallShare], completions: Sequence[Completion], n: int) -> Completion:
    """Return one response that is equivalent to a single call for all choices. The response has a fingerprint or a
    service tier only if all calls report the same value, and it has the other fields of every call.

    Raises ValueError for a call that did not return exactly its share of the choices.
    """
    choices: list[Choice] = []
    for part, completion in zip(parts, completions, strict=True):
        indices = {choice.index for choice in completion.choices}
        if len(completion.choices) != part.count or indices != set(range(part.count)):
            given = sorted(indices)[:10]
            raise ValueError(f"prompt {part.prompt} was answered with the choices {given} instead of {part.count}")
        choices += [replace(choice, index=_merged_index(part, choice.index, n)) for choice in completion.choices]
    return Completion(
        tuple(sorted(choices, key=_index)),
        _merged_usage(parts, [completion.usage for completion in completions]),
        _agreed([completion.system_fingerprint for completion in completions]),
        _agreed([completion.service_tier for completion in completions]),
        _all_extra_fields(completions),
    )


def _all_extra_fields(completions: Iterable[Completion]) -> JsonObject | None:
    together: JsonObject = {}
    for completion in completions:
        overlay(together, completion.extra)
    return together or None


def _index(choice: Choice) -> int:
    return choice.index


def _agreed(values: Sequence[str | None]) -> str | None:
    return values[0] if len(set(values)) == 1 else None


def billed_usage(completions: Iterable[Completion]) -> Usage | None:
    """Return the usage that the vendor charges for: the sums over all calls; `None` if a call reported no usage."""
    return total_usage([completion.usage for completion in completions])


class UsageTally:
    """The usage of a merged stream, computed from the usages of its calls. A later usage of a call replaces the call's
    earlier usage."""

    __slots__ = ("_parts", "_usages")

    def __init__(self, parts: Sequence[CallShare]) -> None:
        self._parts = parts
        self._usages: list[Usage | None] = [None] * len(parts)

    def note(self, number: int, usage: Usage) -> None:
        """Record the usage of the call for `parts[number]`."""
        self._usages[number] = usage

    def usage_of(self, number: int) -> Usage | None:
        """Return the usage of the call for `parts[number]`; `None` if the call has not reported its usage."""
        return self._usages[number]

    @property
    def merged(self) -> Usage | None:
        """The usage that `merge` reports; `None` until every call has reported its usage."""
        return _merged_usage(self._parts, self._usages)

    @property
    def billed(self) -> Usage | None:
        """The usage that the vendor charges for; `None` until every call has reported its usage."""
        return total_usage(self._usages)


def _merged_usage(parts: Sequence[CallShare], usages: Sequence[Usage | None]) -> Usage | None:
    """Return the usage with every prompt counted once, as its first call counted it, and all generated tokens."""
    total = total_usage(usages)
    first: dict[int, Usage | None] = {}
    for part, usage in zip(parts, usages, strict=True):
        first.setdefault(part.prompt, usage)
    prompts = total_usage(list(first.values()))
    if total is None or prompts is None:
        return None
    return replace(total, prompt_tokens=prompts.prompt_tokens, prompt_details=prompts.prompt_details, calls=())


def total_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """Return the sum of the usages; `None` if one of the usages is unknown."""
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
    """Return the sum of each usage detail, by the detail's name; `None` if no call reported details."""
    sums: dict[str, int] = {}
    for given in details:
        for name, count in (given or {}).items():
            sums[name] = sums.get(name, 0) + count
    return sums or None
