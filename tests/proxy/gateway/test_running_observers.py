"""Any observer of a running request may fail: the client still gets its response, streamed or not, and the request's
slots are released.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NoReturn, get_args

import pytest

from proxy.payload_log.payload_hook import attach_payload_log
from proxy.payload_log.request_content import Allowance, LoggedContent
from proxy.request_record import RequestRecord
from proxy.teams.held_limits import Held
from proxy.telemetry.observer_guard import RunningObserver
from proxy.trace_context import SpanNotes
from proxy.tracing.begin_trace import TraceStarter
from proxy.tracing.content_messages import GatheredTexts
from proxy.tracing.trace_hook import attach_tracing
from tests.proxy.kit.gateway_rig import TABLE, Rig, ask, rig
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import completion, completion_frames

Patch = Callable[[pytest.MonkeyPatch, Rig], None]

LIMITED: Final = TABLE.replace("    models: [v/m,", "    limits: {concurrent: 1}\n    models: [v/m,").replace(
    "  v/m: {}", "  v/m: {limits: {concurrent: 1}}"
)
"""One request at once, of the team and of the deployment: a slot that is not released refuses the next request."""


def fails(*given: object, **named: object) -> NoReturn:
    raise TypeError("an observer's own fault")


@dataclass(frozen=True, slots=True)
class Fault:
    """The failing observer, and the kinds of responses that it affects. `content` says whether traces contain texts;
    without them the texts of a stream are read in runs.
    """

    observer: RunningObserver
    patch: Patch
    streamed: tuple[bool, ...] = (False, True)
    content: bool = True


def of_class(owner: type, name: str) -> Patch:
    return lambda patch, served: patch.setattr(owner, name, fails)


def of_gateway(name: str) -> Patch:
    return lambda patch, served: patch.setattr(served.gateway, name, fails)


def of_payload_hook(name: str) -> Patch:
    return lambda patch, served: patch.setattr(served.gateway.hooks["search", "openai"][-1], name, fails)


def of_trace_hook(name: str) -> Patch:
    return lambda patch, served: patch.setattr(f"proxy.tracing.trace_hook.{name}", fails)


FAULTS: Final = {
    "the body is noted for the payload log": Fault("payload_log", of_payload_hook("_sink")),
    "a chunk is gathered for the payload log": Fault("payload_log", of_class(LoggedContent, "add_chunk"), (True,)),
    "a run is gathered for the payload log": Fault("payload_log", of_class(LoggedContent, "add_run"), (True,), False),
    "a trace begins": Fault("tracing", of_class(TraceStarter, "begin")),
    "a request is noted": Fault("tracing", of_trace_hook("note_request")),
    "a prompt is noted": Fault("tracing", of_trace_hook("note_prompt")),
    "a whole response is noted": Fault("tracing", of_trace_hook("note_response"), (False,)),
    "a chunk is noted": Fault("tracing", of_class(GatheredTexts, "add"), (True,)),
    "the texts of a stream are noted": Fault("tracing", of_class(GatheredTexts, "json"), (True,)),
    "the end of a choice is noted": Fault("tracing", of_class(SpanNotes, "ended"), (True,)),
    "the watchdog notes a request": Fault("watchdog", of_gateway("on_begin")),
    "what was used is counted": Fault("limits", of_class(Held, "_bill_unanswered")),
    "a slot of an earlier deployment is given back": Fault("limits", of_class(Held, "leave_target")),
}
ROWS: Final = {
    f"{name}, {'streamed' if streamed else 'whole'}": (fault, streamed)
    for name, fault in FAULTS.items()
    for streamed in fault.streamed
}


def observed(served: Rig, content: bool) -> None:
    """Let every observer run: traces and a payload log."""

    def received(record: RequestRecord, body: bytes) -> None:
        record.content = LoggedContent(Allowance(10**6), body, 4096, held=len(body))

    attach_tracing(served.gateway.hooks, served.gateway.guard, TraceStarter(1.0, content=content))
    attach_payload_log(served.gateway.hooks, served.gateway.guard, received)


@pytest.mark.parametrize(("fault", "streamed"), ROWS.values(), ids=ROWS)
async def test_a_fault_changes_no_response_and_is_counted(
    fault: Fault, streamed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with rig(LIMITED) as served:
        frames = sse_answer(completion_frames(["he", "l", "l", "o"], "m"))
        served.vendor.default = frames if streamed else json_answer(200, completion("hello", "m"))
        observed(served, fault.content)
        good = await served.post("/v1/completions", ask(stream=streamed))
        fault.patch(monkeypatch, served)
        for _ in range(3):
            answer = await served.post("/v1/completions", ask(stream=streamed))
            assert (answer.status, answer.whole) == (200, True)
            assert len(answer.body) == len(good.body)
        await served.gateway.idle.wait()
        faults = served.series("observer_failures_total")
        assert list(faults) == [f"observer_failures_total observer={fault.observer}"]
        assert faults.popitem()[1] >= 3
        assert [record.outcome for record in served.records] == ["ok"] * 4


def test_every_running_observer_has_a_fault() -> None:
    assert {fault.observer for fault in FAULTS.values()} == set(get_args(RunningObserver))
