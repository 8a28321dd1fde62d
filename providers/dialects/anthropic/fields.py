"""Writers of the unified fields on Anthropic's wire, and the vendor's capability table.

Sources: `anthropic` 2.12.0 type `MessageCreateParams`; "Messages", "API versions" and "Structured outputs" pages,
November 2026.
"""

import hashlib
import re
from collections.abc import Mapping
from functools import cache

from providers.capabilities import (
    APPENDED,
    COUNTED,
    NATIVE,
    ONE_CHAT,
    SCANNED,
    UNSCORED,
    Capabilities,
    Cell,
    compiled,
    counted_first,
)
from providers.constraints.constraint_styles import BY_ENUM, SCHEMA_ONLY, ConstraintStyle, Encoding, choice_schema
from providers.constraints.schema_rules import ANTHROPIC
from providers.dialects.shared.field_writers import check_images, keep_stop
from providers.dialects.shared.operations import ECHO_CELLS
from providers.dialects.shared.request_body import (
    ENDS_ANSWER,
    FieldWriter,
    RequestBody,
    check_window,
    constraint_writer,
    own_constraint_cells,
    plain,
    unless_neutral,
)
from providers.json_types import JsonObject
from providers.request_fields import STOP_STRING, WINDOW
from providers.unified_request import Operation

_NO_SAMPLING = "this version of its API has no sampling settings"


def _temperature(draft: RequestBody, value: object) -> None:
    params, injected = draft.params, draft.request.injected
    if not isinstance(value, int | float) or value > 1:
        raise draft.invalid("temperature", "must be at most 1")
    if "temperature" in injected and ("top_p" in params or "thinking" in params):
        # Some models refuse it beside these, which the client did send.
        return
    draft.body["temperature"] = value


def _no_temperature(draft: RequestBody, value: object) -> None:
    # 1 is the vendor's default.
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


_PERSONAL = re.compile(r"[^@\s]+@[^@\s]+|\+?[\d\s().-]{7,}")


def _user(draft: RequestBody, value: object) -> None:
    """Write the id, and a digest for e-mail addresses and phone numbers, which the vendor forbids."""
    user = str(value)
    if _PERSONAL.fullmatch(user.strip()):
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

_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})


def _reasoning_effort(draft: RequestBody, value: object) -> None:
    if value is False or value == "none":
        draft.body.setdefault("thinking", {"type": "disabled"})
    elif isinstance(value, str) and value in _EFFORTS:
        draft.put("output_config.effort", value)
    else:
        known = ", ".join(sorted(_EFFORTS))
        raise draft.invalid("reasoning_effort", f"must be 'none' or one of {known}")


_TIERS = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}


def _service_tier(draft: RequestBody, value: object) -> None:
    tier = _TIERS.get(str(value))
    if tier is None:
        raise draft.unsupported("service_tier", "it has the tiers 'auto' and 'default'")
    draft.body["service_tier"] = tier


ELSEWHERE = frozenset({"max_tokens", "tools", "tool_choice", "parallel_tool_calls"})
"""Fields that the prompt, the tools and the limit are written from."""

_KNOWN = frozenset({"tool_choice.none", "tool_choice.required", "tool_choice.named"})

_WRITERS: Mapping[str, FieldWriter] = {
    "temperature": _temperature,
    "top_p": plain("top_p"),
    "top_k": plain("top_k"),
    "stop": _stop,
    # The vendor reports the string that it stopped at, so appending it is exact.
    STOP_STRING: keep_stop,
    "user": _user,
    "guided": constraint_writer(_STYLE),
    "response_format": constraint_writer(_STYLE),
    "reasoning_effort": _reasoning_effort,
    "thinking": plain("thinking"),
    "service_tier": _service_tier,
    WINDOW: check_window,
    "images": check_images,
}

FIELDS: Mapping[str, FieldWriter] = {name: unless_neutral(name, put) for name, put in _WRITERS.items()}
"""Writers of the fields that this vendor honours; any other is refused unless its value asks for nothing."""

FIELDS_WITHOUT_SAMPLING: Mapping[str, FieldWriter] = {
    **FIELDS,
    "temperature": _no_temperature,
    **{name: unless_neutral(name, _no_sampling(name)) for name in ("top_p", "top_k")},
}
"""FIELDS for versions of the API that have no sampling settings."""

_ONE_VALUE: Mapping[str, Cell] = {
    **ONE_CHAT,
    "best_of": UNSCORED,
    "stop.many": NATIVE,
    "stop.blank": SCANNED,
    STOP_STRING: APPENDED,
    **own_constraint_cells(_STYLE),
    "response_format.structural_tag": SCHEMA_ONLY.cell,
    f"{WINDOW}.truncate": NATIVE,
}


@cache
def capabilities(operation: Operation, counted: bool) -> Capabilities:
    """Return the capability table for a client's operation; `counted` says that the window is known, so that the
    prompt can be checked against it."""
    cells = compiled(FIELDS.keys() | ELSEWHERE | _KNOWN, _ONE_VALUE)
    cells[f"{WINDOW}.error"] = COUNTED if counted else ENDS_ANSWER
    cells.update(ECHO_CELLS[operation])
    return Capabilities(
        cells,
        most_stops=None,
        blank_stops=False,
        strict_tools="anthropic",
        counts=counted_first(cells),
        watched=frozenset({"n", "best_of", "echo", "stop"}),
    )
