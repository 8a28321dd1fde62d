"""Writers of the unified fields for Bedrock's Converse, and the capabilities of its models. The profile decides which
fields a model accepts.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shape `ConverseRequest`; "Get validated JSON results from
models" page, November 2026.
"""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

import orjson

from providers.capabilities import (
    APPENDED,
    FEATURES,
    IN_MESSAGE,
    NATIVE,
    NO_PROMISE,
    ONE_CALL,
    ONE_CHAT,
    REFUSED,
    SCANNED,
    UNSCORED,
    Capabilities,
    Cell,
    compiled,
    counted_first,
    emulated,
    refused,
    with_forced_calls,
)
from providers.constraints.constraint_styles import (
    BY_ENUM,
    BY_PROMPT,
    PROMPT_ONLY_STYLE,
    SCHEMA_ONLY,
    ConstraintStyle,
    Encoding,
    choice_schema,
)
from providers.constraints.object_root import SCHEMA_NAME
from providers.constraints.schema_rules import BEDROCK
from providers.dialects.bedrock.converse_models import ConverseModel
from providers.dialects.bedrock.converse_thinking import (
    NO_REASONING,
    claude_effort,
    claude_thinking,
    effort_writer,
    max_output,
)
from providers.dialects.shared.field_writers import check_images, emulate_stop_string
from providers.dialects.shared.operations import ECHO_CELLS
from providers.dialects.shared.request_body import (
    FieldWriter,
    RequestBody,
    bounded,
    check_limited_window,
    constraint_writer,
    listed,
    unless_neutral,
    window_cells,
)
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile, Wire
from providers.request_fields import STOP_STRING, WINDOW
from providers.unified_request import MAX_STOPS, Operation

WRITTEN_ELSEWHERE = frozenset({"tools", "tool_choice", "parallel_tool_calls"})
"""Fields that have no writer here, because the code for tools writes them."""

_INFERENCE = "inferenceConfig"


# Numbers ------------------------------------------------------------------------------------------------------------


def _number(name: str, path: str, profile: Profile) -> FieldWriter:
    put = bounded(name, path, *profile.bounds.get(name, (None, None)))
    return unless_neutral(name, put) if profile.drops_neutral else put


def _temperature(put: FieldWriter) -> FieldWriter:
    def write(draft: RequestBody, value: object) -> None:
        beside = not draft.params.keys().isdisjoint({"top_p", "thinking"})
        if not (beside and "temperature" in draft.request.injected):
            # A default of the surface is left out, because some models refuse it together with `top_p` or `thinking`.
            put(draft, value)

    return write


_LIMIT = bounded("max_tokens", f"{_INFERENCE}.maxTokens", 1, None)


def _claude_limit(draft: RequestBody, value: object) -> None:
    """Write the limit, lowered to the model's maximum: the service refuses a higher limit."""
    most = max_output(draft)
    if most is not None and isinstance(value, int) and value > most:
        draft.emulated.append("max_tokens")
        value = most
    _LIMIT(draft, value)


# Stops --------------------------------------------------------------------------------------------------------------


def _stop(reports_stop: bool) -> FieldWriter:
    put = listed(f"{_INFERENCE}.stopSequences")

    def write_and_request(draft: RequestBody, value: object) -> None:
        put(draft, value)
        if value:
            # The service returns the matched stop string only if the request names its path. The second path is the
            # path in the model's own stream. A path that does not exist is not an error.
            draft.put("additionalModelResponseFieldPaths", ["/stop_sequence", "/delta/stop_sequence"])

    return write_and_request if reports_stop else put


# Constraints --------------------------------------------------------------------------------------------------------


