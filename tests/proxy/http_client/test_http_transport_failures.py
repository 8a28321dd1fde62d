"""Each way in which a call of a vendor fails has its name, and no name leads where it may not."""

import asyncio
import gc
import socket

import pytest

from providers.failure import FailureKind
from proxy.http_client.address_guard import GuardedResolver
from proxy.http_client.http_transport import HttpTransport
from tests.proxy.kit.transport_calls import HASTY, OK, broken, failure, opened, whole
from tests.support.http_scripts import chunk, head, sse_close_delimited
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Delay, Fin, Hang, Rst, Send, Until


async def test_a_closed_port_is_a_connection_failure(transport: HttpTransport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    assert await failure(transport, f"http://127.0.0.1:{port}") is FailureKind.CONNECT


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


async def test_a_handshake_that_hangs_counts_as_connecting(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.at_accept((Hang(),))
    assert await failure(transport, f"https://127.0.0.1:{vendor.port}", HASTY) is FailureKind.TIMEOUT


async def test_a_name_that_takes_long_to_resolve_counts_as_connecting(
    transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*args: object, **kwargs: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(GuardedResolver, "resolve", hang)
    assert await failure(transport, "http://slow.example.com", HASTY) is FailureKind.TIMEOUT


async def test_plain_text_where_tls_was_expected_is_a_failure_of_tls(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.at_accept((Send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Fin()))
    assert await failure(transport, f"https://127.0.0.1:{vendor.port}") is FailureKind.TLS


async def test_a_name_that_nobody_knows_is_a_connection_failure(transport: HttpTransport) -> None:
    assert await failure(transport, "http://nobody.invalid") is FailureKind.CONNECT


@pytest.mark.parametrize("ending", [Fin(), Rst()])
async def test_a_connection_that_ends_without_an_answer(
    vendor: FakeVendor, transport: HttpTransport, ending: Fin | Rst
) -> None:
    vendor.answer((ending,))
    assert await failure(transport, vendor.base_url) is FailureKind.SERVER


@pytest.mark.parametrize("ending", [Fin(), Rst()])
async def test_a_connection_that_ends_in_the_middle_of_the_head(
    vendor: FakeVendor, transport: HttpTransport, ending: Fin | Rst
) -> None:
    vendor.answer((Send(b"HTTP/1.1 200 OK\r\ncontent-"), ending))
    assert await failure(transport, vendor.base_url) is FailureKind.SERVER


@pytest.mark.parametrize(
    "data",
    [
        b"not http at all\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na: \x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\na: " + b"x" * 20_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: 1\r\n" * 200 + b"\r\n",
    ],
    ids=["words", "status", "two framings", "nul", "long header", "many headers"],
)
async def test_a_head_that_makes_no_sense(vendor: FakeVendor, transport: HttpTransport, data: bytes) -> None:
    vendor.answer((Send(data), Hang()))
    assert await failure(transport, vendor.base_url) is FailureKind.MALFORMED


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


@pytest.mark.parametrize("rest", [b"zz\r\n", b"-1\r\n", b"3\r\nabcd\r\n"])
async def test_chunks_that_make_no_sense(vendor: FakeVendor, transport: HttpTransport, rest: bytes) -> None:
    gate = asyncio.Event()
    vendor.answer(
        (Send(head(200, [("transfer-encoding", "chunked")]) + chunk(b"one")), Until(gate), Send(rest), Hang())
    )
    response = await opened(transport, vendor)
    assert await response.read() == b"one"
    gate.set()
    assert await broken(response) is FailureKind.TRUNCATED


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


async def test_the_coding_that_is_none_is_no_reason_to_refuse_an_answer(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.answer((Send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Identity\r\n\r\nhello"), Fin()))
    assert await whole(await opened(transport, vendor)) == b"hello"
    length = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nhello"
    vendor.answer((Send(length), Fin()))
    assert await failure(transport, vendor.base_url) is FailureKind.MALFORMED
