"""Writers of the unified fields as input tensors of TensorRT-LLM's models on Triton, and their capabilities.

Sources: NVIDIA/TensorRT-LLM `triton_backend/all_models/inflight_batcher_llm` (`tensorrt_llm_bls/config.pbtxt`,
preprocessing), `cpp/include/tensorrt_llm/batch_manager/llmRequest.h`; triton-inference-server/server
`docs/protocol/extension_generate.md`: a field that names no input tensor becomes a parameter, which the model ignores.
November 2026.
"""

from collections.abc import Mapping
from functools import cache

import orjson

from providers.capabilities import NATIVE, UNSCORED, Capabilities, Cell, compiled, counted_first, emulated, refused
from providers.constraints.constraint_styles import BY_REGEX, ConstraintStyle, Encoding, choice_regex
from providers.constraints.engine_gaps import SGLANG
from providers.dialects.shared.field_writers import above_zero, emulate_stop_string, sampled
from providers.dialects.shared.prompt import IGNORED, ONE_RAW_PROMPT
from providers.dialects.shared.request_body import (
    FieldWriter,
    RequestBody,
    bounded,
    check_limited_window,
    constraint_writer,
    listed,
    own_constraint_cells,
    plain,
    unless_neutral,
    window_cells,
)
from providers.json_types import JsonObject
from providers.profile import Profile
from providers.request_fields import STOP_STRING, WINDOW, is_neutral
from providers.unified_request import Operation

_GREEDY = frozenset({"top_p", "top_k"})


def _temperature(draft: RequestBody, value: object) -> None:
    """Write the temperature. The engine decodes greedily only with `top_k` 1, and samples only with a `top_p` or
    `top_k`."""
    if not value:
        draft.put("top_k", 1)
        return
    draft.put("temperature", value)
    chosen = any(name in draft.params and not is_neutral(name, draft.params.get(name)) for name in _GREEDY)
    if not chosen:
        draft.put("top_p", 1.0)


def _guide(kind: str, guide: str) -> JsonObject:
    return {"guided_decoding_guide_type": kind, "guided_decoding_guide": guide}


_STYLE = ConstraintStyle(
    Encoding(NATIVE, lambda guided: _guide("json_schema", orjson.dumps(guided.schema).decode())),
    Encoding(NATIVE, lambda guided: _guide("regex", guided.value_text)),
    Encoding(BY_REGEX, lambda guided: _guide("regex", choice_regex(guided.choices))),
    Encoding(NATIVE, lambda guided: _guide("ebnf_grammar", guided.value_text)),
    object_by_schema=True,
    # TensorRT-LLM enforces schemas with xgrammar, as SGLang does.
    engine=SGLANG,
)

FIELDS: Mapping[str, FieldWriter] = {
    "temperature": _temperature,
    "top_p": unless_neutral("top_p", sampled(above_zero("top_p", "top_p", 1))),
    "top_k": unless_neutral("top_k", sampled(bounded("top_k", "top_k", 1, 2**31 - 1))),
    "repetition_penalty": unless_neutral("repetition_penalty", plain("repetition_penalty")),
    "presence_penalty": unless_neutral("presence_penalty", plain("presence_penalty")),
    "frequency_penalty": unless_neutral("frequency_penalty", plain("frequency_penalty")),
    "seed": bounded("seed", "seed", 0, 2**64 - 1),
    "stop": listed("stop_words"),
    STOP_STRING: emulate_stop_string,
    "guided": constraint_writer(_STYLE),
    "response_format": constraint_writer(_STYLE),
    WINDOW: check_limited_window,
}
"""Writers of all supported fields except the token limit. Fields without a writer are refused unless their value is
neutral."""

ELSEWHERE = frozenset({"max_tokens"})

_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "best_of": UNSCORED,
    "logprobs": refused("it returns log probabilities without their tokens"),
    "logit_bias": refused("it biases words and not tokens"),
    "stop.blank": NATIVE,
    "stop.many": NATIVE,
    STOP_STRING: emulated("the stop that matched stays in the text"),
    **own_constraint_cells(_STYLE),
    "unknown": IGNORED,
}
_WATCHED = frozenset({"n", "echo", "guided", "response_format"})


@cache
def capabilities(profile: Profile, counted: bool) -> Capabilities:
    """Return the capabilities. `counted` is true if the context window is known.

    The cache is keyed by the profile, which lives as long as the process.
    """
    cells = compiled([*FIELDS, *ELSEWHERE], _CELLS)
    cells.update(window_cells(profile.wires[Operation.COMPLETIONS], counted))
    return Capabilities(
        cells, most_stops=None, verifies=profile.verifies, counts=counted_first(cells), watched=_WATCHED
    )
