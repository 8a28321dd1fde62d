"""The door to the vendors, against a vendor on a raw socket: what is sent, and what each way to fail is called."""

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import pytest
from typing_extensions import override

from providers.dialect import Target, UpstreamRequest
from providers.failure import FailureKind, UpstreamError
from providers.unified import Operation
from proxy import upstream
from proxy.upstream import (
    MAX_ERROR_BODY,
    GuardedResolver,
    HttpTransport,
    UpstreamResponse,
    address_allowed,
    read_error,
    read_whole,
)
from proxy.version import USER_AGENT
from tests.proxy.tables import snapshot
from tests.support.script import Fin, Hang, Loop, Rst, Send
from tests.support.vendor import FakeVendor
from tests.support.wire import body_answer, chunk, head, json_answer, sse_close_delimited, sse_unterminated

OK = json_answer(200, {"ok": True})
TABLE = snapshot(
    "vendors: {v: {profile: openai, api_key: sk-operator, headers: {X-Org: acme}}}\n"
    "models: {v/m: {base_url: 'http://127.0.0.1:1', allow_private: true}}"
)
TARGET = TABLE.models["v/m"].targets[0]
HASTY = replace(TARGET, timeouts=replace(TARGET.timeouts, connect=0.1))


@pytest.fixture
async def vendor() -> AsyncIterator[FakeVendor]:
    """A vendor that answers everything with OK."""
    async with FakeVendor(OK) as running:
        yield running


class Tidy(HttpTransport):
    """The gateway's own transport, and what it gave, for who leaves an answer open."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[UpstreamResponse] = []

    @override
    async def open(self, request: UpstreamRequest, request_id: str) -> UpstreamResponse:
        response = await super().open(request, request_id)
        self.given.append(response)
        return response


@pytest.fixture
async def transport() -> AsyncIterator[HttpTransport]:
    """A transport whose answers are closed at the end."""
    made = Tidy()
    yield made
    for response in made.given:
        response.close()
    await made.aclose()


def call(
    url: str, target: Target = TARGET, headers: Mapping[str, str] | None = None, body: bytes = b"{}"
) -> UpstreamRequest:
    """A call of an URL as a dialect makes it."""
    return UpstreamRequest(target, Operation.COMPLETIONS, url, body, stream=False, headers=headers or {})


async def opened(transport: HttpTransport, vendor: FakeVendor) -> UpstreamResponse:
    """The vendor's answer up to its head."""
    return await transport.open(call(vendor.base_url), "req-1")


async def failure(transport: HttpTransport, url: str, target: Target = TARGET) -> FailureKind:
    """What a call that fails before its head is called."""
    with pytest.raises(UpstreamError) as caught:
        await transport.open(call(url, target), "req-1")
    message = caught.value.failure.message
    assert "127.0.0.1" not in message
    assert "sk-operator" not in message
    return caught.value.failure.kind


async def broken(response: UpstreamResponse) -> FailureKind:
    """What a body that breaks off is called."""
    with pytest.raises(UpstreamError) as caught:
        await read_whole(response)
    return caught.value.failure.kind


# What is sent --------------------------------------------------------------------------------------------------------


async def test_the_request_goes_out_as_the_dialect_made_it(vendor: FakeVendor, transport: HttpTransport) -> None:
    sent = call(f"{vendor.base_url}/v1/x?api-version=1", headers={"X-Own": "1"}, body=b'{"a":1}')
    response = await transport.open(sent, "req-1")
    assert await read_whole(response) == b'{"ok":true}'
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
        ("x-org", "acme"),
        ("x-own", "1"),
        ("x-request-id", "req-1"),
    ]


