"""Builds the body of an upstream request, writes its fields, and returns the finished request, for all dialects."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import cast, get_args

import orjson

from providers.capabilities import COUNTED, NATIVE, RESENT, Capabilities, Cell, feature_of, refused
from providers.client_extras.proxy_instructions import is_left_out
from providers.constraints.constraint_styles import (
    FORMAT_KINDS,
    PROMPT_ONLY_STYLE,
    ConstraintStyle,
    Unenforceable,
    constraint_cells,
    constraint_fields,
    field_of,
    schema_in,
)
from providers.dialect import UpstreamRequest
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue, merged
from providers.profile import AtWindow, Profile, Wire
from providers.request_fields import PROMPT_FIELDS, WINDOW, is_advisory, is_neutral
from providers.target import Target
from providers.unified_request import ContextBehavior, Guided, Operation, Params, UnifiedRequest


@dataclass(slots=True)
class RequestBody:
    """The body of one upstream request while it is written, and the settings that decoding its response needs.

    `table` holds the target's capabilities. `emulated` names the request's fields that the gateway emulates. `dropped`
    names the advisory fields that are left out. `unenforced`, `in_prompt` and `native` are as in UpstreamRequest.
    `unwrap` says that the response is a JSON object that holds one choice.
    """

    request: UnifiedRequest
    target: Target
    table: Capabilities
    body: JsonObject
    emulated: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    unenforced: list[str] = field(default_factory=list)
    in_prompt: bool = False
    unwrap: bool = False
    native: bool = False

    @property
    def params(self) -> Params:
        """The fields of the client's request."""
        return self.request.params

    def put(self, path: str, value: object) -> None:
        """Set a field. A dot in the path leads into a nested object."""
        *outer, last = path.split(".")
        holder = self.body
        for step in outer:
            inner = holder.get(step)
            # Nested objects are copied, because a profile's own fields are shared by all requests.
            holder[step] = inner = {**inner} if isinstance(inner, dict) else {}
            holder = inner
        holder[last] = cast(JsonValue, value)  # Params holds JSON in the fields that are written unchanged

    def unsupported(self, name: str, reason: str = "") -> Refusal:
        """Return the refusal of a field that the target does not support."""
        return unsupported(self.target, name, reason)

    def invalid(self, name: str, rule: str) -> Refusal:
        """Return the refusal of a field's value. `rule` is the rest of a sentence about the field."""
        return Refusal(name, f"'{name}' {rule} on {self.target.name}.", "invalid_value")


FieldWriter = Callable[[RequestBody, object], None]
"""Writes one field's value into the body. Raises Refusal before it has written anything."""


def unsupported(target: Target, name: str, reason: str = "") -> Refusal:
    """Return the refusal of a field that the target does not support. `name` is the client's name of the field."""
    suffix = f": {reason}" if reason else ""
    return Refusal(name, f"'{name}' is not supported by {target.name}{suffix}.")


def put_fields(draft: RequestBody, fields: Mapping[str, FieldWriter], elsewhere: Collection[str] = ()) -> None:
    """Write every field of the request except the fields in `elsewhere`, which other code writes.

    Raises Refusal for the first field that the vendor cannot honour. A default that the surface added is left out
    instead. An advisory field is left out too, and added to `dropped`.
    """
    params = draft.request.params
    for name, value in params.items():
        if name in elsewhere:
            continue
        try:
            put = fields.get(name)
            if put is not None:
                put(draft, value)
            elif not (is_neutral(name, value) or _has_no_effect(params, name)):
                raise not_native(draft, name, value)
        except Refusal:
            if name in draft.request.injected:
                continue
            if not is_advisory(name, value):
                raise
            draft.dropped.append(name)
    if draft.unwrap and "logprobs" in params:
        raise draft.unsupported("logprobs", "the choice is made inside an object whose tokens are not the text's")


def _has_no_effect(params: Params, name: str) -> bool:
    """Return whether a field has no effect in this request: `parallel_tool_calls` without tools."""
    return name == "parallel_tool_calls" and not params.get("tools")


