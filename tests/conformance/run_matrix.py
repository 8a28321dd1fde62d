"""Sends each cell of the capability matrix through a running gateway to a fake of its vendor."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import cast
from urllib.parse import urlsplit

from providers.capabilities import Cell
from providers.dialects.capability_matrix import MatrixEntry, matrix_entries
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from proxy.request_record import RequestRecord
from tests.conformance.engine import WINDOW
from tests.conformance.fake_engine import FakeEngine, fake_dialect_of
from tests.conformance.feature_requests import SMALLEST, fields_for
from tests.proxy.kit.gateway_rig import Rig, rig
from tests.proxy.kit.raw_client import Answer, RawClient, connected, request
from tests.support.vendor_script import Received

PATHS: Mapping[Operation, str] = {
    Operation.COMPLETIONS: "/v1/completions",
    Operation.CHAT: "/v1/chat/completions",
}
UNSTREAMED = frozenset({"best_of"})
"""Features that cannot be streamed."""

STREAM: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True)
class Sent:
    """A request as the vendor received it; `body` is `None` if it had no body."""

    path: str
    body: JsonObject | None
    headers: Mapping[str, str]

    @property
    def endpoint(self) -> str:
        return self.path.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Exchange:
    """The vendor requests for one client request, in order of arrival, the client's response, and the fields reported
    to the access log."""

    sent: tuple[Sent, ...]
    answer: Answer
    record: RequestRecord

    def calls(self, profile: str) -> list[Sent]:
        """Return the requests to the model, without the requests for a prompt's size."""
        return [sent for sent in self.sent if fake_dialect_of(profile).call(sent.endpoint) is not None]


@dataclass(frozen=True, slots=True)
class CellRun:
    """One cell with its exchanges, non-streaming and streamed.

    `base` is the exchange of the smallest request of its endpoint. If `window`, the configuration has the context
    window.
    """

    row: MatrixEntry
    feature: str
    cell: Cell
    base: Exchange
    whole: Exchange
    streamed: Exchange | None
    window: bool = False

    def __str__(self) -> str:
        place = f"{self.row.profile}/{self.row.model} {self.row.operation} {self.feature}"
        return f"{place} ({self.cell.support}{', window known' if self.window else ''})"


@dataclass(frozen=True, slots=True)
class MatrixClient:
    """A gateway in front of one fake vendor, and a client's connection to it."""

    rig: Rig
    fake: FakeEngine
    client: RawClient

    async def exchange(self, row: MatrixEntry, fields: JsonObject, path: str | None = None) -> Exchange:
        """Send the smallest request with these fields to `path`, by default the path of OpenAI's surface."""
        self.fake.forget()
        self.rig.vendor.requests.clear()
        self.rig.records.clear()
        body = {"model": f"{row.profile}/{row.model}", **SMALLEST[row.operation], **fields}
        await self.client.send(request("POST", path or PATHS[row.operation], body))
        answer = await self.client.answer()
        (record,) = await self.rig.finished(1)
        return Exchange(tuple(map(_sent, self.rig.vendor.requests)), answer, record)

    async def cell(self, row: MatrixEntry, feature: str, base: Exchange, window: bool) -> CellRun:
        """Send one feature's request, non-streaming and streamed."""
        cell = row.cells[feature]
        fields = fields_for(feature, row, refused=cell.refused)
        whole = await self.exchange(row, fields)
        streamed = None
        if not cell.refused and feature not in UNSTREAMED:
            streamed = await self.exchange(row, {**fields, **STREAM})
        return CellRun(row, feature, cell, base, whole, streamed, window)


def _sent(received: Received) -> Sent:
    body = cast(JsonObject, received.json()) if received.body else None
    return Sent(received.target, body, {name.lower(): value for name, value in received.headers})


AT_ROOT = ("llamacpp_native", "tgi_native")
"""Profiles without an address of their own whose servers have their API at the root path."""


def api_path(profile: str) -> str:
    """Return the path of a profile's API, with the names of placeholders as their values."""
    usual = "http://host" if profile in AT_ROOT else "http://host/v1"
    return re.sub(r"[{}]", "", urlsplit(load_profiles()[profile].base_url or usual).path)


_TOLD_A_LIMIT = ("anthropic", "anthropic_vertex", "bedrock_anthropic", "llm_engine", "triton")
"""Dialects that require a limit. The others get no greatest limit, to which the clients' limit would be lowered."""

_LIMIT = 3072
"""A limit that leaves room in the window for a prompt and a reasoning budget."""


def table(profile: str, window: int | None, limit: int | None = _LIMIT) -> str:
    examples = load_profiles()[profile].examples
    models = "\n".join(f'  "{profile}/{model}": {{{_settings(profile, model, window, limit)}}}' for model in examples)
    vendor = f'{{api_key: sk-a, base_url: "http://127.0.0.1:PORT{api_path(profile)}", allow_private: true}}'
    return f"vendors:\n  {profile}: {vendor}\nmodels:\n{models}\n"


def _settings(profile: str, model: str, window: int | None, limit: int | None) -> str:
    told = load_profiles()[profile].dialect in _TOLD_A_LIMIT or "mistral-7b" in model or model.startswith("anthropic/")
    given = {"max_output_tokens": limit if told else None, "context_window": window}
    return ", ".join([f"{name}: {value}" for name, value in given.items() if value])


@asynccontextmanager
async def matrix_client(
    profile: str, window: int | None = None, limit: int | None = _LIMIT
) -> AsyncIterator[MatrixClient]:
    """Run a gateway for one profile for the duration of the block."""
    async with rig(table(profile, window, limit)) as running:
        fake = running.vendor.default = FakeEngine(profile)
        async with connected(running.port) as client:
            yield MatrixClient(running, fake, client)


@cache
def run_profile(profile: str) -> tuple[CellRun, ...]:
    """Return every cell of a profile, and once more the cells that a window in the configuration changes."""
    return asyncio.run(_walk(profile))


async def _walk(profile: str) -> tuple[CellRun, ...]:
    known, unknown = (list(matrix_entries([load_profiles()[profile]], window)) for window in (WINDOW, None))
    changed = [
        (row, [feature for feature, cell in row.cells.items() if cell != other.cells[feature]])
        for row, other in zip(known, unknown, strict=True)
    ]
    plain = [(row, list(row.cells)) for row in unknown]
    return (*await _walked(profile, plain, None), *await _walked(profile, changed, WINDOW))


async def _walked(profile: str, cells: list[tuple[MatrixEntry, list[str]]], window: int | None) -> list[CellRun]:
    found: list[CellRun] = []
    # A limit beyond the window must not be lowered in advance.
    async with matrix_client(profile, window) as walking, matrix_client(profile, window, None) as beyond:
        for row, features in cells:
            # The first request may make the gateway fetch the window from the vendor.
            await walking.exchange(row, {})
            await beyond.exchange(row, {"max_tokens": 5})
            base = await walking.exchange(row, {})
            for feature in features:
                client = beyond if feature.startswith("context_") else walking
                found.append(await client.cell(row, feature, base, window is not None))
    return found


def all_cell_runs() -> Iterator[CellRun]:
    """Return the cells of all profiles."""
    for profile in load_profiles():
        yield from run_profile(profile)
