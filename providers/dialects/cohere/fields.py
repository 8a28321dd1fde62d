"""Writers of the unified fields for Cohere's v2 chat, and its capabilities.

Sources: `cohere` 7.3.1 `ClientV2.chat` and `ResponseFormatV2`; "Structured outputs" and "Command A Reasoning" pages,
November 2026.
"""

from collections.abc import Mapping
from functools import cache

from providers.capabilities import (
    FAN_OUT,
    NATIVE,
    ONE_CALL,
    ONE_CHAT,
    RANKED,
    SCANNED,
    Capabilities,
    Cell,
    compiled,
    emulated,
)
from providers.constraints.constraint_styles import (
    BY_ENUM,
    SCHEMA_ONLY,
    ConstraintStyle,
    Encoding,
    choice_schema,
)
from providers.constraints.schema_rules import COHERE
from providers.dialects.shared.field_writers import CHECKED_FIELDS, check_images
from providers.dialects.shared.operations import ECHO_CELLS
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
    put_constraint_in_prompt,
    unless_neutral,
)
from providers.json_types import JsonObject
from providers.models.facts import model_facts
from providers.request_fields import STOP_STRING, WINDOW
from providers.unified_request import LogprobsWanted, Operation

MAX_STOPS = 5

MIN_P, MAX_P = 0.01, 0.99
"""The vendor's bounds of `p`. The vendor's default is 0.75, so a `top_p` of 1 cannot be left out and is sent as the
upper bound."""


# Constraints -------------------------------------------------------------------------------------------------------


def _json_format(schema: JsonObject) -> JsonObject:
    return {"response_format": {"type": "json_object", "json_schema": schema}}


_STYLE = ConstraintStyle(
    Encoding(NATIVE, lambda guided: _json_format(guided.schema)),
    SCHEMA_ONLY,
    Encoding(BY_ENUM, lambda guided: _json_format(choice_schema(guided.choices)), unwrap=True),
    SCHEMA_ONLY,
    json_mode={"response_format": {"type": "json_object"}},
    rules=COHERE,
)
_write_constraint = constraint_writer(_STYLE)


def _constraint(draft: RequestBody, value: object) -> None:
    if draft.params.get("tools") and value != {"type": "text"}:
        put_constraint_in_prompt(draft, value, "it cannot enforce a response format beside tools")
    else:
        _write_constraint(draft, value)


# Fields -------------------------------------------------------------------------------------------------------------


def _top_p(draft: RequestBody, value: object) -> None:
    if isinstance(value, int | float):
        draft.put("p", min(max(value, MIN_P), MAX_P))


def _logprobs(draft: RequestBody, value: object) -> None:
    if isinstance(value, LogprobsWanted) and value.top:
        raise draft.invalid("logprobs", "may list at most 0 alternatives to the sampled token")
    draft.body["logprobs"] = True


_BUDGETS: Mapping[str, int] = {
    "minimal": 512,
    "low": 2048,
    "medium": 8192,
    "high": 16_384,
    "xhigh": 31_000,
    "max": 31_000,
}
"""The budget of reasoning tokens for each word of `reasoning_effort`. The vendor's models reason for at most 31,000
tokens."""

_TEXT_TOKENS = 1000
"""The number of tokens within the response's limit that a reasoning budget must leave for the text."""


def _reasoning_effort(draft: RequestBody, value: object) -> None:
    """Write the budget for a word or a number of tokens. The client's own `thinking` takes precedence."""
    if "thinking" in draft.params:
        return
    if value is False or value == "none":
        draft.put("thinking.type", "disabled")
    elif value is True:
        draft.put("thinking.type", "enabled")
    elif isinstance(value, int) and value > 0:
        _put_budget(draft, value)
    elif isinstance(value, str) and value in _BUDGETS:
        _put_budget(draft, _BUDGETS[value])
    else:
        raise draft.invalid("reasoning_effort", f"must be 'none' or one of {', '.join(_BUDGETS)}")


def _put_budget(draft: RequestBody, budget: int) -> None:
    """Write a reasoning budget that leaves tokens for the text. If the limit leaves no tokens for reasoning, reasoning
    is switched off."""
    target = draft.target
    max_output = model_facts(target.profile.model_host, *target.model_names).most_output
    limits = [limit for limit in (draft.params.get("max_tokens"), max_output) if limit is not None]
    fitting_budget = min([budget, *[limit - _TEXT_TOKENS for limit in limits]])
    if fitting_budget < 1:
        draft.put("thinking.type", "disabled")
        draft.dropped.append("reasoning_effort")
        return
    draft.put("thinking.type", "enabled")
    draft.put("thinking.token_budget", fitting_budget)


_THINKING_KEYS = frozenset({"type", "budget_tokens", "token_budget"})


def _thinking(draft: RequestBody, value: object) -> None:
    wanted = value if isinstance(value, dict) else {}
    budget = wanted.get("budget_tokens", wanted.get("token_budget"))
    if wanted.get("type") not in ("enabled", "disabled") or not wanted.keys() <= _THINKING_KEYS:
        raise draft.invalid("thinking", "must have the type 'enabled' or 'disabled', and no other key except a budget")
    draft.put("thinking.type", wanted["type"])
    if budget is not None:
        draft.put("thinking.token_budget", budget)


FIELDS: Mapping[str, FieldWriter] = {
    "max_tokens": bounded("max_tokens", "max_tokens", 1, None),
    "temperature": plain("temperature"),
    "top_p": _top_p,
    "top_k": unless_neutral("top_k", bounded("top_k", "k", 1, 500)),
    "stop": listed("stop_sequences"),
    "seed": bounded("seed", "seed", 0, None),
    "frequency_penalty": bounded("frequency_penalty", "frequency_penalty", 0, 1),
    "presence_penalty": bounded("presence_penalty", "presence_penalty", 0, 1),
    "logprobs": _logprobs,
    "guided": _constraint,
    "response_format": _constraint,
    "reasoning_effort": _reasoning_effort,
    "thinking": _thinking,
    "images": unless_neutral("images", check_images),
    WINDOW: check_limited_window,
}
"""Writers of all fields except tools. A field without a writer is refused unless its value is neutral."""

WRITTEN_ELSEWHERE = frozenset({"tools", "tool_choice"})
"""Fields that have no writer here, because the code for tools writes them."""

_FIXED_CELLS: Mapping[str, Cell] = {
    **ONE_CHAT,
    "n": FAN_OUT,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": SCANNED,
    STOP_STRING: SCANNED,
    **own_constraint_cells(_STYLE),
    "tool_choice.none": NATIVE,
    "tool_choice.required": NATIVE,
    "tool_choice.named": emulated("that tool alone is offered, and one must be called"),
    "parallel_tool_calls": ONE_CALL,
    **REFUSES_OVERFLOW,
}
_WATCHED = frozenset({"n", "best_of", "echo", "stop", STOP_STRING, "parallel_tool_calls"})


@cache
def capabilities(operation: Operation, verifies: bool) -> Capabilities:
    """Return the capabilities for a client's operation. `verifies` has the same meaning as in the profile."""
    cells = compiled(FIELDS.keys() | {"tools"}, _FIXED_CELLS)
    cells.update(ECHO_CELLS[operation])
    return Capabilities(
        cells,
        most_stops=MAX_STOPS,
        verifies=verifies,
        strict_tools="cohere",
        watched=_WATCHED | CHECKED_FIELDS[verifies],
    )