def not_native(draft: RequestBody, name: str, value: object) -> Refusal:
    """Return the refusal of a field that the vendor does not honour. Emulated fields have been removed from the request
    before."""
    feature = feature_of(name, value)
    return draft.unsupported(feature.partition(".")[0], draft.table[feature].how)


def plain(path: str) -> FieldWriter:
    """Return a writer of the unchanged value. A dot in the path leads into a nested object."""
    if "." in path:
        return lambda draft, value: draft.put(path, value)
    return partial(_write_field, path)


def _write_field(path: str, draft: RequestBody, value: object) -> None:
    draft.body[path] = cast(JsonValue, value)


def unless_neutral(name: str, put: FieldWriter) -> FieldWriter:
    """Return a writer that leaves out a neutral value."""

    def write(draft: RequestBody, value: object) -> None:
        if not is_neutral(name, value):
            put(draft, value)

    return write


def bounded(name: str, path: str, low: float | None, high: float | None) -> FieldWriter:
    """Return a writer of a number between two inclusive bounds. It leaves out a neutral number outside of them, and
    refuses others."""
    return within(name, low, high, plain(path))


def within(name: str, low: float | None, high: float | None, put: FieldWriter) -> FieldWriter:
    """Return a writer that passes a value to `put` if it is not a number or lies between two inclusive bounds. It
    leaves out a neutral number outside of them, and refuses others."""
    minimum = "" if low is None else f"at least {low:g}"
    most = "" if high is None else f"at most {high:g}"
    fixed = low is not None and low == high
    limits = f"{low:g}" if fixed else " and ".join(limit for limit in (minimum, most) if limit)

    def write(draft: RequestBody, value: object) -> None:
        outside = isinstance(value, int | float) and (
            (low is not None and value < low) or (high is not None and value > high)
        )
        if not outside:
            put(draft, value)
        elif not is_neutral(name, value):
            # If only one value is allowed, the field as a whole is unsupported.
            raise draft.unsupported(name, f"it must be {limits}") if fixed else draft.invalid(name, f"must be {limits}")

    return write


def listed(path: str) -> FieldWriter:
    """Return a writer of a list of strings, which writes nothing if the list is empty."""

    def write(draft: RequestBody, value: object) -> None:
        if isinstance(value, tuple) and value:
            draft.put(path, list(value))

    return write


_WINDOW_FEATURES: Mapping[object, str] = {value: feature_of(WINDOW, value) for value in get_args(ContextBehavior)}


def check_window(draft: RequestBody, value: object) -> None:
    """Raise Refusal if the target does not support the requested behaviour at the end of the context window. Write
    nothing."""
    if (cell := draft.table.cells[_WINDOW_FEATURES[value]]).refused:
        raise draft.unsupported(WINDOW, cell.how)


def check_limited_window(draft: RequestBody, value: object) -> None:
    """Check as `check_window` does if the request has a token limit. Without a limit only the prompt can be too long,
    which is an error under either behaviour."""
    if "max_tokens" in draft.params:
        check_window(draft, value)


# Constraints --------------------------------------------------------------------------------------------------------


def put_constraint(draft: RequestBody, style: ConstraintStyle, value: object) -> None:
    """Write `guided` or `response_format` in a style. Raises Refusal for a constraint that the style cannot enforce."""
    name = field_of(value)
    try:
        encoded = constraint_fields(style, value)
    except Unenforceable as reason:
        raise draft.unsupported(name, reason.reason) from None
    # Several fields may write into the same object, such as NIM's `nvext`.
    draft.body = merged(draft.body, encoded.fields)
    draft.unwrap = draft.unwrap or encoded.unwrap
    draft.in_prompt = draft.in_prompt or encoded.in_prompt
    if encoded.emulated:
        draft.emulated.append(name)
    if encoded.unenforced:
        draft.unenforced.append(name)


