"""Convert LiteLLM's lists of allowed models to names of the new configuration.

Source: `check_model_access_helper`, `_resolve_key_models_for_auth_check` and `can_team_access_model` of
`proxy/auth/auth_checks.py` in litellm 1.108.7, November 2026.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from config.allowed_names import covers

EVERYTHING: Final = "*"
ALL_TEAM_MODELS: Final = "all-team-models"
NO_MODELS: Final = "no-default-models"
_ALL: Final = frozenset({EVERYTHING, "all-proxy-models"})

_INFERRED: Final = (
    (re.compile(r"(gpt-|o[134](-|$)|chatgpt-|text-embedding-|dall-e|whisper-|tts-).*"), "openai"),
    (re.compile(r"claude-.*"), "anthropic"),
    (re.compile(r"gemini-.*"), "vertex_ai"),
    (re.compile(r"command-.*"), "cohere_chat"),
)
"""Patterns of names without a provider, and the provider that LiteLLM infers. So `openai/*` grants `gpt-4o` too."""


@dataclass(frozen=True, slots=True)
class ClientNames:
    """The names that clients may use at LiteLLM. `names` maps each name, including patterns such as `openai/*`, to its
    new name. `aliases` map a name to another one. `groups` are the access groups."""

    names: Mapping[str, str] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Granted:
    """The granted new names (only `*` if every name is granted), and the entries that match nothing."""

    names: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @property
    def everything(self) -> bool:
        """Whether every name is granted."""
        return self.names == (EVERYTHING,)

    def within(self, outer: "Granted") -> "Granted":
        """Return the intersection of two grants."""
        if outer.everything:
            return self
        if self.everything:
            return outer
        mine = [name for name in self.names if any(covers(pattern, name) for pattern in outer.names)]
        theirs = [name for name in outer.names if any(covers(pattern, name) for pattern in self.names)]
        return Granted(tuple(dict.fromkeys([*mine, *theirs])), self.unknown)


def granted(models: Sequence[str], known: ClientNames) -> Granted:
    """Return the grant of a team's or key's list of models. An empty list grants everything."""
    if not models or _ALL.intersection(models) or ALL_TEAM_MODELS in models:
        return Granted((EVERYTHING,))
    found: dict[str, None] = {}
    unknown = []
    for entry in models:
        reached = list(dict.fromkeys(_reached(entry, known)))
        found.update(dict.fromkeys(reached))
        if not reached and entry != NO_MODELS:
            unknown.append(entry)
    return Granted(tuple(found), tuple(unknown))


def _reached(entry: str, known: ClientNames) -> Iterator[str]:
    """Yield the new names that one entry grants."""
    members = known.groups.get(entry, ())
    wanted = {entry, *members}
    for name, written in known.names.items():
        if name in wanted or ("*" in entry and _matches(entry, name)):
            yield written
            yield from _aliases_of(name, known)
    for alias in wanted & known.aliases.keys():
        # At LiteLLM, the list may contain either the alias or its target.
        yield known.names[alias]
    yield from _under_wildcard([entry] if "*" not in entry else [], known)


def _aliases_of(name: str, known: ClientNames) -> Iterable[str]:
    return (known.names[alias] for alias, target in known.aliases.items() if target == name)


def _matches(pattern: str, name: str) -> bool:
    provider = next((provider for words, provider in _INFERRED if words.fullmatch(name)), None)
    return _fits(pattern, name) or (provider is not None and _fits(pattern, f"{provider}/{name}"))


def _fits(pattern: str, name: str) -> bool:
    """Return whether a pattern matches the whole name; * matches any text. It takes one pass over the name."""
    first, *middle, last = pattern.split("*")
    at = len(first)
    for part in middle:
        found = name.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return name.startswith(first) and name.endswith(last) and at + len(last) <= len(name)


def _under_wildcard(names: Iterable[str], known: ClientNames) -> Iterator[str]:
    """Yield the new names of single models whose provider the configuration has as a whole, such as `openai/*`."""
    for name in names:
        vendor, slash, rest = name.partition("/")
        written = known.names.get(f"{vendor}/*")
        if slash and rest and name not in known.names and written is not None:
            yield f"{written.removesuffix('*')}{rest}"
