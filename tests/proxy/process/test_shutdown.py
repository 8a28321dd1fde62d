"""A drain loses no request; a second request to end does not wait for it."""

import asyncio
import json
import socket
from contextlib import AsyncExitStack
from io import BytesIO
from pathlib import Path

import pytest

from config.sections.server_section import ServerSection
from proxy.process import shutdown as ending_module
from proxy.process.load_table import Source
from proxy.process.shutdown import Shutdown, drain, drain_or_stop, run_unless
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import connected, exchange, request
from tests.proxy.kit.whole_gateway import MOCK, REST, START, port_of, table_before, up
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Hang, Until


@pytest.mark.smoke
async def test_who_asks_again_does_not_want_to_wait() -> None:
    shutdown = Shutdown()
    shutdown.request()
    assert (shutdown.requested.is_set(), shutdown.urgent.is_set()) == (True, False)
    shutdown.request()
    assert shutdown.urgent.is_set()


@pytest.mark.smoke
async def test_the_work_of_ending_is_over_when_nobody_waits_for_it() -> None:
    impatient, begun = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        await asyncio.Event().wait()

    ending = asyncio.create_task(run_unless(work(), impatient))
    await begun.wait()
    impatient.set()
    await ending


async def test_the_work_of_ending_is_done_whole_where_somebody_waits() -> None:
    done: list[int] = []

    async def work() -> None:
        await asyncio.sleep(0)
        done.append(1)

    await run_unless(work(), asyncio.Event())
    assert done == [1]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending_module, "SETTLE", 0.05)


@pytest.mark.usefixtures("hasty")
async def test_a_drain_lets_what_is_under_way_finish_and_takes_nothing_new(tmp_path: Path) -> None:
    gate = asyncio.Event()
    async with FakeVendor((START, Until(gate), *REST)) as vendor, up(table_before(vendor), tmp_path) as app:
        public, admin = port_of(app.url), port_of(app.admin_url)
        async with connected(public) as client, connected(public) as idle:
            await idle.send(request("GET", "/v1/models"))
            await idle.answer()
            await client.send(request("POST", "/v1/completions", ask("v/m", stream=True)))
            await client.head()
            draining = asyncio.create_task(drain(app.front, 0.2, 60.0))
            await asyncio.sleep(0)
            for port in (public, admin):
                assert (await exchange(port, request("GET", "/health/ready"))).status == 503
                assert (await exchange(port, request("GET", "/health/live"))).status == 200
            late = await exchange(public, request("GET", "/v1/models"))
            assert (late.status, late.headers["connection"]) == (200, "close")
            await refused(public)
            gate.set()
            body, whole = await client.chunks()
            assert whole
            assert body.endswith(b"[DONE]\n\n")
            await draining
            assert await idle.closed() == b""


async def refused(port: int) -> None:
    while True:
        try:
            async with connected(port):
                pass
        except ConnectionRefusedError:
            return
        except ConnectionResetError:
            # The listener closed before it accepted this one.
            continue
        await asyncio.sleep(0.01)


@pytest.mark.usefixtures("hasty")
async def test_a_drain_without_work_ends_by_itself(tmp_path: Path) -> None:
    async with up(MOCK, tmp_path) as app:
        await drain(app.front, 0.0, 60.0)


@pytest.mark.usefixtures("hasty")
async def test_whoever_is_connected_when_the_listener_closes_is_answered(tmp_path: Path) -> None:
    async with up(MOCK, tmp_path) as app, AsyncExitStack() as stack:
        address = ("127.0.0.1", port_of(app.url))
        # Without an event loop iteration in between: the kernel has the requests, the gateway has not.
        waiting = [stack.enter_context(socket.create_connection(address)) for _ in range(20)]
        for client in waiting:
            client.sendall(request("GET", "/v1/models"))
        await drain(app.front, 0.0, 60.0)
        for client in waiting:
            answer = await asyncio.to_thread(client.recv, 65536)
            assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
            assert b"Connection: close\r\n" in answer
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)


async def test_who_asks_again_after_a_pause_is_answered_before_its_connection_closes(tmp_path: Path) -> None:
    async with up(MOCK, tmp_path) as app, connected(port_of(app.url)) as client:
        await client.send(request("GET", "/v1/models"))
        await client.answer()
        draining = asyncio.create_task(drain(app.front, 0.0, 60.0))
        await refused(port_of(app.url))
        await client.send(request("GET", "/v1/models"))
        answer = await client.answer()
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        await draining


@pytest.mark.usefixtures("hasty")
async def test_at_its_limit_a_drain_tells_what_is_left(tmp_path: Path) -> None:
    async with FakeVendor() as vendor, up(table_before(vendor), tmp_path) as app:
        vendor.answer((START, Hang()), (Hang(),))
        async with connected(port_of(app.url)) as stream, connected(port_of(app.url)) as whole:
            await stream.send(request("POST", "/v1/completions", ask("v/m", stream=True)))
            await stream.head()
            await whole.send(request("POST", "/v1/completions", ask("v/m")))
            await vendor.received(2)
            await drain(app.front, 0.0, 0.1)
            body, ended = await stream.chunks()
            assert not ended
            assert b"The gateway is shutting down." in body
            answer = await whole.answer()
            assert (answer.status, answer.message) == (503, "The gateway is shutting down.")


async def test_what_a_second_signal_cuts_is_the_gateway_s_doing_and_not_its_client_s(tmp_path: Path) -> None:
    log = BytesIO()
    shutdown = Shutdown()
    shutdown.request()
    shutdown.request()
    async with FakeVendor() as vendor, up(table_before(vendor), tmp_path, log) as app, AsyncExitStack() as stack:
        vendor.answer((START, Hang()), (Hang(),))
        stream, whole, sending = [await stack.enter_async_context(connected(port_of(app.url))) for _ in range(3)]
        await stream.send(request("POST", "/v1/completions", ask("v/m", stream=True)))
        await stream.head()
        await whole.send(request("POST", "/v1/completions", ask("v/m")))
        await sending.send(request("POST", "/v1/completions", ask("v/m"))[:-5])
        await vendor.received(2)
        while app.front.gateway.in_flight < 3:  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.001)
        await drain_or_stop(app.front, app_server(tmp_path), shutdown)
        body, ended = await stream.chunks()
        assert not ended
        assert b"The gateway is shutting down." in body
        assert (await whole.answer()).status == 503
        aborts = [
            line for line in app.front.metrics.render().decode().splitlines() if line.startswith("dragoman_stream_ab")
        ]
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    told = sorted((line["outcome"], line["status"], line.get("code")) for line in lines)
    assert told == [("error", 503, "overloaded"), ("error", 503, "overloaded"), ("truncated", 200, "overloaded")]
    assert aborts == ['dragoman_stream_aborts_total{model="v/m",reason="shutdown",side="gateway"} 1.0']


async def test_who_leaves_while_the_gateway_ends_at_once_has_left(tmp_path: Path) -> None:
    log = BytesIO()
    async with FakeVendor() as vendor, up(table_before(vendor), tmp_path, log) as app:
        vendor.answer((Hang(),))
        async with connected(port_of(app.url)) as client:
            await client.send(request("POST", "/v1/completions", ask("v/m")))
            await vendor.received(1)
        await app.front.gateway.idle.wait()
        await app.front.public.shutdown(ending_module.STOP_AT_ONCE_TIMEOUT)
    (line,) = log.getvalue().splitlines()
    assert json.loads(line)["outcome"] == "client_gone"


def app_server(folder: Path) -> ServerSection:
    """Return the settings of the configuration in that folder."""
    return Source(folder / "t.yaml", {}).load().loaded.config.server
