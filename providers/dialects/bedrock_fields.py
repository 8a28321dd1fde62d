"""The unified fields on Bedrock's Converse: how each one is written, or why it cannot be, as a model's row has it.

Never messages or tools, and never a model's name: what differs between models is in the rows of `profiles.yaml`.

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
    ONE_CHAT,
    PREFIXED,
    REFUSED,
    SCANNED,
    Capabilities,
    Cell,
    compiled,
    counted_first,
    emulated,
    refused,
)
from providers.dialects.anthropic_answer import STOP_STRING
from providers.dialects.anthropic_schema import schema_problem
from providers.dialects.native_fields import (
    WINDOW,
    Draft,
    Put,
    at_window,
    bounded,
    choices_of,
    constrained,
    listed,
    schema_of,
    unless_neutral,
)
from providers.dialects.openai_cells import window_cells
from providers.failure import Refusal
from providers.guided import SCHEMA_NAME, Unenforceable, choice_schema
from providers.profiles import Profile, Wire
from providers.unified import MAX_STOPS, ChatPrompt, Guided, JsonObject, JsonValue, Operation

ELSEWHERE = frozenset({"tools", "tool_choice", "parallel_tool_calls"})

_INFERENCE = "inferenceConfig"
_OWN = "additionalModelRequestFields"
_CLAUDES_EFFORT = "outputConfig.effort"


# Numbers ------------------------------------------------------------------------------------------------------------


def _number(name: str, path: str, profile: Profile) -> Put:
    put = bounded(name, path, *profile.bounds.get(name, (None, None)))
    return unless_neutral(name, put) if profile.drops_neutral else put


def _temperature(put: Put) -> Put:
    def write(draft: Draft, value: object) -> None:
        beside = "top_p" in draft.params or "thinking" in draft.params
        if not (beside and "temperature" in draft.request.injected):
            # Some models refuse it beside these, which the client did ask for.
            put(draft, value)

    return write


# Stops --------------------------------------------------------------------------------------------------------------


def _stop(tells: bool) -> Put:
    put = listed(f"{_INFERENCE}.stopSequences")

    def write_and_ask(draft: Draft, value: object) -> None:
        put(draft, value)
        if value:
            # Which of them has ended the text is said by the model and passed on only when asked for.
            draft.put("additionalModelResponseFieldPaths", ["/stop_sequence"])

    return write_and_ask if tells else put


def _keep_stop(draft: Draft, value: object) -> None:
    if value and draft.params.get("stop"):
        draft.emulated.append(STOP_STRING)


# Constraints --------------------------------------------------------------------------------------------------------


def _put_schema(draft: Draft, schema: JsonObject) -> None:
    definition: JsonObject = {"schema": orjson.dumps(schema).decode(), "name": SCHEMA_NAME, **_labels(draft)}
    draft.put("outputConfig.textFormat", {"type": "json_schema", "structure": {"jsonSchema": definition}})


def _labels(draft: Draft) -> JsonObject:
    """What the client calls its schema and says of it."""
    named = draft.params.get("response_format", {}).get("json_schema")
    labels = named if isinstance(named, dict) else {}
    return {name: label for name in ("name", "description") if (label := labels.get(name)) is not None}


def _schema(draft: Draft, wanted: Guided) -> None:
    schema = schema_of(wanted)
    if problem := schema_problem(schema):
        raise Unenforceable(f"it cannot enforce this schema: {problem}")
    _put_schema(draft, schema)


def _choice(draft: Draft, wanted: Guided) -> None:
    _put_schema(draft, choice_schema(choices_of(wanted)))
    draft.unwrap = True


# What is about the call and not about the text ----------------------------------------------------------------------

MOST_PAIRS = 16
_WORD = re.compile(r"[a-zA-Z0-9\s:_@$#=/+,.-]{0,256}")
_PERSONAL = re.compile(r"[^@\s]+@[^@\s]+|\+?[\d\s().-]{7,}")


def _is_word(text: JsonValue) -> bool:
    return isinstance(text, str) and _WORD.fullmatch(text) is not None


def _put_pairs(draft: Draft, name: str, pairs: Mapping[str, JsonValue]) -> None:
    """What the service writes into the log of its calls."""
    held = draft.body.get("requestMetadata")
    whole: JsonObject = {**(held if isinstance(held, dict) else {}), **pairs}
    if isinstance(held, dict) and not held.keys().isdisjoint(pairs):
        message = f"On {draft.target.name} 'user' goes into the metadata, which may not have a member 'user' besides."
        raise Refusal(name, message, "conflicting_parameters")
    if len(whole) > MOST_PAIRS:
        raise draft.invalid(name, f"may hold at most {MOST_PAIRS} pairs, 'user' included,")
    draft.body["requestMetadata"] = whole


def _metadata(draft: Draft, value: object) -> None:
    pairs = dict(value) if isinstance(value, dict) else {}
    if "" in pairs or not all(_is_word(text) for pair in pairs.items() for text in pair):
        raise draft.invalid("metadata", "may hold only letters, digits, blanks and : _ @ $ # = / + , . -")
    _put_pairs(draft, "metadata", pairs)


def _user(draft: Draft, value: object) -> None:
    """Logs are not the place for addresses and numbers of people; a digest identifies as well."""
    user = str(value)
    if _PERSONAL.fullmatch(user.strip()) or not _is_word(user):
        user = hashlib.sha256(user.encode()).hexdigest()
    _put_pairs(draft, "user", {"user": user})


_TIERS = frozenset({"default", "priority", "flex", "reserved"})


def _service_tier(draft: Draft, value: object) -> None:
    if value in _TIERS:
        draft.put("serviceTier.type", value)
    elif value != "auto":
        raise draft.unsupported("service_tier", f"it has the tiers {', '.join(sorted(_TIERS))}")


_EFFORTS = ("low", "medium", "high", "xhigh", "max")


def _effort(path: str) -> Put:
    def write(draft: Draft, value: object) -> None:
        if value is False or value == "none":
            if "thinking" not in draft.params:
                draft.put(f"{_OWN}.thinking", {"type": "disabled"})
        elif value in _EFFORTS:
            draft.put(path, value)
        else:
            raise draft.invalid("reasoning_effort", f"must be 'none' or one of {', '.join(_EFFORTS)}")

    return write


def _images(draft: Draft, value: object) -> None:
    # In a prompt they have become parts of its message.
    if isinstance(draft.request.prompt, ChatPrompt):
        raise draft.unsupported("images", "in a chat put images into the messages")


# The table ----------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=1024)
def writers(profile: Profile) -> Mapping[str, Put]:
    """A writer for each field that a model knows. Cached by the row, which lives as long as the process.

    Settings of a model's own are in the row's `rename`, as paths within the body.
    """
    wire = profile.wires[Operation.CHAT]
    known: dict[str, Put] = {
        "max_tokens": bounded("max_tokens", f"{_INFERENCE}.maxTokens", 1, None),
        "temperature": _temperature(_number("temperature", f"{_INFERENCE}.temperature", profile)),
        "top_p": _number("top_p", f"{_INFERENCE}.topP", profile),
        "stop": _stop(STOP_STRING in wire.accepts),
        STOP_STRING: _keep_stop,
        "metadata": unless_neutral("metadata", _metadata),
        "user": _user,
        "service_tier": _service_tier,
        "images": unless_neutral("images", _images),
        "guided": constrained({"json": _schema, "choice": _choice}),
        "response_format": constrained({"json": _schema, "choice": _choice}),
    }
    for name, path in wire.rename.items():
        own = _effort(path) if path == _CLAUDES_EFFORT else _number(name, path, profile)
        known[name] = unless_neutral(name, own)
    return {WINDOW: at_window, **{name: put for name, put in known.items() if name in wire.accepts}}


_SCHEMA_ONLY = refused("it can only be held to a JSON Schema")
_UNHELD = refused("this model cannot be held to a constraint")
_ONE_VALUE: Mapping[str, Cell] = {
    **ONE_CHAT,
    "echo": PREFIXED,
    "best_of": refused("it has no log probabilities to choose by"),
    "stop.blank": SCANNED,
    "response_format.json_object": refused("it has no JSON mode without a schema"),
    "response_format.grammar": _SCHEMA_ONLY,
    "guided_regex": _SCHEMA_ONLY,
    "guided_grammar": _SCHEMA_ONLY,
    "tool_choice.none": emulated("no tool is offered"),
}


@lru_cache(maxsize=1024)
def capabilities(profile: Profile, asked: Operation, counted: bool) -> Capabilities:
    """The table for clients of an endpoint; `counted` says that the window is known, so that the prompt can be held
    against it."""
    wire = profile.wires[Operation.CHAT]
    cells = compiled(writers(profile).keys() | (ELSEWHERE & wire.accepts), _ONE_VALUE)
    cells.update(_of_model(profile, wire))
    cells.update(window_cells(wire, counted))
    if asked is Operation.CHAT:
        cells.update({"echo": REFUSED, "echo.logprobs": REFUSED})
    return Capabilities(
        cells,
        most_stops=profile.stop_most if "stop" in wire.accepts else 0,
        blank_stops=False,
        counts=counted_first(cells),
        watched=frozenset({"n", "best_of", "echo", "stop"}),
    )


def _of_model(profile: Profile, wire: Wire) -> Iterator[tuple[str, Cell]]:
    stops = "stop" in wire.accepts
    yield "images", IN_MESSAGE if "images" in wire.accepts else REFUSED
    yield "stop", NATIVE if stops else SCANNED
    yield "stop.many", NATIVE if stops and profile.stop_most >= MAX_STOPS else SCANNED
    yield STOP_STRING, APPENDED if STOP_STRING in wire.accepts else SCANNED
    held = profile.structured != "none"
    yield "guided_json", NATIVE if held else _UNHELD
    yield "response_format.json_schema", NATIVE if held else _UNHELD
    yield "guided_choice", emulated("a JSON object with one enum member") if held else _UNHELD
    if "parallel_tool_calls" not in wire.accepts and "tools" in wire.accepts:
        yield "parallel_tool_calls", refused("this model cannot be kept to one call")
    yield from _choices(profile.tool_choices) if "tools" in wire.accepts else _NO_CHOICES


_NO_TOOLS = refused("this model calls no tools")
_NO_CHOICES = [(name, _NO_TOOLS) for name, feature in FEATURES.items() if feature.field in ELSEWHERE]


def _choices(known: Collection[str]) -> Iterator[tuple[str, Cell]]:
    only = refused(f"this model takes only {', '.join(sorted(known))}")
    by_offer = emulated("no other tool is offered") if "required" in known else only
    yield "tool_choice.required", NATIVE if "required" in known else only
    yield "tool_choice.named", NATIVE if "named" in known else by_offer
