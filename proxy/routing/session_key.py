"""The conversation of a request as a number of 64 bits: from a header, from a field, or from a digest of its beginning.

Sources of the headers: captures of Claude Code, Codex (`session-id` since 0.149, before that `session_id`), OpenCode
and pi of August and September 2026; xAI's guide to prompt caching. `x-client-request-id` names a request, not a
conversation.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Final

from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import INSTRUCTION_ROLES, ChatPrompt, NativeApi, NativeRequest, UnifiedRequest

PROMPT: Final = "prompt"
"""The name for a digest of the conversation's beginning."""

CONTINUED: Final = "previous_response_id"
"""The source of the conversation of a request that continues a stored response: that response."""

LONGEST_ID: Final = 1024
"""The most characters of an id that are hashed, taken from its two ends. Otherwise an id could be as long as the head
of a request."""

SAMPLE_LENGTH: Final = 1024
"""The most characters of a text that are hashed, taken from its two ends."""

_NAMED_TOOLS: Final = 4
_FIRST_MESSAGES: Final = 8
_INSTRUCTIONS: Final = 2
"""Limits of a digest: the most tools whose names are hashed, the most messages among which the first user message is
searched, and the most messages before it that are hashed. Together with SAMPLE_LENGTH they bound a digest to 4 KB of
text."""

_SESSION: Final = re.compile(r"""_session_([0-9A-Za-z-]{8,64})$|"session_id"\s?:\s?"([^"\\]{1,128})\"""")
"""The session in the `user_id` of Claude Code: `user_HASH_account_UUID_session_UUID`, and since 2.1 a JSON object."""

_OWN_FIELDS: Final = {NativeApi.MESSAGES: ("system", "messages"), NativeApi.RESPONSES: ("instructions", "input")}
"""The fields of a client's own body that contain its instructions and its messages."""

Reader = Callable[[UnifiedRequest], str | None]


@frozen
class SessionKey:
    """The conversation of a request: its number, and the header or field from which the number is derived."""

    source: str
    number: int


@dataclass(frozen=True, slots=True)
class KeyNames:
    """The headers and fields that may name a conversation, in their order. `names` are the operator's names. Each entry
    of `readers` is the name of a header and `None`, or the name of a field and its reader."""

    names: tuple[str, ...]
    readers: tuple[tuple[str, Reader | None], ...]


def session_key(tenant: str, key: KeyNames, headers: Mapping[str, str], request: UnifiedRequest) -> SessionKey | None:
    """Return the conversation of a request; `None` if neither a header nor a field names one. `tenant` is the team's
    name, empty without teams. `headers` has case-insensitive names."""
    for name, read in key.readers:
        value = headers.get(name) if read is None else read(request)
        if value:
            return SessionKey(name, session_number(tenant, value))
    return None


