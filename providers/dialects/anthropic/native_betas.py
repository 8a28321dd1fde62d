"""Selects the version and the betas of a call that carries a client's own Messages body, for Anthropic's API and for
the clouds.

The vendor refuses a call with an unknown beta. Clients send the betas of Anthropic's own API to every endpoint: Claude
Code sends seven betas with every request. So a call to a cloud names only the betas that the cloud has.

The beta of `fallbacks` is never sent: the configuration decides which other models a request may use.

Sources: `anthropic` 2.12.0 type `AnthropicBetaParam` (2.14.0 has the same two betas of `fallbacks`); litellm 1.109.1
`anthropic_beta_headers_config.json`; "Anthropic Claude Messages API" page of Bedrock; "API versions" and "Beta headers"
pages, November 2026.
"""

import re
from collections.abc import Iterable, Mapping

VERSION_HEADER, BETA_HEADER = "anthropic-version", "anthropic-beta"

_ON_BOTH_CLOUDS = (
    "compact-2026-01-12",
    "computer-use-2025-01-24",
    "computer-use-2025-11-24",
    "context-1m-2025-08-07",
    "context-management-2025-06-27",
    "dangerous-tool-use-2026-09-03",
    "interleaved-thinking-2025-05-14",
    "mid-conversation-tool-changes-2026-07-01",
    "thinking-binding-controls-2026-08-01",
    "thinking-display-updates-2026-08-18",
    "tool-search-tool-2025-10-19",
)
_RENAMED = {"advanced-tool-use-2025-11-20": "tool-search-tool-2025-10-19"}
"""Maps a beta of Anthropic's API that includes several features to the name of the only feature that the clouds offer.
"""

Betas = Mapping[str, str]
"""Maps the names that clients use for betas to the names of the betas that a platform has."""

VERTEX_BETAS: Betas = {
    **{name: name for name in _ON_BOTH_CLOUDS},
    **{name: name for name in ("per-turn-control-2026-07-01", "web-search-2025-03-05", "compact-2026-09-04")},
    "inline-tools-2026-09-15": "inline-tools-2026-09-15",
    **_RENAMED,
}
BEDROCK_BETAS: Betas = {
    **{name: name for name in _ON_BOTH_CLOUDS},
    **{name: name for name in ("dev-full-thinking-2025-05-14", "effort-2025-11-24", "output-128k-2025-02-19")},
    **{name: name for name in ("fine-grained-tool-streaming-2025-05-14", "token-efficient-tools-2025-02-19")},
    **{name: name for name in ("mid-conversation-output-config-2026-07-01", "tool-examples-2025-10-29")},
    **_RENAMED,
}

_FALLBACK_PREFIX = "server-side-fallback-"

_BETA = re.compile(r"[\w.:-]{1,128}", re.ASCII)
_VERSION = re.compile(r"[\w.-]{1,32}", re.ASCII)
_MAX_BETAS = 128


def given_betas(headers: Mapping[str, str]) -> tuple[str, ...]:
    """Return the betas in a client's headers, each once. The names of the headers must be in lower case."""
    named = (beta.strip() for beta in headers.get(BETA_HEADER, "").split(",", _MAX_BETAS)[:_MAX_BETAS])
    return tuple(dict.fromkeys(beta for beta in named if _BETA.fullmatch(beta)))


def given_version(headers: Mapping[str, str]) -> str | None:
    """Return the version of the API for which a client's body is written."""
    version = headers.get(VERSION_HEADER, "").strip()
    return version if _VERSION.fullmatch(version) else None


def betas_on(platform: Betas, betas: Iterable[str]) -> tuple[tuple[str, ...], bool]:
    """Return the given betas that a platform has, under the platform's names, and whether the platform lacks any given
    beta."""
    named = tuple(betas)
    return tuple(dict.fromkeys(platform[beta] for beta in named if beta in platform)), not platform.keys() >= {*named}


def without_fallback_betas(betas: Iterable[str]) -> tuple[str, ...]:
    """Return the betas without the betas that the field `fallbacks` requires."""
    return tuple(beta for beta in betas if not beta.strip().startswith(_FALLBACK_PREFIX))


def names_fallback_beta(headers: Mapping[str, str] | None) -> bool:
    """Return whether a client's headers name a beta of `fallbacks`. The case of the headers' names is ignored."""
    return any(name.lower() == BETA_HEADER and _FALLBACK_PREFIX in value for name, value in (headers or {}).items())
