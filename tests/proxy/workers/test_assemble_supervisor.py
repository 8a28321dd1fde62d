"""Several processes act as one gateway towards clients, operators and Prometheus."""

import asyncio
import json
import os
import re
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from cryptography.x509 import load_der_x509_certificate

from proxy.process.freeze_watchdog import main_thread
from proxy.process.load_table import Source
from proxy.workers.assemble_supervisor import drain_limit, reserved
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import Answer, RawClient, connected, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import MOCK, REST, START, port_of, table_before
from tests.support.authority import LOCAL, Authority
from tests.support.gateway import SERVER, RunningGateway, running_gateway
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Hang, Until
from tests.support.waiting import until

TWO = SERVER + "  workers: 2\n  drain_grace: 50ms\n  watch: false\n"
TABLE = MOCK + TWO


async def pids(gateway: RunningGateway) -> list[int]:
    """Return the workers' process ids. A worker that does not respond in time is not on the status page."""
    while len(found := await gateway.in_flight()) < 2:  # noqa: ASYNC110 - nothing notifies
        await asyncio.sleep(0.01)
    return [*found]


@asynccontextmanager
async def running_workers(table: str, folder: Path) -> AsyncIterator[RunningGateway]:
    """Run a gateway until all of its workers accept requests; it is ready as soon as one does."""
    async with running_gateway(table, folder) as gateway:
        await gateway.serving(2)
        yield gateway


@pytest.mark.smoke
async def test_every_worker_serves_and_one_scrape_counts_them_all(tmp_path: Path) -> None:
    async with running_workers(TABLE, tmp_path) as gateway:
        port = port_of(gateway.url)
        for _ in range(40):
            assert (await exchange(port, request("POST", "/v1/completions", ask("mock/echo")))).status == 200
        series = await gateway.metrics()
        counted = {name: value for name, value in series.items() if name.startswith("dragoman_requests_total")}
        assert sum(counted.values()) == 40
        assert series["dragoman_workers"] == 2
        status = (await exchange(port_of(gateway.admin_url), request("GET", "/status"))).json()
        assert (status["ready"], status["in_flight"]) == (True, 0)
        lines = status["workers"]
        assert isinstance(lines, list)
        for number, line in enumerate(lines, 1):
            assert re.fullmatch(rf"worker {number} \(process \d+\), table [0-9a-f]{{12}}, 0 in flight", str(line))
        assert len(await gateway.logged(40)) == 40
        assert "with 2 workers" in gateway.messages()


def digest_line(key: str) -> str:
    return f'teams: {{search: {{keys: ["{digest_of(key)}"], models: ["*"], limits: {{requests_per_day: 100}}}}}}\n'


def said(answer: Answer) -> dict[str, Any]:  # Any: our own JSON
    found: dict[str, Any] = json.loads(answer.body)
    return found


async def test_limits_and_usage_are_those_of_all_workers(tmp_path: Path) -> None:
    async with running_workers(TABLE + digest_line("k"), tmp_path) as gateway:
        key = {"Authorization": "Bearer k"}
        for _ in range(8):
            answer = await exchange(port_of(gateway.url), request("POST", "/v1/completions", ask("mock/echo"), key))
            assert answer.status == 200
        admin = port_of(gateway.admin_url)
        while True:
            (limit,) = said(await exchange(admin, request("GET", "/limits?team=search")))["limits"]
            usage = said(await exchange(admin, request("GET", "/usage?by=team")))
            status = said(await exchange(admin, request("GET", "/status")))
            # New usage may count twice until the workers have exchanged their state.
            shown = status["limits"] == ["team search: 8 of 100 requests per day (8%)"]
            if shown and limit["used"] == 8 and usage.get("total", {}).get("requests") == 8:
                break
            await asyncio.sleep(0.05)
        own = said(await exchange(port_of(gateway.url), request("GET", "/v1/usage?by=team", None, key)))
        assert own["usage"] == usage["usage"]
        assert str(status["ledger"]).startswith(f"{tmp_path / 'ledger.db'}, ")


