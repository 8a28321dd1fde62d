"""Requests through the whole gateway, and the exports that a collector on a real socket gets of them."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import aiohttp
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from providers.json_types import JsonObject
from proxy.process.assemble_app import WholeGateway
from proxy.tracing import export_queue
from tests.proxy.kit.whole_gateway import up
from tests.proxy.plugins.kit import HIDDEN, SECRET, plugin
from tests.proxy.tracing.kit.collector import Collector, collecting, said
from tests.support.gateway import request_lines
from tests.support.http_scripts import body_answer, json_answer, sse_answer
from tests.support.openai_wire import chat, chat_frames
from tests.support.vendor import FakeVendor
from tests.support.waiting import until

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "congo=t61rcWkgMzE"}
ASKED = {"model": "fast", "messages": [{"role": "user", "content": "canary-prompt"}], "temperature": 0.5}
USAGE: JsonObject = {"usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}
GOOD = json_answer(200, {**chat("canary-answer"), **USAGE})
BAD = body_answer(500, b'{"error": {"message": "canary-error of canary-prompt"}}')


@dataclass
class Rig:
    """A gateway with a collector, a vendor and a client."""

    app: WholeGateway
    collector: Collector
    vendor: FakeVendor
    log: BytesIO
    http: aiohttp.ClientSession
    folder: Path
    answers: list[Mapping[str, str]] = field(default_factory=list)

    async def ask(self, headers: Mapping[str, str] | None = None, **more: object) -> int:
        """Send a request to the route of three models; return the status after the response has been read."""
        url = f"{self.app.url}/v1/chat/completions"
        async with self.http.post(url, json={**ASKED, **more}, headers=headers) as answer:
            await answer.read()
            self.answers.append(answer.headers)
            return answer.status

    async def spans(self, count: int) -> list[Span]:
        """Wait until `count` spans have arrived."""
        await until(lambda: len(self.collector.spans) >= count)
        return self.collector.spans

    async def reload(self, tracing: str) -> None:
        (self.folder / "t.yaml").write_text(table(self.vendor, tracing), encoding="utf-8")
        result = await self.app.reloader.reload()
        assert not result.problems


def table(vendor: FakeVendor, tracing: str, guard: str = "") -> str:
    return f"""\
version: 1
server: {{port: 0, admin: {{port: 0}}, watch: false, {tracing}}}
defaults: {{retries: {{same_deployment: 0}}}}
vendors:
  v: {{profile: openai_compatible, base_url: "{vendor.base_url}/v1", allow_private: true, api_key: canary-key}}
