"""Resolves a URL path to its surface and actions."""

import re
from collections.abc import Container

from proxy.surfaces.registry import NAMING, PATHS, VERSION_HEADER, PathMatch, for_anthropics_client, surface_for_path

_SLASHES = re.compile(r"/{2,}")


def resolve_path(path: str, headers: Container[str] = ()) -> PathMatch:
    """Return the match of a path as `proxy.listener.http_connection.path_of` gives it; that of an unknown path has no
    methods. Of a path that several APIs share, the headers tell the client's.

    Repeated slashes collapse, since clients join base URLs carelessly. An escaped slash separates no segments: it is
    part of a name, or the path is unknown.
    """
    match = PATHS.get(path) or _normal_match(path)
    return for_anthropics_client(match) if "GET" in match.methods and VERSION_HEADER in headers else match


def _normal_match(path: str) -> PathMatch:
    clean = _SLASHES.sub("/", path)
    match = PATHS.get(clean) or PATHS.get(clean.rstrip("/"))
    if match is not None:
        return match
    for naming in NAMING:
        name = naming.name_in(clean)
        if name is not None:
            tail = name.replace("%2F", "/").replace("%25", "%")
            return PathMatch(naming.match.surface, clean, naming.match.methods, tail)
    return PathMatch(surface_for_path(clean), clean)