@pytest.mark.smoke
async def test_the_page_and_the_status_show_the_sum_of_all_workers(tmp_path: Path) -> None:
    async with running_workers(TABLE, tmp_path) as gateway:
        admin, public = port_of(gateway.admin_url), port_of(gateway.url)
        for number in range(20):
            headers = {"x-request-id": f"failed-{number}"}
            assert (await exchange(public, request("POST", "/v1/completions", ask("no/one"), headers))).status == 404
            assert (await exchange(public, request("POST", "/v1/completions", ask("mock/echo")))).status == 200
        gateway.table.write_text(TABLE.replace("mock/echo", "mock/new"), encoding="utf-8")
        assert (await exchange(admin, request("POST", "/-/reload"))).status == 200
        status = said(await exchange(admin, request("GET", "/status")))
        assert status["recent"]["whole"]["requests"] == 40
        assert status["recent"]["deployments"]["mock/echo/default"]["requests"] == 20
        hour = status["last_hour"]
        assert sum(sum(minute["outcomes"].values()) for minute in hour["minutes"]) == 40
        assert [(each["name"], each["requests"]) for each in hour["models"]] == [("mock/echo", 20)]
        # Each worker notes the ends of its own requests: on a busy machine, the order of two workers may differ.
        assert {each["request_id"] for each in status["failed_requests"]} == {f"failed-{n}" for n in range(20)}
        assert len(status["failed_requests"]) == 20
        assert status["reloads"][0]["changes"] == ["model mock/new added", "model mock/echo removed"]
        page = (await exchange(admin, request("GET", "/"))).body.decode()
        assert page.count("worker 1 (process ") == page.count("worker 2 (process ") == 1
        assert "failed-0" in page
        assert "succeeded 20 (50.0%)" in page
        assert "model mock/new added" in page


async def test_a_table_is_judged_once_and_taken_by_all(tmp_path: Path) -> None:
    async with running_workers(TABLE, tmp_path) as gateway:
        admin, public = port_of(gateway.admin_url), port_of(gateway.url)
        gateway.table.write_text(TABLE.replace("mock/echo", "nobody/echo"), encoding="utf-8")
        refused = await exchange(admin, request("POST", "/-/reload"))
        assert refused.status == 400
        while "reload refused" not in gateway.messages():  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)
        gateway.table.write_text(TABLE.replace("mock/echo", "mock/new"), encoding="utf-8")
        taken = await exchange(admin, request("POST", "/-/reload"))
        assert (taken.status, taken.json()["result"]) == (200, "reloaded")
        answers = [await exchange(public, request("GET", "/v1/models")) for _ in range(20)]
        assert all(b"mock/new" in answer.body for answer in answers)
        series = await gateway.metrics()
        assert series['dragoman_config_reloads_total{result="success"}'] == 1
        assert series['dragoman_config_reloads_total{result="failure"}'] == 1
        assert gateway.messages().count("reload refused") == 1


async def test_a_hangup_of_the_supervisor_reloads_them_all(tmp_path: Path) -> None:
    async with running_workers(TABLE, tmp_path) as gateway:
        await gateway.reload(TABLE.replace("mock/echo", "mock/new"))
        answers = [await exchange(port_of(gateway.url), request("GET", "/v1/models")) for _ in range(20)]
        assert all(b"mock/new" in answer.body for answer in answers)


async def test_a_worker_that_dies_is_replaced_even_while_the_table_is_broken(tmp_path: Path) -> None:
    async with running_workers(TABLE, tmp_path) as gateway:
        gateway.table.write_text("broken", encoding="utf-8")
        os.kill((await pids(gateway))[0], signal.SIGKILL)
        await gateway.serving(2, restarts=1)
        answers = [await exchange(port_of(gateway.url), request("GET", "/v1/models")) for _ in range(20)]
        assert all(b"mock/echo" in answer.body for answer in answers)
        assert re.search(r"worker \d \(process \d+\) ended on SIGKILL; it is replaced", gateway.messages())


def serial(port: int, authority: Authority) -> int:
    context = ssl.create_default_context(cadata=authority.pem().decode())
    plain = socket.create_connection(("127.0.0.1", port))
    with plain, context.wrap_socket(plain, server_hostname="localhost") as secured:
        return load_der_x509_certificate(secured.getpeercert(True) or b"").serial_number


