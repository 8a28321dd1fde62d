"""All surfaces, and the lookup of the surface and the action of a path."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from proxy.errors import MAX_RETRY_AFTER, ErrorFacts, method_not_allowed, not_found
from proxy.surfaces.anthropic.surface import ANTHROPIC
from proxy.surfaces.fireworks import FIREWORKS
from proxy.surfaces.mistral_fim import FIM
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.scale_genai import SCALE_V4, SCALE_V5
from proxy.surfaces.surface import MODEL, NAME, Action, ReadAction, StoringSurface, Surface
from proxy.surfaces.vmware_pais import PAIS

SURFACES: tuple[Surface, ...] = (OPENAI, FIM, SCALE_V4, SCALE_V5, FIREWORKS, PAIS, ANTHROPIC, RESPONSES)

STORING: Final = frozenset({each.name for each in SURFACES if isinstance(each, StoringSurface)})
"""The names of surfaces whose requests refer to stored responses."""


@dataclass(frozen=True, slots=True)
class PathMatch:
    """A path with its surface and the action of each method (empty for an unknown path). `tail` is the decoded name in
    the path: the id of a model in a models list, the model of a request, or the id of a response."""

    surface: Surface
    path: str
    methods: dict[str, Action] = field(default_factory=dict)
    tail: str | None = None

    def action(self, method: str) -> Action:
        """Return the action of a method. Raises GatewayError 404 for an unknown path and 405 for another method."""
        if not self.methods:
            raise not_found(self.path)
        action = self.methods.get(method)
        if action is None:
            raise method_not_allowed(method, ", ".join(sorted(self.methods)))
        return action


@dataclass(frozen=True, slots=True)
class NamingPaths:
    """The paths that contain a name between a prefix and a suffix. The name is one segment, or may contain slashes
    (`segments`)."""

    prefix: str
    suffix: str
    segments: bool
    match: PathMatch

    def name_in(self, path: str) -> str | None:
        """Return the name in a path; `None` for a path of another form."""
        path = path if self.segments and not self.suffix else path.rstrip("/")
        if not path.startswith(self.prefix) or not path.endswith(self.suffix):
            return None
        name = path[len(self.prefix) : len(path) - len(self.suffix)]
        if self.segments:
            return name if name or not self.suffix else None
        return name if name and "/" not in name else None


def match_endpoints(surfaces: Sequence[Surface]) -> Mapping[str, PathMatch]:
    """Return the match of every path of the surfaces. The keys of paths that contain a name are their templates."""
    matches: dict[str, PathMatch] = {}
    for surface in surfaces:
        for endpoint in surface.endpoints:
            match = matches.setdefault(endpoint.path, PathMatch(surface, endpoint.path))
            match.methods[endpoint.method] = endpoint.action
    return matches


def naming_paths(matches: Mapping[str, PathMatch]) -> Iterator[NamingPaths]:
    """Return the paths that contain a name: the paths with templates, and the paths below a models list, whose names
    may contain slashes."""
    for path, match in matches.items():
        segments = MODEL in path
        prefix, name, suffix = path.partition(MODEL if segments else NAME)
        if name:
            yield NamingPaths(prefix, suffix, segments, match)
        elif ReadAction.MODELS in match.methods.values():
            yield NamingPaths(f"{path}/", "", True, match)


_ALL = match_endpoints(SURFACES)

PATHS = {path: match for path, match in _ALL.items() if NAME not in path and MODEL not in path}

NAMING = tuple(sorted(naming_paths(_ALL), key=lambda naming: -len(naming.suffix)))
"""The paths that contain a name. Longer suffixes come first, because otherwise a shorter suffix would match and a part
of the longer one would count as the name."""

_PREFIXES: tuple[tuple[str, Surface], ...] = tuple(
    sorted(
        ((prefix, surface) for surface in SURFACES for prefix in surface.prefixes),
        key=lambda pair: -len(pair[0]),
    )
)


MODELS_PATH, VERSION_HEADER = "/v1/models", "anthropic-version"
"""The models list, which several APIs have at the same path, and the header that identifies clients of Anthropic's
API."""


def for_anthropics_client(match: PathMatch) -> PathMatch:
    """Return the match of a path for a client of Anthropic's API, which gets the models list in Anthropic's form."""
    if match.surface is OPENAI and (match.path == MODELS_PATH or match.path.startswith(f"{MODELS_PATH}/")):
        return replace(match, surface=ANTHROPIC)
    return match


ID_HEADERS: Mapping[str, str] = {ANTHROPIC.name: "request-id"}
"""The header in which a surface's clients look for the id of a request, in addition to `x-request-id`."""

_PATIENT_SURFACES = frozenset({ANTHROPIC.name})
_TRANSIENT_CODES = frozenset({"rate_limit_exceeded", "overloaded", "no_healthy_deployment"})


def error_headers(surface: Surface, facts: ErrorFacts) -> Mapping[str, str]:
    """Return the headers of an error. Agents wait a minute or more for an overloaded vendor (Claude Code 2.1.197), and
    `x-should-retry: false` would end their work. So agents get that header only if the wait is longer than
    MAX_RETRY_AFTER: Anthropic's SDK (2.12.0) sleeps as long as `retry-after` says, even weeks, so that the agent would
    seem to hang."""
    is_short = int(facts.headers.get("retry-after", 0)) <= MAX_RETRY_AFTER
    if surface.name in _PATIENT_SURFACES and facts.code in _TRANSIENT_CODES and is_short:
        return {name: value for name, value in facts.headers.items() if name != "x-should-retry"}
    return facts.headers


def surface_for_path(path: str) -> Surface:
    """Return the surface that renders a path's errors: the one with the longest matching prefix of whole segments, else
    OpenAI's."""
    for prefix, surface in _PREFIXES:
        if path == prefix or path.startswith(prefix + "/"):
            return surface
    return OPENAI


def surface_envelope(path: str, facts: ErrorFacts) -> tuple[int, bytes]:
    """Return the HTTP status and the body of an error, in the envelope of the path's surface."""
    return surface_for_path(path).error(facts)
