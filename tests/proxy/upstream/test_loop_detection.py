"""A request that comes back to a gateway it has passed: counted on the wire, and refused before requests multiply."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import copy_context
from pathlib import Path

import pytest

from providers.client_extras.extra_headers import is_own
from providers.failure import FailureKind, UpstreamError
from proxy.dispatch.retry_rules import DeploymentRules
from proxy.errors import GatewayError
from proxy.upstream.loop_detection import HOPS, arrive, may_lead_back, onward, refuse_loop
from tests.proxy.kit.raw_client import connected, request
from tests.proxy.kit.tables import snapshot
from tests.support.http_scripts import json_answer
from tests.support.looped import looped
from tests.support.openai_wire import completion
from tests.support.vendor import FakeVendor
from tests.trust.load_client import AUTH, KEY
from tests.trust.load_rig import inside, port_of, table

ROUTE = "routes: {both: {targets: [self/m, good/m]}}\n"


class Relay:
    def __init__(self) -> None:
        self.port = 0
        self.to = 0
        self.heard = b""
        self.serving: set[asyncio.Task[None] | None] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.current_task())
        onward, back = await asyncio.open_connection("127.0.0.1", self.to)
        await asyncio.gather(self._pass(reader, back, keep=True), self._pass(onward, writer, keep=False))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, keep: bool) -> None:
        while data := await reader.read(2**16):
            self.heard += data if keep else b""
            writer.write(data)
        writer.close()


@asynccontextmanager
async def relay() -> AsyncIterator[Relay]:
    made = Relay()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await asyncio.gather(*filter(None, made.serving))


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", ["/v1/completions", "/v5/completions"])
async def test_a_gateway_that_calls_itself_refuses_the_request_that_has_passed_it_four_times(
    path: str, stream: bool, tmp_path: Path
) -> None:
    async with relay() as way, FakeVendor(json_answer(200, completion("good"))) as good:
        vendors = {"self": f"http://127.0.0.1:{way.port}", "good": good.base_url}
        text = table(vendors, ["self/m: {upstream_model: both}", "good/m: {}"], ROUTE)
        text = text.replace("sk-of-the-operator", KEY).replace("/v1", path.removesuffix("/completions"))
        async with inside(tmp_path, text, DeploymentRules()) as app:
            way.to = port_of(app)
            async with connected(way.to) as client:
                await client.send(request("POST", path, {"model": "both", "prompt": "hi", "stream": stream}, AUTH))
                answer = await client.answer()
            assert (answer.status, answer.code) == (508, "loop_detected")
            assert "leads back" in answer.message
            assert answer.headers["x-should-retry"] == "false"
            assert way.heard.count(b"POST ") == 4
            assert good.requests == []
            assert dict(app.front.dispatcher.deployments.breakers.waits(app.front.dispatcher.now())) == {}


@pytest.mark.smoke
async def test_gateways_in_a_row_count_on_and_are_no_loop(tmp_path: Path) -> None:
    async with (
        FakeVendor(json_answer(200, completion("good"))) as vendor,
        inside(tmp_path, table({"self": vendor.base_url}, ["self/m: {}"]), DeploymentRules()) as app,
        connected(port_of(app)) as client,
    ):
        for hops in ({HOPS: "3"}, {}, {HOPS: "1"}):
            await client.send(request("POST", "/v1/completions", {"model": "self/m", "prompt": "hi"}, {**AUTH, **hops}))
            assert (await client.answer()).status == 200
        told = [dict(received.headers)[HOPS] for received in vendor.requests]
        assert told == ["4", "1", "2"]


@pytest.mark.smoke
def test_only_a_number_below_four_passes() -> None:
    def counted(*counts: str) -> str:
        for count in counts:
            arrive({HOPS: count})
        return onward()

    assert [copy_context().run(counted, *counts) for counts in ((), ("0",), ("3",))] == ["1", "1", "4"]
    for count, status in (("4", 508), ("999999999", 508), ("", 400), ("-1", 400), ("1, 1", 400), ("1" * 5000, 400)):
        with pytest.raises(GatewayError) as caught:
            copy_context().run(counted, count)
        assert caught.value.facts.status == status


@looped(
    ("vendor", "expected"),
    [
        ("{profile: openai, api_key: k}", False),
        ("{profile: anthropic, api_key: k}", False),
        ('{profile: openai, api_key: k, base_url: "https://llm.example.com/v1"}', True),
        ("{profile: ollama, allow_private: true}", True),
        ('{profile: vllm, base_url: "http://10.0.0.1:8000/v1", allow_private: true}', True),
    ],
)
def test_only_addresses_of_the_operators_own_choice_are_told(vendor: str, expected: bool) -> None:
    (target,) = snapshot(f"vendors: {{v: {vendor}}}\nmodels: {{v/m: {{}}}}").targets()
    assert may_lead_back(target) is expected


def test_a_client_cannot_send_the_count_through_an_extra_header() -> None:
    assert is_own(HOPS)


def test_only_an_answer_of_ours_says_that_there_is_a_loop() -> None:
    refuse_loop(508, b"508 Resource Limit Is Reached")
    refuse_loop(503, b'{"error":{"code":"loop_detected"}}')
    with pytest.raises(UpstreamError) as caught:
        refuse_loop(508, b'{"error":{"code":"loop_detected"}}')
    assert (caught.value.failure.kind, caught.value.failure.status) == (FailureKind.LOOP, 508)
