"""Reads the limits of generated tokens from the fields that a client adds to a body, and lowers such fields to the
operator's limit. The names of the limits are listed by dialect. All functions are pure.

A reservation must be large enough however the vendor reads the body. So each name counts in each object from which a
vendor of the dialect reads settings, in any case and spelling (servers in Go ignore case, Google's servers accept both
spellings). If there are several values, the largest counts.

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
"""The value of a limit field that sets no limit: null, -1 for engines, or a value that is not a number."""

BUDGETS: Final = (
    *("budget_tokens", "token_budget", "thinking_token_budget", "max_reasoning_tokens", "max_thinking_tokens"),
)
"""Names of reasoning budgets, in tokens, that are a part of the response's limit."""

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
"""The names of fields that limit the tokens of a response: its maximum, and numbers within the maximum, namely
reasoning budgets and the minimum."""

ADDED: Final = ("thinking_budget",)
"""Names of reasoning budgets that at least one vendor adds to the limit of the response."""

COUNTS: Final = (
    *("n", "best_of", "num_return_sequences", "candidate_count", "num_generations", "num_completions", "num_outputs"),
    *("num_results", "n_cmpl", "num_samples", "num_beams", "beam_width"),
)
"""Names of fields that give the number of choices to generate."""

_LONGEST_NAME: Final = 32
"""The most characters that a name may have to be compared. Longer names are ignored."""


@frozen
class AnswerAmounts:
    """The paths of the objects in a dialect's body that hold settings of generation. The empty path is the body
    itself."""

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
"""The entry of each dialect, by the dialect's name in the registry."""


@frozen
class AskedAmounts:
    """The amounts that fields of a body request: `limit` is the most tokens of a response (`None` if they set no
    limit), `added` are tokens beyond the limit, `answers` is the number of choices."""

    limit: float | None = None
    added: float = 0
    answers: float = 1


def asked_amounts(dialects: Iterable[str], bodies: Collection[Mapping[str, JsonValue]]) -> AskedAmounts:
    """Return the largest amounts that the fields of `bodies` request in any of the dialects."""
    holders = {holder for name in dialects for holder in AMOUNTS[name].holders}
    limit: float | None = None
    added, answers = 0.0, 1.0
    for holder in holders:
        path = tuple(map(_plain, holder.split("."))) if holder else ()
        for body in bodies:
            for name, value in _members(body, path):
                plain = _plain(name) if len(name) <= _LONGEST_NAME else ""
                if plain in _LIMITS:
                    limit = max(limit or 0, amount_of(value))
                elif plain in _ADDED:
                    added = max(added, amount_of(value))
                elif plain in _COUNTS:
                    answers = max(answers, amount_of(value))
    return AskedAmounts(limit, 0 if added == UNLIMITED else added, 1 if answers == UNLIMITED else answers)


def amount_of(value: JsonValue) -> float:
    """Return the number as which a vendor may read a value; some accept numbers in strings. Return UNLIMITED for any
    other value."""
    if isinstance(value, str) and len(value) <= _LONGEST_NAME:
        try:
            value = float(value)
        except ValueError:
            return UNLIMITED
    if isinstance(value, bool) or not isinstance(value, int | float):
        return UNLIMITED
    return value if value >= 0 else UNLIMITED  # this comparison is false for NaN too


def _members(body: Mapping[str, JsonValue], path: tuple[str, ...]) -> Iterator[tuple[str, JsonValue]]:
    """Yield the fields of the object at a path, or of each object in a list there."""
    if not path:
        yield from body.items()
        return
    for name, value in body.items():
        if len(name) <= _LONGEST_NAME and _plain(name) == path[0]:
            for each in value if isinstance(value, list) else (value,):
                if isinstance(each, dict):
                    yield from _members(each, path[1:])


def _plain(name: str) -> str:
    return name.replace("_", "").lower()


_LIMITS, _ADDED, _COUNTS, _BUDGETS = (frozenset(map(_plain, names)) for names in (LIMITS, ADDED, COUNTS, BUDGETS))
_REASONING_OBJECTS: Final = frozenset(map(_plain, ("thinking", "reasoning", "thinkingConfig", "reasoning_config")))
"""Objects in which a limit of tokens is a reasoning budget."""

_TOKENS_FOR_TEXT: Final = 1024
"""The number of tokens that a lowered reasoning budget leaves for the text. The smallest budget that vendors accept is
the same number."""


@frozen
class _Holder:
    """An object of a body: `inner` are the objects in it that also hold settings, by name; `lowered` lowers one of its
    limits."""

    inner: Mapping[str, "_Holder"]
    lowered: Callable[[str, JsonValue, int], JsonValue]


def held_to(most: int, dialect: str, members: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    """Return the fields of a body with every limit of tokens above `most` lowered, under any name that a vendor of the
    dialect uses; the same object if no limit is higher. A limit below 0 counts as higher, because it means "no limit"
    to engines."""
    return _limited_fields(members, _HOLDERS[dialect], most)


def _limited_fields(members: Mapping[str, JsonValue], place: _Holder, most: int) -> Mapping[str, JsonValue]:
    changed: dict[str, JsonValue] = {}
    for name, value in members.items():
        if len(name) > _LONGEST_NAME:
            continue
        plain = _plain(name)
        inner = place.inner.get(plain)
        lowered = place.lowered(plain, value, most) if inner is None else _limited_value(value, inner, most)
        if lowered is not value:
            changed[name] = lowered
    return {**members, **changed} if changed else members


def _limited_value(value: JsonValue, place: _Holder, most: int) -> JsonValue:
    if isinstance(value, list):
        inner = [_limited_value(each, place, most) if isinstance(each, dict) else each for each in value]
        return value if all([new is old for new, old in zip(inner, value, strict=True)]) else inner
    return cast(JsonValue, _limited_fields(value, place, most)) if isinstance(value, dict) else value


def _lowered_limit(plain: str, value: JsonValue, most: int) -> JsonValue:
    """Return the value of a field, lowered if it is a limit of the response above `most`."""
    if plain not in _LIMITS or plain in _BUDGETS:
        return _lowered_budget(plain, value, most) if plain in _BUDGETS or plain in _ADDED else value
    unlimited = isinstance(value, int | float) and not isinstance(value, bool) and value < 0
    return most if unlimited or most < amount_of(value) < UNLIMITED else value


def _lowered_budget(plain: str, value: JsonValue, most: int) -> JsonValue:
    """Return the value of a field, lowered if it is a reasoning budget above `most`. A budget below 0 lets the model
    decide within the limit of the response."""
    if plain not in _LIMITS and plain not in _ADDED:
        return value
    return max(min(_TOKENS_FOR_TEXT, most), most - _TOKENS_FOR_TEXT) if most < amount_of(value) < UNLIMITED else value


def _holder_of(holders: Iterable[Sequence[str]], above: str = "") -> _Holder:
    """Return the tree of objects with these paths. `above` is the name of the object that contains these paths."""
    paths = [path for path in holders if path]
    names = dict.fromkeys(path[0] for path in paths)
    inner = {name: _holder_of([path[1:] for path in paths if path[0] == name], name) for name in names}
    return _Holder(inner, _lowered_budget if above in _REASONING_OBJECTS else _lowered_limit)


_HOLDERS: Final = {
    dialect: _holder_of([tuple(map(_plain, holder.split("."))) for holder in row.holders if holder])
    for dialect, row in AMOUNTS.items()
}