def _text_format(schema: JsonObject) -> JsonObject:
    definition: JsonObject = {"schema": orjson.dumps(schema).decode(), "name": SCHEMA_NAME}
    return {"outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}}}


_SCHEMA_NAMES = "outputConfig.textFormat.structure.jsonSchema"
_write_constraint = constraint_writer(
    ConstraintStyle(
        Encoding(NATIVE, lambda guided: _text_format(guided.schema)),
        SCHEMA_ONLY,
        Encoding(BY_ENUM, lambda guided: _text_format(choice_schema(guided.choices)), unwrap=True),
        SCHEMA_ONLY,
        object_in_text=True,
        rules=BEDROCK,
    )
)


_describe_constraint = constraint_writer(PROMPT_ONLY_STYLE)


def _response_format(draft: RequestBody, value: object) -> None:
    """Write the format, with the client's name and description of its schema."""
    form = draft.params.get("response_format", {})
    named = form.get("json_schema")
    if isinstance(named, dict):
        # The description has a field of its own.
        value = {**form, "json_schema": {key: each for key, each in named.items() if key != "description"}}
    _write_constraint(draft, value)
    labels = named if isinstance(named, dict) and "outputConfig" in draft.body else {}
    for name in ("name", "description"):
        if (label := labels.get(name)) is not None:
            draft.put(f"{_SCHEMA_NAMES}.{name}", label)


# The call -----------------------------------------------------------------------------------------------------------

MAX_METADATA_PAIRS = 16
"""The maximum number of metadata pairs that the service accepts."""
_LOGGABLE = re.compile(r"[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}")
_EMAIL_OR_PHONE = re.compile(r"[^@\s]+@[^@\s]+|\+?[\d\s().-]{7,}")


def _is_loggable(text: JsonValue) -> bool:
    return isinstance(text, str) and _LOGGABLE.fullmatch(text) is not None


def _put_pairs(draft: RequestBody, name: str, pairs: Mapping[str, JsonValue]) -> None:
    """Add metadata that the service logs with the call. Raises Refusal for too many pairs."""
    present = draft.body.get("requestMetadata")
    all_pairs: JsonObject = {**(present if isinstance(present, dict) else {}), **pairs}
    if isinstance(present, dict) and not present.keys().isdisjoint(pairs):
        message = f"On {draft.target.name} 'user' is sent in the metadata, which may not have a key 'user' of its own."
        raise Refusal(name, message, "conflicting_parameters")
    if len(all_pairs) > MAX_METADATA_PAIRS:
        raise draft.invalid(name, f"may hold at most {MAX_METADATA_PAIRS} pairs, 'user' included,")
    draft.body["requestMetadata"] = all_pairs


def _metadata(draft: RequestBody, value: object) -> None:
    pairs = dict(value) if isinstance(value, dict) else {}
    if "" in pairs or not all(_is_loggable(text) for pair in pairs.items() for text in pair):
        raise draft.invalid("metadata", "may hold only letters, digits, blanks and : _ @ $ # = / + , . -")
    _put_pairs(draft, "metadata", pairs)


def _user(draft: RequestBody, value: object) -> None:
    """Write `user` into the logged metadata. The value is replaced by a digest if it is an e-mail address or a phone
    number, or does not match the service's pattern."""
    user = str(value)
    if _EMAIL_OR_PHONE.fullmatch(user.strip()) or not _is_loggable(user):
        user = hashlib.sha256(user.encode()).hexdigest()
    _put_pairs(draft, "user", {"user": user})


_TIERS = frozenset({"default", "priority", "flex", "reserved"})


def _service_tier(draft: RequestBody, value: object) -> None:
    if value in _TIERS:
        draft.put("serviceTier.type", value)
    elif value != "auto":
        raise draft.unsupported("service_tier", f"it has the tiers {', '.join(sorted(_TIERS))}")


def put_usual_output(draft: RequestBody, model: ConverseModel) -> None:
    """Write a token limit if the request has none and the model's own default would cut a response short."""
    if "max_tokens" not in draft.params and model.usual_output is not None:
        draft.put(f"{_INFERENCE}.maxTokens", draft.target.max_output_tokens or model.usual_output)


# The capabilities ---------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def writers(profile: Profile, model: ConverseModel) -> Mapping[str, FieldWriter]:
    """Return a writer for each field that a model accepts. The result is cached by profile and model; a profile lives
    as long as the process.

    The profile's `rename` holds the paths of a model's own settings.
    """
    wire = profile.wires[Operation.CHAT]
    all_writers: dict[str, FieldWriter] = {
        "max_tokens": _claude_limit if model.claude else _LIMIT,
        "temperature": _temperature(_number("temperature", f"{_INFERENCE}.temperature", profile)),
        "top_p": _number("top_p", f"{_INFERENCE}.topP", profile),
        "stop": _stop(STOP_STRING in wire.accepts),
        STOP_STRING: emulate_stop_string,
        "metadata": unless_neutral("metadata", _metadata),
        "user": _user,
        "service_tier": _service_tier,
        "images": unless_neutral("images", check_images),
        "guided": _write_constraint,
        "response_format": _response_format,
    }
    if not _enforces_schema(profile, model):
        all_writers.update(guided=_describe_constraint, response_format=_describe_constraint)
    for name, path in wire.rename.items():
        all_writers[name] = unless_neutral(name, _number(name, path, profile))
    accepted = set(wire.accepts)
    if model.claude or model.effort is not None:
        accepted.add("reasoning_effort")
        all_writers["reasoning_effort"] = claude_effort if model.effort is None else effort_writer(model.effort)
    if model.claude:
        all_writers["thinking"] = claude_thinking
    return {WINDOW: check_limited_window, **{name: put for name, put in all_writers.items() if name in accepted}}


def _enforces_schema(profile: Profile, model: ConverseModel) -> bool:
    """Return whether the service can enforce a schema on the model's output. For other models the schema is described
    in the prompt."""
    return profile.structured != "none" if model.structured is None else model.structured


_FIXED_CELLS: Mapping[str, Cell] = {
    **ONE_CHAT,
    "best_of": UNSCORED,
    "stop.blank": SCANNED,
    "response_format.json_object": BY_PROMPT,
    "response_format.grammar": SCHEMA_ONLY.cell,
    "guided_regex": SCHEMA_ONLY.cell,
    "guided_grammar": SCHEMA_ONLY.cell,
    "tool_choice.none": emulated("no tool is offered"),
}


@lru_cache(maxsize=1024)
def capabilities(profile: Profile, model: ConverseModel, operation: Operation, counted: bool) -> Capabilities:
    """Return the capabilities for a client's operation. `counted` is true if the context window is known."""
    wire = profile.wires[Operation.CHAT]
    cells = compiled(writers(profile, model).keys() | (WRITTEN_ELSEWHERE & wire.accepts), _FIXED_CELLS)
    cells.update(_model_cells(profile, model, wire))
    cells.update(window_cells(wire, counted))
    cells.update(ECHO_CELLS[operation])
    cells = with_forced_calls(cells)
    return Capabilities(
        cells,
        most_stops=profile.stop_most if "stop" in wire.accepts else 0,
        blank_stops=False,
        strict_tools="bedrock" if _enforces_schema(profile, model) else NO_PROMISE,
        counts=counted_first(cells),
        watched=frozenset({"n", "best_of", "echo", "stop", "parallel_tool_calls"}),
    )


def _model_cells(profile: Profile, model: ConverseModel, wire: Wire) -> Iterator[tuple[str, Cell]]:
    stops = "stop" in wire.accepts
    yield "images", IN_MESSAGE if "images" in wire.accepts else REFUSED
    yield "stop", NATIVE if stops else SCANNED
    yield "stop.many", NATIVE if stops and profile.stop_most >= MAX_STOPS else SCANNED
    yield STOP_STRING, APPENDED if STOP_STRING in wire.accepts else SCANNED
    enforced = _enforces_schema(profile, model)
    yield "guided_json", NATIVE if enforced else BY_PROMPT
    yield "response_format.json_schema", NATIVE if enforced else BY_PROMPT
    yield "guided_choice", BY_ENUM if enforced else BY_PROMPT
    if not model.reasons:
        yield "reasoning_effort", refused(NO_REASONING)
    if "parallel_tool_calls" not in wire.accepts and "tools" in wire.accepts:
        yield "parallel_tool_calls", ONE_CALL
    yield from _tool_choice_cells(profile.tool_choices) if "tools" in wire.accepts else _NO_TOOL_CELLS


_NO_TOOLS = refused("this model calls no tools")
_NO_TOOL_CELLS = [(name, _NO_TOOLS) for name, feature in FEATURES.items() if feature.field in WRITTEN_ELSEWHERE]


def _tool_choice_cells(supported: Collection[str]) -> Iterator[tuple[str, Cell]]:
    unsupported = refused(f"this model takes only {', '.join(sorted(supported))}")
    by_offer = emulated("no other tool is offered") if "required" in supported else unsupported
    yield "tool_choice.required", NATIVE if "required" in supported else unsupported
    yield "tool_choice.named", NATIVE if "named" in supported else by_offer
