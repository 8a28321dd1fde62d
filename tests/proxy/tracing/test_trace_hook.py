"""Tracing attaches two hooks: they begin traces, and note the data for spans only of sampled requests."""

from types import SimpleNamespace
from typing import cast

import pytest
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from providers.completion import Choice, Completion
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.hooks.request_hook import Hooks
from proxy.hooks.team_hooks import TeamHooks
from proxy.request_record import RequestRecord
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import ObserverGuard
from proxy.tracing.begin_trace import TraceStarter
from proxy.tracing.trace_hook import attach_tracing
from tests.providers.dialects.openai.kit import target
from tests.support.looped import looped

pytestmark = pytest.mark.smoke

REQUEST = UnifiedRequest(Operation.COMPLETIONS, "m", TextPrompt(("canary",)), {"max_tokens": 7})
COMPLETION = Completion((Choice(0, "canary", "stop"),), None)
CALLER = f"00-{0xABC:032x}-{0x10:016x}-01"


def hooks_of(share: float, *, content: bool = False) -> Hooks:
    made = TeamHooks()
    attach_tracing(made, ObserverGuard(Metrics().observer_failed), TraceStarter(share, content=content))
    return made["search", "openai"]


def finished_record(hooks: Hooks, parent: str | None = None, *, aside: bool = False) -> RequestRecord:
    """Return a request's record after a non-streaming response."""
    record = RequestRecord("r1", 0.0, "openai", "/v1/completions", aside=aside)
    headers = CIMultiDictProxy(CIMultiDict({} if parent is None else {"traceparent": parent}))
    for hook in hooks:
        hook.begun(cast(web.BaseRequest, SimpleNamespace(headers=headers, method="POST")), record)
        hook.parsed(record, REQUEST)
        assert hook.asked(record, REQUEST, heavy=False) is None
        assert hook.answered(record, COMPLETION, target("openai"), long=False) is None
        hook.ended(record, "length")
    return record


def test_a_sampled_request_has_its_trace_in_its_head_and_its_parameters_in_its_span() -> None:
    record = finished_record(hooks_of(1.0))
    assert record.sampled is not None
    assert record.hook_lines == f"traceresponse: {record.sampled.text}\r\n"
    assert record.sampled.notes.params == {"gen_ai.request.max_tokens": 7}
    assert record.sampled.notes.finish_reasons == ("stop", "length")
    assert (record.sampled.notes.prompt, record.sampled.notes.answer) == ("", "")


def test_a_request_that_is_not_sampled_has_a_trace_alone() -> None:
    record = finished_record(hooks_of(0.0, content=True))
    assert record.trace is not None
    assert (record.sampled, record.hook_lines) == (None, "")


def test_a_request_joins_the_trace_of_its_caller() -> None:
    record = finished_record(hooks_of(0.0), CALLER)
    assert record.sampled is not None
    assert record.sampled.hex_id == f"{0xABC:032x}"


def test_texts_are_noted_if_the_configuration_allows_them() -> None:
    notes = finished_record(hooks_of(1.0, content=True)).sampled
    assert notes is not None
    assert "canary" in notes.notes.prompt
    assert "canary" in notes.notes.answer


@looped("aside", [False, True])
def test_the_prompt_is_noted_of_requests_that_generate(aside: bool) -> None:
    sampled = finished_record(hooks_of(1.0, content=True), aside=aside).sampled
    assert sampled is not None
    assert bool(sampled.notes.prompt) is not aside


def test_a_gateway_that_does_not_trace_has_no_hook_of_it() -> None:
    made, guard = TeamHooks(), ObserverGuard(Metrics().observer_failed)
    attach_tracing(made, guard, TraceStarter(1.0, content=True))
    before = made["search", "openai"]
    attach_tracing(made, guard, None)
    assert (len(before), len(made["search", "openai"])) == (2, 0)