async def test_every_worker_shows_the_latest_certificate_even_where_its_files_are_broken(tmp_path: Path) -> None:
    def write(pair: tuple[bytes, bytes]) -> None:
        for name, content in zip(("cert.pem", "key.pem"), pair, strict=True):
            (tmp_path / name).write_bytes(content)

    authority = Authority()
    write(authority.pair(*LOCAL))
    async with AsyncExitStack() as stack:
        table = TABLE + "  tls: {cert: cert.pem, key: key.pem}\n"
        gateway = await stack.enter_async_context(running_workers(table, tmp_path))
        old = serial(port_of(gateway.url), authority)
        write(authority.pair(*LOCAL))
        taken = await exchange(port_of(gateway.admin_url), request("POST", "/-/reload"))
        assert taken.json()["result"] == "reloaded"
        write((b"broken", b"broken"))
        os.kill((await pids(gateway))[0], signal.SIGKILL)
        await gateway.serving(2, restarts=1)
        shown = {serial(port_of(gateway.url), authority) for _ in range(20)}
        assert len(shown) == 1
        assert old not in shown


async def streaming(vendor: FakeVendor, gateway: RunningGateway, stack: AsyncExitStack, count: int) -> list[RawClient]:
    """Return clients whose streams have begun, over all workers."""
    clients = [await stack.enter_async_context(connected(port_of(gateway.url))) for _ in range(count)]
    for client in clients:
        await client.send(request("POST", "/v1/completions", ask("v/m", stream=True)))
        await client.head()
    return clients


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_drains_every_worker_and_no_stream_loses_any(tmp_path: Path, number: signal.Signals) -> None:
    gate = asyncio.Event()
    async with FakeVendor((START, Until(gate), *REST)) as vendor, AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(running_workers(table_before(vendor) + TWO, tmp_path))
        clients = await streaming(vendor, gateway, stack, 10)
        gateway.process.send_signal(number)
        await gateway.unready()
        gate.set()
        for client in clients:
            body, whole = await client.chunks()
            assert whole
            assert body.endswith(b"[DONE]\n\n")
        gateway.exit_code = await asyncio.to_thread(gateway.process.wait)
        assert gateway.exit_code == 0
        assert [line["outcome"] for line in gateway.log()] == ["ok"] * 10


async def test_a_second_signal_ends_every_worker_at_once(tmp_path: Path) -> None:
    async with FakeVendor((START, Hang())) as vendor, AsyncExitStack() as stack:
        gateway = await stack.enter_async_context(running_workers(table_before(vendor) + TWO, tmp_path))
        clients = await streaming(vendor, gateway, stack, 4)
        gateway.process.send_signal(signal.SIGTERM)
        await gateway.unready()
        gateway.process.send_signal(signal.SIGTERM)
        for client in clients:
            assert not (await client.chunks())[1]
        gateway.exit_code = await asyncio.to_thread(gateway.process.wait, 10)
        assert gateway.exit_code == 0
        assert [line["outcome"] for line in gateway.log()] == ["truncated"] * 4


def has_ended(pid: int) -> bool:
    """Return whether a process has ended, even if its parent has not collected its status yet."""
    found = main_thread(pid)
    return found is None or found.state == "Z"


async def test_workers_do_not_outlive_a_supervisor_that_was_killed(tmp_path: Path) -> None:
    async with running_workers(TABLE, tmp_path) as gateway:
        theirs = await pids(gateway)
        gateway.process.kill()
        gateway.exit_code = await asyncio.to_thread(gateway.process.wait)
        await until(lambda: all(has_ended(pid) for pid in theirs))


async def test_a_port_that_another_gateway_shares_is_taken() -> None:
    async with reserved("127.0.0.1", 0) as door:
        port = door.sockets[0].getsockname()[1]
        with socket.create_server(("127.0.0.1", port), reuse_port=True), pytest.raises(OSError, match="in use"):
            async with reserved("127.0.0.1", port):
                raise AssertionError("two gateways share a port")


async def test_nobody_gets_in_before_a_worker_listens() -> None:
    async with reserved("127.0.0.1", 0) as door:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", door.sockets[0].getsockname()[1]))


def test_workers_have_as_long_as_the_table_says_and_a_little_more() -> None:
    server = Source(None, {}).load().loaded.config.server
    assert drain_limit(server) > server.drain_grace + server.drain_timeout
