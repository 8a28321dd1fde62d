"""Where what outlives requests is kept, by the operator's settings: in this process, and at Redis where shared."""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from config.sections.server_section import ServerSection
from proxy.background_tasks import Work
from proxy.conversations.owner_memory import OwnerMemory
from proxy.conversations.response_entries import MOST_BYTES
from proxy.conversations.stored_entries import StoredEntries
from proxy.conversations.stored_responses import MOST_CONTINUED
from proxy.gateway.handle_request import Gateway
from proxy.gateway.restore_reasoning import TURN_SECONDS
from proxy.listener.cors_and_host_names import BrowserGuard
from proxy.response_cache.store import ANSWER_SECONDS
from proxy.shared_state.redis_sync import SharedState
from proxy.shared_state.shared_entries import EntryRules, SharedEntries
from proxy.telemetry.metrics import Metrics

_MIB: Final = 1024 * 1024

TURNS: Final = EntryRules("thinking", TURN_SECONDS, 16 * _MIB, 4 * _MIB, 8 * _MIB, 0.05)
"""A request does without the thinking that Redis does not return in time."""

ANSWERS: Final = EntryRules("answers", ANSWER_SECONDS, 64 * _MIB, 4 * _MIB, 8 * _MIB, 0.05)
"""A request asks a deployment where Redis does not return its answer in time."""

RESPONSE_OWNER_BYTES: Final = 64 * _MIB
RESPONSE_WAITING_BYTES: Final = 32 * _MIB
RESPONSE_PATIENCE: Final = 0.25
"""Seconds: a request that continues a response cannot do without it."""

ALONE: Final = (
    "a client has a response stored, which only this worker finds: requests that continue it and come to another one "
    "are refused; write server.shared, or server.workers: 1"
)


def use_settings(gateway: Gateway, guard: BrowserGuard, server: ServerSection) -> None:
    """Apply the allowed hosts and origins, and the setting of receipts, of a configuration from now on."""
    guard.exchange(server.hosts, server.cors.origins, timing=server.receipt)
    gateway.use_receipts(on=server.receipt)


def keep_by_settings(
    gateway: Gateway, guard: BrowserGuard, shared: SharedState | None, server: ServerSection, metrics: Metrics
) -> Iterator[Callable[[], Work]]:
    """Set what the gateway keeps, watch how much it is, and yield the services that share it with other processes; none
    where the table has no `shared`."""
    responses = server.keep_responses
    use_settings(gateway, guard, server)
    gateway.turns.off = server.keep_thinking == "off"
    gateway.responses.off = responses.where == "off"
    gateway.responses.entries.kept = StoredEntries(responses.memory, responses.lifetime)
    if server.workers != 1 and (shared is None or responses.where == "process"):
        gateway.responses.warn = partial(logging.getLogger("dragoman").warning, ALONE)
    metrics.watch_kept_turns(gateway.turns.entries.kept)
    metrics.watch_kept_responses(gateway.responses.entries.kept)
    metrics.watch_kept_answers(gateway.cache.kept)
    if shared is None:
        return
    yield shared.run
    yield _share(gateway.cache.there, shared, ANSWERS)
    if server.keep_thinking == "shared":
        yield _share(gateway.turns.entries, shared, TURNS)
    if responses.where == "shared":
        rules = EntryRules(
            "responses",
            responses.lifetime,
            RESPONSE_OWNER_BYTES,
            MOST_CONTINUED + MOST_BYTES,
            RESPONSE_WAITING_BYTES,
            RESPONSE_PATIENCE,
        )
        yield _share(gateway.responses.entries, shared, rules)


def _share(memory: OwnerMemory, shared: SharedState, rules: EntryRules) -> Callable[[], Work]:
    """Share a memory with other processes, and return the service that does."""
    memory.others = others = SharedEntries(shared.command, lambda: shared.up, shared.prefix, rules)
    return others.run
