"""The names of tools of namespaces, for vendors whose tools have one name each, and back.

A namespace's tool is `namespace__name`. Where that is too long, or another tool has it, a digest of both names takes
the place of its end: equal names always give equal names, so that a later turn finds its earlier calls.

Source: Codex CLI 0.169.0, which groups tools in `type: "namespace"` and knows a call by `namespace` and its bare `name`
only, measured in November 2026; OpenAI OpenAPI 2.3.0 `FunctionObject.name` (64 characters).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2s
from typing import Final

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
        """Return what each joined name stands for."""
        return dict(self._joined)

    def _is_taken(self, name: str) -> bool:
        return name in self.plain or name in self._joined
