"""OpenTelemetry's own Collector decodes the gateway's exports and sends them on."""

from io import BytesIO
from pathlib import Path

import aiohttp
import orjson
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from providers.json_types import JsonObject
from proxy.tracing import export_queue
from tests.proxy.kit.whole_gateway import up
from tests.proxy.tracing.kit.collector import Collector, collecting, said
from tests.proxy.tracing.kit.real_collector import real_collector
from tests.support.gateway import request_lines
from tests.support.http_scripts import body_answer, json_answer
from tests.support.openai_wire import chat
from tests.support.vendor import FakeVendor
from tests.support.waiting import until

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(120)]

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "congo=t61rcWkgMzE"}
BAD = body_answer(500, b'{"error": {"message": "it broke"}}')
USAGE: JsonObject = {"usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}}
ASKED = {"model": "fast", "messages": [{"role": "user", "content": "h\u00e9llo"}], "temperature": 0.5, "max_tokens": 9}


def table(vendor: FakeVendor, endpoint: str) -> str:
    return f"""\
version: 1
server:
  port: 0
  admin: {{port: 0}}
  watch: false
  tracing: {{endpoint: '{endpoint}', content: true, metrics: on}}
  payload_log: {{otlp: {{endpoint: '{endpoint}'}}, teams: ['*']}}
defaults: {{retries: {{same_deployment: 0}}}}
vendors: {{v: {{profile: openai_compatible, base_url: "{vendor.base_url}/v1", allow_private: true, api_key: k}}}}
models: {{v/a: {{}}, v/b: {{}}, v/c: {{}}}}
routes: {{fast: {{targets: [v/a, v/b, v/c]}}}}
"""


def payload(collector: Collector) -> tuple[str, str, dict[str, object]]:
    """Return the only log record: its trace, its event's name and its body."""
    ((record,),) = [
        of.log_records for export in collector.logs for each in export.resource_logs for of in each.scope_logs
    ]
    return record.trace_id.hex(), record.event_name, orjson.loads(record.body.string_value)


async def test_a_fallback_with_three_attempts_its_metrics_and_its_payload_come_through_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_queue, "EXPORT_EVERY", 0.05)
    log = BytesIO()
    with collecting() as collector, real_collector(tmp_path, collector.url) as endpoint:
        async with FakeVendor(json_answer(200, {**chat("answer"), **USAGE})) as vendor:
            vendor.answer(BAD, BAD)
            async with up(table(vendor, endpoint), tmp_path, log) as app, aiohttp.ClientSession() as http:
                url = f"{app.url}/v1/chat/completions"
                async with http.post(url, json=ASKED, headers=PARENT) as answer:
                    assert answer.status == 200
                    await answer.read()
                    traceresponse = answer.headers["traceresponse"]
            sent = [dict(each.headers)["traceparent"] for each in vendor.requests]
        await until(lambda: bool(len(collector.spans) >= 4 and collector.metrics and collector.logs))
    request, *attempts = collector.spans
    assert (request.name, request.kind, request.parent_span_id.hex()) == ("chat fast", Span.SPAN_KIND_SERVER, SPAN)
    assert traceresponse == f"00-{TRACE}-{request.span_id.hex()}-01"
    assert [each.name for each in attempts] == ["chat v/a", "chat v/b", "chat v/c"]
    assert {(each.trace_id.hex(), each.trace_state) for each in collector.spans} == {(TRACE, PARENT["tracestate"])}
    assert [(each.flags, each.parent_span_id) for each in attempts] == [(0x101, request.span_id)] * 3
    assert request.flags == 0x301
    assert sent == [f"00-{TRACE}-{each.span_id.hex()}-01" for each in attempts]
    error, unset = Status.STATUS_CODE_ERROR, Status.STATUS_CODE_UNSET
    assert [each.status.code for each in collector.spans] == [unset, error, error, unset]
    assert "it broke" in attempts[0].status.message
    told = said(request.attributes)
    assert (told["gen_ai.usage.input_tokens"], told["gen_ai.request.temperature"]) == (3, 0.5)
    assert told["gen_ai.response.finish_reasons"] == ["stop"]
    assert orjson.loads(str(told["gen_ai.input.messages"]))[0]["parts"][0]["content"] == "h\u00e9llo"
    assert collector.resource()["service.name"] == "dragoman"
    points = collector.named()["gen_ai.client.token.usage"].histogram.data_points
    assert sorted(point.sum for point in points) == [2, 3]
    trace, event, entry = payload(collector)
    assert (trace, event, entry["status"]) == (TRACE, "dragoman.payload", 200)
    assert [line["request_id"] for line in request_lines(log.getvalue())] == [entry["request_id"]]
    assert not {word for word in ("error\t", "warn\t") if word in (tmp_path / "collector.log").read_text("utf-8")}
