"""Resolves a URL path to its surface and actions."""

import re

from proxy.surfaces.registry import PATHS, PathMatch, surface_for_path
from proxy.surfaces.surface import ReadAction

_SLASHES = re.compile(r"/{2,}")

_LISTS = tuple((f"{path}/", match) for path, match in PATHS.items() if ReadAction.MODELS in match.methods.values())


def resolve_path(path: str) -> PathMatch:
    """Return the match of a path as `proxy.listener.http_connection.path_of` gives it; that of an unknown path has no
    methods.

    Repeated slashes collapse, since clients join base URLs carelessly. An escaped slash separates no segments: it is
    part of a model's name, or the path is unknown.
    """
    match = PATHS.get(path)
    if match is not None:
        return match
    clean = _SLASHES.sub("/", path)
    match = PATHS.get(clean) or PATHS.get(clean.rstrip("/"))
    if match is not None:
        return match
    for prefix, listing in _LISTS:
        if clean.startswith(prefix):
            tail = clean[len(prefix) :].replace("%2F", "/").replace("%25", "%")
            return PathMatch(listing.surface, clean, listing.methods, tail)
    return PathMatch(surface_for_path(clean), clean)
