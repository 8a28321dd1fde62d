"""Decides which parts of a response are checked. If the vendor has no field for a constraint, describes the constraint
in the prompt.

The prompt requests only the JSON, so that `markdown_fence` rarely has a fence to remove.
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
_MOST_REFERENCES: Final = 8


@dataclass(frozen=True, slots=True)
class PlannedChecks:
    """The checks of a response. `text` is the check of its texts, and `calls` are the checks of the arguments of calls,
    by function name. `request` is the request that is sent to the vendor. `emulated` are the fields that the gateway
    emulates."""

    request: UnifiedRequest
    text: AnswerCheck | None = None
    calls: Mapping[str, AnswerCheck] = field(default_factory=dict)
    emulated: tuple[str, ...] = ()


def constraint_field(params: Params) -> str:
    """Return the field that constrains the text: `response_format` if the request has no constraint."""
    return field_of(params["guided"]) if "guided" in params else "response_format"


def named_by_client(names: Iterable[str], params: Params, stands_for: str | None) -> tuple[str, ...]:
    """Return the names of emulated fields as the client knows them. A `response_format` that the gateway added is
    reported as the field `stands_for`; it is left out if it is only a JSON mode and the prompt describes the
    constraint."""
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
    """Return the checks of the response to a request. Raises Unenforceable if a required check is impossible, and
    Refusal for strict tools that are too large.

    `unenforced` and `in_prompt` are the fields of the encoded UpstreamRequest with these names. A response format that
    replaces another field, `stands_for`, is checked even if the vendor enforces the format.
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
        request = describe_in_prompt(request, json_mode=table["response_format.json_object"].native)
        # Models often put JSON into a Markdown fence.
        text = replace(text, fenced=text.kind is not CheckKind.CHOICE)
    return PlannedChecks(request, text, tools.checks, tuple(emulated))


def describe_in_prompt(request: UnifiedRequest, *, json_mode: bool = False) -> UnifiedRequest:
    """Return the request with its constraint described in the prompt and the constraint's field removed. With
    `json_mode`, the request also has a JSON mode if the schema allows only objects. Raises Unenforceable for a prompt
    that is not text."""
    schema = _schema_of(request.params)
    words = _description_of(request.params, schema)
    if request.params.get("tools") and request.params.get("tool_choice") != "none":
        words = f"{BESIDE_TOOLS}{words}"
    prompt = with_instructions(request.prompt, words)
    params = {name: value for name, value in request.params.items() if name not in ("guided", "response_format")}
    if json_mode and schema is not None and _allows_only_objects(schema):
        params["response_format"] = {"type": "json_object"}
    return replace(request, prompt=prompt, params=cast(Params, params))


def _allows_only_objects(schema: JsonObject) -> bool:
    """Return whether every value that satisfies a schema is an object. Only the root of the schema, the target of a
    reference at the root, and the alternatives at the root are read."""
    root: JsonValue = schema
    for _ in range(_MOST_REFERENCES):
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


def _description_of(params: Params, schema: JsonObject | None) -> str:
    guided = params.get("guided")
    if guided is not None and guided.kind == "choice":
        return CHOICE + orjson.dumps(guided.choices).decode()
    return OBJECT if schema is None else SCHEMA + orjson.dumps(schema).decode()