_DESCRIBABLE = constraint_cells(PROMPT_ONLY_STYLE)


def put_constraint_in_prompt(draft: RequestBody, value: object, why: str) -> None:
    """Describe `guided` or `response_format` in the prompt, for a vendor that accepts no constraint beside tools. The
    response is checked against the constraint. Raises Refusal with the reason `why` for a constraint that a prompt
    cannot describe."""
    name = field_of(value)
    if _DESCRIBABLE[feature_of("guided" if isinstance(value, Guided) else name, value)].refused:
        raise draft.unsupported(name, why)
    put_constraint(draft, PROMPT_ONLY_STYLE, value)


def constraint_writer(style: ConstraintStyle) -> FieldWriter:
    """Return a writer of `guided` or `response_format`. It raises Refusal with the reason from the target's
    capabilities if they refuse the constraint."""

    def write(draft: RequestBody, value: object) -> None:
        name = field_of(value)
        cell = NATIVE
        match value:
            case Guided():
                cell = draft.table[name]
            case {"type": "json_schema"} if schema_in(value) is None:
                raise draft.invalid(name, "needs a schema in 'json_schema'")
            case {"type": kind} if kind in FORMAT_KINDS:
                cell = draft.table[feature_of(name, value)]
        if cell.refused and cell.how:
            raise draft.unsupported(name, cell.how)
        put_constraint(draft, style, value)

    return write


def own_constraint_cells(style: ConstraintStyle) -> Mapping[str, Cell]:
    """Return the cells of a style's constraints, without structural tags."""
    return {name: cell for name, cell in constraint_cells(style).items() if name != "response_format.structural_tag"}


# Capabilities -------------------------------------------------------------------------------------------------------

_UNKNOWN_WINDOW = "configure 'context_window', so that the gateway can"


def unknown_cell(profile: Profile) -> Cell:
    """Return the cell of fields that the unified request does not know."""
    return NATIVE if profile.forwards_unknown else refused("the vendor refuses fields it does not know")


REFUSES_OVERFLOW: Mapping[str, Cell] = {f"{WINDOW}.truncate": RESENT, f"{WINDOW}.error": NATIVE}
"""Cells of both behaviours at the end of the context window, for vendors that refuse requests that do not fit."""
ENDS_ANSWER = refused(f"it ends the response at the end of the window instead of refusing; {_UNKNOWN_WINDOW} refuse")


def window_cells(wire: Wire, counted: bool) -> Iterator[tuple[str, Cell]]:
    """Yield the cells of both behaviours at the end of the context window, derived from the vendor's own behaviour.

    For a behaviour that the vendor does not have, the gateway must be able to count the prompt before it is sent:
    `counted` says whether it can.
    """
    shortens = refused(f"it shortens the response by itself instead of refusing; {_UNKNOWN_WINDOW} refuse")
    cuts = refused(f"it cuts the prompt by itself instead; {_UNKNOWN_WINDOW} check prompts against it")
    by_behavior: dict[AtWindow, tuple[Cell, Cell]] = {
        "native": (NATIVE, NATIVE),
        "never": (NATIVE, NATIVE),
        "errors": (RESENT, NATIVE),
        "clamps": (NATIVE, COUNTED if counted else shortens),
        "cuts": (COUNTED, COUNTED) if counted else (cuts, cuts),
    }
    yield f"{WINDOW}.truncate", by_behavior[wire.context][0]
    yield f"{WINDOW}.error", by_behavior[wire.context][1]


def raw_only(request: UnifiedRequest, target: Target, table: Capabilities) -> Capabilities:
    """Return the capabilities of an endpoint that takes prompts and no chats. Raises Refusal for a chat."""
    name = PROMPT_FIELDS[request.operation]
    if (cell := table[name]).refused:
        raise unsupported(target, name, cell.how)
    return table


# The finished request -----------------------------------------------------------------------------------------------


