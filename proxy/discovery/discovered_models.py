"""The models in the vendors' lists. They are cached for the models list, and fetched again when a client requests that
list and they are old.

Nothing is fetched without demand. Only the first requests after the start wait for a list, for FIRST_WAIT. Each process
fetches for itself.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from providers.model_lists.read_model_list import ListedModel
from providers.target import Target
from proxy.background_tasks import SharedTask
from proxy.discovery.fetch_model_list import UnfetchedError, fetch_list
from proxy.routing.in_service import in_service
from proxy.routing.snapshot import Snapshot
from proxy.upstream.transport import Transport

FIRST_WAIT: Final = 2.0
"""Seconds after the first demand for a vendor's list during which requests wait for it."""

REFETCH_AFTER: Final = 600.0
"""Seconds after which a list is fetched again at the next demand."""

RETRY_PAUSE: Final = 60.0
"""Seconds after a failure before the vendor is called again."""

DROP_AFTER: Final = 24 * 3600.0
"""Seconds for which a list stays cached if it cannot be fetched again."""

Listed = Mapping[str, ListedModel]
"""The models of a vendor by the vendor's names."""


@dataclass(frozen=True, slots=True)
class ListState:
    """The state of one vendor's list, for operators: the number of its models, `None` before the first fetch, the
    number of entries left out, and why the last fetch failed, empty if it succeeded."""

    models: int | None = None
    left_out: int = 0
    failure: str = ""

    def beside(self, other: "ListState") -> "ListState":
        """Return the state that is shown for two processes: the state with a failure, else the state with the longer
        list."""
        return max(self, other, key=lambda state: (bool(state.failure), state.models or 0))

    def __str__(self) -> str:
        parts = ["not fetched yet" if self.models is None else f"{self.models} models"]
        if self.left_out:
            parts.append(f"{self.left_out} left out for their names or their number")
        if self.failure:
            parts.append(f"last fetch failed: {self.failure}")
        return ", ".join(parts)


class DiscoveredModels:
    """The lists of the vendors that the configuration discovers. `use` sets a configuration; `aclose` ends the fetches
    in flight.

    `known` has the lists by vendor. The mapping is replaced, never changed, whenever a list changes.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._lists: dict[str, _VendorList] = {}
        self.known: Mapping[str, Listed] = MappingProxyType({})

    async def use(self, snapshot: Snapshot) -> None:
        """Use a configuration: keep the lists of vendors that are fetched in the same way, and remove the others."""
        entries = ((name, entry) for name, entry in snapshot.wildcards.items() if name in snapshot.discover)
        listed = {name: in_service(entry.targets) for name, entry in entries}
        wanted = {name: targets for name, targets in listed.items() if targets}
        removed = [
            each for name, each in self._lists.items() if name not in wanted or not each.fetches_like(wanted[name])
        ]
        self._lists = {name: each for name, each in self._lists.items() if each not in removed}
        for name, targets in wanted.items():
            if name not in self._lists:
                self._lists[name] = _VendorList(name, targets, self._transport, self._publish)
        self._publish()
        for each in removed:
            await each.fetching.aclose()

    async def ready(self, vendors: Iterable[str]) -> None:
        """Begin to fetch the lists of these vendors that are due. Wait for the lists that were never fetched, as long
        as requests may wait for them."""
        lists = [self._lists[name] for name in vendors if name in self._lists]
        for each in lists:
            each.demand()
        for each in lists:
            if each.fetching.running and not each.fetched:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(each.patience):
                        await each.fetching.run()

    def _publish(self) -> None:
        known = {name: each.models for name, each in self._lists.items() if each.models}
        if known != self.known:
            self.known = MappingProxyType(known)

    def states(self) -> Mapping[str, ListState]:
        """Return the state of each vendor's list."""
        return {name: each.state for name, each in self._lists.items()}

    async def aclose(self) -> None:
        """End the fetches in flight."""
        for each in self._lists.values():
            await each.fetching.aclose()


class _VendorList:
    """One vendor's list, and the fetch that renews it, at most one at a time. `changed` is called after a change of
    `models`. `patience` is the loop time at which requests stop waiting for a list that was never fetched."""

    def __init__(
        self, vendor: str, targets: tuple[Target, ...], transport: Transport, changed: Callable[[], None]
    ) -> None:
        self._vendor = vendor
        self._targets = targets
        self._transport = transport
        self._changed = changed
        self._now = asyncio.get_running_loop().time
        self._log = logging.getLogger("dragoman")
        self._next = float("-inf")
        self._since = float("-inf")
        self.patience = float("inf")
        self.models: Listed = {}
        self.state = ListState()
        self.fetching = SharedTask(self._renew)

    @property
    def fetched(self) -> bool:
        """Whether a list has been fetched."""
        return self.state.models is not None

    def fetches_like(self, targets: tuple[Target, ...]) -> bool:
        """Return whether the same list would be fetched from these deployments in the same way."""
        return [*map(_fetch_settings, targets)] == [*map(_fetch_settings, self._targets)]

    def demand(self) -> None:
        """Begin to fetch the list if it is due; drop it if it has been stale for too long."""
        now = self._now()
        self.patience = min(self.patience, now + FIRST_WAIT)
        if self.models and now - self._since > DROP_AFTER:
            self.models, self.state = {}, ListState(None, 0, self.state.failure)
            self.patience = now + FIRST_WAIT
            self._changed()
        if now >= self._next:
            self.fetching.start()

    async def _renew(self) -> None:
        # Set at the beginning, so that a fault of the gateway is not repeated for every request.
        self._next = self._now() + RETRY_PAUSE
        try:
            found = await fetch_list(self._transport, self._targets)
        except UnfetchedError as unfetched:
            self._failed(unfetched.reason)
            return
        now = self._now()
        self._since, self._next = now, now + REFETCH_AFTER
        before, self.state = self.state, ListState(len(found.models), found.left_out)
        self.models = MappingProxyType({model.name: model for model in found.models})
        self._changed()
        if before.failure:
            self._log.info("the list of models of %s can be fetched again", self._vendor)
        if found.left_out and found.left_out != before.left_out:
            self._log.warning(
                "of the list of models of %s, entries left out for their names or their number: %d",
                *(self._vendor, found.left_out),
            )

    def _failed(self, reason: str) -> None:
        self._next = self._now() + RETRY_PAUSE
        if reason != self.state.failure:
            self._log.warning("the list of models of %s could not be fetched: %s", self._vendor, reason)
        self.state = ListState(self.state.models, self.state.left_out, reason)


def _fetch_settings(target: Target) -> tuple[object, ...]:
    return (
        *(target.profile.name, target.base_url, target.credential, target.allow_private),
        *(target.authorities, target.api_version),
    )
