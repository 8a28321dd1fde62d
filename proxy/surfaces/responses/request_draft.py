"""What a Responses body becomes while it is read, and the request that it is in the end.

The names of tools of namespaces, for vendors whose tools have one name each, and back.

A namespace's tool is `namespace__name`. Where that is too long, or another tool has it, a digest of both names takes
the place of its end: equal names always give equal names, so that a later turn finds its earlier calls.

Source: Codex CLI 0.169.0, which groups tools in `type: "namespace"` and knows a call by `namespace` and its bare `name`
only, measured in November 2026; OpenAI OpenAPI 2.3.0 `FunctionObject.name` (64 characters).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Final

from providers.frozen_record import record
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest
from proxy.surfaces.request.parse_state import ParsedFields

MAX_NAME: Final = 64

_JOINT: Final = "__"
_DIGEST: Final = 8
"""Hex digits of the digest."""


@dataclass(frozen=True, slots=True)
class NamespacedName:
    """A tool's own name and the namespace that it is in."""

    namespace: str
    name: str


@dataclass(slots=True)
class NamespaceNames:
    """The tools of one request. `plain` are the names of those without a namespace, which keep them."""

    plain: frozenset[str] = frozenset()
    _joined: dict[str, NamespacedName] = field(default_factory=dict)
    _known: dict[NamespacedName, str] = field(default_factory=dict)

    def joined(self, namespace: str, name: str) -> str:
        """Return the one name of a namespace's tool."""
        whole = NamespacedName(namespace, name)
        known = self._known.get(whole)
        if known is not None:
            return known
        made = f"{namespace}{_JOINT}{name}"
        if len(made) > MAX_NAME or self._is_taken(made):
            digest = blake2s(f"{len(namespace)}:{namespace}{name}".encode(errors="replace")).hexdigest()
            # As much of the digest as tells them apart: nearly always its first digits.
            for digits in range(_DIGEST, len(digest) + 1, _DIGEST):
                room = MAX_NAME - digits - 1
                candidate = f"{made[:room]}_{digest[:digits]}" if room > 0 else digest[:MAX_NAME]
                if not self._is_taken(candidate):
                    made = candidate
                    break
        self._known[whole], self._joined[made] = made, whole
        return made

    def origins(self) -> Mapping[str, NamespacedName]:
        """Return the namespace and name of each joined name."""
        return dict(self._joined)

    def _is_taken(self, name: str) -> bool:
        return name in self.plain or name in self._joined


@dataclass(frozen=True, slots=True)
class ResponseTerms:
    """What the answer needs of its request besides the unified fields.

    `echoes` are the members of the response that repeat the request. `summary` says that the client wants thoughts as a
    summary. `origins` are the tools of namespaces by their joined names, `typed` the types of tools that are offered
    as functions, by these functions' names. `input` are the request's own items,
    `ancestors` the ids of the responses that it continues; `store` says whether the response is to be stored,
    `sources` whether the client wants the sources of searches.
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


@record
class ResponsesRequest(UnifiedRequest):
    """A unified request that came in the form of the Responses API."""

    terms: ResponseTerms = NO_TERMS


@dataclass(slots=True)
class ResponsesDraft:
    """One body while it is read.

    `parsed` has the unified fields so far and every problem. `left_out` names what the translation goes without,
    `native_left_out` what OpenAI's own API goes without; `only` says by field what that API alone can honour, as the
    subject of a sentence. `typed` are as in ResponseTerms. `shortens` says that the oldest turns may be left out.
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
        """Return the name of the function that a tool with a type of its own becomes. No other tool has this name."""
        if kind not in self._typed_names:
            name = kind
            while name in self.names.plain:
                name += "_tool"
            # Once, since a conversation may have thousands of its calls.
            self._typed_names[kind] = name
        return self._typed_names[kind]

    def put(self, own: str, name: str, value: object) -> None:
        """Set a unified field that the client's field `own` says; another value of it conflicts."""
        if self.parsed.values.setdefault(name, value) != value:
            self.parsed.conflict(own, f"differs from '{name}', which says the same")
