"""How many tokens a body lets a vendor generate: the names that dialects and their vendors have for it, and the reading
of members that a client adds to a body. Pure.

A reservation has to hold whatever the vendor makes of the body. So each name counts in each object that a vendor of the
dialect reads settings from, in any case and spelling (Go's servers ignore case, Google's take both spellings), and the
largest counts where there are several.

Sources: the dialects' encoders; vLLM 0.12 `SamplingParams`, llama.cpp `server`, Ollama `api.Options`, TGI
`GenerateParameters`, Triton's `vllm_backend` and TensorRT-LLM, Gemini `GenerationConfig`, Bedrock
`InferenceConfiguration` and model parameters, Cohere `v2/chat`, DashScope `thinking_budget` (beside `max_tokens`),
November 2026.
"""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from providers.frozen_record import record
from providers.json_types import JsonValue

UNLIMITED: Final = math.inf
"""The limit of a body that says that there is none: null, -1 of engines, or something that is no number."""

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
    *("budget_tokens", "token_budget", "thinking_token_budget", "max_reasoning_tokens", "max_thinking_tokens"),
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


@record
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


@record
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


_LIMITS, _ADDED, _COUNTS = (frozenset(map(_plain, names)) for names in (LIMITS, ADDED, COUNTS))
