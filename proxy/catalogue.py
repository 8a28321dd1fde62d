"""The models list as clients get it, made once for each team and surface of a snapshot.

Never decides what a team may see; that is `proxy.routing`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from typing import Final

from proxy.load import IDLE
from proxy.routing import each_visible, plan
from proxy.snapshot import Snapshot, Team
from proxy.surfaces.surface import ModelCard, Surface

MAX_BYTES: Final = 32 * 2**20
"""Bytes of all lists that are kept; the oldest make room. 10,000 models take 1.5 MB."""

SLICE: Final = 0.002
"""Seconds of the loop that the making of a list takes at a time."""


class Catalogue:
    """The lists of the snapshot in force. `since` is the `created` of every model, in unix seconds."""

    def __init__(self, since: int, clock: Callable[[], float] = time.perf_counter) -> None:
        self._since = since
        self._clock = clock
        self._snapshot: Snapshot | None = None
        self._made: dict[tuple[str, str], bytes] = {}
        self._size = 0
        self._making = asyncio.Lock()

    async def models(self, snapshot: Snapshot, team: Team, surface: Surface) -> bytes:
        """The list of what the team may ask for; other requests are served while it is made."""
        key = (team.name, surface.name)
        if snapshot is self._snapshot and (kept := self._made.get(key)) is not None:
            return kept
        async with self._making:
            if snapshot is self._snapshot and (kept := self._made.get(key)) is not None:
                return kept
            made = surface.models([card async for card in self._cards(snapshot, team, surface)])
            self._keep(snapshot, key, made)
            return made

    def model(self, snapshot: Snapshot, team: Team, surface: Surface, name: str) -> bytes:
        """One model. Raises GatewayError for one that the team may not ask for, or that is not there."""
        return surface.model(self._card(snapshot, team, surface, name))

    async def _cards(self, snapshot: Snapshot, team: Team, surface: Surface) -> AsyncIterator[ModelCard]:
        until = self._clock() + SLICE
        seen: set[str] = set()
        for name in each_visible(snapshot, team):
            if name not in seen:
                seen.add(name)
                yield self._card(snapshot, team, surface, name)
            if self._clock() > until:
                await asyncio.sleep(0)
                until = self._clock() + SLICE

    def _keep(self, snapshot: Snapshot, key: tuple[str, str], made: bytes) -> None:
        if snapshot is not self._snapshot:
            self._snapshot, self._made, self._size = snapshot, {}, 0
        self._made[key] = made
        self._size += len(made)
        while self._size > MAX_BYTES:
            self._size -= len(self._made.pop(next(iter(self._made))))

    def _card(self, snapshot: Snapshot, team: Team, surface: Surface, name: str) -> ModelCard:
        planned = plan(snapshot, team, name, surface.name, IDLE)
        windows = [target.context_window for target in planned.targets]
        known = [window for window in windows if window is not None]
        window = min(known) if len(known) == len(windows) else None
        owner = "dragoman" if planned.by_route else planned.targets[0].vendor
        return ModelCard(name, self._since, owner, window)
