"""Stores responses for later turns, and finds the responses that a request continues: its chain of responses, and items
by id."""

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, cast

from aiohttp import web

from proxy.conversations.owner_memory import OwnerMemory, owner_of
from proxy.conversations.response_entries import (
    MOST_BYTES,
    MOST_TURNS,
    NOTHING_STORED,
    StoredData,
    ancestors_in,
    entries_of,
    item_key,
    response_key,
)
from proxy.errors import (
    conversation_too_long,
    previous_response_not_found,
    response_not_found,
    responses_not_stored,
    stored_responses_unreachable,
)
from proxy.hooks.request_hook import ContextSource, RequestHook
from proxy.hooks.team_hooks import TeamHooks
from proxy.off_loop.request_threads import RequestThreads
from proxy.request_record import RequestRecord
from proxy.surfaces.registry import STORING
from proxy.surfaces.surface import ReferredIds, Renderer, StoredResponse, StoringRenderer

RESPONSE_BYTES: Final = 64 * 1024 * 1024
RESPONSE_SECONDS: Final = 86400.0
"""The most bytes of all responses in one process, and the seconds for which each is stored after it was made or last
used, unless the configuration has other values."""

MOST_CONTINUED: Final = 2 * MOST_BYTES
"""The most bytes of stored responses that one request may continue."""


@dataclass(slots=True, eq=False)
class StoredResponses:
    """The stored responses of this process, and of others if it shares them. While it is `off` no response is stored.
    `warn` is called at the first response that is not shared, although the client's next request may reach another
    process."""

    entries: OwnerMemory
    off: bool = False
    warn: Callable[[], None] | None = None

    async def recall(self, owner: str, referred: ReferredIds) -> StoredData:
        """Return the responses that a request continues. Raises GatewayError if the response that the request names, or
        an earlier one of its chain, is not stored."""
        if self.off:
            if referred.previous is not None:
                raise responses_not_stored()
            return NOTHING_STORED
        chain = {} if referred.previous is None else await self._chain(owner, referred.previous)
        holders, held = await self._holders(owner, referred.items) if referred.items else ({}, {})
        found = StoredData(chain, holders, held)
        if found.size > MOST_CONTINUED:
            raise conversation_too_long(f"takes more than {MOST_CONTINUED >> 20} MiB")
        return found

    async def get(self, owner: str, response_id: str) -> bytes:
        """Return the data of a stored response. Raises GatewayError if it is not stored."""
        data = (await self._find(owner, [response_id])).get(response_id)
        if data is None:
            raise response_not_found(response_id)
        return data

    async def keep(self, owner: str, stored: StoredResponse) -> bool:
        """Store a response, and return whether it is stored. Waits briefly until other processes can find it."""
        return await self.keep_entries(owner, {} if self.off else entries_of(stored))

    async def keep_entries(self, owner: str, entries: Mapping[str, bytes]) -> bool:
        """Store a response as its entries, and return whether it is stored. Waits briefly until other processes can
        find it."""
        if not entries or not self.entries.kept.has_room_for(entries):
            return False
        if self.warn is not None:
            self.warn()
            self.warn = None
        await self.entries.put_and_wait(owner, entries)
        return True

    async def delete(self, owner: str, response_id: str) -> None:
        """Forget a response. Raises GatewayError if it is not stored, or if other processes may still have it."""
        if response_id not in await self._find(owner, [response_id]):
            raise response_not_found(response_id)
        if not await self.entries.delete(owner, response_key(response_id)):
            raise stored_responses_unreachable()

    async def _chain(self, owner: str, previous: str) -> dict[str, bytes]:
        """Return a response and the ones before it, oldest first."""
        last = (await self._find(owner, [previous])).get(previous)
        ancestors = None if last is None else ancestors_in(last)
        if last is None or ancestors is None:
            raise previous_response_not_found(previous)
        if len(ancestors) >= MOST_TURNS:
            raise conversation_too_long(f"has more than {MOST_TURNS} turns")
        found = await self._find(owner, ancestors)
        if sum(map(len, found.values())) > MOST_CONTINUED:
            raise conversation_too_long(f"takes more than {MOST_CONTINUED >> 20} MiB")
        for name in ancestors:
            if name not in found:
                raise previous_response_not_found(name)
        return {**{name: found[name] for name in ancestors}, previous: last}

    async def _holders(self, owner: str, items: Collection[str]) -> tuple[dict[str, str], dict[str, bytes]]:
        """Return the id of the response that holds each item, and the data of these responses by id."""
        leads = await self.entries.find_undeleted(owner, [item_key(name) for name in items])
        if not leads.certain:
            raise stored_responses_unreachable()
        holders = {
            name: data.decode(errors="replace")
            for name in items
            if (data := leads.entries.get(item_key(name))) is not None
        }
        return holders, await self._find(owner, dict.fromkeys(holders.values()))

    async def _find(self, owner: str, response_ids: Collection[str]) -> dict[str, bytes]:
        """Return the responses that are stored, by id. Raises GatewayError if other processes may have one of them and
        cannot be reached."""
        if self.off:
            return {}
        found = await self.entries.find_undeleted(owner, [response_key(name) for name in response_ids])
        data = {name: found.entries[key] for name in response_ids if (key := response_key(name)) in found.entries}
        if len(data) < len(response_ids) and not found.certain:
            raise stored_responses_unreachable()
        return data


