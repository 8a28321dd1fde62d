"""The payload log as a hook: it holds the bodies of a request and its response until the request has ended."""

from collections.abc import Callable

from proxy.hooks.request_hook import RequestHook
from proxy.hooks.team_hooks import TeamHooks
from proxy.payload_log.gathering_renderer import GatheringRenderer
from proxy.request_record import RequestRecord
from proxy.surfaces.surface import Renderer
from proxy.telemetry.observer_guard import ObserverGuard

PayloadSink = Callable[[RequestRecord, bytes], None]
"""Receives the body of a request, and sets the content of the record if the request is to be logged."""


class PayloadHook(RequestHook):
    """Passes the body of each request to `sink`, and adds the response to the content of each request that is logged.
    `guard` reports faults of the log."""

    __slots__ = ("_guard", "_sink")

    def __init__(self, sink: PayloadSink, guard: ObserverGuard) -> None:
        self._sink = sink
        self._guard = guard

    def received(self, record: RequestRecord, body: bytes) -> None:
        """Hold the body of a request. See RequestHook."""
        self._guard.call("payload_log", record.request_id, self._sink, record, body)

    def rendered(self, record: RequestRecord, renderer: Renderer) -> Renderer:
        """Gather the content of a stream. See RequestHook."""
        content = record.content
        if content is None:
            return renderer
        return GatheringRenderer(renderer, content, self._guard.of("payload_log", record.request_id))

    def shown(self, record: RequestRecord, body: bytes) -> None:
        """Hold the body of a response. See RequestHook."""
        if record.content is not None:
            record.content.answer = body


def attach_payload_log(hooks: TeamHooks, guard: ObserverGuard, sink: PayloadSink) -> None:
    """Pass the bodies of the requests of all teams that begin from now on to `sink`."""
    hook = PayloadHook(sink, guard)
    hooks.attach("payload_log", lambda team, surface: hook)
