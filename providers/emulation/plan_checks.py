"""Decides what of an answer is checked, and tells in the prompt a constraint that the vendor has no form for.

The prompt asks for what `markdown_fence` does not have to mend: the JSON alone.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

import orjson

from providers.adaptation.instructions import with_instructions
from providers.capabilities import Capabilities
from providers.constraints.constraint_styles import described_schema, field_of
from providers.constraints.json_schema import resolve_pointer
from providers.emulation.check_answer import AnswerCheck, CheckKind, required_check
from providers.emulation.check_tool_calls import FIELD, StrictTools, has_strict_tools
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Params, UnifiedRequest

FORMAT: Final = "response_format"
OBJECT: Final = (
    "Answer with one JSON object and nothing else: no explanation, and no Markdown. "
    "The first character of the answer is { and the last one is }."
)
SCHEMA: Final = (
    "Answer with one JSON value and nothing else: no explanation, and no Markdown. "
    "The value must be valid against this JSON Schema:\n"
)
CHOICE: Final = (
    "Answer with exactly one of the texts in this JSON array, unchanged and without the quotes, and nothing else:\n"
)
BESIDE_TOOLS: Final = "Call tools as you need them. For the answer that follows, this holds: "
_MOST_STEPS: Final = 8


@dataclass(frozen=True, slots=True)
class PlannedChecks:
    """The checks of an answer: of the texts, and of the calls' arguments by function. `request` is what is left for the
    vendor, `emulated` the fields that the gateway took over."""

    request: UnifiedRequest
    text: AnswerCheck | None = None
    calls: Mapping[str, AnswerCheck] = field(default_factory=dict)
    emulated: tuple[str, ...] = ()


def constraint_field(params: Params) -> str:
    """Return the field that constrains the text, or would."""
    return field_of(params["guided"]) if "guided" in params else "response_format"


def named_by_client(names: Iterable[str], params: Params, stands_for: str | None) -> tuple[str, ...]:
    """Return the names of emulated fields as the client has them: a format of the gateway's own stands for another
    field, or is a JSON mode beside a prompt that states the constraint."""
    own = FORMAT in params and stands_for is None
    named = [name if own or name != FORMAT else stands_for for name in names]
    return tuple([name for name in dict.fromkeys(named) if name is not None])


def plan_checks(
    request: UnifiedRequest,
    table: Capabilities,
    unenforced: Collection[str] = (),
    *,
    in_prompt: bool = False,
    stands_for: str | None = None,
) -> PlannedChecks:
    """Return the checks of a request's answer. Raises Unenforceable where one is required and cannot be made, and
    Refusal for strict tools that are too large.

    `unenforced` and `in_prompt` are those of the encoded UpstreamRequest. A format that `stands_for` another field
    is checked whatever the vendor promises.
    """
    name = constraint_field(request.params)
    ours = name in unenforced or stands_for is not None
    text = required_check(request.params) if ours or table.verifies else None
    emulated = [name] if text is not None and ours else []
    if text is not None and stands_for is not None:
        text = replace(text, field=stands_for)
    tools = StrictTools(table)
    if has_strict_tools(request.params):
        fitted = [tools.fitted(tool) for tool in request.params["tools"]]
        request = replace(request, params={**request.params, "tools": fitted})
    if tools.checks:
        emulated.append(FIELD)
    if text is not None and in_prompt:
        request = tell_in_prompt(request, json_mode=table["response_format.json_object"].native)
        # Models put JSON into a fence.
        text = replace(text, fenced=text.kind is not CheckKind.CHOICE)
    return PlannedChecks(request, text, tools.checks, tuple(emulated))


def tell_in_prompt(request: UnifiedRequest, *, json_mode: bool = False) -> UnifiedRequest:
    """Return the request without its constraint, which its prompt tells instead; with `json_mode` any object is asked
    for beside. Raises Unenforceable for a prompt that is not text."""
    schema = _schema_of(request.params)
    words = _words_for(request.params, schema)
    if request.params.get("tools") and request.params.get("tool_choice") != "none":
        words = f"{BESIDE_TOOLS}{words}"
    prompt = with_instructions(request.prompt, words)
    params = {name: value for name, value in request.params.items() if name not in ("guided", "response_format")}
    if json_mode and schema is not None and _asks_object(schema):
        params["response_format"] = {"type": "json_object"}
    return replace(request, prompt=prompt, params=cast(Params, params))


def _asks_object(schema: JsonObject) -> bool:
    """Return whether each value that satisfies a schema is an object, as far as its root, the target of a reference
    there, or its alternatives show."""
    root: JsonValue = schema
    for _ in range(_MOST_STEPS):
        if not isinstance(root, dict) or "$ref" not in root:
            break
        root = resolve_pointer(schema, root["$ref"])
    if not isinstance(root, dict):
        return False
    parts = root.get("anyOf")
    alternatives = bool(parts) and isinstance(parts, list) and all(map(_is_of_objects, parts))
    return alternatives or _is_of_objects(root)


def _is_of_objects(schema: JsonValue) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "object"


def _schema_of(params: Params) -> JsonObject | None:
    guided = params.get("guided")
    if guided is None:
        return described_schema(params["response_format"])
    return None if guided.kind == "choice" else guided.schema


def _words_for(params: Params, schema: JsonObject | None) -> str:
    guided = params.get("guided")
    if guided is not None and guided.kind == "choice":
        return CHOICE + orjson.dumps(guided.choices).decode()
    return OBJECT if schema is None else SCHEMA + orjson.dumps(schema).decode()
