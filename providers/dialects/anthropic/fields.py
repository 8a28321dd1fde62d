"""Writers of the unified fields for Anthropic's Messages API, and the vendor's capabilities.

Sources: `anthropic` 2.12.0 type `MessageCreateParams`; "Messages", "API versions" and "Structured outputs" pages,
November 2026.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from providers.capabilities import (
    APPENDED,
    COUNTED,
    NATIVE,
    NO_PROMISE,
    ONE_CHAT,
    SCANNED,
    UNSCORED,
    Capabilities,
    Cell,
    Support,
    compiled,
    counted_first,
    refused,
    with_forced_calls,
)
from providers.constraints.constraint_styles import (
    BY_ENUM,
    PROMPT_ONLY_STYLE,
    SCHEMA_ONLY,
    ConstraintStyle,
    Encoding,
    choice_schema,
)
from providers.constraints.schema_rules import ANTHROPIC, BEDROCK
from providers.dialects.anthropic.thinking import NO_REASONING, samples_freely
from providers.dialects.anthropic.tools import NO_FORCED_CHOICE
from providers.dialects.shared.field_writers import check_images, emulate_stop_string
from providers.dialects.shared.operations import ECHO_CELLS
from providers.dialects.shared.request_body import (
    ENDS_ANSWER,
    FieldWriter,
    RequestBody,
    check_window,
    constraint_writer,
    own_constraint_cells,
    unless_neutral,
)
from providers.json_types import JsonObject
from providers.models.claude import LEAST_TOP_P, ClaudeModel
from providers.request_fields import STOP_STRING, WINDOW
from providers.unified_request import Operation

_NO_SAMPLING = "this model, or this version of its API, has no sampling settings"


def _temperature(draft: RequestBody, value: object) -> None:
    if not isinstance(value, int | float) or value > 1:
        raise draft.invalid("temperature", "must be at most 1")
    if "temperature" in draft.request.injected and "top_p" in draft.params:
        # Some models refuse `temperature` together with `top_p`. Here the client set `top_p`, and `temperature` is only
        # the surface's default, so it is left out.
        return
    if value != 1 and not samples_freely(draft):
        raise draft.unsupported("temperature", "beside thinking it must be 1")
    draft.body["temperature"] = value


def _top_p(draft: RequestBody, value: object) -> None:
    if isinstance(value, int | float) and value < LEAST_TOP_P and not samples_freely(draft):
        raise draft.unsupported("top_p", f"beside thinking it must be at least {LEAST_TOP_P}")
    draft.put("top_p", value)


def _top_k(draft: RequestBody, value: object) -> None:
    if not samples_freely(draft):
        raise draft.unsupported("top_k", "it does not go with thinking")
    draft.put("top_k", value)


def _no_temperature(draft: RequestBody, value: object) -> None:
    # A value of 1 is the vendor's default.
    if value != 1:
        raise draft.unsupported("temperature", _NO_SAMPLING)


def _no_sampling(name: str) -> FieldWriter:
    def put(draft: RequestBody, value: object) -> None:
        raise draft.unsupported(name, _NO_SAMPLING)

    return put


def _stop(draft: RequestBody, value: object) -> None:
    stops = list(value) if isinstance(value, tuple) else []
    if any(not stop.strip() for stop in stops):
        raise draft.invalid("stop", "may not hold a blank string")
    draft.body["stop_sequences"] = stops


_EMAIL_OR_PHONE = re.compile(r"[^@\s]+@[^@\s]+|\+?[\d\s().-]{7,}")
_MAX_USER_ID_LENGTH = 256


def _metadata(draft: RequestBody, value: object) -> None:
    """Write the user's id, the only key of `metadata` that the vendor accepts. If the field `user` is set, it gives the
    id instead."""
    given = value if isinstance(value, dict) else {}
    user = given.get("user_id")
    if isinstance(user, str) and user and "user" not in draft.params:
        _user(draft, user)
        given = {name: each for name, each in given.items() if name != "user_id"}
    if given:
        draft.dropped.append("metadata")


def _user(draft: RequestBody, value: object) -> None:
    """Write the user's id. E-mail addresses, phone numbers and long ids are replaced by a digest: the vendor forbids
    the first two."""
    user = str(value)
    if len(user) > _MAX_USER_ID_LENGTH or _EMAIL_OR_PHONE.fullmatch(user.strip()):
        user = hashlib.sha256(user.encode()).hexdigest()
    draft.body["metadata"] = {"user_id": user}


def _output_format(schema: JsonObject) -> JsonObject:
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}


_STYLE = ConstraintStyle(
    Encoding(NATIVE, lambda guided: _output_format(guided.schema)),
    SCHEMA_ONLY,
    Encoding(BY_ENUM, lambda guided: _output_format(choice_schema(guided.choices)), unwrap=True),
    SCHEMA_ONLY,
    object_in_text=True,
    rules=ANTHROPIC,
)
_STYLES: Mapping[str, ConstraintStyle] = {
    "anthropic": _STYLE,
    "bedrock": replace(_STYLE, rules=BEDROCK),
    NO_PROMISE: PROMPT_ONLY_STYLE,
}
"""The constraint style for each value of `Capabilities.strict_tools`, because constraints and strict tools follow the
same schema rules."""

_CONSTRAINT_WRITERS = {rules: constraint_writer(style) for rules, style in _STYLES.items()}


def _constraint(draft: RequestBody, value: object) -> None:
    _CONSTRAINT_WRITERS[draft.table.strict_tools](draft, value)


_TIERS = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}


def _service_tier(draft: RequestBody, value: object) -> None:
    tier = _TIERS.get(str(value))
    if tier is None:
        raise draft.unsupported("service_tier", "it has the tiers 'auto' and 'default'")
    draft.body["service_tier"] = tier


WRITTEN_ELSEWHERE = frozenset(
    {"max_tokens", "tools", "tool_choice", "parallel_tool_calls", "reasoning_effort", "thinking"},
)
"""Fields that have no writer here, because the code for tools, token limits or reasoning writes them."""

_KNOWN_TOOL_CHOICES = frozenset({"tool_choice.none", "tool_choice.required", "tool_choice.named"})

_WRITERS: Mapping[str, FieldWriter] = {
    "temperature": _temperature,
    "top_p": _top_p,
    "top_k": _top_k,
    "stop": _stop,
    # The vendor reports the stop string that matched, so the gateway can append exactly that string.
    STOP_STRING: emulate_stop_string,
    "user": _user,
    "metadata": _metadata,
    "guided": _constraint,
    "response_format": _constraint,
    "service_tier": _service_tier,
    WINDOW: check_window,
    "images": check_images,
}

FIELDS: Mapping[str, FieldWriter] = {name: unless_neutral(name, put) for name, put in _WRITERS.items()}
"""Writers of the fields that this vendor honours. Any other field is refused unless its value is neutral."""

FIELDS_WITHOUT_SAMPLING: Mapping[str, FieldWriter] = {
    **FIELDS,
    "temperature": _no_temperature,
    **{name: unless_neutral(name, _no_sampling(name)) for name in ("top_p", "top_k")},
}
"""FIELDS for versions of the API that have no sampling settings."""

_FIXED_CELLS: Mapping[str, Cell] = {
    **ONE_CHAT,
    "best_of": UNSCORED,
    "stop.many": NATIVE,
    "stop.blank": SCANNED,
    STOP_STRING: APPENDED,
    "response_format.structural_tag": SCHEMA_ONLY.cell,
    "metadata": Cell(Support.LEFT_OUT, "it takes 'user_id' only"),
    # Unknown fields are passed on: the vendor has more settings than the unified request, and refuses fields that it
    # does not know.
    "unknown": NATIVE,
    f"{WINDOW}.truncate": NATIVE,
}

_UNSAMPLED = {name: refused(_NO_SAMPLING) for name in ("temperature", "top_p", "top_k")}
_UNFORCED = {name: refused(NO_FORCED_CHOICE) for name in ("tool_choice.required", "tool_choice.named")}


@cache
def capabilities(operation: Operation, counted: bool, model: ClaudeModel, rules: str = "anthropic") -> Capabilities:
    """Return the capabilities of a model for a client's operation.

    `counted` is true if the context window is known, so that the prompt can be checked against it. `rules` names the
    platform's rules for schemas.
    """
    promise = rules if model.structured else NO_PROMISE
    cells = compiled(FIELDS.keys() | WRITTEN_ELSEWHERE | _KNOWN_TOOL_CHOICES, _FIXED_CELLS)
    cells.update(own_constraint_cells(_STYLES[promise]))
    cells[f"{WINDOW}.error"] = COUNTED if counted else ENDS_ANSWER
    cells.update(ECHO_CELLS[operation])
    if not model.sampling:
        cells.update(_UNSAMPLED)
    if not model.forced_choice:
        cells.update(_UNFORCED)
        cells = with_forced_calls(cells)
    if not model.thinking:
        cells["reasoning_effort"] = refused(NO_REASONING)
    return Capabilities(
        cells,
        most_stops=None,
        blank_stops=False,
        strict_tools=promise,
        counts=counted_first(cells),
        watched=frozenset({"n", "best_of", "echo", "stop"}),
    )
