"""Writers of the unified fields for LLM Engine's completions, and its capabilities.

Sources: scale-llm-engine 0.0.0beta45 `CompletionSyncV1Request`; scaleapi/llm-engine `llm_model_endpoint_use_cases.py`:
a call may have one constraint, and only if vLLM runs the model. November 2026.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from providers.capabilities import NATIVE, RANKED, Capabilities, Cell, compiled
from providers.constraints.style_table import STYLES
from providers.dialects.shared.field_writers import above_zero, check_logprobs
from providers.dialects.shared.prompt import IGNORED, ONE_RAW_PROMPT
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
from providers.unified_request import Operation

_STYLE = replace(STYLES["guided"][Operation.COMPLETIONS], passes=frozenset(), object_by_schema=True)

HOTTEST = 1.0
MOST_LOGPROBS = 1


def _logprobs(draft: RequestBody, value: object) -> None:
    if check_logprobs(draft, value).top > MOST_LOGPROBS:
        raise draft.invalid("logprobs", "lists the sampled token alone, and so at most 1,")
    draft.put("return_token_log_probs", True)


FIELDS: Mapping[str, FieldWriter] = {
    "temperature": bounded("temperature", "temperature", 0, HOTTEST),
    "top_p": above_zero("top_p", "top_p", 1),
    "top_k": unless_neutral("top_k", bounded("top_k", "top_k", 1, None)),
    "presence_penalty": bounded("presence_penalty", "presence_penalty", 0, 2),
    "frequency_penalty": bounded("frequency_penalty", "frequency_penalty", 0, 2),
    "stop": listed("stop_sequences"),
    STOP_STRING: unless_neutral(STOP_STRING, plain(STOP_STRING)),
    "logprobs": _logprobs,
    "guided": constraint_writer(_STYLE),
    "response_format": constraint_writer(_STYLE),
    WINDOW: check_limited_window,
}
"""Writers of all supported fields except the token limit. Fields without a writer are refused unless their value is
neutral."""

ELSEWHERE = frozenset({"max_tokens"})

_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": NATIVE,
    **own_constraint_cells(_STYLE),
    **REFUSES_OVERFLOW,
    "unknown": IGNORED,
}
_WATCHED = frozenset({"n", "best_of", "echo", "guided", "response_format"})


@cache
def capabilities(verifies: bool) -> Capabilities:
    """Return the capabilities; `verifies` is the profile's value."""
    cells = compiled([*FIELDS, *ELSEWHERE], _CELLS)
    return Capabilities(cells, most_stops=None, verifies=verifies, watched=_WATCHED)
