"""What the native dialects share in writing a call: a body in work, ways to write a field, and the finished call.

Never a vendor's field name, and never a prompt.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import cast

import orjson

from providers.capabilities import NATIVE, Capabilities, Cell, feature_of, refused
from providers.dialect import Target, UpstreamRequest
from providers.failure import Refusal
from providers.guided import Unenforceable
from providers.profiles import Profile, merged
from providers.unified import Guided, JsonObject, JsonValue, Operation, Params, UnifiedRequest, is_neutral

WINDOW = "context_length_exceeded_behavior"


@dataclass(slots=True)
class Draft:
    """A body in work, and what decoding its answer needs to know."""

    request: UnifiedRequest
    target: Target
    table: Capabilities
    body: JsonObject
    emulated: list[str] = field(default_factory=list)
    unwrap: bool = False

    @property
    def params(self) -> Params:
        """The request's."""
        return self.request.params

    def put(self, path: str, value: object) -> None:
        """Set a member; a dot in the path leads into a nested object."""
        *outer, last = path.split(".")
        holder = self.body
        for step in outer:
            inner = holder.get(step)
            if not isinstance(inner, dict):
                inner = holder[step] = {}
            holder = inner
        holder[last] = cast(JsonValue, value)  # Params holds JSON under the fields that are written as they are

    def unsupported(self, name: str, reason: str = "") -> Refusal:
        """The refusal of a field."""
        because = f": {reason}" if reason else ""
        return Refusal(name, f"'{name}' is not supported by {self.target.name}{because}.")

    def invalid(self, name: str, rule: str) -> Refusal:
        """The refusal of a value."""
        return Refusal(name, f"'{name}' {rule} on {self.target.name}.", "invalid_value")


Put = Callable[[Draft, object], None]
"""Writes one field's value into the draft. Raises Refusal, and then has written nothing."""


def put_fields(draft: Draft, fields: Mapping[str, Put], elsewhere: Collection[str] = ()) -> None:
    """Write every field of the request but those that are written `elsewhere`.

    Raises Refusal for the first that the vendor cannot honour; a default that the surface filled in is a wish and not
    the client's word, so it is left out instead.
    """
    for name, value in draft.params.items():
        if name in elsewhere:
            continue
        try:
            put = fields.get(name)
            if put is not None:
                put(draft, value)
            elif not is_neutral(name, value):
                feature = feature_of(name, value)
                raise draft.unsupported(feature.partition(".")[0], draft.table[feature].how)
        except Refusal:
            if name not in draft.request.injected:
                raise
    if draft.unwrap and "logprobs" in draft.params:
        raise draft.unsupported("logprobs", "the choice is made inside an object whose tokens are not the text's")


def plain(path: str) -> Put:
    """The value as it is."""
    return lambda draft, value: draft.put(path, value)


def unless_neutral(name: str, put: Put) -> Put:
    """Left out where it asks for nothing."""

    def write(draft: Draft, value: object) -> None:
        if not is_neutral(name, value):
            put(draft, value)

    return write


def bounded(name: str, path: str, low: float | None, high: float | None) -> Put:
    """A number between two ends, both included; a value outside that asks for nothing is left out."""
    least = "" if low is None else f"at least {low:g}"
    most = "" if high is None else f"at most {high:g}"
    limits = f"{low:g}" if low is not None and low == high else " and ".join(limit for limit in (least, most) if limit)

    def write(draft: Draft, value: object) -> None:
        outside = isinstance(value, int | float) and (
            (low is not None and value < low) or (high is not None and value > high)
        )
        if not outside:
            draft.put(path, value)
        elif not is_neutral(name, value):
            raise draft.invalid(name, f"must be {limits}")

    return write


def listed(path: str) -> Put:
    """Strings, unless there are none."""

    def write(draft: Draft, value: object) -> None:
        if isinstance(value, tuple) and value:
            draft.put(path, list(value))

    return write


def at_window(draft: Draft, value: object) -> None:
    """What the vendor does by itself at the window's end is in the table; without a limit on the answer only the
    prompt can be too long, and that is an error whatever was asked."""
    if "max_tokens" in draft.params and (cell := draft.table[feature_of(WINDOW, value)]).refused:
        raise draft.unsupported(WINDOW, cell.how)


# Constraints --------------------------------------------------------------------------------------------------------

Way = Callable[[Draft, Guided], None]
"""Writes a constraint of one kind. Raises Unenforceable."""

ANY_OBJECT: JsonObject = {"type": "object"}


def _guided_schema(draft: Draft, wanted: Guided) -> None:
    draft.put("guided_json", schema_of(wanted))


def _guided_regex(draft: Draft, wanted: Guided) -> None:
    draft.put("guided_regex", wanted.value_text)


def _guided_choice(draft: Draft, wanted: Guided) -> None:
    draft.put("guided_choice", list(choices_of(wanted)))


def _guided_grammar(draft: Draft, wanted: Guided) -> None:
    draft.put("guided_grammar", wanted.value_text)


