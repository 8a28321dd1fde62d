"""Finds fields outside the unified fields that name a host, an address, a path, a template or code.

There are two lists of names. Fields of the first list are sent to no vendor. Fields of the second list are sent to a
self-hosted engine only if the configuration allows it, because an engine acts on such fields inside the operator's
network. Hosted vendors are responsible for such fields themselves.

Sources, read in November 2026: vLLM `chat_completion/protocol.py`, its KV connectors and `SamplingParams.extra_args`;
SGLang `entrypoints/openai/protocol.py`, `managers/io_struct.py`. From their documentation: TensorRT-LLM's
`disaggregated_params`, LMDeploy's `migration_request`, LoRAX's `adapter_id` and `adapter_source`, MLX-LM's `adapters`
and `draft_model`, Ollama's `template`, text-generation-webui's `character` and `instruction_template`; LiteLLM.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from providers.json_types import JsonValue
from providers.request_fields import PROTECTED_PARAMS

Place = tuple[str | int, ...]

# Every upstream ------------------------------------------------------------------------------------------------------

# Fields by which a vendor that is itself a gateway changes model, address or account (OpenRouter, LiteLLM).
_ELSEWHERE: Final = frozenset(
    {"models", "fallbacks", "base_url", "api_base", "url", "api_key", "organization", "project"}
    | {"headers", "extra_headers", "extra_body", "extra_query"}
)
# The fields of `_ELSEWHERE` that LiteLLM has also read at deeper levels. Common words are left out: an image may have a
# `url`, and a search may have a `project`.
_ELSEWHERE_WITHIN: Final = frozenset({"base_url", "api_base", "api_key", "extra_headers", "extra_body", "extra_query"})
# In JSON Schema the client chooses the names below `_NAMES_OF_DATA`, and the keywords in `_DATA` hold values, not
# settings.
_NAMES_OF_DATA: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_DATA: Final = frozenset({"const", "default", "enum", "example", "examples"})


def is_reserved(name: str) -> bool:
    """Return whether a field that a client adds to the vendor's body would override a decision of the gateway.

    The case of letters is ignored: Go's encoding/json, which Ollama uses, takes `Model` for `model`, and the last field
    wins.
    """
    folded = name.casefold()
    return folded in PROTECTED_PARAMS or folded in _ELSEWHERE or folded.endswith("_endpoint")


def find_reserved(name: str, value: JsonValue) -> Place | None:
    """Return the path to a field, at any depth of a field's value, that gives another address or credential; `None` if
    there is no such field.

    A schema in the value may describe properties with such names.
    """
    pending: list[tuple[Place, JsonValue, bool]] = [((), value, name in _NAMES_OF_DATA)]
    while pending:
        loc, holder, names_are_data = pending.pop()
        if isinstance(holder, list):
            pending.extend(((*loc, index), item, False) for index, item in enumerate(holder))
        elif isinstance(holder, dict):
            for inner, item in holder.items():
                if names_are_data:
                    pending.append(((*loc, inner), item, False))
                    continue
                folded = inner.casefold()
                if folded in _ELSEWHERE_WITHIN or folded.endswith("_endpoint"):
                    return (*loc, inner)
                if inner not in _DATA:
                    pending.append(((*loc, inner), item, inner in _NAMES_OF_DATA))
    return None


# Engines -------------------------------------------------------------------------------------------------------------

_HOST: Final = "it names a host or an address that the engine would call"
_PATH: Final = "it names a file or a path on the engine's side"
_TEMPLATE: Final = "it is a template, which the engine would run"
_CODE: Final = "it is code or a serialised object, which the engine would load"
_ADAPTER: Final = "it names a model or an adapter that the engine would load"

_NAMES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("kv_transfer_params", "ec_transfer_params", "disaggregated_params", "migration_request"), _HOST),
    **dict.fromkeys(("baseurl", "hostname", "integrations"), _HOST),
    **dict.fromkeys(("lora_request", "adapter_id", "adapter_source", "adapters", "draft_model"), _ADAPTER),
    **dict.fromkeys(("character", "pretrained_model_name_or_path"), _PATH),
    **dict.fromkeys(("prompt_embeds", "image_embeds", "audio_embeds", "video_embeds"), _CODE),
}
"""The complete names of locators whose names contain no word of `_WORDS`. A locator is a field that names a host, a
path, a template or code."""

_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("host", "hosts", "hostname", "hostnames", "addr", "address", "addresses", "ip", "port"), _HOST),
    **dict.fromkeys(("ports", "url", "urls", "uri", "uris", "endpoint", "endpoints", "server", "servers"), _HOST),
    **dict.fromkeys(("remote", "bootstrap", "proxy", "proxies", "webhook", "webhooks", "callback", "peer"), _HOST),
    **dict.fromkeys(("callbacks", "mcp", "socket", "ipc", "zmq", "bucket"), _HOST),
    **dict.fromkeys(("path", "paths", "file", "files", "dir", "directory", "folder"), _PATH),
    **dict.fromkeys(("template", "templates"), _TEMPLATE),
    **dict.fromkeys(("processor", "processors", "plugin", "plugins", "pickle", "pickled", "script", "module"), _CODE),
}
"""Words that mark a field's name as a locator: `remote_host`, `chat_template`, `loraPath`."""

