"""The unified fields as input tensors of TensorRT-LLM's models on Triton, or why one cannot be. Never the prompt.

Sources: NVIDIA/TensorRT-LLM `triton_backend/all_models/inflight_batcher_llm` (`tensorrt_llm_bls/config.pbtxt`,
preprocessing), `cpp/include/tensorrt_llm/batch_manager/llmRequest.h`; triton-inference-server/server
`docs/protocol/extension_generate.md`: a member that names no input becomes a parameter, which nobody reads. November
2026.
"""

from collections.abc import Mapping
from functools import cache

import orjson

from providers.capabilities import NATIVE, Capabilities, Cell, compiled, counted_first, emulated, refused
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
from providers.dialects.native_raw import IGNORED, KEEP, ONE_RAW_PROMPT, UNSCORED
from providers.dialects.openai_cells import window_cells
from providers.guided import Unenforceable, choice_regex
from providers.guided_engines import SGLANG, engine_problem
from providers.profiles import Profile
from providers.unified import Guided, Operation, is_neutral

_GREEDY = frozenset({"top_p", "top_k"})


def _temperature(draft: Draft, value: object) -> None:
    """Of 0 the engine makes no greedy choice by itself; above, it does unless told what to choose from."""
    if not value:
        draft.put("top_k", 1)
        return
    draft.put("temperature", value)
    chosen = any(name in draft.params and not is_neutral(name, draft.params.get(name)) for name in _GREEDY)
    if not chosen:
        draft.put("top_p", 1.0)


def _sampled(put: Put) -> Put:
    """A setting that would sample in spite of a temperature of 0."""

    def write(draft: Draft, value: object) -> None:
        if draft.params.get("temperature") != 0:
            put(draft, value)

    return write


def _share(draft: Draft, value: object) -> None:
    if not isinstance(value, int | float) or not 0 < value <= 1:
        raise draft.invalid("top_p", "must be above 0 and at most 1")
    draft.put("top_p", value)


def _keep_stop(draft: Draft, value: object) -> None:
    if value and draft.params.get("stop"):
        draft.emulated.append(KEEP)


def _guide(draft: Draft, kind: str, guide: str) -> None:
    draft.put("guided_decoding_guide_type", kind)
    draft.put("guided_decoding_guide", guide)


def _schema(draft: Draft, wanted: Guided) -> None:
    schema = schema_of(wanted)
    # Its grammars are xgrammar's.
    if problem := engine_problem(SGLANG, schema):
        raise Unenforceable(f"it would not keep this schema: {problem}")
    _guide(draft, "json_schema", orjson.dumps(schema).decode())


def _regex(draft: Draft, wanted: Guided) -> None:
    _guide(draft, "regex", wanted.value_text)


def _choice(draft: Draft, wanted: Guided) -> None:
    _guide(draft, "regex", choice_regex(choices_of(wanted)))


def _grammar(draft: Draft, wanted: Guided) -> None:
    _guide(draft, "ebnf_grammar", wanted.value_text)


FIELDS: Mapping[str, Put] = {
    "temperature": _temperature,
    "top_p": unless_neutral("top_p", _sampled(_share)),
    "top_k": unless_neutral("top_k", _sampled(bounded("top_k", "top_k", 1, 2**31 - 1))),
    "repetition_penalty": unless_neutral("repetition_penalty", plain("repetition_penalty")),
    "presence_penalty": unless_neutral("presence_penalty", plain("presence_penalty")),
    "frequency_penalty": unless_neutral("frequency_penalty", plain("frequency_penalty")),
    "seed": bounded("seed", "seed", 0, 2**64 - 1),
    "stop": listed("stop_words"),
    KEEP: _keep_stop,
    "guided": constrained({"json": _schema, "regex": _regex, "choice": _choice, "grammar": _grammar}),
    "response_format": constrained({"json": _schema, "grammar": _grammar}),
    WINDOW: at_window,
}
"""The fields its models have inputs for besides the limit; any other is refused unless its value asks for nothing."""

ELSEWHERE = frozenset({"max_tokens"})

_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "best_of": UNSCORED,
    "logprobs": refused("it tells log probabilities without the tokens they are of"),
    "logit_bias": refused("it biases words and not tokens"),
    "stop.blank": NATIVE,
    "stop.many": NATIVE,
    KEEP: emulated("the stop that matched stays in the text"),
    "response_format.json_object": NATIVE,
    "response_format.json_schema": NATIVE,
    "response_format.grammar": NATIVE,
    "guided_json": NATIVE,
    "guided_regex": NATIVE,
    "guided_choice": emulated("a regular expression"),
    "guided_grammar": NATIVE,
    "unknown": IGNORED,
}
_WATCHED = frozenset({"n", "echo", "guided", "response_format"})


@cache
def capabilities(profile: Profile, counted: bool) -> Capabilities:
    """The table; `counted` says that the window is known, so that the prompt can be held against it. Cached by the row,
    which lives as long as the process."""
    cells = compiled([*FIELDS, *ELSEWHERE], _CELLS)
    cells.update(window_cells(profile.wires[Operation.COMPLETIONS], counted))
    return Capabilities(
        cells, most_stops=None, verifies=profile.verifies, counts=counted_first(cells), watched=_WATCHED
    )
