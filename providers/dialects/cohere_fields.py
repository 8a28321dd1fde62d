"""The unified fields on Cohere's v2 chat: how each one is written, or why it cannot be. Never messages or tools.

Sources: `cohere` 7.3.1 `ClientV2.chat` and `ResponseFormatV2`; "Structured outputs" page, November 2026.
"""

import re
from collections.abc import Mapping
from functools import cache

from providers.capabilities import (
    FAN_OUT,
    NATIVE,
    ONE_CHAT,
    PREFIXED,
    RANKED,
    REFUSED,
    RESENT,
    SCANNED,
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
from providers.guided import Unenforceable, choice_schema
from providers.guided_engines import Engine, engine_problem
from providers.unified import ChatPrompt, Guided, JsonObject, LogprobsWanted, Operation

MOST_STOPS = 5

LEAST_P, MOST_P = 0.01, 0.99
"""What the vendor takes of `p`. Left out, it is 0.75, so a `top_p` of 1 is said by the nearest that there is."""


# Schemas ------------------------------------------------------------------------------------------------------------

_HARD_PATTERN = re.compile(r"[\^$]|\(\?[=!<]")
_FORMATS = frozenset({"date-time", "uuid", "date", "time"})


def _patterns(root: JsonObject, node: JsonObject) -> str | None:
    pattern, form = node.get("pattern"), node.get("format")
    if isinstance(pattern, str) and _HARD_PATTERN.search(pattern):
        return ".pattern uses what is not supported (anchors or look-around)"
    if isinstance(form, str) and form not in _FORMATS:
        return f".format '{form}' is not supported"
    return None


def _objects(root: JsonObject, node: JsonObject) -> str | None:
    if node is root and node.get("type") != "object":
        return " must have the type 'object'"
    if "properties" in node and not node.get("required"):
        return " must require at least one property"
    return None


SCHEMAS = Engine(
    frozenset({"allOf", "oneOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "dependencies"})
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength"}
    | {"minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains", "prefixItems"}
    | {"patternProperties", "propertyNames", "minProperties", "maxProperties"}
    | {"unevaluatedProperties", "unevaluatedItems", "additionalItems"},
    (_objects, _patterns),
)
"""What the vendor says it does not support in a schema; it is refused rather than answered with a weaker one."""


def _schema(draft: Draft, wanted: Guided) -> None:
    schema = schema_of(wanted)
    problem = engine_problem(SCHEMAS, schema)
    if problem is not None:
        raise Unenforceable(f"it would not keep this schema: {problem}")
    _put_format(draft, {"type": "json_object", "json_schema": schema})


def _choice(draft: Draft, wanted: Guided) -> None:
    _put_format(draft, {"type": "json_object", "json_schema": choice_schema(choices_of(wanted))})
    draft.unwrap = True


def _any_object(draft: Draft, value: object) -> None:
    _put_format(draft, {"type": "json_object"})


def _put_format(draft: Draft, form: JsonObject) -> None:
    if draft.params.get("tools"):
        name = "response_format" if "response_format" in draft.params else draft.params["guided"].field
        raise draft.unsupported(name, "it holds no answer to a format while it has tools")
    draft.body["response_format"] = form


# Fields -------------------------------------------------------------------------------------------------------------


def _top_p(draft: Draft, value: object) -> None:
    if isinstance(value, int | float):
        draft.put("p", min(max(value, LEAST_P), MOST_P))


def _logprobs(draft: Draft, value: object) -> None:
    if isinstance(value, LogprobsWanted) and value.top:
        raise draft.invalid("logprobs", "lists at most 0 tokens beside the sampled one")
    draft.body["logprobs"] = True


def _reasoning_effort(draft: Draft, value: object) -> None:
    if value is not False and value != "none":
        raise draft.unsupported("reasoning_effort", draft.table["reasoning_effort"].how)
    draft.body.setdefault("thinking", {"type": "disabled"})


_OF_THINKING = frozenset({"type", "budget_tokens", "token_budget"})


def _thinking(draft: Draft, value: object) -> None:
    wanted = value if isinstance(value, dict) else {}
    budget = wanted.get("budget_tokens", wanted.get("token_budget"))
    if wanted.get("type") not in ("enabled", "disabled") or not wanted.keys() <= _OF_THINKING:
        raise draft.invalid("thinking", "must have the type 'enabled' or 'disabled', and beside it a budget only")
    draft.put("thinking.type", wanted["type"])
    if budget is not None:
        draft.put("thinking.token_budget", budget)


def _images(draft: Draft, value: object) -> None:
    # In a prompt they have become parts of its message.
    if isinstance(draft.request.prompt, ChatPrompt):
        raise draft.unsupported("images", "in a chat put images into the messages")


FIELDS: Mapping[str, Put] = {
    "max_tokens": bounded("max_tokens", "max_tokens", 1, None),
    "temperature": plain("temperature"),
    "top_p": _top_p,
    "top_k": unless_neutral("top_k", bounded("top_k", "k", 1, 500)),
    "stop": listed("stop_sequences"),
    "seed": bounded("seed", "seed", 0, None),
    "frequency_penalty": bounded("frequency_penalty", "frequency_penalty", 0, 1),
    "presence_penalty": bounded("presence_penalty", "presence_penalty", 0, 1),
    "logprobs": _logprobs,
    "guided": constrained({"json": _schema, "choice": _choice}),
    "response_format": constrained({"json": _schema}, _any_object),
    "reasoning_effort": _reasoning_effort,
    "thinking": _thinking,
    "images": unless_neutral("images", _images),
    WINDOW: at_window,
}
"""The fields this vendor honours besides tools; any other is refused unless its value asks for nothing."""

ELSEWHERE = frozenset({"tools", "tool_choice", "parallel_tool_calls"})

_SCHEMA_ONLY = refused("it can only be held to a JSON Schema")
_CELLS: Mapping[str, Cell] = {
    **ONE_CHAT,
    "n": FAN_OUT,
    "best_of": RANKED,
    "stop.blank": NATIVE,
    "stop.many": SCANNED,
    "include_stop_str_in_output": SCANNED,
    "response_format.json_object": NATIVE,
    "response_format.json_schema": NATIVE,
    "response_format.grammar": _SCHEMA_ONLY,
    "guided_json": NATIVE,
    "guided_regex": _SCHEMA_ONLY,
    "guided_choice": emulated("a JSON object with one enum member"),
    "guided_grammar": _SCHEMA_ONLY,
    "tool_choice.none": NATIVE,
    "tool_choice.required": NATIVE,
    "tool_choice.named": emulated("that tool alone is offered, and one must be called"),
    "parallel_tool_calls": refused("it cannot be kept to one call"),
    "reasoning_effort": refused("it has a budget instead of words: ask by 'thinking', or 'none' for no reasoning"),
    f"{WINDOW}.truncate": RESENT,
    f"{WINDOW}.error": NATIVE,
}
_WATCHED = frozenset({"n", "best_of", "echo", "stop", "include_stop_str_in_output"})


@cache
def capabilities(asked: Operation, verifies: bool) -> Capabilities:
    """The table for clients of an endpoint; `verifies` as in the profile."""
    cells = compiled(FIELDS.keys() | {"tools"}, _CELLS)
    cells["echo"] = PREFIXED
    if asked is Operation.CHAT:
        cells["echo"] = cells["echo.logprobs"] = REFUSED
    held = {"guided", "response_format"} if verifies else set()
    return Capabilities(cells, most_stops=MOST_STOPS, verifies=verifies, watched=_WATCHED | held)
