"""The whole gateway, in this process and as a process of its own: start, reload, drain and end."""

import asyncio
import signal
import socket
from io import BytesIO
from pathlib import Path

import orjson
import pytest

from proxy.overload.admission_limits import AdmissionLimits
from proxy.process.assemble_app import Addresses, WholeGateway
from proxy.process.reload import Reloader
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import Answer, connected, exchange, request
from tests.proxy.kit.whole_gateway import MOCK, REST, START, port_of, table_before, up
from tests.support.gateway import running_gateway
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Hang, Until


async def post(app: WholeGateway, model: str = "mock/echo", stream: bool = False) -> Answer:
    return await exchange(port_of(app.url), request("POST", "/v1/completions", ask(model, stream=stream)))


@pytest.mark.smoke
async def test_it_serves_its_table_and_logs_each_request_once(tmp_path: Path) -> None:
    log = BytesIO()
    async with up(MOCK, tmp_path, log) as app:
        assert (await post(app)).status == 200
        assert (await post(app, stream=True)).whole
        assert (await post(app, "nothing")).status == 404
    lines = [orjson.loads(line) for line in log.getvalue().splitlines()]
    assert [(line["status"], line["stream"]) for line in lines] == [(200, False), (200, True), (404, False)]


@pytest.mark.smoke
async def test_the_log_has_the_form_of_the_table(tmp_path: Path) -> None:
    log = BytesIO()
    async with up(MOCK + "server: {log: text}\n", tmp_path, log) as app:
        await post(app)
    assert b" 200 openai anonymous mock/echo -> mock/echo/default ok " in log.getvalue()


async def test_operators_and_clients_have_a_port_each(tmp_path: Path) -> None:
    async with up(MOCK, tmp_path) as app:
        public, admin = port_of(app.url), port_of(app.admin_url)
        assert (await exchange(public, request("GET", "/metrics"))).status == 404
        assert (await exchange(public, request("POST", "/-/reload"))).status == 404
        assert (await exchange(admin, request("GET", "/metrics"))).status == 200
        assert (await exchange(admin, request("POST", "/v1/completions", ask("mock/echo")))).status == 404


async def test_metrics_show_the_names_and_the_expiring_keys_of_the_table_in_force(tmp_path: Path) -> None:
    team = f"{{keys: [{{hash: 'sha256:{'0' * 64}', name: ci, expires: 2030-01-01}}], models: ['*']}}"
    async with up(MOCK + f"routes: {{fast: {{targets: [mock/echo]}}}}\nteams: {{us: {team}}}\n", tmp_path) as app:
        fresh = request("GET", "/metrics", headers={"cache-control": "no-cache"})
        shown = (await exchange(port_of(app.admin_url), fresh)).body
        assert b'dragoman_targets_available{model="fast"} 1.0\n' in shown
        assert b'dragoman_key_expiry_timestamp_seconds{key="ci",team="us"} 1.8935424e+09' in shown
        (tmp_path / "t.yaml").write_text(MOCK, encoding="utf-8")
        await app.reloader.reload()
        shown = (await exchange(port_of(app.admin_url), fresh)).body
        assert b'model="fast"' not in shown
        assert b'key="ci"' not in shown


async def test_a_body_may_be_as_large_as_the_table_says(tmp_path: Path) -> None:
    async with up(MOCK + "server: {max_body: 2kB}\n", tmp_path) as app:
        answer = await exchange(port_of(app.url), request("POST", "/v1/completions", b"x" * 2001))
        assert (answer.status, answer.message) == (413, "The request body is larger than 2000 bytes.")


async def test_no_more_is_taken_on_than_the_table_says(tmp_path: Path) -> None:
    async with up(MOCK + "server: {limits: {requests: 7, streams: 8, body_bytes: 9kB}}\n", tmp_path) as app:
        assert app.front.admission.limits == AdmissionLimits(7, 8, 9000)
    async with up(MOCK, tmp_path) as app:
        assert app.front.admission.limits == AdmissionLimits()