models: {{v/a: {{}}, v/b: {{}}, v/c: {{}}}}
routes: {{fast: {{targets: [v/a, v/b, v/c]}}, kept: {{targets: [v/a], cache: {{}}}}}}
plugins: {{{guard and f"g: {plugin(guard)}"}}}
"""


def settings(collector: Collector, more: str = "") -> str:
    headers = "headers: {authorization: 'Bearer canary-token'}"
    return f"tracing: {{endpoint: '{collector.url}', timeout: 1s, {headers}{more and ', ' + more}}}"


@asynccontextmanager
async def gateway(folder: Path, collector: Collector, tracing: str, guard: str = "") -> AsyncIterator[Rig]:
    log = BytesIO()
    async with (
        FakeVendor(GOOD) as vendor,
        up(table(vendor, tracing, guard), folder, log) as app,
        aiohttp.ClientSession() as http,
    ):
        yield Rig(app, collector, vendor, log, http, folder)


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_queue, "EXPORT_EVERY", 0.01)


async def test_a_fallback_with_three_attempts_is_one_trace_below_the_clients_span(tmp_path: Path) -> None:
    with collecting() as collector:
        async with gateway(tmp_path, collector, settings(collector)) as rig:
            rig.vendor.answer(BAD, BAD, GOOD)
            assert await rig.ask(PARENT) == 200
            request, *attempts = await rig.spans(4)
            sent = [dict(each.headers) for each in rig.vendor.requests]
    assert (request.name, request.kind, request.parent_span_id.hex()) == ("chat fast", Span.SPAN_KIND_SERVER, SPAN)
    assert [each.name for each in attempts] == ["chat v/a", "chat v/b", "chat v/c"]
    assert {each.trace_id.hex() for each in (request, *attempts)} == {TRACE}
    assert {each.parent_span_id for each in attempts} == {request.span_id}
    assert len({each.span_id for each in (request, *attempts)}) == 4
    error, unset = Status.STATUS_CODE_ERROR, Status.STATUS_CODE_UNSET
    assert [each.status.code for each in (request, *attempts)] == [unset, error, error, unset]
    assert [said(each.attributes).get("error.type") for each in attempts] == ["server", "server", None]
    assert said(attempts[0].attributes)["server.port"] == rig.vendor.port
    told = said(request.attributes)
    assert told["gen_ai.response.finish_reasons"] == ["stop"]
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.request.temperature"]) == (3, 0.5)
    for span, headers in zip(attempts, sent, strict=True):
        assert headers["traceparent"] == f"00-{TRACE}-{span.span_id.hex()}-01"
        assert headers["tracestate"] == PARENT["tracestate"]
        assert request.start_time_unix_nano <= span.start_time_unix_nano
        assert span.start_time_unix_nano <= span.end_time_unix_nano <= request.end_time_unix_nano
    assert abs(request.end_time_unix_nano / 1e9 - time.time()) < 60
    assert rig.answers[0]["traceresponse"] == f"00-{TRACE}-{request.span_id.hex()}-01"
    assert [line["trace_id"] for line in request_lines(rig.log.getvalue())] == [TRACE]
    assert collector.headers[0]["authorization"] == "Bearer canary-token"
    assert {"service.name", "service.instance.id", "process.pid"} <= collector.resource().keys()


async def test_a_stream_has_its_first_content_as_an_event(tmp_path: Path) -> None:
    with collecting() as collector:
        async with gateway(tmp_path, collector, settings(collector)) as rig:
            rig.vendor.answer(sse_answer(chat_frames(["can", "ary"])))
            assert await rig.ask(stream=True) == 200
            request, attempt = await rig.spans(2)
            assert len(rig.answers[0]["traceresponse"]) == 55
    for span in (request, attempt):
        (event,) = span.events
        assert event.name == "gen_ai.first_content"
        assert span.start_time_unix_nano <= event.time_unix_nano <= span.end_time_unix_nano
    assert said(request.attributes)["gen_ai.response.finish_reasons"] == ["stop"]
    assert said(request.attributes)["gen_ai.request.stream"] is True


async def test_neither_texts_nor_secrets_leave_unless_the_table_allows_the_texts(tmp_path: Path) -> None:
    with collecting() as collector:
        async with gateway(tmp_path, collector, settings(collector, "metrics: on")) as rig:
            rig.vendor.answer(BAD, BAD, GOOD, sse_answer(chat_frames(["canary-answer"])))
            await rig.ask({"authorization": "Bearer canary-of-the-client"}, stop=["canary-stop"], user="canary-user")
            await rig.ask(stream=True)
            await rig.spans(6)
        assert collector.metrics
        assert b"canary" not in b"".join(collector.bodies)


async def test_texts_are_told_where_the_table_allows_them_and_secrets_never(tmp_path: Path) -> None:
    with collecting() as collector:
        async with gateway(tmp_path, collector, settings(collector, "content: true")) as rig:
            rig.vendor.answer(BAD, GOOD, sse_answer(chat_frames(["canary", "-answer"])))
            await rig.ask()
            await rig.ask(stream=True)
            await rig.spans(5)
        requests = [said(span.attributes) for span in collector.spans if span.kind == Span.SPAN_KIND_SERVER]
        for told in requests:
            assert '"content":"canary-prompt"' in str(told["gen_ai.input.messages"])
            assert "canary-answer" in str(told["gen_ai.output.messages"])
        assert "canary-error" in collector.spans[1].status.message
        assert not {secret for secret in (b"canary-key", b"canary-token") if secret in b"".join(collector.bodies)}


CACHE = ["miss", "hit"]
SWORD = [{"role": "user", "content": f"say {SECRET}"}]


async def test_texts_are_told_as_the_guards_left_them_to_the_vendor_and_to_the_cache(tmp_path: Path) -> None:
    with collecting() as collector:
        async with gateway(tmp_path, collector, settings(collector, "content: true"), "Hider") as rig:
            for _ in range(2):
                assert await rig.ask(model="kept", messages=SWORD, temperature=0) == 200
            await rig.spans(3)
            assert len(rig.vendor.requests) == 1
        told = [said(span.attributes) for span in collector.spans if span.kind == Span.SPAN_KIND_SERVER]
        assert [HIDDEN in str(each["gen_ai.input.messages"]) for each in told] == [True, True]
        assert [each["dragoman.cache"] for each in told] == CACHE
        lines = request_lines(rig.log.getvalue())
        assert [(line["deployment"], line["cache"]) for line in lines] == [("v/a/default", each) for each in CACHE]
        assert SECRET.encode() not in b"".join(collector.bodies)


async def test_nothing_is_told_of_the_prompt_that_a_guard_refused(tmp_path: Path) -> None:
    with collecting() as collector:
        async with gateway(tmp_path, collector, settings(collector, "content: true"), "RequestRefuser") as rig:
            assert await rig.ask(messages=SWORD) == 400
            (request,) = await rig.spans(1)
        told = said(request.attributes)
        assert "gen_ai.input.messages" not in told
        assert told["gen_ai.request.temperature"] == 0.5
        assert SECRET.encode() not in b"".join(collector.bodies)


async def test_what_is_not_sampled_is_passed_on_and_not_exported(tmp_path: Path) -> None:
    with collecting() as collector:
        async with gateway(tmp_path, collector, settings(collector, "sample: 0")) as rig:
            await rig.ask()
            await rig.ask({"traceparent": f"00-{TRACE}-{SPAN}-00"})
            await rig.ask(PARENT)
            request, _ = await rig.spans(2)
            sent = [dict(each.headers)["traceparent"] for each in rig.vendor.requests]
    assert request.trace_id.hex() == TRACE
    assert [line[-2:] for line in sent] == ["02", "00", "01"]
    assert len(collector.spans) == 2


async def test_a_client_cannot_set_the_trace_of_one_call(tmp_path: Path) -> None:
    own = {"inference_extra_headers": {"Traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "a=b", "b3": "0"}}
    with collecting() as collector:
        async with gateway(tmp_path, collector, settings(collector)) as rig:
            await rig.ask(None, **own)
            await rig.reload("log: json")
            await rig.ask(None, **own)
            traced, plain = [{name.lower(): value for name, value in each.headers} for each in rig.vendor.requests]
    assert traced["traceparent"].split("-")[1] != TRACE
    assert ("tracestate" in traced, traced["b3"]) == (False, "0")
    assert (plain["traceparent"], plain["tracestate"]) == (f"00-{TRACE}-{SPAN}-01", "a=b")
    assert "traceresponse" not in rig.answers[1]
    assert "trace_id" not in request_lines(rig.log.getvalue())[1]


async def test_a_reload_changes_where_spans_go_and_how_many(tmp_path: Path) -> None:
    with collecting() as first, collecting() as second:
        async with gateway(tmp_path, first, settings(first)) as rig:
            await rig.ask(PARENT)
            await rig.reload(settings(second))
            await rig.ask(PARENT)
            await until(lambda: len(first.spans) == 2 and len(second.spans) == 2)
            await rig.reload(settings(second, "sample: 0"))
            await rig.ask()
            await rig.reload("log: json")
            await rig.ask(PARENT)
        assert (len(first.spans), len(second.spans)) == (2, 2)


async def test_metrics_have_the_conventions_names(tmp_path: Path) -> None:
    with collecting() as collector:
        async with gateway(tmp_path, collector, settings(collector, "metrics: on, sample: 0")) as rig:
            rig.vendor.answer(GOOD, sse_answer(chat_frames(["a", "b"])))
            await rig.ask()
            await rig.ask(stream=True)
        named = collector.named()
    assert sorted(named) == [
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_per_output_chunk",
        "gen_ai.client.operation.time_to_first_chunk",
        "gen_ai.client.token.usage",
        "gen_ai.server.time_to_first_token",
    ]
    points = named["gen_ai.client.operation.duration"].histogram.data_points
    assert sum(point.count for point in points) == 2
    assert said(points[0].attributes)["gen_ai.operation.name"] == "chat"
    assert len(points[0].bucket_counts) == len(points[0].explicit_bounds) + 1


async def test_metrics_have_the_names_that_are_to_follow(tmp_path: Path) -> None:
    with collecting() as collector:
        names = settings(collector, "metrics: on, metric_names: inference, sample: 0")
        async with gateway(tmp_path, collector, names) as rig:
            rig.vendor.answer(GOOD, sse_answer(chat_frames(["a", "b"])))
            await rig.ask()
            await rig.ask(stream=True)
        named = collector.named()
    prefix = "gen_ai.client.inference."
    assert sorted(name.removeprefix(prefix) for name in named) == [
        "duration",
        "gen_ai.server.time_to_first_token",
        *("operation.input_tokens", "operation.output_tokens", "time_per_output_chunk", "time_to_first_chunk"),
        *("usage.input_tokens", "usage.output_tokens"),
    ]
    counter = named[f"{prefix}usage.input_tokens"]
    assert counter.sum.is_monotonic
    (point,) = counter.sum.data_points
    assert point.as_int == sum(each.sum for each in named[f"{prefix}operation.input_tokens"].histogram.data_points)


@pytest.mark.parametrize("status", [400, 503])
async def test_a_collector_that_refuses_costs_spans_and_is_told(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    with collecting(status) as collector, caplog.at_level(logging.INFO, "dragoman"):
        async with gateway(tmp_path, collector, settings(collector)) as rig:
            for _ in range(3):
                assert await rig.ask() == 200
            state = rig.app.front.tracing.state
            await until(lambda: state.dropped == 3)
            collector.status = 200
            assert await rig.ask() == 200
            await rig.spans(2)
            exposed = rig.app.front.metrics.render().decode()
    assert "dragoman_tracing_dropped_total 3.0" in exposed
    assert f"dragoman_tracing_export_failures_total {float(state.failures)}" in exposed
    assert [record.getMessage() for record in caplog.records if "tracing" in record.getMessage()] == [
        f"tracing: traces are not exported: the collector answers with status {status}",
        "tracing: traces are exported",
    ]


async def test_requests_do_not_wait_for_a_collector_that_hangs(tmp_path: Path) -> None:
    with collecting() as collector:
        async with gateway(tmp_path, collector, settings(collector)) as rig:
            collector.open.clear()
            await rig.ask()
            await until(lambda: collector.asked > 0)
            for _ in range(20):
                assert await rig.ask() == 200
            assert collector.spans == []
            collector.open.set()
            await rig.spans(40)


async def test_a_collector_that_is_away_ends_neither_a_request_nor_the_process(tmp_path: Path) -> None:
    with collecting() as collector:
        pass
    async with asyncio.timeout(30), gateway(tmp_path, collector, settings(collector)) as rig:
        assert await rig.ask(PARENT) == 200
        assert dict(rig.vendor.requests[0].headers)["traceparent"].startswith(f"00-{TRACE}-")


async def test_without_the_section_nothing_is_traced(tmp_path: Path) -> None:
    with collecting() as collector:
        async with gateway(tmp_path, collector, "log: json") as rig:
            assert await rig.ask(PARENT) == 200
            assert "dragoman_tracing" not in rig.app.front.metrics.render().decode()
            assert "traceparent" not in dict(rig.vendor.requests[0].headers)
    assert collector.asked == 0
