"""Each way in which a call of a vendor fails has its own kind, and no name leads to a forbidden address."""

import asyncio
import gc
import socket

import pytest

from providers.failure import FailureKind
from proxy.http_client.address_guard import GuardedResolver
from proxy.http_client.http_transport import HttpTransport
from tests.proxy.kit.transport_calls import HASTY, OK, broken, failure, opened, whole
from tests.support.http_scripts import head, sse_close_delimited
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Delay, Fin, Rst, Send


async def test_a_host_that_takes_no_connection_is_given_up_in_time(transport: HttpTransport) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        port = listening.getsockname()[1]
        waiting = [socket.socket() for _ in range(3)]
        try:
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", port))
            assert await failure(transport, f"http://127.0.0.1:{port}", HASTY) is FailureKind.TIMEOUT
        finally:
            for each in waiting:
                each.close()


async def test_a_name_that_takes_long_to_resolve_counts_as_connecting(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*args: object, **kwargs: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(GuardedResolver, "resolve", hang)
    assert await failure(transport, "http://slow.example.com", HASTY) is FailureKind.TIMEOUT


@pytest.mark.parametrize("ending", [Fin(), Rst()])
@pytest.mark.parametrize("start", [(), (Send(b"HTTP/1.1 200 OK\r\ncontent-"),)])
async def test_a_connection_without_an_answer(
    vendor: FakeVendor, transport: HttpTransport, start: tuple[Send, ...], ending: Fin | Rst
) -> None:
    vendor.answer((*start, ending))
    assert await failure(transport, vendor.base_url) is FailureKind.SERVER


@pytest.mark.parametrize("ending", [Fin(), Rst()])
@pytest.mark.parametrize(
    "start",
    [head(200, [("content-length", "10")]) + b"abc", head(200, [("transfer-encoding", "chunked")]) + b"5\r\nab"],
)
async def test_a_framed_body_that_breaks_off(
    vendor: FakeVendor, transport: HttpTransport, start: bytes, ending: Fin | Rst
) -> None:
    vendor.answer((Send(start), ending))
    assert await broken(await opened(transport, vendor)) is FailureKind.TRUNCATED


async def test_a_body_that_its_connection_s_end_delimits_proves_nothing_by_ending(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.answer(sse_close_delimited(b"data: one\n\n"))
    assert await whole(await opened(transport, vendor)) == b"data: one\n\n"


async def test_a_connection_that_ends_while_it_waits_for_work_is_no_trouble(
    vendor: FakeVendor, transport: HttpTransport, caplog: pytest.LogCaptureFixture
) -> None:
    vendor.answer((*OK, Delay(0.02), Rst()))
    await whole(await opened(transport, vendor))
    await vendor.connected(0)
    await whole(await opened(transport, vendor))
    gc.collect()
    assert caplog.text == ""


async def test_the_coding_that_is_none_is_no_reason_to_refuse(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer((Send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Identity\r\n\r\nhello"), Fin()))
    assert await whole(await opened(transport, vendor)) == b"hello"
    length = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhello"
    vendor.answer((Send(length), Fin()))
    assert await failure(transport, vendor.base_url) is FailureKind.MALFORMED
