"""Checks the fields of bodies in the client's own API, most of which the gateway does not know.

The lists below name the fields of the vendors' APIs that hold texts, settings and the model's own turns, which an
engine only reads. Sources: `anthropic` 2.12.0 type `MessageCreateParams`, `openai` 3.54.0 type `ResponseCreateParams`,
November 2026.
"""

from collections.abc import Iterator
from itertools import filterfalse
from typing import Final

from providers.client_extras.engine_members import path_text
from providers.client_extras.hosts_paths_and_code import Search, is_reserved
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.request_fields import PROTECTED_PARAMS, WINDOW
from providers.target import Target
from providers.unified_request import NativeRequest, UnifiedRequest

_READ: Final = frozenset(
    {"system", "instructions", "metadata", "stop_sequences", "thinking", "output_config", "output_format", "text"}
    | {"reasoning", "user", "safety_identifier", "prompt_cache_key", "tool_choice", "cache_control", "include"}
    | {"context_management", "client_metadata", "input", "tools"}
)
_TURNS: Final = ("messages", "input")
_OF_TURN: Final = frozenset({"type", "role", "content", "id", "status", "call_id", "name", "arguments", "output"})
_TEXTS: Final = frozenset({"encrypted_content", "summary", "phase", "namespace"})
_IN_TURNS: Final = _OF_TURN | _TEXTS
_FUNCTIONS: Final = frozenset({None, "function", "custom"})


def admit_native(request: UnifiedRequest, target: Target) -> bool:
    """Return whether the prompt of a call in the client's own API must be counted and compared with the context window
    before it is sent. Raises Refusal for a field that the target may not receive.

    The vendor decides about prompts that exceed the window, unless the client sets the behaviour.
    """
    if request.native is not None:
        check_native(request.native, target)
    if WINDOW in request.injected:
        return False
    counts = target.dialect.capabilities(request, target).counts
    return bool(counts) and request.params.get(WINDOW) in counts


def check_native(native: NativeRequest, target: Target) -> None:
    """Raise Refusal for a field that would override a decision of the gateway. For an engine, also raise Refusal for a
    field that names a host, a path, a template or code, unless the configuration allows it."""
    for name, value in native.body.items():
        if name not in PROTECTED_PARAMS and is_reserved(name) and not _names_nothing(name, value):
            raise Refusal(name, f"'{name}' is not sent to {target.name}: it is the gateway's to decide.")
    if not target.is_engine:
        return
    search = Search(target.permits.fields)
    for param, where, name, value in _members(native.body):
        found = search.find(name, value)
        if found is not None:
            field = f"{where}{name}{path_text(found.place)}"
            inner = next((step for step in reversed(found.place) if isinstance(step, str)), name)
            how = f"`allow_fields: [{inner}]` in the configuration would allow it"
            raise Refusal(param, f"'{field}' is not sent to {target.name}: {found.why}; {how}.")


def _names_nothing(name: str, value: JsonValue) -> bool:
    """Return whether a field is an empty list or object that does not replace a field of the gateway."""
    return isinstance(value, list | dict) and not value and name.casefold() not in PROTECTED_PARAMS


def _members(body: JsonObject) -> Iterator[tuple[str, str, str, JsonValue]]:
    """Yield each field as its name in error messages, the path to it, its own name and its value."""
    for name, value in body.items():
        if name not in _READ and name not in PROTECTED_PARAMS and not _names_nothing(name, value):
            yield name, "", name, value
    for param in _TURNS:
        for index, turn in _objects(body.get(param)):
            if not turn.keys() <= _IN_TURNS:
                for name in filterfalse(_IN_TURNS.__contains__, turn):
                    yield param, f"{param}[{index}].", name, turn[name]
    for where, tool in _tools(body):
        if tool.get("type") not in _FUNCTIONS:
            for name, value in tool.items():
                yield "tools", f"{where}.", name, value


def _tools(body: JsonObject) -> Iterator[tuple[str, JsonObject]]:
    """Yield all tools with their paths, including the tools in namespaces."""
    for index, tool in _objects(body.get("tools")):
        if tool.get("type") == "namespace":
            for number, inner in _objects(tool.get("tools")):
                yield f"tools[{index}].tools[{number}]", inner
        else:
            yield f"tools[{index}]", tool


def _objects(held: JsonValue) -> Iterator[tuple[int, JsonObject]]:
    for index, each in enumerate(held if isinstance(held, list) else ()):
        if isinstance(each, dict):
            yield index, each