async def test_no_header_of_the_request_replaces_or_joins_the_operator_s(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    given = {"AUTHORIZATION": "Bearer other", "x-org": "other", "x-request-id": "other", "content-type": "other/type"}
    assert (await transport.open(call(vendor.base_url, headers=given), "req-1")).status == 200
    (request,) = vendor.requests
    names = [name.lower() for name, _ in request.headers]
    assert len(names) == len(set(names))
    assert not [value for _, value in request.headers if "other" in value]


async def test_cookies_are_not_kept(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(json_answer(200, {}, [("set-cookie", "a=b; Path=/")]))
    await read_whole(await opened(transport, vendor))
    await read_whole(await opened(transport, vendor))
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


# What comes back -----------------------------------------------------------------------------------------------------


async def test_headers_have_lower_case_names(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(json_answer(429, {}, [("Retry-After", "7")]))
    response = await opened(transport, vendor)
    assert (response.status, response.headers["retry-after"]) == (429, "7")


async def test_a_connection_serves_the_next_call_once_its_answer_was_read(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    for _ in range(3):
        response = await opened(transport, vendor)
        await read_whole(response)
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


async def test_a_cancelled_call_closes_its_connection(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer((Hang(),))
    task = asyncio.create_task(opened(transport, vendor))
    (request,) = await vendor.received(1)
    task.cancel()
    await request.gone.wait()


async def test_pieces_arrive_as_they_come(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer((Send(head(200, [("transfer-encoding", "chunked")]) + chunk(b"one")), Hang()))
    response = await opened(transport, vendor)
    assert await response.read() == b"one"


async def test_redirects_are_not_followed(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.default = json_answer(307, {}, [("location", f"{vendor.base_url}/elsewhere")])
    assert (await opened(transport, vendor)).status == 307
    assert len(vendor.requests) == 1


async def test_interim_answers_are_skipped(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer((Send(b"HTTP/1.1 100 Continue\r\n\r\n" * 5), *OK))
    assert (await opened(transport, vendor)).status == 200


async def test_a_body_compressed_unasked_is_still_read(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(body_answer(200, gzip.compress(b"text"), [("content-encoding", "gzip")]))
    assert await read_whole(await opened(transport, vendor)) == b"text"


# How it fails --------------------------------------------------------------------------------------------------------


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


async def test_plain_text_where_tls_was_expected_is_a_connection_failure(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.at_accept((Send(b"HTTP/1.1 400 Bad Request\r\n\r\n"), Fin()))
    assert await failure(transport, f"https://127.0.0.1:{vendor.port}") is FailureKind.CONNECT


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
        b"HTTP/1.1 200 OK\r\na: " + b"x" * 10_000 + b"\r\n\r\n",
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


async def test_chunks_that_make_no_sense(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer((Send(head(200, [("transfer-encoding", "chunked")]) + chunk(b"one") + b"zz\r\n"), Hang()))
    with pytest.raises(UpstreamError):
        await read_whole(await opened(transport, vendor))


async def test_a_body_that_its_connection_s_end_delimits_proves_nothing_by_ending(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.answer(sse_close_delimited(b"data: one\n\n"))
    assert await read_whole(await opened(transport, vendor)) == b"data: one\n\n"


# Limits --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pieces", [1, 4])
async def test_a_whole_body_may_be_as_large_as_the_limit(
    vendor: FakeVendor, transport: HttpTransport, pieces: int
) -> None:
    framing = head(200, [("transfer-encoding", "chunked")])
    vendor.default = (Send(framing), *[Send(chunk(b"x" * (1000 // pieces)))] * pieces, Send(b"0\r\n\r\n"))
    assert len(await read_whole(await opened(transport, vendor), 1000)) == 1000
    with pytest.raises(UpstreamError) as caught:
        await read_whole(await opened(transport, vendor), 999)
    assert caught.value.failure.kind is FailureKind.MALFORMED


ENDLESS = (Send(head(500, [("transfer-encoding", "chunked")])), Loop((Send(chunk(b"x" * 5000)),)))


async def test_an_endless_error_body_is_read_to_its_limit_and_its_connection_closed(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.answer(ENDLESS)
    response = await opened(transport, vendor)
    assert await read_error(response) == b"x" * MAX_ERROR_BODY
    response.release()
    await vendor.requests[0].gone.wait()


async def test_an_error_body_that_stalls_is_not_waited_for(
    vendor: FakeVendor, transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "ERROR_BODY_WAIT", 0.05)
    vendor.answer((Send(head(500, [("content-length", "10")]) + b"abc"), Hang()))
    assert await read_error(await opened(transport, vendor)) == b"abc"
    await vendor.requests[0].gone.wait()


async def test_what_came_of_a_broken_error_body_is_kept(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(sse_unterminated(b"no more", Fin()))
    assert await read_error(await opened(transport, vendor)) == b"no more"


async def test_after_an_error_that_was_read_the_connection_serves_on(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.default = json_answer(500, {"error": "x"})
    for _ in range(3):
        response = await opened(transport, vendor)
        await read_error(response)
        response.release()
    assert vendor.connections == 1


# Addresses -----------------------------------------------------------------------------------------------------------

ADDRESSES = {
    "93.184.215.14": (True, True),
    "2606:2800:21f:cb07:6820:80da:af6b:8b2c": (True, True),
    "10.0.0.1": (False, True),
    "192.168.1.1": (False, True),
    "172.16.0.1": (False, True),
    "100.64.0.1": (False, True),
    "127.0.0.1": (False, True),
    "::1": (False, True),
    "fd12::1": (False, True),
    "::ffff:10.0.0.1": (False, True),
    "169.254.169.254": (False, False),
    "::ffff:169.254.169.254": (False, False),
    "fe80::1": (False, False),
    "fe80::1%eth0": (False, False),
    "fd00:ec2::254": (False, False),
    "0.0.0.0": (False, False),
    "::": (False, False),
    "224.0.0.1": (False, False),
}


@pytest.mark.parametrize(("address", "public", "private"), [(each, *may) for each, may in ADDRESSES.items()])
def test_an_address_may_be_called_where_it_belongs(address: str, public: bool, private: bool) -> None:
    assert address_allowed(address, allow_private=False) is public
    assert address_allowed(address, allow_private=True) is private


@pytest.mark.parametrize(("address", "allow_private"), [("10.0.0.1", False), ("169.254.169.254", True)])
async def test_a_name_that_leads_to_a_withheld_address_has_none(address: str, allow_private: bool) -> None:
    resolver = GuardedResolver(allow_private)
    with pytest.raises(OSError, match="may not be called"):
        await resolver.resolve(address)
    await resolver.close()


async def test_a_name_that_leads_to_permitted_addresses_gives_them() -> None:
    resolver = GuardedResolver(allow_private=True)
    assert [entry["host"] for entry in await resolver.resolve("127.0.0.1", 80)] == ["127.0.0.1"]
    await resolver.close()


async def test_a_public_name_that_resolves_inwards_is_never_connected_to(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    public = replace(TARGET, allow_private=False)
    assert await failure(transport, f"http://localhost:{vendor.port}", public) is FailureKind.CONNECT
    assert vendor.connections == 0


async def test_a_private_name_is_connected_to_where_it_is_meant(vendor: FakeVendor, transport: HttpTransport) -> None:
    response = await transport.open(call(f"http://localhost:{vendor.port}"), "req-1")
    assert response.status == 200
