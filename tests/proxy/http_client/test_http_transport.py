"""The transport to the vendors, against a vendor on a raw socket: the bytes sent, the response, and its limits."""

import asyncio
import gzip
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from email.utils import formatdate

import pytest

from providers.failure import FailureKind, UpstreamError
from providers.vendor_text.read_retry_after import read_retry_after
from proxy.http_client.http_transport import HttpTransport
from proxy.version import USER_AGENT
from tests.proxy.kit.transport_calls import OK, call, opened, whole
from tests.support.http_scripts import body_answer, head, json_answer
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Hang, Rst, Send, Step, Until


@pytest.mark.smoke
async def test_the_request_goes_out_as_the_dialect_made_it(vendor: FakeVendor, transport: HttpTransport) -> None:
    sent = call(f"{vendor.base_url}/v1/x?api-version=1", headers={"X-Own": "1"}, body=b'{"a":1}')
    response = await transport.open(sent, "req-1")
    assert await whole(response) == b'{"ok":true}'
    (request,) = vendor.requests
    assert (request.method, request.target, request.body) == ("POST", "/v1/x?api-version=1", b'{"a":1}')
    assert sorted((name.lower(), value) for name, value in request.headers) == [
        ("accept", "*/*"),
        ("accept-encoding", "identity"),
        ("authorization", "Bearer sk-operator"),
        ("content-length", "7"),
        ("content-type", "application/json"),
        ("host", f"127.0.0.1:{vendor.port}"),
        ("user-agent", USER_AGENT),
        ("x-dragoman-hops", "1"),
        ("x-org", "acme"),
        ("x-own", "1"),
        ("x-request-id", "req-1"),
    ]


@pytest.mark.smoke
@pytest.mark.parametrize(
    "target",
    [
        "/model/us.anthropic.claude-haiku-4-5-20251001-v1%3A0/converse",
        "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Feu.x-v1%3A0/converse-stream",
        "/v1//x/./y?api-version=2024-10-21&a=%2f%7E",
    ],
)
async def test_the_target_is_the_url_s_byte_for_byte(vendor: FakeVendor, transport: HttpTransport, target: str) -> None:
    await whole(await transport.open(call(vendor.base_url + target), "req-1"))
    assert vendor.requests[0].target == target


async def test_no_header_of_a_request_replaces_the_operator_s(vendor: FakeVendor, transport: HttpTransport) -> None:
    given = {"AUTHORIZATION": "Bearer other", "x-org": "other", "x-request-id": "other", "content-type": "other/type"}
    assert (await transport.open(call(vendor.base_url, headers=given), "req-1")).status == 200
    (request,) = vendor.requests
    names = [name.lower() for name, _ in request.headers]
    assert len(names) == len(set(names))
    assert not [value for _, value in request.headers if "other" in value]


