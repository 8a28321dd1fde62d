"""The models list, rendered once for each team and surface of a snapshot."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from proxy.routing.deployment_load import IDLE
from proxy.routing.resolve_model import each_visible, plan
from proxy.routing.snapshot import Snapshot, Team
from proxy.surfaces.surface import ModelCard, Surface

MAX_BYTES: Final = 32 * 2**20
"""Bytes of all cached lists, of which the oldest are evicted. 10,000 models take 1.5 MB."""

SLICE: Final = 0.002
"""Seconds for which rendering a list holds the event loop at a time."""


class Catalogue:
    """Renders and caches the latest snapshot's lists. `since` is the models' `created` (unix s), `now` a clock (s)."""

    def __init__(self, since: int, now: Callable[[], float] = time.perf_counter) -> None:
        self._since = since
        self._now = now
        self._snapshot: Snapshot | None = None
        self._cached: dict[tuple[str, str], bytes] = {}
        self._size = 0
        self._rendering = asyncio.Lock()

    async def models(self, snapshot: Snapshot, team: Team, surface: Surface) -> bytes:
        """Return the list of the models that the team may use. Rendering yields to other requests."""
        key = (team.name, surface.name)
        if snapshot is self._snapshot and (cached := self._cached.get(key)) is not None:
            return cached
        async with self._rendering:
            if snapshot is self._snapshot and (cached := self._cached.get(key)) is not None:
                return cached
            rendered = surface.models([card async for card in self._cards(snapshot, team, surface)])
            self._store(snapshot, key, rendered)
            return rendered

    def model(self, snapshot: Snapshot, team: Team, surface: Surface, name: str) -> bytes:
        """Return one model. Raises GatewayError for one that the team may not use or that does not exist."""
        return surface.model(self._card(snapshot, team, surface, name))

    async def _cards(self, snapshot: Snapshot, team: Team, surface: Surface) -> AsyncIterator[ModelCard]:
        until = self._now() + SLICE
        seen: set[str] = set()
        for name in each_visible(snapshot, team):
            if name not in seen:
                seen.add(name)
                yield self._card(snapshot, team, surface, name)
            if self._now() > until:
                await asyncio.sleep(0)
                until = self._now() + SLICE

    def _store(self, snapshot: Snapshot, key: tuple[str, str], rendered: bytes) -> None:
        if snapshot is not self._snapshot:
            self._snapshot, self._cached, self._size = snapshot, {}, 0
        self._cached[key] = rendered
        self._size += len(rendered)
        while self._size > MAX_BYTES:
            self._size -= len(self._cached.pop(next(iter(self._cached))))

    def _card(self, snapshot: Snapshot, team: Team, surface: Surface, name: str) -> ModelCard:
        planned = plan(snapshot, team, name, surface.name, IDLE)
        windows = [target.context_window for target in planned.targets]
        known = [window for window in windows if window is not None]
        window = min(known) if len(known) == len(windows) else None
        owner = "dragoman" if planned.by_route else planned.targets[0].vendor
        return ModelCard(name, self._since, owner, window)