@pytest.mark.parametrize("place", ["public", "admin"])
async def test_a_port_that_is_taken_is_an_error_and_leaves_nothing_behind(tmp_path: Path, place: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        listen = (
            Addresses("127.0.0.1", port, "127.0.0.1", 0)
            if place == "public"
            else Addresses("127.0.0.1", 0, "127.0.0.1", port)
        )
        before = asyncio.all_tasks()
        with pytest.raises(OSError, match="in use"):
            async with up(MOCK, tmp_path, listen=listen):
                raise AssertionError("it is up")
        assert asyncio.all_tasks() == before


async def test_leaving_ends_what_is_under_way_at_once(tmp_path: Path) -> None:
    async with FakeVendor((Hang(),)) as vendor:
        async with up(table_before(vendor), tmp_path) as app, connected(port_of(app.url)) as client:
            await client.send(request("POST", "/v1/completions", ask("v/m")))
            await vendor.received(1)
        await vendor.requests[0].gone.wait()


async def test_a_crash_in_the_background_ends_the_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def crash(self: Reloader) -> None:
        raise LookupError("in the background")

    monkeypatch.setattr(Reloader, "run", crash)
    with pytest.raises(ExceptionGroup) as caught:
        async with up(MOCK, tmp_path):
            await asyncio.Event().wait()
    assert caught.group_contains(LookupError)


# As a process --------------------------------------------------------------------------------------------------------


def patient(vendor: FakeVendor) -> str:
    server = "server:\n  port: ${PORT}\n  drain_grace: 50ms\n  drain_timeout: 1m\n  admin:\n    port: ${ADMIN_PORT}\n"
    return table_before(vendor) + server


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_and_a_stream_under_way_loses_nothing(tmp_path: Path, number: signal.Signals) -> None:
    gate = asyncio.Event()
    async with FakeVendor((START, Until(gate), *REST)) as vendor:
        async with running_gateway(patient(vendor), tmp_path) as gateway, connected(port_of(gateway.url)) as client:
            await client.send(request("POST", "/v1/completions", ask("v/m", stream=True)))
            await client.head()
            gateway.process.send_signal(number)
            await gateway.unready()
            gate.set()
            body, whole = await client.chunks()
            assert whole
            assert body.endswith(b"[DONE]\n\n")
            gateway.exit_code = await asyncio.to_thread(gateway.process.wait)
            assert gateway.exit_code == 0
        assert [line["outcome"] for line in gateway.log()] == ["ok"]
        assert "draining, at most 60 s" in gateway.messages()
        assert "stopped" in gateway.messages()


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    async with FakeVendor((START, Hang())) as vendor:
        async with running_gateway(patient(vendor), tmp_path) as gateway, connected(port_of(gateway.url)) as client:
            await client.send(request("POST", "/v1/completions", ask("v/m", stream=True)))
            await client.head()
            gateway.process.send_signal(signal.SIGTERM)
            await gateway.unready()
            gateway.process.send_signal(signal.SIGTERM)
            assert not (await client.chunks())[1]
            gateway.exit_code = await asyncio.to_thread(gateway.process.wait, 1.5)
            assert gateway.exit_code == 0
        await vendor.requests[0].gone.wait()


async def test_a_hangup_takes_the_new_table(tmp_path: Path) -> None:
    async with running_gateway(MOCK, tmp_path) as gateway:
        await gateway.reload(MOCK.replace("mock/echo", "mock/other"))
        answer = await exchange(port_of(gateway.url), request("GET", "/v1/models"))
        assert b"mock/other" in answer.body


async def test_clients_get_receipts_as_soon_as_the_table_says_so(tmp_path: Path) -> None:
    pages = "server: {cors: {origins: ['https://app.example.com']}, receipt: RECEIPT}\n"
    headers = {"Origin": "https://app.example.com", "Content-Type": "application/json"}
    async with up(MOCK + pages.replace("RECEIPT", "false"), tmp_path) as app:
        port, told = port_of(app.url), []
        for receipt in ("false", "true", "false"):
            (tmp_path / "t.yaml").write_text(MOCK + pages.replace("RECEIPT", receipt), encoding="utf-8")
            await app.reloader.reload()
            answer = await exchange(port, request("POST", "/v1/completions", ask("mock/echo"), headers))
            told.append({"server-timing", "timing-allow-origin"} & answer.headers.keys())
    assert told == [set(), {"server-timing", "timing-allow-origin"}, set()]
