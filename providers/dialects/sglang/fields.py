"""Writers of the unified fields for SGLang's own endpoint, and its capabilities.

Sources: `sglang` 0.5.23 `api/v1/api_types.py` (`GenerateRequest`, `SamplingParams`), `srt/sampling/sampling_params.py`,
`srt/managers/tokenizer_manager.py`.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import orjson

from providers.capabilities import NATIVE, PREFIXED, RANKED, Capabilities, Cell, compiled, refused
from providers.constraints.constraint_styles import Encoding, style_by_kind
from providers.constraints.style_table import STYLES
from providers.dialects.shared.field_writers import CHECKED_FIELDS, above_zero, check_logprobs, neutral_as
from providers.dialects.shared.request_body import (
    REFUSES_OVERFLOW,
    FieldWriter,
    RequestBody,
    bounded,
    check_limited_window,
    constraint_writer,
    listed,
    own_constraint_cells,
    plain,
    unless_neutral,
)
from providers.request_fields import STOP_STRING, WINDOW
from providers.unified_request import MAX_STOPS, GuidedKind, Operation

MOST_STOPS = MAX_STOPS
"""The engine's own limit is the same as the gateway's."""


def _sampling(name: str) -> str:
    return f"sampling_params.{name}"


def _logprobs(draft: RequestBody, value: object) -> None:
    draft.body["return_logprob"] = True
    draft.body["return_text_in_logprobs"] = True
    if top := check_logprobs(draft, value).top:
        draft.body["top_logprobs_num"] = top


def _echo(draft: RequestBody, value: object) -> None:
    if "logprobs" not in draft.params:
        raise draft.unsupported("echo")
    draft.body["logprob_start_len"] = 0


_TEXT_STYLE = STYLES["sglang"][Operation.COMPLETIONS]


def _sampling_encoding(kind: GuidedKind) -> Encoding:
    """Return the encoding of the server's OpenAI-compatible completions, with its fields moved into
    `sampling_params`."""
    encoding = _TEXT_STYLE.guided(kind)
    return replace(encoding, make=lambda guided: {"sampling_params": encoding.make(guided)})


_STYLE = replace(style_by_kind(_sampling_encoding), object_by_schema=True, engine=_TEXT_STYLE.engine)
_write_constraint = constraint_writer(_STYLE)


def _response_format(draft: RequestBody, value: object) -> None:
    if isinstance(value, dict) and value.get("type") == "structural_tag":
        draft.put(_sampling("structural_tag"), orjson.dumps(value).decode())
    else:
        _write_constraint(draft, value)


FIELDS: Mapping[str, FieldWriter] = {
    "max_tokens": plain(_sampling("max_new_tokens")),
    "n": unless_neutral("n", plain(_sampling("n"))),
    "temperature": plain(_sampling("temperature")),
    "top_p": above_zero("top_p", _sampling("top_p"), 1),
    # The engine refuses 0, which means "off" for other vendors.
    "top_k": neutral_as("top_k", _sampling("top_k"), -1),
    "min_p": bounded("min_p", _sampling("min_p"), 0, 1),
    "seed": plain(_sampling("sampling_seed")),
    "frequency_penalty": bounded("frequency_penalty", _sampling("frequency_penalty"), -2, 2),
    "presence_penalty": bounded("presence_penalty", _sampling("presence_penalty"), -2, 2),
    "repetition_penalty": above_zero("repetition_penalty", _sampling("repetition_penalty"), 2),
    "ignore_eos": plain(_sampling("ignore_eos")),
    "stop": listed(_sampling("stop")),
    STOP_STRING: unless_neutral(STOP_STRING, plain(_sampling("no_stop_trim"))),
    "logprobs": _logprobs,
    "echo": unless_neutral("echo", _echo),
    "logit_bias": unless_neutral("logit_bias", plain(_sampling("logit_bias"))),
    "guided": _write_constraint,
    "response_format": _response_format,
    WINDOW: check_limited_window,
}
"""Writers of all supported fields. Fields without a writer are refused unless their value is neutral."""

_CELLS: Mapping[str, Cell] = {
    "prompt": NATIVE,
    "prompt.batch": NATIVE,
    "prompt.tokens": NATIVE,
    "prompt.token_batch": NATIVE,
    "messages": refused("its own endpoint takes prompts; the profile 'sglang' has its chat"),
    "images": refused("a prompt would need the model's own image marker; use chat"),
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": NATIVE,
    "echo.logprobs": NATIVE,
    **own_constraint_cells(_STYLE),
    "response_format.structural_tag": NATIVE,
    **REFUSES_OVERFLOW,
    "unknown": refused("the engine ignores fields it does not know"),
}
_WATCHED = frozenset({"best_of", "echo", "stop"})


@cache
def capabilities(scored: bool, verifies: bool) -> Capabilities:
    """Return the capabilities. If `scored`, the client requests log probabilities, and the engine echoes the prompt
    with its log probabilities. Otherwise the gateway itself makes the echo.
    """
    cells = compiled(FIELDS.keys(), {**_CELLS, "echo": NATIVE if scored else PREFIXED})
    return Capabilities(cells, most_stops=MOST_STOPS, verifies=verifies, watched=_WATCHED | CHECKED_FIELDS[verifies])
