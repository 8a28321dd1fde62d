"""A Responses body while it is read, the resulting request, and the names of tools of namespaces for vendors whose
tools have only one name.

A namespace's tool is named `namespace__name`. If this name is too long, or is the name of another tool, a digest of
both names replaces its end. Equal names always give equal results, so that a later turn recognises its earlier calls.

Source: Codex CLI 0.169.0, which groups tools in `type: "namespace"` and identifies a call only by `namespace` and its
bare `name`, measured in November 2026; OpenAI OpenAPI 2.3.0 `FunctionObject.name` (64 characters).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Final

from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest
from proxy.surfaces.request.parse_state import ParsedFields

MAX_NAME: Final = 64

_SEPARATOR: Final = "__"
_DIGEST_DIGITS: Final = 8
"""The number of hex digits of the digest in a name. If the name is taken, the same number of digits is added until it
is not."""


@dataclass(frozen=True, slots=True)
class NamespacedName:
    """A tool's own name and its namespace."""

    namespace: str
    name: str


@dataclass(slots=True)
class NamespaceNames:
    """The tools of one request. `plain` are the names of the tools without a namespace, which are unchanged."""

    plain: frozenset[str] = frozenset()
    _joined: dict[str, NamespacedName] = field(default_factory=dict)
    _known: dict[NamespacedName, str] = field(default_factory=dict)

    def joined(self, namespace: str, name: str) -> str:
        """Return the single name of a namespace's tool."""
        full_name = NamespacedName(namespace, name)
        known = self._known.get(full_name)
        if known is not None:
            return known
        joined_name = f"{namespace}{_SEPARATOR}{name}"
        if len(joined_name) > MAX_NAME or self._is_taken(joined_name):
            digest = blake2s(f"{len(namespace)}:{namespace}{name}".encode(errors="replace")).hexdigest()
            # The loop adds digits until the name is unique; nearly always the first digits suffice.
            for digits in range(_DIGEST_DIGITS, len(digest) + 1, _DIGEST_DIGITS):
                prefix_length = MAX_NAME - digits - 1
                candidate = (
                    f"{joined_name[:prefix_length]}_{digest[:digits]}" if prefix_length > 0 else digest[:MAX_NAME]
                )
                if not self._is_taken(candidate):
                    joined_name = candidate
                    break
        self._known[full_name], self._joined[joined_name] = joined_name, full_name
        return joined_name

    def origins(self) -> Mapping[str, NamespacedName]:
        """Return the namespace and the name of each joined name."""
        return dict(self._joined)

    def _is_taken(self, name: str) -> bool:
        return name in self.plain or name in self._joined


@dataclass(frozen=True, slots=True)
class ResponseTerms:
    """The facts about a request that its response needs, besides the unified fields.

    `echoes` are the fields of the response that repeat the request. `summary` is true if the client requests reasoning
    as a summary. `origins` are the tools of namespaces by their joined names, `typed` the types of tools that are
    offered as functions, by the names of these functions. `input` are the request's own items, `ancestors` the ids of
    the responses that it continues. `store` is true if the response is to be stored, `sources` if the client requests
    the sources of searches.
    """

    echoes: Mapping[str, JsonValue] = field(default_factory=dict)
    summary: bool = False
    origins: Mapping[str, NamespacedName] = field(default_factory=dict)
    typed: Mapping[str, str] = field(default_factory=dict)
    input: tuple[JsonObject, ...] = ()
    ancestors: tuple[str, ...] = ()
    store: bool = True
    sources: bool = False


NO_TERMS = ResponseTerms()


@frozen
class ResponsesRequest(UnifiedRequest):
    """A unified request from a body of the Responses API."""

    terms: ResponseTerms = NO_TERMS


@dataclass(slots=True)
class ResponsesDraft:
    """The fields of a body that is being read.

    `parsed` has the unified fields so far and every problem. `left_out` names the fields that the translation drops,
    `native_left_out` the fields that OpenAI's own API does not get. `only` describes, by field, the content that only
    this API can honour, as the subject of a sentence. `typed` has the same meaning as in ResponseTerms. `shortens` is
    true if the oldest turns may be left out.
    """

    data: JsonObject
    parsed: ParsedFields
    names: NamespaceNames = field(default_factory=NamespaceNames)
    left_out: dict[str, None] = field(default_factory=dict)
    native_left_out: dict[str, None] = field(default_factory=dict)
    only: dict[str, str] = field(default_factory=dict)
    typed: dict[str, str] = field(default_factory=dict)
    shortens: bool = False
    _typed_names: dict[str, str] = field(default_factory=dict)

    def typed_name(self, kind: str) -> str:
        """Return the name of the function that stands for a tool with its own type. No other tool has this name."""
        if kind not in self._typed_names:
            name = kind
            while name in self.names.plain:
                name += "_tool"
            # The name is stored, because a conversation may have thousands of calls of the tool.
            self._typed_names[kind] = name
        return self._typed_names[kind]

    def put(self, client_field: str, name: str, value: object) -> None:
        """Set a unified field from the client's field `client_field`. If the unified field already has another value,
        this is a conflict."""
        if self.parsed.values.setdefault(name, value) != value:
            self.parsed.conflict(client_field, f"differs from '{name}', which sets the same")