_HARMLESS: Final = frozenset({"mm_processor_kwargs", "chat_template_kwargs", "template_kwargs", "template_vars"})
"""Names that contain such a word although clients of engines send them for harmless purposes. The values of these
fields are searched."""

_TEMPLATE_VALUES: Final = frozenset({"chat_template_kwargs", "template_kwargs", "template_vars"})
"""Fields that hold the variables of a template. Any variable is allowed, except a template that replaces the model's
own template (CVE-2025-61620).
"""

_TEXTS: Final = frozenset(
    {"text", "content", "title", "description", "pattern", "name", "system", "system_prompt", "negative_prompt"}
    | {"prefix", "documents", "input_extra", "input_prefix", "input_suffix", "grammar", "ebnf", "regex", "stop_regex"}
    | {"bad_words", "banned_strings", "dry_sequence_breakers", "sequence_breakers", "cache_salt", "extra_key"}
    | {"json", "json_schema", "schema", "input_schema", "guided_json", "structural_tag", "structures"}
    | _DATA
    | _NAMES_OF_DATA
)
"""Fields that hold texts and schemas, which engines only read."""

_MEDIA: Final = frozenset(
    {"image_data", "audio_data", "video_data", "multi_modal_data", "multimodal_data", "images", "image", "videos"}
    | {"video", "audios", "ref_images", "media"}
)
"""Fields that hold images and sounds. Inline data is allowed. A file name or an address is refused, because SGLang
would read or fetch it."""

_WORD: Final = re.compile(r"[^a-z0-9]+")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_URL: Final = re.compile(r"\s*+(?:[a-z][a-z0-9+.-]{0,31}://[^\s/]|(?:file|gs|s3):[^\s])", re.IGNORECASE)
_PATH_VALUE: Final = re.compile(r"(?:~|\.{1,2})?/[^\s/]+(?:/\S*|\.\w+)|\.{1,2}/\S+|[A-Za-z]:[\\/]\S+|\\\\\S+")
# A host is `localhost`, has a dot or stands in brackets: `team:1234` and `12:30` are not addresses. A host may stand
# anywhere in a word, since vLLM has parsed the addresses of its peers from a request's id.
_HOST_PORT: Final = re.compile(
    r"(?<![\w.-])(?:localhost|[\w-]++(?:\.[\w-]++)++|\[[0-9a-fA-F:.]++\]):[0-9]{1,5}(?![0-9])"
)
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?:[0-9]+")
_IPV4: Final = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
_SPACE: Final = re.compile(r"\s")
_LONGEST_PLACE: Final = 512
_BASE64: Final = re.compile(r"(?!/(?!9j/))[A-Za-z0-9+/=_\s-]{64}")


MOST_STEPS: Final = 300_000
"""The most values of a request that are searched, which takes about 0.3 s. A text counts as one more value for each 16
characters, up to 512 characters. A request with more values counts as containing a locator. The gateway's limit for
bodies is lower than this."""

