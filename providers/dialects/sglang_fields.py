"""The unified fields on SGLang's own wire: how each one is written, or why it cannot be. Never the prompt.

Sources: `sglang` 0.5.23 `api/v1/api_types.py` (`GenerateRequest`, `SamplingParams`), `srt/sampling/sampling_params.py`,
`srt/managers/tokenizer_manager.py`.
"""

from collections.abc import Mapping
from functools import cache

import orjson

from providers.capabilities import (
    NATIVE,
    PREFIXED,
    RANKED,
    RESENT,
    Capabilities,
    Cell,
    compiled,
    emulated,
    refused,
)
from providers.dialects.native_fields import (
    WINDOW,
    Draft,
    Put,
    at_window,
    bounded,
    choices_of,
    constrained,
    listed,
    plain,
    schema_of,
    unless_neutral,
)
from providers.guided import Unenforceable, choice_regex
from providers.guided_engines import SGLANG, engine_problem
from providers.unified import MAX_STOPS, Guided, LogprobsWanted, is_neutral

MOST_STOPS = MAX_STOPS
"""The engine's own limit is the same."""


def _sampling(name: str) -> str:
    return f"sampling_params.{name}"


def _top_k(draft: Draft, value: object) -> None:
    # 0, which is "off" to others, is refused.
    draft.put(_sampling("top_k"), -1 if is_neutral("top_k", value) else value)


def _above_zero(name: str, high: float) -> Put:
    def put(draft: Draft, value: object) -> None:
        if not isinstance(value, int | float) or not 0 < value <= high:
            raise draft.invalid(name, f"must be above 0 and at most {high:g}")
        draft.put(_sampling(name), value)

    return put


def _logprobs(draft: Draft, value: object) -> None:
    if not isinstance(value, LogprobsWanted):
        raise TypeError(f"logprobs holds {type(value).__name__}")
    draft.body["return_logprob"] = True
    draft.body["return_text_in_logprobs"] = True
    if value.top:
        draft.body["top_logprobs_num"] = value.top


def _echo(draft: Draft, value: object) -> None:
    if "logprobs" not in draft.params:
        raise draft.unsupported("echo")
    draft.body["logprob_start_len"] = 0


def _schema(draft: Draft, wanted: Guided) -> None:
    schema = schema_of(wanted)
    problem = engine_problem(SGLANG, schema)
    if problem is not None:
        raise Unenforceable(f"it would not keep this schema: {problem}")
    draft.put(_sampling("json_schema"), orjson.dumps(schema).decode())


def _regex(draft: Draft, wanted: Guided) -> None:
    draft.put(_sampling("regex"), wanted.value_text)


def _choice(draft: Draft, wanted: Guided) -> None:
    draft.put(_sampling("regex"), choice_regex(choices_of(wanted)))


def _grammar(draft: Draft, wanted: Guided) -> None:
    draft.put(_sampling("ebnf"), wanted.value_text)


def _tag(draft: Draft, value: object) -> None:
    draft.put(_sampling("structural_tag"), orjson.dumps(value).decode())


FIELDS: Mapping[str, Put] = {
    "max_tokens": plain(_sampling("max_new_tokens")),
    "n": unless_neutral("n", plain(_sampling("n"))),
    "temperature": plain(_sampling("temperature")),
    "top_p": _above_zero("top_p", 1),
    "top_k": _top_k,
    "min_p": bounded("min_p", _sampling("min_p"), 0, 1),
    "seed": plain(_sampling("sampling_seed")),
    "frequency_penalty": bounded("frequency_penalty", _sampling("frequency_penalty"), -2, 2),
    "presence_penalty": bounded("presence_penalty", _sampling("presence_penalty"), -2, 2),
    "repetition_penalty": _above_zero("repetition_penalty", 2),
    "ignore_eos": plain(_sampling("ignore_eos")),
    "stop": listed(_sampling("stop")),
    "include_stop_str_in_output": unless_neutral("include_stop_str_in_output", plain(_sampling("no_stop_trim"))),
    "logprobs": _logprobs,
    "echo": unless_neutral("echo", _echo),
    "logit_bias": unless_neutral("logit_bias", plain(_sampling("logit_bias"))),
    "guided": constrained({"json": _schema, "regex": _regex, "choice": _choice, "grammar": _grammar}),
    "response_format": constrained({"json": _schema, "grammar": _grammar}, tag=_tag),
    WINDOW: at_window,
}
"""The fields the engine honours; any other is refused unless its value asks for nothing."""

_CELLS: Mapping[str, Cell] = {
    "prompt": NATIVE,
    "prompt.batch": NATIVE,
    "prompt.tokens": NATIVE,
    "prompt.token_batch": NATIVE,
    "messages": refused("its own endpoint takes prompts; the profile 'sglang' has its chat"),
    "images": refused("a prompt would need the model's own mark for an image; ask by chat"),
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": NATIVE,
    "echo.logprobs": NATIVE,
    "response_format.json_object": NATIVE,
    "response_format.json_schema": NATIVE,
    "response_format.grammar": NATIVE,
    "response_format.structural_tag": NATIVE,
    "guided_json": NATIVE,
    "guided_regex": NATIVE,
    "guided_choice": emulated("a regular expression"),
    "guided_grammar": NATIVE,
    f"{WINDOW}.truncate": RESENT,
    f"{WINDOW}.error": NATIVE,
    "unknown": refused("the engine ignores fields it does not know"),
}
_WATCHED = frozenset({"best_of", "echo", "stop"})


@cache
def capabilities(scored: bool, verifies: bool) -> Capabilities:
    """The table; `scored` says that log probabilities are wanted, those of an echoed prompt too. Without them the
    gateway repeats a prompt by itself."""
    cells = compiled(FIELDS.keys(), {**_CELLS, "echo": NATIVE if scored else PREFIXED})
    held = {"guided", "response_format"} if verifies else set()
    return Capabilities(cells, most_stops=MOST_STOPS, verifies=verifies, watched=_WATCHED | held)