_ADVISORY = frozenset({"cache_control", "prompt_cache_options", "prompt_cache_breakpoint", "reasoning"})
"""Settings of Anthropic's and OpenAI's caches, and the rest of OpenRouter's `reasoning` once its effort has been read.
They do not affect the content of the response."""


def put_unknown(
    draft: RequestBody, reserved: Collection[str] = (), taken: Collection[str] = (), joined: Collection[str] = ()
) -> None:
    """Write the fields that the unified request does not know.

    Advisory fields that are not in `taken`, and fields that instruct a proxy, are left out and added to `dropped`. An
    object whose name is in `joined` is merged with the object that the body already has. Raises Refusal if the vendor
    accepts no unknown fields, and for a field whose name is `reserved` or already in the body.
    """
    for name, value in (draft.request.unknown or {}).items():
        if name not in taken and (name in _ADVISORY or is_left_out(name, draft.target.permits.fields)):
            draft.dropped.append(name)
            continue
        if (cell := draft.table["unknown"]).refused:
            raise draft.unsupported(name, cell.how)
        existing = draft.body.get(name)
        if name in joined and isinstance(existing, dict) and isinstance(value, dict):
            draft.body[name] = merged(existing, value)
        elif name in draft.body or name in reserved:
            message = f"'{name}' is already sent to {draft.target.name} for another field of the request."
            raise Refusal(name, message, "conflicting_parameters")
        else:
            draft.body[name] = value


def finish_request(
    draft: RequestBody,
    operation: Operation,
    path: str,
    protected: Collection[str],
    tool_names: Mapping[str, str] | None = None,
) -> UpstreamRequest:
    """Return the request to `path` of the target. The client's extra fields override fields of the body. Raises Refusal
    for an extra field at one of the `protected` paths, such as the model, the prompt or the number of choices."""
    if extra := draft.request.extra_params:
        for path_to in protected:
            if _has_path(extra, path_to):
                message = f"'inference_extra_params' may not set '{path_to}' on {draft.target.name}."
                raise Refusal("inference_extra_params", message, "invalid_value")
    headers = draft.request.extra_headers or {}
    return build_request(draft, operation, draft.target.base_url + path, headers, tool_names or {})


def build_request(
    draft: RequestBody,
    operation: Operation,
    url: str,
    headers: Mapping[str, str],
    tool_names: Mapping[str, str],
) -> UpstreamRequest:
    """Return the request to `url`. The client's extra fields override fields of the body."""
    extra = draft.request.extra_params
    if extra:
        # A vendor's own tools in the extra fields are added to the request's functions.
        extra = _with_tools(draft.body, extra)
        body_config, extra_config = draft.body.get("toolConfig"), extra.get("toolConfig")
        if isinstance(body_config, dict) and isinstance(extra_config, dict):
            extra = {**extra, "toolConfig": _with_tools(body_config, extra_config)}
    return UpstreamRequest(
        draft.target,
        operation,
        url,
        orjson.dumps(merged(draft.body, dict(extra)) if extra else draft.body),
        draft.request.stream,
        headers,
        "POST",
        tuple(dict.fromkeys(draft.emulated)) if draft.emulated else (),
        tuple(dict.fromkeys(draft.dropped)) if draft.dropped else (),
        tuple(dict.fromkeys(draft.unenforced)) if draft.unenforced else (),
        draft.in_prompt,
        tool_names,
        draft.unwrap,
        native=draft.native,
        choices=draft.request.choices,
    )


def _with_tools(holder: JsonObject, extra: Mapping[str, JsonValue]) -> JsonObject:
    """Return the extra fields with the tools of the body put before their own tools."""
    tools, extra_tools = holder.get("tools"), extra.get("tools")
    if isinstance(tools, list) and isinstance(extra_tools, list):
        return {**extra, "tools": [*tools, *extra_tools]}
    return {**extra}


def _has_path(extra: Mapping[str, JsonValue], path: str) -> bool:
    found: object = extra
    for step in path.split("."):
        if not isinstance(found, Mapping) or step not in found:
            return False
        found = found[step]
    return True