GUIDED: Mapping[str, Way] = {
    "json": _guided_schema,
    "regex": _guided_regex,
    "choice": _guided_choice,
    "grammar": _guided_grammar,
}
"""Each kind of constraint in the member that the unified request has for it, for vendors that call them the same."""


def constrained(ways: Mapping[str, Way], any_object: Put | None = None, tag: Put | None = None) -> Put:
    """`guided` and `response_format`, by the constraint's kind; `any_object` is the JSON mode without a schema where it
    is said in its own way, `tag` a structural tag where there are any."""

    def write(draft: Draft, value: object) -> None:
        if tag is not None and isinstance(value, dict) and value.get("type") == "structural_tag":
            tag(draft, value)
            return
        wanted, name = _wanted(draft, value)
        feature = feature_of("guided" if isinstance(value, Guided) else "response_format", value)
        if wanted is None:
            return
        if feature == "response_format.json_object" and wanted.value is not ANY_OBJECT:
            feature = "response_format.json_schema"
        way, cell = ways.get(wanted.kind), draft.table[feature]
        if cell.refused or way is None:
            raise draft.unsupported(name, cell.how)
        if feature == "response_format.json_object" and wanted.value is ANY_OBJECT and any_object is not None:
            any_object(draft, value)
        else:
            try:
                way(draft, wanted)
            except Unenforceable as reason:
                raise draft.unsupported(name, reason.reason) from None
        if cell.emulated:
            draft.emulated.append(name)

    return write


def _wanted(draft: Draft, value: object) -> tuple[Guided | None, str]:
    """The constraint, and the field that asks for it; nothing for plain text."""
    name = "response_format"
    match value:
        case Guided():
            return value, value.field
        case {"type": "text"}:
            return None, name
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return Guided("json", schema), name
        case {"type": "json_schema"}:
            raise draft.invalid(name, "needs a schema in 'json_schema'")
        case {"type": "json_object", "schema": dict(schema)}:
            return Guided("json", schema), name
        case {"type": "json_object"}:
            return Guided("json", ANY_OBJECT), name
        case {"type": "grammar", "grammar": str(grammar)}:
            return Guided("grammar", grammar), name
        case {"type": str(kind)}:
            raise draft.unsupported(name, f"it has no response_format of type '{kind}'")
        case _:
            raise TypeError(f"a constraint is no {type(value).__name__}")


def schema_of(guided: Guided) -> JsonObject:
    """The schema of a `json` constraint."""
    if not isinstance(guided.value, dict):
        raise TypeError(f"{guided.field} carries no schema")
    return guided.value


def choices_of(guided: Guided) -> tuple[str, ...]:
    """The strings of a `choice` constraint."""
    if not isinstance(guided.value, tuple):
        raise TypeError(f"{guided.field} carries no choices")
    return guided.value


# The call -----------------------------------------------------------------------------------------------------------


def unknown_cell(profile: Profile) -> Cell:
    """What becomes of fields that the unified request does not know."""
    return NATIVE if profile.forwards_unknown else refused("the vendor refuses fields it does not know")


def raw_only(request: UnifiedRequest, target: Target, table: Capabilities) -> Capabilities:
    """The table of an endpoint that takes prompts and no chats. Raises Refusal for a chat."""
    if request.operation is Operation.CHAT:
        because = table["messages"].how
        raise Refusal("messages", f"'messages' is not supported by {target.name}: {because}.")
    return table


def put_unknown(draft: Draft) -> None:
    """Fields that the unified request does not know, where the vendor takes such. Raises Refusal."""
    for name, value in (draft.request.unknown or {}).items():
        if (cell := draft.table["unknown"]).refused:
            raise draft.unsupported(name, cell.how)
        if name in draft.body:
            message = f"'{name}' goes to {draft.target.name} for another field of the request already."
            raise Refusal(name, message, "conflicting_parameters")
        draft.body[name] = value


def finished(
    draft: Draft,
    operation: Operation,
    path: str,
    protected: Collection[str],
    tool_names: Mapping[str, str] | None = None,
) -> UpstreamRequest:
    """The call, with the client's own members on top. `protected` are the paths of members in which the wire has what
    no client may set that way: the model, the prompt, the number of answers."""
    body, extra = draft.body, draft.request.extra_params
    if extra:
        for path_to in protected:
            if _holds(extra, path_to):
                message = f"'inference_extra_params' may not set '{path_to}' on {draft.target.name}."
                raise Refusal("inference_extra_params", message, "invalid_value")
        body = merged(body, dict(extra))
    return UpstreamRequest(
        target=draft.target,
        operation=operation,
        url=draft.target.base_url + path,
        body=orjson.dumps(body),
        stream=draft.request.stream,
        headers=draft.request.extra_headers or {},
        emulated=tuple(dict.fromkeys(draft.emulated)),
        tool_names=tool_names or {},
        unwrap_choice=draft.unwrap,
    )


def _holds(extra: Mapping[str, JsonValue], path: str) -> bool:
    found: object = extra
    for step in path.split("."):
        if not isinstance(found, Mapping) or step not in found:
            return False
        found = found[step]
    return True
