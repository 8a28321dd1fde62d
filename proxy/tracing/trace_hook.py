"""Tracing as two hooks. The first hook begins the trace of a request, and records the request's parameters and its
response. The second hook records the texts of the prompt. It runs after all other hooks that change or refuse these
texts."""

from collections.abc import Awaitable

from aiohttp import web

from providers.completion import Completion
from providers.target import Target
from providers.unified_request import UnifiedRequest
from proxy.hooks.request_hook import Q, RequestHook
from proxy.hooks.team_hooks import TeamHooks
from proxy.request_record import RequestRecord
from proxy.telemetry.observer_guard import ObserverGuard
from proxy.tracing.begin_trace import TraceStarter
from proxy.tracing.trace_notes import note_prompt, note_request, note_response, noted_stream
from proxy.upstream.vendor_stream import Stream


class TraceHook(RequestHook):
    """Begins traces with `traces`, and records the attributes of the spans of sampled requests. `guard` reports
    faults."""

    __slots__ = ("_guard", "_traces")

    def __init__(self, traces: TraceStarter, guard: ObserverGuard) -> None:
        self._traces = traces
        self._guard = guard

    def begun(self, http: web.BaseRequest, record: RequestRecord) -> None:
        """Begin a trace, or join the caller's trace."""
        if "traceparent" in http.headers:
            self._guard.call("tracing", record.request_id, self._traces.join, http, record)
        else:
            self._guard.call("tracing", record.request_id, self._traces.begin, http.method, record)
        if record.sampled is not None:
            record.hook_lines = f"traceresponse: {record.sampled.text}\r\n"

    def parsed(self, record: RequestRecord, request: UnifiedRequest) -> None:
        """Record the parameters of a request."""
        if record.sampled is not None:
            self._guard.call("tracing", record.request_id, note_request, record.sampled.notes, request)

    def answered(self, record: RequestRecord, completion: Completion, target: Target, *, long: bool) -> None:
        """Record why the choices of a response ended, and the texts of the response."""
        if record.sampled is not None:
            self._guard.call("tracing", record.request_id, note_response, record.sampled.notes, completion.choices)

    def streamed(self, record: RequestRecord, stream: Stream, target: Target) -> Stream:
        """Record the texts of a stream while it arrives."""
        if record.sampled is None:
            return stream
        return noted_stream(record.sampled.notes, stream, self._guard.of("tracing", record.request_id))

    def ended(self, record: RequestRecord, reason: str) -> None:
        """Record why a choice ended."""
        if record.sampled is not None:
            self._guard.call("tracing", record.request_id, record.sampled.notes.ended, reason)


class PromptTextsHook(RequestHook):
    """Records the texts of prompts in the spans of sampled requests. `guard` reports faults."""

    __slots__ = ("_guard",)

    def __init__(self, guard: ObserverGuard) -> None:
        self._guard = guard

    def asked(self, record: RequestRecord, request: Q, *, heavy: bool) -> Awaitable[Q] | None:
        """Record the texts of a request for text."""
        if record.sampled is not None and not record.aside and isinstance(request, UnifiedRequest):
            self._guard.call("tracing", record.request_id, note_prompt, record.sampled.notes, request)
        return None


def attach_tracing(hooks: TeamHooks, guard: ObserverGuard, traces: TraceStarter | None) -> None:
    """Trace all requests that begin from now on, of all teams; `None` switches tracing off."""
    if traces is None:
        hooks.attach("tracing", None)
        hooks.attach("prompt_texts", None)
        return
    first, texts = TraceHook(traces, guard), PromptTextsHook(guard) if traces.keeps_content else None
    hooks.attach("tracing", lambda team, surface: first)
    hooks.attach("prompt_texts", lambda team, surface: texts)
