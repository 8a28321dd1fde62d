"""Which surface and action a path means.

Never reads a body or a key.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from providers.unified import Operation
from proxy.errors import method_not_allowed, not_found
from proxy.surfaces.registry import surface_for_path
from proxy.surfaces.surface import Surface

_SLASHES = re.compile(r"/{2,}")

Action = Operation | str


@dataclass(frozen=True, slots=True)
class Route:
    """A path's meaning: its surface, what each method does (empty for an unknown path), and, below a models list, the
    rest of the path, decoded."""

    surface: Surface
    path: str
    methods: dict[str, Action]
    tail: str | None = None

    def action(self, method: str) -> Action:
        """Raises GatewayError 404 for an unknown path and 405 for another method."""
        if not self.methods:
            raise not_found(self.path)
        action = self.methods.get(method)
        if action is None:
            raise method_not_allowed(method, ", ".join(sorted(self.methods)))
        return action


class Router:
    """The paths of all surfaces. Repeated slashes collapse, since clients join base URLs carelessly."""

    def __init__(self, surfaces: Sequence[Surface]) -> None:
        self._exact: dict[str, Route] = {}
        self._lists: list[tuple[str, Route]] = []
        for surface in surfaces:
            for endpoint in surface.endpoints:
                route = self._exact.setdefault(endpoint.path, Route(surface, endpoint.path, {}))
                route.methods[endpoint.method] = endpoint.action
                if not isinstance(endpoint.action, Operation):
                    self._lists.append((endpoint.path + "/", route))

    def resolve(self, path: str) -> Route:
        """The route of a path as `proxy.server.path_of` gives it; an unknown one still has the surface whose envelope
        its error wears. An escaped slash separates nothing: it is a letter of a model's name or of no path at all."""
        route = self._exact.get(path)
        if route is not None:
            return route
        clean = _SLASHES.sub("/", path)
        route = self._exact.get(clean) or self._exact.get(clean.rstrip("/"))
        if route is not None:
            return route
        for prefix, listing in self._lists:
            if clean.startswith(prefix):
                tail = clean[len(prefix) :].replace("%2F", "/").replace("%25", "%")
                return Route(listing.surface, clean, listing.methods, tail)
        return Route(surface_for_path(clean), clean, {})
