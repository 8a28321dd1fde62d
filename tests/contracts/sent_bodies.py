"""The bodies of the capability matrix that go to a vendor, as `conformance` sends them through a running gateway."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from providers.json_types import JsonObject
from tests.conformance.run_matrix import CellRun, Exchange, run_profile


@dataclass(frozen=True, slots=True)
class Body:
    """One body, and the features it was sent for."""

    path: str
    body: JsonObject
    features: tuple[str, ...]


_OWN: Mapping[str, str] = {"unknown": "min_tokens", "inference_extra_params": "min_tokens"}
"""Features that pass on a member of the client's own, which no judge knows."""


def bodies(profile: str) -> list[Body]:
    """Return the distinct bodies of a profile's cells, native and emulated, whole and streamed, without the
    questions about a prompt's size."""
    found: dict[bytes, Body] = {}
    for cell in run_profile(profile):
        for exchange in _exchanges(cell):
            for sent in exchange.calls(profile):
                body = {name: value for name, value in (sent.body or {}).items() if name != _OWN.get(cell.feature)}
                key = orjson.dumps([sent.endpoint, body], option=orjson.OPT_SORT_KEYS)
                seen = found.setdefault(key, Body(sent.endpoint, body, ())).features
                found[key] = Body(sent.endpoint, body, tuple(sorted({*seen, cell.feature})))
    return list(found.values())


def _exchanges(cell: CellRun) -> Iterator[Exchange]:
    if not cell.cell.refused:
        yield cell.whole
        if cell.streamed is not None:
            yield cell.streamed
