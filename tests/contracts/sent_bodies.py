"""The bodies of the capability matrix that a vendor receives, as `conformance` sends them through a running gateway."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import orjson

from providers.json_types import JsonObject
from tests.conformance.advisory_requests import run_advisory
from tests.conformance.run_matrix import CellRun, Exchange, run_profile


@dataclass(frozen=True, slots=True)
class Body:
    """One body, and the features it was sent for."""

    path: str
    body: JsonObject
    features: tuple[str, ...]


_OWN: Mapping[str, str] = {"unknown": "min_tokens", "inference_extra_params": "min_tokens"}
"""Features that pass on a field of the client's own, which no judge knows."""


def bodies(profile: str) -> list[Body]:
    """Return the distinct bodies of a profile's cells (native, emulated and left out, non-streaming and streamed) and
    of requests with all advisory fields, without the requests for a prompt's size."""
    found: dict[bytes, Body] = {}
    for feature, exchange in _sent(profile):
        for sent in exchange.calls(profile):
            body = {name: value for name, value in (sent.body or {}).items() if name != _OWN.get(feature)}
            key = orjson.dumps([sent.endpoint, body], option=orjson.OPT_SORT_KEYS)
            seen = found.setdefault(key, Body(sent.endpoint, body, ())).features
            found[key] = Body(sent.endpoint, body, tuple(sorted({*seen, feature})))
    return list(found.values())


def _sent(profile: str) -> Iterator[tuple[str, Exchange]]:
    for cell in run_profile(profile):
        for exchange in _exchanges(cell):
            yield cell.feature, exchange
    for run in run_advisory(profile):
        yield f"everything advisory on {run.path}", run.exchange


def _exchanges(cell: CellRun) -> Iterator[Exchange]:
    if not cell.cell.refused:
        yield cell.whole
        if cell.streamed is not None:
            yield cell.streamed