async def test_cookies_are_not_kept(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(json_answer(200, {}, [("set-cookie", "a=b; Path=/")]))
    await whole(await opened(transport, vendor))
    await whole(await opened(transport, vendor))
    assert vendor.requests[1].header("cookie") is None


async def test_the_environment_s_proxies_are_not_asked(
    vendor: FakeVendor, transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:1")
    assert (await opened(transport, vendor)).status == 200


async def test_many_calls_wait_for_no_connection(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.default = (Hang(),)
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(opened(transport, vendor)) for _ in range(150)]
        await vendor.received(150)
        for each in calls:
            each.cancel()


async def test_headers_have_lower_case_names(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(json_answer(429, {}, [("Retry-After", "7")]))
    response = await opened(transport, vendor)
    assert (response.status, response.headers["retry-after"]) == (429, "7")


async def test_a_connection_serves_the_next_call_once_it_was_read(vendor: FakeVendor, transport: HttpTransport) -> None:
    for _ in range(3):
        response = await opened(transport, vendor)
        await whole(response)
        response.release()
    assert vendor.connections == 1


async def test_a_connection_with_an_unread_answer_is_closed(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer((Send(head(200, [("content-length", "10")]) + b"abc"), Hang()))
    response = await opened(transport, vendor)
    assert await response.read() == b"abc"
    response.release()
    await vendor.requests[0].gone.wait()


async def test_giving_an_answer_up_closes_its_connection(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer((Send(head(200, [("content-length", "10")]) + b"abc"), Hang()))
    response = await opened(transport, vendor)
    response.close()
    await vendor.requests[0].gone.wait()


@pytest.mark.parametrize("stray", [b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nstray", b"stray"])
async def test_what_comes_on_an_idle_connection_is_not_the_answer_to_the_next_call(
    vendor: FakeVendor, transport: HttpTransport, stray: bytes
) -> None:
    gate = asyncio.Event()
    vendor.answer((*OK, Until(gate), Send(stray), Hang()))
    first = await opened(transport, vendor)
    await whole(first)
    first.release()
    gate.set()
    for _ in range(20):
        await asyncio.sleep(0)
    assert await whole(await opened(transport, vendor)) == b'{"ok":true}'
    assert [request.connection for request in vendor.requests] == [0, 1]


async def test_what_came_on_an_idle_connection_and_was_not_read_is_no_answer_either(transport: HttpTransport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        loop, answer = asyncio.get_running_loop(), b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n"
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"

        async def serve(text: bytes) -> socket.socket:
            peer, _ = await loop.sock_accept(listening)
            await loop.sock_recv(peer, 65536)
            peer.sendall(answer + text)
            return peer

        async with asyncio.TaskGroup() as group:
            serving = group.create_task(serve(b"first"))
            response = await transport.open(call(url), "req-1")
            assert await whole(response) == b"first"
            response.release()
        with serving.result() as peer:
            async with asyncio.TaskGroup() as group:
                again = group.create_task(serve(b"fresh"))
                await asyncio.sleep(0)
                peer.sendall(answer + b"stray")
                response = await transport.open(call(url), "req-2")
                assert await whole(response) == b"fresh"
            again.result().close()


async def test_a_cancelled_call_closes_its_connection(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer((Hang(),))
    task = asyncio.create_task(opened(transport, vendor))
    (request,) = await vendor.received(1)
    task.cancel()
    await request.gone.wait()


async def test_redirects_are_not_followed(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.default = json_answer(307, {}, [("location", f"{vendor.base_url}/elsewhere")])
    assert (await opened(transport, vendor)).status == 307
    assert len(vendor.requests) == 1


async def test_a_body_compressed_unasked_is_still_read(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(body_answer(200, gzip.compress(b"text"), [("content-encoding", "gzip")]))
    assert await whole(await opened(transport, vendor)) == b"text"


async def test_a_date_to_wait_for_counts_from_the_answer_s_arrival_where_it_has_no_date(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.answer(json_answer(429, {}, [("Retry-After", formatdate(time.time() + 600, usegmt=True))]))
    response = await opened(transport, vendor)
    assert 300 < (read_retry_after(response.headers) or 0) <= 600


# Bodies that are sent as they are read --------------------------------------------------------------------------------

MUCH = 50 * 1024 * 1024


@dataclass
class Pieces:
    """A body of `size` bytes that announces `length`. `read` counts the bytes that the transport has taken."""

    length: int
    size: int
    read: int = 0
    closed: bool = False

    async def pieces(self) -> AsyncIterator[bytes]:
        try:
            while self.read < self.size:
                piece = b"x" * min(65536, self.size - self.read)
                self.read += len(piece)
                yield piece
        finally:
            self.closed = True


async def test_a_body_is_sent_as_fast_as_the_vendor_takes_it(vendor: FakeVendor, transport: HttpTransport) -> None:
    upload = Pieces(MUCH, MUCH)
    assert await whole(await transport.open(replace(call(vendor.base_url), upload=upload), "req-1")) == b'{"ok":true}'
    (request,) = vendor.requests
    assert request.header("content-length") == str(MUCH)
    assert len(request.body) == MUCH
    assert upload.closed
    assert await whole(await opened(transport, vendor)) == b'{"ok":true}'
    assert vendor.connections == 1


async def test_a_vendor_that_does_not_read_is_sent_no_more_than_a_little(transport: HttpTransport) -> None:
    upload = Pieces(MUCH, MUCH)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        sending = asyncio.create_task(transport.open(replace(call(url), upload=upload), "req-1"))
        seen = -1
        while seen < upload.read or not seen:
            seen = upload.read
            await asyncio.sleep(0.05)
        assert 0 < upload.read < MUCH
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
    assert upload.closed
    assert transport.pool.in_use == 0


async def test_a_refusal_before_the_end_of_a_body_is_the_answer_and_the_connection_s_last(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.at_accept((Send(head(413, [("content-length", "2")]) + b"no"), Hang()))
    upload = Pieces(MUCH, MUCH)
    response = await transport.open(replace(call(vendor.base_url), upload=upload), "req-1")
    assert response.status == 413
    assert await response.read() == b"no"
    response.release()
    assert upload.read < MUCH
    assert upload.closed
    await vendor.connected(0)


@pytest.mark.parametrize("status", [200, 413])
async def test_an_answer_before_the_end_of_a_body_in_memory_is_the_answer_and_the_connection_s_last(
    vendor: FakeVendor, transport: HttpTransport, status: int
) -> None:
    vendor.at_accept((Send(head(status, [("content-length", "2")]) + b"no"), Hang()))
    response = await transport.open(call(vendor.base_url, body=bytes(MUCH // 2)), "req-1")
    assert (response.status, await response.read()) == (status, b"no")
    response.release()
    await vendor.connected(0)


@pytest.mark.parametrize("ending", [Fin(), Rst()])
async def test_a_vendor_that_leaves_during_a_body_has_not_answered(
    vendor: FakeVendor, transport: HttpTransport, ending: Step
) -> None:
    vendor.at_accept((ending,))
    upload = Pieces(MUCH, MUCH)
    with pytest.raises(UpstreamError) as caught:
        await transport.open(replace(call(vendor.base_url), upload=upload), "req-1")
    assert caught.value.failure.kind is FailureKind.SERVER
    assert upload.closed or not upload.read


@pytest.mark.parametrize("size", [99, 101])
async def test_a_body_of_another_length_than_it_said_is_a_fault_of_ours(
    vendor: FakeVendor, transport: HttpTransport, size: int
) -> None:
    with pytest.raises(RuntimeError, match="length"):
        await transport.open(replace(call(vendor.base_url), upload=Pieces(100, size)), "req-1")
    await vendor.connected(0)


async def test_a_large_body_arrives_whole(vendor: FakeVendor, transport: HttpTransport) -> None:
    body = bytes(range(256)) * 8192
    await whole(await transport.open(call(vendor.base_url, body=body), "req-1"))
    assert vendor.requests[0].body == body


async def test_after_the_transport_closed_no_connection_is_left(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(OK, (Hang(),))
    await whole(await opened(transport, vendor))
    waiting = asyncio.create_task(opened(transport, vendor))
    await vendor.received(2)
    await transport.aclose()
    with pytest.raises(UpstreamError):
        await waiting
    await vendor.connected(0)