SHORT: Final = 64 * 1024
"""The most bytes of a response that is serialized for the store on the event loop."""


class StoringHook(RequestHook):
    """The part of stored responses in the requests of an API that refers to them. Long responses, and responses to
    heavy requests, whose input is stored too, are serialized in `threads`."""

    __slots__ = ("_responses", "_threads")

    def __init__(self, responses: StoredResponses, threads: RequestThreads) -> None:
        self._responses = responses
        self._threads = threads

    def begun(self, http: web.BaseRequest, record: RequestRecord) -> None:
        """Mark the request as private, so that its response is not cached."""
        record.private = True

    def context(self) -> ContextSource:
        """Return this hook as the source of stored responses."""
        return self

    @property
    def stores(self) -> bool:
        """Whether responses are stored."""
        return not self._responses.off

    async def recall(self, record: RequestRecord, referred: ReferredIds) -> StoredData:
        """Return the responses and items that a request refers to. Raises as `StoredResponses.recall` does."""
        return await self._responses.recall(owner_of(record), referred)

    def written(self, record: RequestRecord, renderer: Renderer, body: bytes, *, heavy: bool) -> Awaitable[bytes]:
        """Store a rendered response. Return its bytes. If the client wants it stored and that failed, return bytes that
        report this, and add `store` to the dropped fields of the record."""
        # Each renderer of a StoringSurface is a StoringRenderer; checking the protocol would take 10 us.
        return self._stored(record, cast(StoringRenderer, renderer), body, heavy or len(body) > SHORT)

    async def _stored(self, record: RequestRecord, renderer: StoringRenderer, body: bytes, long: bool) -> bytes:
        session = None if record.placed is None else record.placed.number
        write = partial(_entries, renderer, self._responses.off, session)
        entries = await self._threads.run(record.owner, write) if long else write()
        if entries is None or await self._responses.keep_entries(owner_of(record), entries):
            return body
        record.dropped = (*record.dropped, "store")
        render = partial(renderer.unstored, body)
        return await self._threads.run(record.owner, render) if long else render()


def attach_stored_responses(hooks: TeamHooks, responses: StoredResponses, threads: RequestThreads) -> None:
    """Store the responses of APIs whose requests refer to them."""
    hook = StoringHook(responses, threads)
    hooks.attach("stored_responses", lambda team, surface: hook if surface in STORING else None)


def _entries(renderer: StoringRenderer, off: bool, session: int | None) -> Mapping[str, bytes] | None:
    """Return the entries of a rendered response: empty if it cannot be stored, `None` if it is not to be stored."""
    stored = renderer.stored()
    if stored is None:
        return None
    return {} if off else entries_of(stored, session)
