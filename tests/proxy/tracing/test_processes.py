"""Workers that trace, and the end of a process whose collector and webhook hang, as operators run it."""

import asyncio
from functools import partial
from pathlib import Path

import aiohttp

from tests.proxy.tracing.kit.collector import Collector, collecting, said
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.waiting import until

BODY = {"model": "mock/echo", "prompt": "hi"}

LONGEST_END = 8.0
"""Seconds within which a process without requests must end on a busy machine: one second of the drain, three of the
last deliveries, and as many again to spare. Deliveries that waited for each other would take longer."""


def table(collector: Collector, more: str = "", workers: int = 1) -> str:
    return f"""\
version: 1
server:
  port: ${{PORT}}
  admin:
    port: ${{ADMIN_PORT}}
  drain_grace: 0s
  watch: false
  workers: {workers}
  tracing: {{endpoint: "{collector.url}", sample: 1}}
vendors: {{mock: {{}}}}
models: {{mock/echo: {{}}}}
{more}
"""


async def ask(gateway: RunningGateway, name: str) -> None:
    """Send a request on a new connection, so that any worker may respond."""
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(connector=connector) as http:
        headers = {"x-request-id": name}
        async with http.post(f"{gateway.url}/v1/completions", json=BODY, headers=headers) as answer:
            assert answer.status == 200


async def ask_often(gateway: RunningGateway, name: str, count: int) -> list[str]:
    names = [f"{name}-{number}" for number in range(count)]
    await asyncio.gather(*(ask(gateway, each) for each in names))
    return names


def has_spans(collector: Collector, count: int) -> bool:
    return len(collector.spans) >= count


def workers_of(collector: Collector) -> dict[object, object]:
    """Return the workers whose spans have arrived, and their processes."""
    found = [said(of.resource.attributes) for trace in collector.traces for of in trace.resource_spans]
    return {each["dragoman.worker"]: each["process.pid"] for each in found}


async def test_each_worker_exports_its_spans_and_none_is_lost_at_the_end(tmp_path: Path) -> None:
    with collecting() as collector:
        async with running_gateway(table(collector, workers=2), tmp_path) as gateway:
            asked: list[str] = []
            while len(workers_of(collector)) < 2:
                asked += await ask_often(gateway, f"first-{len(asked)}", 10)
                await until(partial(has_spans, collector, 2 * len(asked)))
            asked += await ask_often(gateway, "last", 40)
            pids = {*(await gateway.in_flight())}
            assert await gateway.stop() == 0
    requests = [said(span.attributes) for span in collector.spans if span.kind == span.SPAN_KIND_SERVER]
    assert sorted(str(each["dragoman.request_id"]) for each in requests) == sorted(asked)
    assert {*workers_of(collector)} == {1, 2}
    assert {*workers_of(collector).values()} == pids


async def test_a_collector_and_a_webhook_that_hang_hold_up_the_end_together_and_not_for_long(tmp_path: Path) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        webhook_asked.set()
        await reader.read()
        writer.close()

    webhook_asked = asyncio.Event()
    server = await asyncio.start_server(hang, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    options = f"{{url: 'http://127.0.0.1:{port}/', secret: canary-secret-of-a-hook, allow_private: true}}"
    use = "use: 'proxy.plugins.shipped.webhook_sink:WebhookSink'"
    hook = f"plugins: {{hook: {{{use}, options: {options}, deadline: 30s}}}}"
    with collecting() as collector:
        collector.open.clear()
        async with running_gateway(table(collector, hook), tmp_path) as gateway:
            await ask(gateway, "one")
            await webhook_asked.wait()
            await until(lambda: collector.asked > 0)
            async with asyncio.timeout(LONGEST_END):
                assert await gateway.stop() == 0
            messages = gateway.messages()
    server.close()
    await server.wait_closed()
    assert "plugin hook: 1 rows were not delivered before the end" in messages
    assert "tracing: the collector is too slow; requests that it has not accepted are lost" in messages
    assert "canary" not in messages
