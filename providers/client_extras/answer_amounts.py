"""How many tokens a body lets a vendor generate: the names that dialects and their vendors have for it, the reading of
members that a client adds to a body, and the lowering of those to the operator's limit. Pure.

A reservation has to hold whatever the vendor makes of the body. So each name counts in each object that a vendor of the
dialect reads settings from, in any case and spelling (Go's servers ignore case, Google's take both spellings), and the
largest counts where there are several.

Sources: the dialects' encoders; vLLM 0.12 `SamplingParams`, llama.cpp `server`, Ollama `api.Options`, TGI
`GenerateParameters`, Triton's `vllm_backend` and TensorRT-LLM, Gemini `GenerationConfig`, Bedrock
`InferenceConfiguration` and model parameters, Cohere `v2/chat`, DashScope `thinking_budget` (beside `max_tokens`),
November 2026.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, cast

from providers.frozen_record import frozen
from providers.json_types import JsonValue

UNLIMITED: Final = math.inf
"""The limit of a body that says that there is none: null, -1 of engines, or something that is no number."""

BUDGETS: Final = (
    *("budget_tokens", "token_budget", "thinking_token_budget", "max_reasoning_tokens", "max_thinking_tokens"),
)
"""Names of the most tokens of thinking, which are a part of the answer."""

LIMITS: Final = (
    *(
        "max_tokens",
        "max_completion_tokens",
        "max_output_tokens",
        "max_new_tokens",
        "max_gen_len",
        "max_tokens_to_sample",
    ),
    *("max_token_count", "max_length", "max_generated_tokens", "max_tokens_to_generate", "max_decode_length"),
    *("request_output_len", "n_predict", "num_predict", "min_tokens", "min_new_tokens"),
    *BUDGETS,
)
"""Names of the most tokens of an answer, and of tokens that are a part of it: budgets of thinking, the least."""

ADDED: Final = ("thinking_budget",)
"""Names of tokens of thinking that come on top of the limit at one vendor at least."""

COUNTS: Final = (
    *("n", "best_of", "num_return_sequences", "candidate_count", "num_generations", "num_completions", "num_outputs"),
    *("num_results", "n_cmpl", "num_samples", "num_beams", "beam_width"),
)
"""Names of how many answers are generated."""

_LONGEST: Final = 32
"""Characters of a name that is looked at."""


@frozen
class AnswerAmounts:
    """The objects of a dialect's body that hold settings of generation, by their paths; an empty one is the body."""

    holders: tuple[str, ...]


_TOP: Final = AnswerAmounts(("", "thinking"))
_PARAMETERS: Final = AnswerAmounts(("", "parameters"))
_ADDITIONAL: Final = "additionalModelRequestFields"
_OPENAI: Final = AnswerAmounts(
    (
        *("", "thinking", "reasoning", "parameters", "options", "sampling_params", "nvext", "extra_body"),
        *("generation_config", "chat_template_kwargs"),
    )
)

AMOUNTS: Final[Mapping[str, AnswerAmounts]] = {
    "anthropic": _TOP,
    "anthropic_vertex": _TOP,
    "bedrock": AnswerAmounts(
        (
            *("", "inferenceConfig", _ADDITIONAL, f"{_ADDITIONAL}.inferenceConfig", f"{_ADDITIONAL}.thinking"),
            f"{_ADDITIONAL}.reasoning_config",
        )
    ),
    "bedrock_anthropic": _TOP,
    "bedrock_invoke": AnswerAmounts(("", "textGenerationConfig", "inferenceConfig", "thinking")),
    "cohere": _TOP,
    "gemini": AnswerAmounts(("", "generationConfig", "generationConfig.thinkingConfig")),
    "llamacpp": _TOP,
    "llm_engine": _PARAMETERS,
    "ollama": AnswerAmounts(("", "options")),
    "openai": _OPENAI,
    "replicate": AnswerAmounts(("", "input")),
    "sagemaker": _OPENAI,
    "sagemaker_tgi": _PARAMETERS,
    "sglang": AnswerAmounts(("", "sampling_params")),
    "tgi": _PARAMETERS,
    "triton": AnswerAmounts(("", "parameters", "sampling_parameters")),
    "watsonx": _PARAMETERS,
}
"""The row of each dialect, by its name in the registry."""


@frozen
class AskedAmounts:
    """What members of a body ask for: the most tokens of an answer (None: they do not say), tokens on top of them, and
    how many answers."""

    limit: float | None = None
    added: float = 0
    answers: float = 1


