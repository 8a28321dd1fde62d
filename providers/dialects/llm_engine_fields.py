"""The unified fields on LLM Engine's completions, or why one cannot be written. Never the prompt.

Sources: scale-llm-engine 0.0.0beta45 `CompletionSyncV1Request`; scaleapi/llm-engine
`llm_model_endpoint_use_cases.py`: one constraint a call, and only where vLLM runs the model. November 2026.
"""

from collections.abc import Mapping
from functools import cache

from providers.capabilities import NATIVE, RESENT, Capabilities, Cell, compiled
from providers.dialects.native_fields import (
    GUIDED,
    WINDOW,
    Draft,
    Put,
    at_window,
    bounded,
    constrained,
    listed,
    plain,
    unless_neutral,
)
from providers.dialects.native_raw import IGNORED, KEEP, ONE_RAW_PROMPT, SCORED
from providers.unified import LogprobsWanted

HOTTEST = 1.0
MOST_LOGPROBS = 1


def _share(draft: Draft, value: object) -> None:
    if not isinstance(value, int | float) or not 0 < value <= 1:
        raise draft.invalid("top_p", "must be above 0 and at most 1")
    draft.put("top_p", value)


def _logprobs(draft: Draft, value: object) -> None:
    if not isinstance(value, LogprobsWanted):
        raise TypeError(f"logprobs holds {type(value).__name__}")
    if value.top > MOST_LOGPROBS:
        raise draft.invalid("logprobs", "lists the sampled token alone, and so at most 1,")
    draft.put("return_token_log_probs", True)


FIELDS: Mapping[str, Put] = {
    "temperature": bounded("temperature", "temperature", 0, HOTTEST),
    "top_p": _share,
    "top_k": unless_neutral("top_k", bounded("top_k", "top_k", 1, None)),
    "presence_penalty": bounded("presence_penalty", "presence_penalty", 0, 2),
    "frequency_penalty": bounded("frequency_penalty", "frequency_penalty", 0, 2),
    "stop": listed("stop_sequences"),
    KEEP: unless_neutral(KEEP, plain(KEEP)),
    "logprobs": _logprobs,
    "guided": constrained(GUIDED),
    "response_format": constrained({kind: GUIDED[kind] for kind in ("json", "grammar")}),
    WINDOW: at_window,
}
"""The fields it knows besides the limit; any other is refused unless its value asks for nothing."""

ELSEWHERE = frozenset({"max_tokens"})

_CELLS: Mapping[str, Cell] = {
    **ONE_RAW_PROMPT,
    "best_of": SCORED,
    "stop.blank": NATIVE,
    "stop.many": NATIVE,
    "response_format.json_object": NATIVE,
    "response_format.json_schema": NATIVE,
    "response_format.grammar": NATIVE,
    "guided_json": NATIVE,
    "guided_regex": NATIVE,
    "guided_choice": NATIVE,
    "guided_grammar": NATIVE,
    f"{WINDOW}.truncate": RESENT,
    f"{WINDOW}.error": NATIVE,
    "unknown": IGNORED,
}
_WATCHED = frozenset({"n", "best_of", "echo", "guided", "response_format"})


@cache
def capabilities(verifies: bool) -> Capabilities:
    """The table; `verifies` as in the profile."""
    cells = compiled([*FIELDS, *ELSEWHERE], _CELLS)
    return Capabilities(cells, most_stops=None, verifies=verifies, watched=_WATCHED)
