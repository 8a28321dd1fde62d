"""Requests that hold every advisory field, for every surface, and unusual values of each advisory field."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from providers.dialects.capability_matrix import MatrixEntry, matrix_entries
from providers.json_types import JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from proxy.surfaces.completion_surface import CompletionSurface
from proxy.surfaces.registry import SURFACES
from tests.conformance.run_matrix import Exchange, matrix_client

VALUES: Mapping[str, JsonValue] = {
    "user": "somebody-7",
    "metadata": {"run": "nightly-7"},
    "store": False,
    "service_tier": "auto",
    "safety_identifier": "person-7",
    "prompt_cache_key": "key-7",
    "prompt_cache_retention": "24h",
    "prediction": {"type": "content", "content": "one two"},
    "speculation": "one two",
}
"""A usual value of each advisory field, and of the fields that are advisory with it."""

_LONG = "x" * 100_000
_NAMES = ("", " ", "a.b", "\x00", "\x1b[31m", "ü", "\U0001f600", "__proto__", "$ref", _LONG)

_IDS: tuple[JsonValue, ...] = (*_NAMES, "someone@example.com", "+49 30 1234567")
_OBJECTS: tuple[JsonValue, ...] = (
    {},
    {str(number): str(number) for number in range(1000)},
    {name: name for name in _NAMES},
    {"user": "another", "user_id": "a third"},
    {"user_id": {"a": [None]}, "number": 1, "nothing": None, "list": [[[]]]},
    {"a": {"b": {"c": {"d": [1, 2.5, True, None]}}}},
)

ODD: Mapping[str, tuple[JsonValue, ...]] = {
    "user": _IDS,
    "metadata": _OBJECTS,
    "store": (False,),
    "service_tier": ("auto", "default"),
    "safety_identifier": _IDS,
    "prompt_cache_key": _IDS,
    "prompt_cache_retention": ("in_memory", "24h", *_NAMES),
    "prediction": (*_OBJECTS, {"type": "content", "content": [{"type": "text", "text": "a"}]}),
    "speculation": (_LONG, [1, 2, 3], {"a": "b"}, 7, True, *_OBJECTS),
}
"""Values that a vendor may not accept. None of them may cause an error."""


@dataclass(frozen=True, slots=True)
class AdvisoryRun:
    """One request that holds every advisory field, to a path of a surface."""

    row: MatrixEntry
    path: str
    exchange: Exchange


def surface_paths(operation: Operation) -> Iterator[str]:
    """Yield the first path of each surface that has the operation and takes the unified fields under their names."""
    for surface in SURFACES:
        if not isinstance(surface, CompletionSurface):
            continue
        found = [each.path for each in surface.endpoints if each.action is operation and "fim" not in each.path]
        yield from found[:1]


@cache
def run_advisory(profile: str) -> tuple[AdvisoryRun, ...]:
    """Return the requests of each model and operation of a profile, on each surface."""
    return asyncio.run(_run(profile))


async def _run(profile: str) -> tuple[AdvisoryRun, ...]:
    async with matrix_client(profile) as walking:
        return tuple(
            [
                AdvisoryRun(row, path, await walking.exchange(row, dict(VALUES), path))
                for row in matrix_entries([load_profiles()[profile]])
                if not row.closed
                for path in surface_paths(row.operation)
            ]
        )
