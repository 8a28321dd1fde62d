"""The payload log's hook holds the request and the response of the requests that the log wants, and survives its
faults."""

from typing import cast

from proxy.hooks.request_hook import RequestHook
from proxy.hooks.team_hooks import TeamHooks
from proxy.payload_log.gathering_renderer import GatheringRenderer
from proxy.payload_log.payload_hook import PayloadSink, attach_payload_log
from proxy.payload_log.request_content import Allowance, LoggedContent
from proxy.request_record import RequestRecord
from proxy.surfaces.surface import Renderer
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import ObserverGuard


def held(record: RequestRecord, body: bytes) -> None:
    record.content = LoggedContent(Allowance(1000), body, 100, held=len(body))


def hook_of(sink: PayloadSink, metrics: Metrics) -> RequestHook:
    hooks = TeamHooks()
    attach_payload_log(hooks, ObserverGuard(metrics.observer_failed), sink)
    (hook,) = hooks["search", "openai"]
    return hook


def record() -> RequestRecord:
    return RequestRecord("r1", 0.0, "openai", "/v1/completions")


def test_a_request_that_is_logged_has_its_body_and_that_of_its_response() -> None:
    hook, noted = hook_of(held, Metrics()), record()
    hook.received(noted, b"asked")
    hook.shown(noted, b"answered")
    assert isinstance(noted.content, LoggedContent)
    assert (noted.content.request, noted.content.answer) == (b"asked", b"answered")
    assert isinstance(hook.rendered(noted, cast(Renderer, object())), GatheringRenderer)


def test_a_request_that_is_not_logged_is_left_as_it_is() -> None:
    hook, noted, renderer = hook_of(lambda record, body: None, Metrics()), record(), cast(Renderer, object())
    hook.received(noted, b"asked")
    hook.shown(noted, b"answered")
    assert hook.rendered(noted, renderer) is renderer
    assert noted.content is None


def test_a_fault_is_counted_and_raises_nothing() -> None:
    def failing(record: RequestRecord, body: bytes) -> None:
        raise TypeError

    metrics = Metrics()
    hook_of(failing, metrics).received(record(), b"asked")
    assert b'observer_failures_total{observer="payload_log"} 1.0' in metrics.render()
