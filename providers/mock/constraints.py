"""Texts that satisfy a request's constraint, and arguments of the function that must be called."""

from collections.abc import Callable, Mapping

import orjson

from providers.json_types import JsonObject, JsonValue
from providers.mock.errors import Unsupported, bad_request
from providers.mock.fields import Fields
from providers.mock.regex import sample
from providers.mock.schema import instance

_OPTIONAL_CHOICES = (None, "auto", "none")
"""The values of `tool_choice` that require no call."""

_ANY_OBJECT: JsonObject = {"properties": {"answer": {"type": "string"}}, "required": ["answer"]}


def options(fields: Fields) -> tuple[str, ...] | None:
    """Return texts that satisfy the constraint, or `None` without a constraint. Raises MockError."""
    present = [name for name in _MAKERS if fields.any(name) not in (None, {"type": "text"})]
    if not present:
        return None
    name = present[0]
    if len(present) > 1:
        raise bad_request(name, f"At most one constraint on the text is allowed, not {' and '.join(present)}.")
    try:
        return _MAKERS[name](fields)
    except Unsupported as error:
        raise bad_request(name, f"The mock cannot satisfy '{name}': {error}.") from None


def is_constrained(fields: Fields) -> bool:
    """Return whether the request constrains its text or forces a call. Such requests cost more time."""
    return any(fields.any(name) is not None for name in _MAKERS) or fields.any("tool_choice") not in _OPTIONAL_CHOICES


def _json(schema: JsonValue) -> str:
    return orjson.dumps(instance(schema)).decode()


def _guided_json(fields: Fields) -> tuple[str, ...]:
    """Return a text for the schema. As in vLLM, the schema is an object or a string of JSON."""
    schema = fields.any("guided_json")
    if isinstance(schema, str):
        try:
            schema = orjson.loads(schema)
        except orjson.JSONDecodeError:
            raise Unsupported("it is not JSON") from None
    return (_json(schema),)


def _guided_choice(fields: Fields) -> tuple[str, ...]:
    options = fields.strings("guided_choice")
    if not options:
        raise Unsupported("it lists nothing")
    return options


def _guided_regex(fields: Fields) -> tuple[str, ...]:
    return (sample(fields.text("guided_regex")),)


def _guided_grammar(fields: Fields) -> tuple[str, ...]:
    raise Unsupported("grammars are not supported")


def _response_format(fields: Fields) -> tuple[str, ...]:
    form = fields.object("response_format")
    if form.get("type") == "json_object":
        return (_json(form.get("schema") or _ANY_OBJECT),)
    named = form.get("json_schema")
    if form.get("type") != "json_schema" or not isinstance(named, dict) or named.get("schema") is None:
        raise Unsupported("it must be text, json_object, or json_schema with a schema")
    return (_json(named["schema"]),)


_MAKERS: Mapping[str, Callable[[Fields], tuple[str, ...]]] = {
    "guided_json": _guided_json,
    "guided_choice": _guided_choice,
    "guided_regex": _guided_regex,
    "guided_grammar": _guided_grammar,
    "response_format": _response_format,
}


def tool(fields: Fields) -> tuple[str | None, str]:
    """Return the function that must be called, and its arguments. The name is `None` if the model may choose."""
    tools, choice = fields.any("tools"), fields.any("tool_choice")
    if tools is None or tools == []:
        if choice not in _OPTIONAL_CHOICES:
            raise bad_request("tool_choice", "'tool_choice' is only allowed when 'tools' are specified.")
        return None, ""
    parameters = _functions(tools)
    if choice in _OPTIONAL_CHOICES:
        return None, ""
    name = next(iter(parameters))
    if isinstance(choice, dict):
        function = choice.get("function")
        name = str(function.get("name")) if isinstance(function, dict) else ""
    elif choice != "required":
        raise bad_request("tool_choice", "'tool_choice' must be none, auto, required or a function.")
    if name not in parameters:
        raise bad_request("tool_choice", "'tool_choice' names a function that is not among 'tools'.")
    try:
        return name, _json(parameters[name])
    except Unsupported as error:
        raise bad_request("tools", f"The mock cannot call '{name}': {error}.") from None


def function_names(fields: Fields) -> tuple[str, ...]:
    """Return the names of the functions that may be called."""
    tools = fields.any("tools")
    return tuple(_functions(tools)) if tools else ()


def _functions(tools: JsonValue) -> dict[str, JsonValue]:
    """Return the parameter schemas by function name."""
    parameters: dict[str, JsonValue] = {}
    for tool in tools if isinstance(tools, list) else [None]:
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise bad_request("tools", "'tools' must be a list of functions with names.")
        parameters[str(function["name"])] = function.get("parameters") or {"type": "object"}
    return parameters
