"""Every body of the capability matrix that goes to a vendor, as the walk through the running gateway sees it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from providers.unified import JsonObject
from tests.conformance.walk import Exchange, Walked, walked


@dataclass(frozen=True, slots=True)
class Body:
    """One body, and the cells it was seen for."""

    path: str
    body: JsonObject
    features: tuple[str, ...]


_OWN: Mapping[str, str] = {"unknown": "min_tokens", "inference_extra_params": "min_tokens"}
"""Cells that pass on a member of the client's own, which no judge needs to know."""


def bodies(profile: str) -> list[Body]:
    """The different bodies of a profile's cells, native and emulated, whole and streamed; questions about a prompt's
    size are not among them."""
    found: dict[bytes, Body] = {}
    for cell in walked(profile):
        for exchange in _exchanges(cell):
            for sent in exchange.calls(profile):
                body = {name: value for name, value in (sent.body or {}).items() if name != _OWN.get(cell.feature)}
                key = orjson.dumps([sent.endpoint, body], option=orjson.OPT_SORT_KEYS)
                seen = found.setdefault(key, Body(sent.endpoint, body, ())).features
                found[key] = Body(sent.endpoint, body, tuple(sorted({*seen, cell.feature})))
    return list(found.values())


def _exchanges(cell: Walked) -> Iterator[Exchange]:
    if not cell.cell.refused:
        yield cell.whole
        if cell.streamed is not None:
            yield cell.streamed
