"""Ranks candidates by log probability, for vendors without `best_of`."""

from dataclasses import replace
from math import fsum, inf

from providers.completion import Choice, Completion, LegacyLogprobs, Logprobs
from providers.emulation.logprobs import floor_logprob


def rank(completion: Completion, n: int, prompts: int, best_of: int) -> Completion:
    """Return the `n` most likely of the `best_of` candidates of each prompt, by the mean log probability of their
    tokens.

    The most likely candidate is first. Candidates with equal means keep their order. A candidate without tokens comes
    last. The usage counts all candidates. The log probabilities must not cover an echoed prompt, because its tokens
    would have more weight in the mean of a short candidate than of a long one. Raises ValueError for a candidate with
    text or tool calls but no log probabilities.
    """
    by_index = {choice.index: choice for choice in completion.choices}
    if by_index.keys() != set(range(prompts * best_of)):
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
        return [floor_logprob(value) for value in logprobs.token_logprobs if value is not None]
    return [floor_logprob(token.logprob) for token in logprobs.content or logprobs.refusal]


def strip_logprobs(completion: Completion) -> Completion:
    """Return the completion without log probabilities."""
    return replace(completion, choices=tuple([replace(choice, logprobs=None) for choice in completion.choices]))
