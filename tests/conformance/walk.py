"""The walk through the matrix: each cell's feature sent through the running gateway to a fake of its vendor.

Never judges what it sees.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from typing import cast
from urllib.parse import urlsplit

from providers.capabilities import Cell
from providers.matrix import MatrixRow, rows
from providers.profiles import load_profiles
from providers.unified import JsonObject, Operation
from tests.conformance.engine import WINDOW
from tests.conformance.fake import FakeEngine, spoken
from tests.conformance.samples import BASE, sample
from tests.proxy.raw_client import Answer, RawClient, connected, request
from tests.proxy.rig import Rig, rig
from tests.support.script import Received

PATHS: Mapping[Operation, str] = {
    Operation.COMPLETIONS: "/v1/completions",
    Operation.CHAT: "/v1/chat/completions",
}
UNSTREAMED = frozenset({"best_of"})
"""What no client can ask of a stream."""

STREAM: JsonObject = {"stream": True, "stream_options": {"include_usage": True}}


@dataclass(frozen=True, slots=True)
class Sent:
    """One request as the vendor got it; `body` is None where it had none."""

    path: str
    body: JsonObject | None
    headers: Mapping[str, str]

    @property
    def endpoint(self) -> str:
        """The path without its query."""
        return self.path.partition("?")[0]


@dataclass(frozen=True, slots=True)
class Exchange:
    """What the vendor got for one request of a client, in the order of arrival, and what the client got."""

    sent: tuple[Sent, ...]
    answer: Answer

    def calls(self, profile: str) -> list[Sent]:
        """What was asked of the model; the rest were questions about the prompt's size."""
        return [sent for sent in self.sent if spoken(profile).call(sent.endpoint) is not None]


@dataclass(frozen=True, slots=True)
class Walked:
    """One cell with what came of it, whole and streamed. `base` is what came of the smallest request of its row;
    `window` says that the table has the window."""

    row: MatrixRow
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
class Walker:
    """A gateway before one fake vendor, and one client's connection to it."""

    rig: Rig
    fake: FakeEngine
    client: RawClient

    async def exchange(self, row: MatrixRow, fields: JsonObject) -> Exchange:
        """What comes of the smallest request with these fields."""
        self.fake.forget()
        self.rig.vendor.requests.clear()
        body = {"model": f"{row.profile}/{row.model}", **BASE[row.operation], **fields}
        await self.client.send(request("POST", PATHS[row.operation], body))
        answer = await self.client.answer()
        return Exchange(tuple(map(_sent, self.rig.vendor.requests)), answer)

    async def cell(self, row: MatrixRow, feature: str, base: Exchange, window: bool) -> Walked:
        """What comes of one feature."""
        cell = row.cells[feature]
        fields = sample(feature, row, refused=cell.refused)
        whole = await self.exchange(row, fields)
        streamed = None
        if not cell.refused and feature not in UNSTREAMED:
            streamed = await self.exchange(row, {**fields, **STREAM})
        return Walked(row, feature, cell, base, whole, streamed, window)


def _sent(received: Received) -> Sent:
    body = cast(JsonObject, received.json()) if received.body else None
    return Sent(received.target, body, {name.lower(): value for name, value in received.headers})


AT_ROOT = ("llamacpp_native", "tgi_native")
"""Profiles without an address of their own whose servers have their API at the root."""


def table(profile: str, window: int | None) -> str:
    """A routing table with the profile's example models, at a fake."""
    settings = "max_output_tokens: 1024" + (f", context_window: {window}" if window else "")
    models = "\n".join(f'  "{profile}/{model}": {{{settings}}}' for model in load_profiles()[profile].examples)
    usual = "http://host" if profile in AT_ROOT else "http://host/v1"
    path = re.sub(r"[{}]", "", urlsplit(load_profiles()[profile].base_url or usual).path)
    vendor = f'{{api_key: sk-a, base_url: "http://127.0.0.1:PORT{path}", allow_private: true}}'
    return f"vendors:\n  {profile}: {vendor}\nmodels:\n{models}\n"


@asynccontextmanager
async def walker(profile: str, window: int | None = None) -> AsyncIterator[Walker]:
    """A gateway for one profile for as long as the block."""
    async with rig(table(profile, window)) as running:
        fake = running.vendor.default = FakeEngine(profile)
        async with connected(running.port) as client:
            yield Walker(running, fake, client)


@cache
def walked(profile: str) -> tuple[Walked, ...]:
    """Every cell of a profile, and again those that a window in the table changes."""
    return asyncio.run(_walk(profile))


async def _walk(profile: str) -> tuple[Walked, ...]:
    known, unknown = (list(rows([load_profiles()[profile]], window)) for window in (WINDOW, None))
    changed = [
        (row, [feature for feature, cell in row.cells.items() if cell != other.cells[feature]])
        for row, other in zip(known, unknown, strict=True)
    ]
    plain = [(row, list(row.cells)) for row in unknown]
    return (*await _walked(profile, plain, None), *await _walked(profile, changed, WINDOW))


async def _walked(profile: str, cells: list[tuple[MatrixRow, list[str]]], window: int | None) -> list[Walked]:
    found: list[Walked] = []
    async with walker(profile, window) as walking:
        for row, features in cells:
            # The first request may make the gateway ask for the window.
            await walking.exchange(row, {})
            base = await walking.exchange(row, {})
            found += [await walking.cell(row, feature, base, window is not None) for feature in features]
    return found


def every() -> Iterator[Walked]:
    """All of them."""
    for profile in load_profiles():
        yield from walked(profile)
