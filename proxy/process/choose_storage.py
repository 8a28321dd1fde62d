"""Attaches the optional features of a gateway whose data outlives a request, as hooks. The data is stored in this
process and, if the operator's settings share it, in Redis."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

from config.sections.server_section import ServerSection
from proxy.background_tasks import Work
from proxy.conversations.owner_memory import OwnerMemory
from proxy.conversations.response_entries import MOST_BYTES
from proxy.conversations.stored_entries import StoredEntries
from proxy.conversations.stored_responses import (
    MOST_CONTINUED,
    RESPONSE_BYTES,
    RESPONSE_SECONDS,
    StoredResponses,
    attach_stored_responses,
)
from proxy.dispatch.single_attempt import Dispatcher
from proxy.gateway.handle_request import Gateway
from proxy.gateway.response_endpoints import ResponseEndpoints
from proxy.listener.cors_and_host_names import BrowserGuard
from proxy.loop_clock import loop_clock
from proxy.reasoning_memory.restore_reasoning import TURN_BYTES, TURN_SECONDS, ReasoningMemory, attach_reasoning
from proxy.response_cache.lookup import ResponseCache, attach_cache
from proxy.response_cache.store import ANSWER_SECONDS
from proxy.shared_state.redis_sync import SharedState
from proxy.shared_state.shared_entries import EntryRules, SharedEntries
from proxy.telemetry.metrics import Metrics

_MIB: Final = 1024 * 1024

TURN_ENTRIES: Final = EntryRules("thinking", TURN_SECONDS, 16 * _MIB, 4 * _MIB, 8 * _MIB, 0.05)
"""A request continues without the reasoning if Redis does not return it in time."""

CACHE_ENTRIES: Final = EntryRules("answers", ANSWER_SECONDS, 64 * _MIB, 4 * _MIB, 8 * _MIB, 0.05)
"""A request calls a deployment if Redis does not return the cached response in time."""

RESPONSE_OWNER_BYTES: Final = 64 * _MIB
RESPONSE_WAITING_BYTES: Final = 32 * _MIB
RESPONSE_PATIENCE: Final = 0.25
"""Seconds to wait for a stored response. A request that continues a response needs it."""

NOT_SHARED: Final = (
    "a client has stored a response that only this worker finds: requests that continue it and reach another worker "
    "are refused; set server.shared, or server.workers: 1"
)


@dataclass(frozen=True, slots=True)
class GatewayFeatures:
    """The reasoning of earlier turns, the responses that later requests refer to, and the response cache."""

    reasoning: ReasoningMemory
    responses: StoredResponses
    cache: ResponseCache


def attach_features(gateway: Gateway, dispatcher: Dispatcher, wall: Callable[[], float]) -> GatewayFeatures:
    """Attach the features to a gateway, with the endpoints of stored responses. `wall` returns unix seconds."""
    now, threads, hooks = loop_clock(), dispatcher.off_loop.threads, gateway.hooks
    reasoning = ReasoningMemory(OwnerMemory(now, StoredEntries(TURN_BYTES, TURN_SECONDS)))
    responses = StoredResponses(OwnerMemory(now, StoredEntries(RESPONSE_BYTES, RESPONSE_SECONDS)))
    cache = ResponseCache(now, dispatcher.metrics, threads, wall)
    attach_reasoning(hooks, reasoning, threads)
    attach_stored_responses(hooks, responses, threads)
    attach_cache(hooks, cache)
    gateway.serve(ResponseEndpoints(responses, gateway.generation, gateway.counting, dispatcher).actions())
    return GatewayFeatures(reasoning, responses, cache)


def use_settings(gateway: Gateway, guard: BrowserGuard, server: ServerSection) -> None:
    """Apply the allowed hosts and origins, and the setting of receipts, of a configuration from now on."""
    guard.exchange(server.hosts, server.cors.origins, timing=server.receipt)
    gateway.use_receipts(on=server.receipt)


def set_up_storage(
    features: GatewayFeatures, shared: SharedState | None, server: ServerSection, metrics: Metrics
) -> Iterator[Callable[[], Work]]:
    """Set how much data the features may store, measure how much they store, and yield the services that share the data
    with other processes; no services if the configuration has no `shared`."""
    responses = server.keep_responses
    features.reasoning.off = server.keep_thinking == "off"
    features.responses.off = responses.where == "off"
    features.responses.entries.kept = StoredEntries(responses.memory, responses.lifetime)
    if server.workers != 1 and (shared is None or responses.where == "process"):
        features.responses.warn = partial(logging.getLogger("dragoman").warning, NOT_SHARED)
    metrics.watch_stored_turns(features.reasoning.entries.kept)
    metrics.watch_stored_responses(features.responses.entries.kept)
    metrics.watch_response_cache(features.cache.kept)
    if shared is None:
        return
    yield shared.run
    yield _share(features.cache.there, shared, CACHE_ENTRIES)
    if server.keep_thinking == "shared":
        yield _share(features.reasoning.entries, shared, TURN_ENTRIES)
    if responses.where == "shared":
        rules = EntryRules(
            "responses",
            responses.lifetime,
            RESPONSE_OWNER_BYTES,
            MOST_CONTINUED + MOST_BYTES,
            RESPONSE_WAITING_BYTES,
            RESPONSE_PATIENCE,
        )
        yield _share(features.responses.entries, shared, rules)


def _share(memory: OwnerMemory, shared: SharedState, rules: EntryRules) -> Callable[[], Work]:
    """Share a storage with other processes, and return the service that shares it."""
    memory.others = others = SharedEntries(shared.command, lambda: shared.up, shared.prefix, rules)
    return others.run