def session_number(tenant: str, value: str) -> int:
    """Return the number of a conversation, which is the same in every process. The tenant is hashed too, so two teams
    never share a conversation."""
    if len(value) > LONGEST_ID:
        value = value[: LONGEST_ID // 2] + value[-LONGEST_ID // 2 :]
    data = f"{tenant}\0{value}".encode("utf-8", "surrogatepass")
    return int.from_bytes(sha256(data).digest()[:8], "big")


def key_names(names: Sequence[str]) -> KeyNames:
    """Return the key that an operator set. Each name is a header, or otherwise a field of the body."""
    return KeyNames(tuple(names), tuple(each for name in names for each in _readers(name)))


def _readers(name: str) -> Iterator[tuple[str, Reader | None]]:
    if name == PROMPT:
        yield PROMPT, _first_turn_text
        return
    yield name, None
    path = name.split(".")
    yield name, lambda request: _field(request, path)


def _field(request: UnifiedRequest, path: Sequence[str]) -> str | None:
    """Return a text or number of the client's body, below a field if the path has several names."""
    value = _top_field(request, path[0])
    for name in path[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63 else None


def _top_field(request: UnifiedRequest, name: str) -> object:
    if request.native is not None and name in request.native.body:
        return request.native.body[name]
    if name in request.params:
        return request.params.get(name)
    return None if request.unknown is None else request.unknown.get(name)


def _session_of_user(request: UnifiedRequest) -> str | None:
    """Return the session in Anthropic's `metadata.user_id`, `None` if the user id has no session."""
    native = request.native
    metadata = None if native is None else native.body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, dict) else None
    found = _SESSION.search(user[-LONGEST_ID:]) if isinstance(user, str) else None
    return None if found is None else found[1] or found[2]


def _cache_key(request: UnifiedRequest) -> str | None:
    return request.params.get("prompt_cache_key")


def _conversation(request: UnifiedRequest) -> str | None:
    """Return OpenAI's `conversation`, which is an id or an object with an id."""
    value = _top_field(request, "conversation") if request.unknown or request.native else None
    if isinstance(value, dict):
        value = value.get("id")
    return value if isinstance(value, str) else None


def _first_turn_text(request: UnifiedRequest) -> str | None:
    """Return a text of at most 4 KB from the tools, the instructions and the first user message, which distinguishes
    conversations. Return `None` for a prompt without messages."""
    prompt = request.prompt
    if not isinstance(prompt, ChatPrompt):
        return None
    parts: list[str] = []
    first = prompt.messages if request.native is None else _own_messages(request.native)
    for message in islice(first, _FIRST_MESSAGES):
        role = message.get("role")
        if role == "user":
            parts.append(_sample(message.get("content")))
            break
        if role in INSTRUCTION_ROLES and len(parts) < _INSTRUCTIONS:
            parts.append(_sample(message.get("content")))
    tools = request.params.get("tools")
    if tools:
        parts.append(str(len(tools)))
        parts += [_tool_name(tool) for tool in tools[:_NAMED_TOOLS]]
    return "\0".join(parts) or None


def _own_messages(native: NativeRequest) -> Iterator[JsonObject]:
    """Yield the instructions and the messages of a client's own body. They are read directly, because converting all
    messages to a chat takes far longer."""
    name, others = _OWN_FIELDS[native.api]
    if (instructions := native.body.get(name)) is not None:
        yield {"role": "system", "content": instructions}
    held = native.body.get(others)
    if isinstance(held, str):
        yield {"role": "user", "content": held}
    for each in held if isinstance(held, list) else ():
        if isinstance(each, dict) and "role" in each:
            yield each


def _sample(content: JsonValue) -> str:
    """Return the beginning and the end of a text, or of the texts of a content's parts."""
    if isinstance(content, list):
        first, last = (_text_of(content[0]), _text_of(content[-1])) if content else ("", "")
        return f"{len(content)} {len(first)} {len(last)}\0{first[: SAMPLE_LENGTH // 2]}\0{last[-SAMPLE_LENGTH // 2 :]}"
    if not isinstance(content, str):
        return ""
    if len(content) <= SAMPLE_LENGTH:
        return content
    return f"{len(content)}\0{content[: SAMPLE_LENGTH // 2]}{content[-SAMPLE_LENGTH // 2 :]}"


def _text_of(part: JsonValue) -> str:
    if not isinstance(part, dict):
        return ""
    text = part.get("text")
    if isinstance(text, str):
        return text
    image = part.get("image_url")
    url = image.get("url") if isinstance(image, dict) else None
    return url if isinstance(url, str) else ""


def _tool_name(tool: JsonObject) -> str:
    function = tool.get("function")
    name = function.get("name") if isinstance(function, dict) else tool.get("type")
    return name[:64] if isinstance(name, str) else ""


_HEADERS: Final = (
    *("x-dragoman-session", "x-claude-code-session-id", "session-id", "session_id", "x-session-affinity"),
    *("x-opencode-session", "x-session-id", "x-grok-conv-id"),
)

BUILT_IN_KEY: Final = KeyNames(
    (*_HEADERS, "metadata.user_id", "prompt_cache_key", "conversation", PROMPT),
    (
        *((name, None) for name in _HEADERS),
        ("metadata.user_id", _session_of_user),
        ("prompt_cache_key", _cache_key),
        ("conversation", _conversation),
        (PROMPT, _first_turn_text),
    ),
)
"""The key that applies unless the operator sets one."""
