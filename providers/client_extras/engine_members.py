"""Checks which fields outside the unified fields are sent to a self-hosted engine."""

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from providers.client_extras.hosts_paths_and_code import Place, Search
from providers.client_extras.proxy_instructions import is_left_out
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from providers.unified_request import ChatPrompt, UnifiedRequest

_EXTRA: Final = "inference_extra_params"
_MESSAGE: Final = frozenset(
    {"role", "content", "name", "refusal", "reasoning_content", "reasoning", "tool_calls", "tool_call_id"}
    | {"function_call", "audio", "annotations", "cache_control", "extra_content", "prefix", "thinking_blocks"}
    | {"reasoning_details", "reasoning_signature", "provider_specific_fields"}
)
"""Fields of a message that hold texts or belong to the model's own turns. These fields are not checked."""


def check_members(request: UnifiedRequest, target: Target) -> None:
    """Raise Refusal for the first field that names a host, a path, a template or code and that the configuration does
    not allow. Fields of the body, of `inference_extra_params`, of messages, and of tools that are not functions are
    checked."""
    prompt = request.prompt
    usual = not isinstance(prompt, ChatPrompt) or prompt.plain or not _has_more(prompt)
    if usual and not (request.unknown or request.extra_params or "tools" in request.params):
        return  # most requests have no such fields
    search = Search(target.permits.fields)
    for param, where, name, value in _members(request, target.profile.forwards_unknown, target.permits.fields):
        found = search.find(name, value)
        if found is not None:
            field = f"{where}{name}{path_text(found.place)}"
            inner = next((step for step in reversed(found.place) if isinstance(step, str)), name)
            how = f"`allow_fields: [{inner}]` in the configuration would allow it"
            raise Refusal(param, f"'{field}' is not sent to {target.name}: {found.why}; {how}.")


def _has_more(prompt: ChatPrompt) -> bool:
    """Return whether a message has fields other than the role and the content."""
    return any([len(message) > 2 for message in prompt.messages])


def _members(
    request: UnifiedRequest, forwards_unknown: bool, allowed: Collection[str]
) -> Iterator[tuple[str, str, str, JsonValue]]:
    """Yield each field as its name in error messages, the path to it, its own name and its value."""
    if request.unknown and forwards_unknown:
        for name, value in request.unknown.items():
            if not is_left_out(name, allowed):
                yield name, "", name, value
    if request.extra_params:
        for name, value in request.extra_params.items():
            yield f"{_EXTRA}.{name}", f"{_EXTRA}.", name, value
    if isinstance(request.prompt, ChatPrompt):
        yield from _of_messages(request.prompt.messages)
    if "tools" in request.params:
        yield from _of_tools(request.params["tools"])


def _of_messages(messages: Iterable[JsonObject]) -> Iterator[tuple[str, str, str, JsonValue]]:
    for index, message in enumerate(messages):
        # No dialect sends the unknown fields of a turn of the model.
        if len(message) > 2 and message.get("role") != "assistant" and not message.keys() <= _MESSAGE:
            for name, value in message.items():
                if name not in _MESSAGE:
                    yield "messages", f"messages[{index}].", name, value


def _of_tools(tools: Iterable[JsonObject]) -> Iterator[tuple[str, str, str, JsonValue]]:
    """Yield the fields of tools that are not functions. They are checked because the engine itself acts on such
    tools."""
    for index, tool in enumerate(tools):
        if tool.get("type") != "function":
            for name, value in tool.items():
                yield "tools", f"tools[{index}].", name, value


def path_text(place: Place) -> str:
    """Return a path below a field in the form that error messages use: `.a[0].b`."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
