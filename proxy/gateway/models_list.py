"""The models list. It is rendered once for each team and surface, until the snapshot or the vendors' lists change. A
key with its own names counts as a team."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final, TypeVar

from providers.model_lists.read_model_list import ListedModel
from providers.target import Target
from proxy.discovery.discovered_models import DiscoveredModels, Listed
from proxy.routing.deployment_load import IDLE
from proxy.routing.discovered_names import each_discovered
from proxy.routing.in_service import is_served
from proxy.routing.request_plan import Plan
from proxy.routing.resolve_model import each_visible, whole_plan
from proxy.routing.snapshot import WILDCARD, Snapshot, Team
from proxy.surfaces.surface import ModelCard, Surface

T = TypeVar("T")

MAX_BYTES: Final = 32 * 2**20
"""The most bytes of all cached lists. Above it the oldest lists are evicted. 10,000 models take 1.5 MB."""

SLICE: Final = 0.002
"""The most seconds for which rendering a list blocks the event loop at a time."""

ROUTED: Final = "dragoman"
"""The owner of a name that the configuration defines."""

Known = Mapping[str, Listed]
"""The models that vendors' lists have named, by vendor."""

NONE_KNOWN: Final[Known] = MappingProxyType({})

NOTHING: Final = ListedModel("")
"""The entry of a vendor's list for a model that it does not have."""


class Catalogue:
    """Renders and caches the lists of the latest snapshot. `since` is the value of the models' `created` in unix
    seconds, and `now` returns seconds of a clock. `discovered` has the vendors' own lists, if the configuration has
    them fetched."""

    def __init__(self, since: int, now: Callable[[], float] = time.perf_counter) -> None:
        self._since = since
        self._now = now
        self.discovered: DiscoveredModels | None = None
        self._made_of: tuple[Snapshot, Known] | None = None
        self._cached: dict[tuple[Team, str], bytes] = {}
        self._size = 0
        self._rendering = asyncio.Lock()

    async def models(self, snapshot: Snapshot, team: Team, surface: Surface) -> bytes:
        """Return the list of the models that the team may use. Rendering yields to other requests."""
        known = await self._known([vendor for vendor in snapshot.wildcards if _sees(team, vendor)])
        key = (team, surface.name)
        if (cached := self._of(snapshot, known, key)) is not None:
            return cached
        async with self._rendering:
            if (cached := self._of(snapshot, known, key)) is not None:
                return cached
            rendered = surface.models([card async for card in self._cards(snapshot, team, surface, known)])
            self._store(snapshot, known, key, rendered)
            return rendered

    async def model(self, snapshot: Snapshot, team: Team, surface: Surface, name: str) -> bytes:
        """Return one model. Raises GatewayError for a model that the team may not use or that does not exist."""
        plan = whole_plan(snapshot, team, name, surface.name, IDLE)
        known = await self._known([target.vendor for target in plan.targets if _of_any_model(target)])
        return surface.model(self._card(name, plan, known))

    async def _known(self, vendors: Iterable[str]) -> Known:
        """Return the known lists of vendors, after fetching the lists of `vendors` that are due."""
        if self.discovered is None:
            return NONE_KNOWN
        await self.discovered.ready(vendors)
        return self.discovered.known

    async def _cards(self, snapshot: Snapshot, team: Team, surface: Surface, known: Known) -> AsyncIterator[ModelCard]:
        seen: set[str] = set()
        async for name in self._in_slices(each_visible(snapshot, team)):
            if name not in seen:
                seen.add(name)
                plan = whole_plan(snapshot, team, name, surface.name, IDLE)
                if is_served(plan.targets):
                    yield self._card(name, plan, known)
        async for vendor, listed in self._in_slices(_discovered(snapshot, team, known)):
            for name, targets in each_discovered(snapshot, team, vendor, listed.name):
                if name not in seen and is_served(targets):
                    seen.add(name)
                    yield self._card_of(name, vendor, targets, [listed] * len(targets))

    async def _in_slices(self, made: Iterator[T]) -> AsyncIterator[T]:
        until = self._now() + SLICE
        for each in made:
            yield each
            if self._now() > until:
                await asyncio.sleep(0)
                until = self._now() + SLICE

    def _of(self, snapshot: Snapshot, known: Known, key: tuple[Team, str]) -> bytes | None:
        made_of = self._made_of
        if made_of is None or made_of[0] is not snapshot or made_of[1] is not known:
            return None
        return self._cached.get(key)

    def _store(self, snapshot: Snapshot, known: Known, key: tuple[Team, str], rendered: bytes) -> None:
        made_of = self._made_of
        if made_of is None or made_of[0] is not snapshot or made_of[1] is not known:
            self._made_of, self._cached, self._size = (snapshot, known), {}, 0
        self._cached[key] = rendered
        self._size += len(rendered)
        while self._size > MAX_BYTES:
            self._size -= len(self._cached.pop(next(iter(self._cached))))

    def _card(self, name: str, plan: Plan, known: Known) -> ModelCard:
        owner = ROUTED if plan.by_route else plan.targets[0].vendor
        return self._card_of(name, owner, plan.targets, [_listed(target, known) for target in plan.targets])

    def _card_of(self, name: str, owner: str, targets: Sequence[Target], entries: Sequence[ListedModel]) -> ModelCard:
        """Return the card of a name that stands for these targets: the facts that are true of every target. `entries`
        are the entries of the targets in the vendors' lists."""
        each = [*zip(targets, entries, strict=True)]
        window = _smallest([target.context_window or listed.window for target, listed in each])
        max_output = _smallest([target.max_output_tokens or listed.max_output for target, listed in each])
        prices = {target.price for target in targets}
        return ModelCard(name, self._since, owner, window, max_output, prices.pop() if len(prices) == 1 else None)


def _listed(target: Target, known: Known) -> ListedModel:
    """Return the entry of the vendor's own list for a target's model."""
    if not _of_any_model(target):
        return NOTHING
    return known.get(target.vendor, {}).get(target.upstream_model, NOTHING)


def _of_any_model(target: Target) -> bool:
    return target.model_key == f"{target.vendor}/{WILDCARD}"


def _discovered(snapshot: Snapshot, team: Team, known: Known) -> Iterator[tuple[str, ListedModel]]:
    """Yield the vendor and the entry of each discovered model, for the vendors of which the team may use any model."""
    for vendor, models in known.items():
        if vendor in snapshot.discover and _sees(team, vendor):
            yield from ((vendor, listed) for listed in models.values())


def _sees(team: Team, vendor: str) -> bool:
    """Return whether the allow list may cover a model of the vendor."""
    return any(pattern == WILDCARD or pattern.startswith(f"{vendor}/") for pattern in team.allow)


def _smallest(sizes: Sequence[int | None]) -> int | None:
    """Return the smallest value; `None` unless all are known."""
    known = [size for size in sizes if size is not None]
    return min(known) if len(known) == len(sizes) else None