def asked_amounts(dialects: Iterable[str], bodies: Collection[Mapping[str, JsonValue]]) -> AskedAmounts:
    """Return the largest amounts that members of bodies ask for, at any of the dialects."""
    holders = {holder for name in dialects for holder in AMOUNTS[name].holders}
    limit: float | None = None
    added, answers = 0.0, 1.0
    for holder in holders:
        path = tuple(map(_plain, holder.split("."))) if holder else ()
        for body in bodies:
            for name, value in _members(body, path):
                plain = _plain(name) if len(name) <= _LONGEST else ""
                if plain in _LIMITS:
                    limit = max(limit or 0, amount_of(value))
                elif plain in _ADDED:
                    added = max(added, amount_of(value))
                elif plain in _COUNTS:
                    answers = max(answers, amount_of(value))
    return AskedAmounts(limit, 0 if added == UNLIMITED else added, 1 if answers == UNLIMITED else answers)


def amount_of(value: JsonValue) -> float:
    """Return the number that a vendor may read a value as; some take numbers in strings. UNLIMITED for what is none."""
    if isinstance(value, str) and len(value) <= _LONGEST:
        try:
            value = float(value)
        except ValueError:
            return UNLIMITED
    if isinstance(value, bool) or not isinstance(value, int | float):
        return UNLIMITED
    return value if value >= 0 else UNLIMITED  # NaN is none either


def _members(body: Mapping[str, JsonValue], path: tuple[str, ...]) -> Iterator[tuple[str, JsonValue]]:
    """Yield the members of the object at a path, and of each in a list there."""
    if not path:
        yield from body.items()
        return
    for name, value in body.items():
        if len(name) <= _LONGEST and _plain(name) == path[0]:
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, dict):
                    yield from _members(each, path[1:])


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


_LIMITS, _ADDED, _COUNTS, _BUDGETS = (frozenset(map(_plain, names)) for names in (LIMITS, ADDED, COUNTS, BUDGETS))
_OF_THINKING: Final = frozenset(map(_plain, ("thinking", "reasoning", "thinkingConfig", "reasoning_config")))
"""Objects whose limit is a budget of thinking."""

_ROOM: Final = 1024
"""Tokens that a lowered budget of thinking leaves for the text, and the least of a budget that vendors take."""


@frozen
class _Holder:
    """An object of a body: the objects in it that hold settings too, by their names, and how its limits are lowered."""

    inner: Mapping[str, "_Holder"]
    lowered: Callable[[str, JsonValue, int], JsonValue]


def held_to(most: int, dialect: str, members: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return members of a body without a number of tokens above `most` under any name that the dialect's vendors have
    for it: the same object if there is none. A limit below 0, by which engines mean none, is above it."""
    return _held(members, _HOLDERS[dialect], most)


def _held(members: Mapping[str, JsonValue], place: _Holder, most: int) -> Mapping[str, JsonValue]:
    changed: dict[str, JsonValue] = {}
    for name, value in members.items():
        if len(name) > _LONGEST:
            continue
        plain = _plain(name)
        inner = place.inner.get(plain)
        lowered = place.lowered(plain, value, most) if inner is None else _held_inside(value, inner, most)
        if lowered is not value:
            changed[name] = lowered
    return {**members, **changed} if changed else members


def _held_inside(value: JsonValue, place: _Holder, most: int) -> JsonValue:
    if isinstance(value, list):
        inner = [_held_inside(each, place, most) if isinstance(each, dict) else each for each in value]
        return value if all([new is old for new, old in zip(inner, value, strict=True)]) else inner
    return cast(JsonValue, _held(value, place, most)) if isinstance(value, dict) else value


def _limit(plain: str, value: JsonValue, most: int) -> JsonValue:
    """Return the value of a member, lowered if it is a limit of the response above `most`."""
    if plain not in _LIMITS or plain in _BUDGETS:
        return _budget(plain, value, most) if plain in _BUDGETS or plain in _ADDED else value
    unlimited = isinstance(value, int | float) and not isinstance(value, bool) and value < 0
    return most if unlimited or most < amount_of(value) < UNLIMITED else value


def _budget(plain: str, value: JsonValue, most: int) -> JsonValue:
    """Return the value of a member, lowered if it is a budget of thinking above `most`. One below 0 lets the model
    decide, within the limit of the response."""
    if plain not in _LIMITS and plain not in _ADDED:
        return value
    return max(min(_ROOM, most), most - _ROOM) if most < amount_of(value) < UNLIMITED else value


def _holder_of(holders: Iterable[Sequence[str]], above: str = "") -> _Holder:
    """Return the place of objects by their paths; `above` is the name of the object that they are in."""
    paths = [path for path in holders if path]
    names = dict.fromkeys(path[0] for path in paths)
    inner = {name: _holder_of([path[1:] for path in paths if path[0] == name], name) for name in names}
    return _Holder(inner, _budget if above in _OF_THINKING else _limit)


_HOLDERS: Final = {
    dialect: _holder_of([tuple(map(_plain, holder.split("."))) for holder in row.holders if holder])
    for dialect, row in AMOUNTS.items()
}