_TOO_MANY: Final = "it holds more fields and texts than are searched"
_SEARCHED: Final = {str, list, dict}


class Found(NamedTuple):
    """A locator that was found: its path below the searched field, and the reason."""

    place: Place
    why: str


class Search:
    """Searches the fields of one request for locators, with one limit on the cost of all fields together.

    A field named in `allowed` is accepted with all of its content.
    """

    __slots__ = ("_allowed", "_left")

    def __init__(self, allowed: Collection[str] = ()) -> None:
        self._allowed = allowed
        self._left = MOST_STEPS

    def find(self, name: str, value: JsonValue) -> Found | None:
        """Return the first locator in a field that is meant for an engine; `None` if there is none. The field's own
        name is checked too."""
        pending = [_Member((), name, value)] if name not in self._allowed else []
        while pending:
            member = pending.pop()
            if why := _why(member):
                return Found(member.place, why)
            pending.extend(islice(_below(member, self._allowed), MOST_STEPS + 1))
            self._left -= 1 + (min(len(member.value), _LONGEST_PLACE) // 16 if isinstance(member.value, str) else 0)
            if self._left < len(pending):
                return Found((), _TOO_MANY)
        return None


class _Member(NamedTuple):
    """A value to search: its path, its name, the value itself, and whether the value is a variable for a template."""

    place: Place
    name: str
    value: JsonValue
    variable: bool = False


def _why(member: _Member) -> str | None:
    if member.variable:
        return _TEMPLATE if member.name.casefold() in ("chat_template", "template") else None
    why = _why_name(member.name)
    if why or _is_text(member.name) or not isinstance(member.value, str):
        return why
    return _why_media(member.value) if member.name in _MEDIA else _why_value(member.value)


def _below(member: _Member, allowed: Collection[str]) -> Iterator[_Member]:
    """Yield the values within a field that may be or contain a locator."""
    place, name, value, variable = member
    if variable or _is_text(name):
        return
    if isinstance(value, dict):
        for inner, item in value.items():
            if inner not in allowed:
                kept = name if name in _MEDIA and isinstance(item, str) else inner
                yield _Member((*place, inner), kept, item, name in _TEMPLATE_VALUES)
    elif isinstance(value, list):
        if _SEARCHED.isdisjoint(map(type, value)):
            return  # lists of token ids, which may be very long, hold no locator
        for index, item in enumerate(value):
            if type(item) in _SEARCHED:
                yield _Member((*place, index), name, item)


def _is_text(name: str) -> bool:
    """Return whether engines only read a field as data: a text, a schema, or a keyword of a schema (`$id`, `$ref`)."""
    return name in _TEXTS or name.startswith("$")


def _why_name(name: str) -> str | None:
    """Return why a name marks a locator; `None` if it does not. The case of letters is ignored, as servers in Go do."""
    if name in _HARMLESS or _is_text(name):
        return None
    folded = _HUMP.sub("_", name).casefold()
    why = _NAMES.get(folded) or _NAMES.get(name.casefold())
    return why or next((_WORDS[word] for word in _WORD.split(folded) if word in _WORDS), None)


def _why_value(text: str) -> str | None:
    if _URL.match(text):
        return _HOST
    bare = text[: _LONGEST_PLACE + 1].strip()
    if len(bare) > _LONGEST_PLACE or _SPACE.search(bare):
        return None
    if _PATH_VALUE.fullmatch(bare) and not is_inline(bare):
        return _PATH
    found = None if _NUMBER.fullmatch(bare) else _HOST_PORT.search(bare)
    return _HOST if found or _IPV4.fullmatch(bare) else None


def names_address(text: str) -> bool:
    """Return whether a text is an address, a path or a host with a port, or contains such a host in a word."""
    return _why_value(text) is not None


def _why_media(text: str) -> str | None:
    return None if is_inline(text) else _PATH


def is_inline(text: str) -> bool:
    """Return whether a text is a data URI or bare base64 and not a file name. Only the beginning of a long text is
    read."""
    if text[:5].lower() == "data:":
        return True
    return "." not in text and _BASE64.match(text) is not None
