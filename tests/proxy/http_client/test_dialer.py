"""New connections: the address, the certificate, and the time limit."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from proxy.http_client.address_guard import Found, GuardedResolver
from proxy.http_client.connection_pool import ConnectionPool
from proxy.http_client.dialer import Destination, Dialer
from tests.support.authority import LOCAL, Authority
from tests.support.vendor import FakeVendor
from tests.support.waiting import until

pytestmark = pytest.mark.smoke


HERE = Destination("vendor.example", 0, False, True, None, True)


@pytest.fixture
async def dialer() -> AsyncIterator[Dialer]:
    pool = ConnectionPool()
    yield Dialer(pool)
    await pool.aclose()


def resolve_to(dialer: Dialer, port: int, hosts: Sequence[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every name resolve to `hosts`."""

    def look_up(self: GuardedResolver, host: str, _: int) -> asyncio.Future[list[Found]]:
        found: list[Found] = []
        for each in hosts:
            family = socket.AF_INET6 if ":" in each else socket.AF_INET
            at = (each, port, 0, 0) if family is socket.AF_INET6 else (each, port)
            found.append((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", at))
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Found]] = loop.create_future()
        loop.call_soon(answer.set_result, found)
        return answer

    monkeypatch.setattr(GuardedResolver, "_look_up", look_up)


async def test_of_several_addresses_one_that_answers_is_taken(
    vendor: FakeVendor, dialer: Dialer, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(dialer, vendor.port, ["127.0.0.2", "::1", "127.0.0.1"], monkeypatch)
    connection = await dialer.dial(HERE, 1.0, 5.0)
    assert connection.state == "idle"
    assert vendor.connections == 1


async def test_addresses_that_may_not_be_called_are_not_even_tried(
    vendor: FakeVendor, dialer: Dialer, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolve_to(dialer, vendor.port, ["127.0.0.1", "169.254.169.254"], monkeypatch)
    with pytest.raises(OSError, match="may not be called"):
        await dialer.dial(HERE._replace(allow_private=False), 1.0, 5.0)
    assert vendor.connections == 0


async def test_a_numeric_host_is_checked_as_well(vendor: FakeVendor, dialer: Dialer) -> None:
    numeric = replace_port(HERE, vendor.port)
    with pytest.raises(OSError, match="may not be called"):
        await dialer.dial(numeric._replace(allow_private=False), 1.0, 5.0)
    await dialer.dial(numeric, 1.0, 5.0)
    assert vendor.connections == 1


def replace_port(to: Destination, port: int) -> Destination:
    return to._replace(host="127.0.0.1", port=port)


async def test_the_time_counts_for_the_name_too(dialer: Dialer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        GuardedResolver, "_look_up", lambda self, host, port: asyncio.get_running_loop().create_future()
    )
    with pytest.raises(TimeoutError):
        await dialer.dial(HERE, 1.0, 0.05)


async def test_calls_of_one_name_wait_for_one_look_up_which_outlives_those_who_leave(
    vendor: FakeVendor, dialer: Dialer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[asyncio.Future[list[Found]]] = []

    def look_up(self: GuardedResolver, host: str, port: int) -> asyncio.Future[list[Found]]:
        asked.append(asyncio.get_running_loop().create_future())
        return asked[-1]

    monkeypatch.setattr(GuardedResolver, "_look_up", look_up)
    waiting = [asyncio.create_task(dialer.dial(HERE, 1.0, 5.0)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    (only,) = asked
    only.set_result([(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", ("127.0.0.1", vendor.port))])
    connections = await asyncio.gather(*waiting[1:])
    assert [connection.state for connection in connections] == ["idle", "idle"]


async def test_a_name_that_cannot_be_one_has_no_address(dialer: Dialer) -> None:
    with pytest.raises(socket.gaierror):
        await dialer.dial(HERE._replace(host="a" * 70 + ".example"), 1.0, 5.0)


def test_destinations_differ_by_all_that_connections_may_not_share() -> None:
    assert len({HERE, HERE._replace(secure=True), HERE._replace(twice=False), HERE._replace(allow_private=False)}) == 4


async def test_the_authorities_are_loaded_when_they_are_needed_and_once(dialer: Dialer) -> None:
    assert dialer.trusted is None
    first = await dialer.load_authorities()
    assert await dialer.load_authorities() is first is dialer.trusted


async def test_a_certificate_that_proves_nothing_leaves_no_connection(dialer: Dialer, tmp_path: Path) -> None:
    open_ones: set[asyncio.StreamWriter] = set()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_ones.add(writer)
        await reader.read()
        open_ones.discard(writer)
        writer.close()

    server = await asyncio.start_server(hold, "127.0.0.1", 0, ssl=Authority().server(tmp_path, *LOCAL))
    async with server:
        to = replace_port(HERE, server.sockets[0].getsockname()[1])
        with pytest.raises(ssl.SSLCertVerificationError):
            await dialer.dial(to._replace(secure=True), 1.0, 5.0)
        await until(lambda: not open_ones)
