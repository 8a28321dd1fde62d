"""The unified fields on Anthropic's wire: how each one is written, or why it cannot be.

Never the prompt, the tools or the limit of tokens, which every request needs at once.

Sources: `anthropic` 2.12.0 type `MessageCreateParams`; "Messages", "API versions" and "Structured outputs" pages,
November 2026.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache

from providers.capabilities import (
    APPENDED,
    COUNTED,
    NATIVE,
    ONE_CHAT,
    PREFIXED,
    REFUSED,
    SCANNED,
    Capabilities,
    Cell,
    compiled,
    counted_first,
    emulated,
    feature_of,
    refused,
)
from providers.dialect import Target
from providers.dialects.anthropic_answer import STOP_STRING
from providers.dialects.anthropic_schema import schema_problem
from providers.failure import Refusal
from providers.guided import choice_schema
from providers.unified import ChatPrompt, Guided, JsonObject, JsonValue, Operation, UnifiedRequest, is_neutral


@dataclass(slots=True)
class Draft:
    """A body in work, and what decoding its answer needs to know.

    `samples` says that this version of the vendor's API has sampling settings.
    """

    request: UnifiedRequest
    target: Target
    table: Capabilities
    samples: bool
    body: JsonObject
    emulated: list[str] = field(default_factory=list)
    unwrap: bool = False

    def output(self, member: str, value: JsonValue) -> None:
        """Set a member of `output_config`."""
        config = self.body.setdefault("output_config", {})
        if isinstance(config, dict):
            config[member] = value

    def unsupported(self, name: str, reason: str = "") -> Refusal:
        """The refusal of a field."""
        because = f": {reason}" if reason else ""
        return Refusal(name, f"'{name}' is not supported by {self.target.name}{because}.")

    def invalid(self, name: str, rule: str) -> Refusal:
        """The refusal of a value."""
        return Refusal(name, f"'{name}' {rule} on {self.target.name}.", "invalid_value")


def put_fields(draft: Draft) -> None:
    """Write every field that has no place of its own. Raises Refusal."""
    for name, value in draft.request.params.items():
        if name not in _ELSEWHERE and not is_neutral(name, value):
            _put_field(draft, name, value)


def _put_field(draft: Draft, name: str, value: object) -> None:
    put = _FIELDS.get(name)
    try:
        if put is None:
            raise draft.unsupported(name, draft.table[feature_of(name, value)].how)
        put(draft, value)
    except Refusal:
        # A surface's own default is a wish, not the client's word.
        if name not in draft.request.injected:
            raise


def _temperature(draft: Draft, value: object) -> None:
    params, injected = draft.request.params, draft.request.injected
    if value == 1 and not draft.samples:
        # The vendor's default, which this version wants left unsaid.
        return
    if not draft.samples:
        raise draft.unsupported("temperature", "this version of its API has no sampling settings")
    if not isinstance(value, int | float) or value > 1:
        raise draft.invalid("temperature", "must be at most 1")
    if "temperature" in injected and ("top_p" in params or "thinking" in params):
        # Some models refuse it beside these, which the client did ask for.
        return
    draft.body["temperature"] = value


def _sampling(name: str) -> "_Put":
    def put(draft: Draft, value: object) -> None:
        if not draft.samples:
            raise draft.unsupported(name, "this version of its API has no sampling settings")
        draft.body[name] = value  # type: ignore[assignment]  # a number, as Params says

    return put


def _stop(draft: Draft, value: object) -> None:
    stops = list(value) if isinstance(value, tuple) else []
    if any(not stop.strip() for stop in stops):
        raise draft.invalid("stop", "may not hold a blank string")
    draft.body["stop_sequences"] = stops


def _keep_stop(draft: Draft, value: object) -> None:
    # The vendor says which string it stopped at, so putting it back is exact.
    if draft.request.params.get("stop"):
        draft.emulated.append(STOP_STRING)


_PERSONAL = re.compile(r"[^@\s]+@[^@\s]+|\+?[\d\s().-]{7,}")


def _user(draft: Draft, value: object) -> None:
    """The vendor wants an opaque id and forbids e-mail addresses and phone numbers; a digest identifies as well."""
    user = str(value)
    if _PERSONAL.fullmatch(user.strip()):
        user = hashlib.sha256(user.encode()).hexdigest()
    draft.body["metadata"] = {"user_id": user}


def _put_schema(draft: Draft, name: str, schema: JsonValue) -> None:
    if problem := schema_problem(schema):
        raise draft.unsupported(name, f"it cannot enforce this schema: {problem}")
    draft.output("format", {"type": "json_schema", "schema": schema})


def _guided(draft: Draft, value: object) -> None:
    match value:
        case Guided("json", dict(schema)):
            _put_schema(draft, value.field, schema)
        case Guided("choice", tuple(choices)):
            draft.output("format", {"type": "json_schema", "schema": choice_schema(choices)})
            draft.unwrap = True
            draft.emulated.append(value.field)
        case Guided():
            raise draft.unsupported(value.field, draft.table[value.field].how)
        case _:
            raise TypeError(f"guided holds {type(value).__name__}")


def _response_format(draft: Draft, value: object) -> None:
    match value:
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            _put_schema(draft, "response_format", schema)
        case {"type": "json_schema"}:
            raise draft.invalid("response_format", "needs a schema in 'json_schema'")
        case {"type": "json_object", "schema": dict(schema)}:
            _put_schema(draft, "response_format", schema)
        case _:
            raise draft.unsupported("response_format", draft.table[feature_of("response_format", value)].how)


_EFFORTS = frozenset({"low", "medium", "high", "xhigh", "max"})


def _reasoning_effort(draft: Draft, value: object) -> None:
    if value is False or value == "none":
        draft.body.setdefault("thinking", {"type": "disabled"})
    elif isinstance(value, str) and value in _EFFORTS:
        draft.output("effort", value)
    else:
        known = ", ".join(sorted(_EFFORTS))
        raise draft.invalid("reasoning_effort", f"must be 'none' or one of {known}")


def _thinking(draft: Draft, value: object) -> None:
    draft.body["thinking"] = value  # type: ignore[assignment]  # a JSON object, as Params says


_TIERS = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}


def _service_tier(draft: Draft, value: object) -> None:
    tier = _TIERS.get(str(value))
    if tier is None:
        raise draft.unsupported("service_tier", "it has the tiers 'auto' and 'default'")
    draft.body["service_tier"] = tier


def _context(draft: Draft, value: object) -> None:
    name = "context_length_exceeded_behavior"
    if (cell := draft.table[feature_of(name, value)]).refused:
        raise draft.unsupported(name, cell.how)


def _images(draft: Draft, value: object) -> None:
    # In a prompt they have become parts of its message.
    if isinstance(draft.request.prompt, ChatPrompt):
        raise draft.unsupported("images", "in a chat put images into the messages")


_Put = Callable[[Draft, object], None]

_ELSEWHERE = frozenset({"max_tokens", "tools", "tool_choice", "parallel_tool_calls"})

_KNOWN = frozenset({"tool_choice.none", "tool_choice.required", "tool_choice.named"})

_FIELDS: Mapping[str, _Put] = {
    "temperature": _temperature,
    "top_p": _sampling("top_p"),
    "top_k": _sampling("top_k"),
    "stop": _stop,
    STOP_STRING: _keep_stop,
    "user": _user,
    "guided": _guided,
    "response_format": _response_format,
    "reasoning_effort": _reasoning_effort,
    "thinking": _thinking,
    "service_tier": _service_tier,
    "context_length_exceeded_behavior": _context,
    "images": _images,
}
"""The fields this vendor honours; any other is refused unless its value asks for nothing."""

_SCHEMA_ONLY = refused("it can only be held to a JSON Schema")
_ONE_VALUE: Mapping[str, Cell] = {
    **ONE_CHAT,
    "echo": PREFIXED,
    "best_of": refused("it has no log probabilities to choose by"),
    "stop.many": NATIVE,
    "stop.blank": SCANNED,
    STOP_STRING: APPENDED,
    "response_format.json_object": refused("it has no JSON mode without a schema"),
    "response_format.json_schema": NATIVE,
    "response_format.grammar": _SCHEMA_ONLY,
    "response_format.structural_tag": _SCHEMA_ONLY,
    "guided_json": NATIVE,
    "guided_regex": _SCHEMA_ONLY,
    "guided_choice": emulated("a JSON object with one enum member"),
    "guided_grammar": _SCHEMA_ONLY,
    "context_length_exceeded_behavior.truncate": NATIVE,
}
_BLIND = refused(
    "it ends the answer where the window ends instead of refusing; set 'context_window' in the table, so that the "
    "gateway can refuse"
)


@cache
def capabilities(asked: Operation, counted: bool) -> Capabilities:
    """The table for clients of an endpoint; `counted` says that the window is known, so that the prompt can be held
    against it."""
    known = _FIELDS.keys() | _ELSEWHERE | _KNOWN
    cells = compiled(known, _ONE_VALUE)
    cells["context_length_exceeded_behavior.error"] = COUNTED if counted else _BLIND
    if asked is Operation.CHAT:
        cells.update({"echo": REFUSED, "echo.logprobs": REFUSED})
    return Capabilities(
        cells,
        most_stops=None,
        blank_stops=False,
        counts=counted_first(cells),
        watched=frozenset({"n", "best_of", "echo", "stop"}),
    )
