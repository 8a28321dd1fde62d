"""Responses in one write: their bytes for each version of HTTP, and the responses that they refuse to be."""

import asyncio
import re
from email.utils import parsedate_to_datetime
from typing import cast

import pytest
from aiohttp import HttpVersion, HttpVersion10, HttpVersion11, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.web_protocol import RequestHandler

from proxy.listener.buffered_response import BufferedResponse, header_lines, start_line
from proxy.listener.client_request import PlainRequest
from proxy.listener.fast_head_parser import read_plain_head
from tests.proxy.kit.echo_listener import listening
from tests.proxy.kit.gateway_rig import AUTH, ask, rig
from tests.proxy.kit.raw_client import connected, exchange, request
from tests.support.http_scripts import json_answer
from tests.support.looped import looped
from tests.support.openai_wire import completion

pytestmark = pytest.mark.smoke


OK = json_answer(200, completion("hello", "m"))


async def test_an_answer_has_its_length_its_date_and_every_header_once() -> None:
    async with rig() as served, connected(served.port) as client:
        served.vendor.default = OK
        await client.send(request("POST", "/v1/completions", ask(), {**AUTH, "x-request-id": "abc"}))
        head = (await client.reader.readuntil(b"\r\n\r\n")).decode()
    names = [line.partition(":")[0].lower() for line in head.split("\r\n")[1:] if line]
    assert len(names) == len(set(names))
    wanted = {"server", "cache-control", "x-content-type-options", "vary", "content-type", "content-length", "date"}
    assert wanted | {"x-request-id", "x-dragoman-deployment", "x-dragoman-attempts"} == set(names)
    date = re.search(r"Date: (.*)\r\n", head)
    assert date is not None
    assert parsedate_to_datetime(date[1]).year >= 2026


@looped(
    ("version", "asked", "answered", "stays"),
    [
        ("1.1", "keep-alive", None, True),
        ("1.1", "close", "close", False),
        ("1.0", "keep-alive", "keep-alive", True),
        ("1.0", "close", "close", False),
    ],
)
async def test_a_connection_stays_as_http_has_it(version: str, asked: str, answered: str | None, stays: bool) -> None:
    data = request("GET", "/v1/models", None, {**AUTH, "Connection": asked}).replace(
        b"HTTP/1.1", f"HTTP/{version}".encode()
    )
    async with rig() as served, connected(served.port) as client:
        await client.send(data)
        first = await client.answer()
        assert (first.status, first.headers.get("connection")) == (200, answered)
        if stays:
            await client.send(data)
            assert (await client.answer()).status == 200
        else:
            assert await client.closed() == b""


async def test_the_answer_to_head_has_the_length_of_a_body_that_does_not_come() -> None:
    async with rig() as served, connected(served.port) as client:
        await client.send(request("HEAD", "/nowhere", None, AUTH))
        status, headers = await client.head()
        assert (status, int(headers["content-length"]) > 0) == (404, True)
        await client.send(request("GET", "/v1/models", None, AUTH))
        assert (await client.answer()).status == 200


async def test_a_gateway_that_stops_closes_after_its_answer() -> None:
    async with rig() as served:
        served.gateway.draining = True
        assert (await exchange(served.port, request("GET", "/v1/models", None, AUTH))).headers["connection"] == "close"


@looped("value", ["a\r\nb: c", "a\nb", "a\x00b", "\x7f", "a\u2028b"])
def test_a_value_that_would_end_its_line_is_a_fault_of_ours(value: str) -> None:
    with pytest.raises(ValueError, match="end its line"):
        header_lines({"x-a": value})


async def test_a_name_of_the_client_s_comes_back_as_it_was() -> None:
    async with rig() as served:
        served.vendor.default = OK
        answer = await served.post("/v1/completions", ask("local/モデル。"))
    assert answer.headers["x-dragoman-deployment"].encode("latin-1").decode() == "local/モデル。/default"


def test_headers_are_lines() -> None:
    assert header_lines({}) == ""
    assert header_lines({"a": "1", "b": ""}) == "a: 1\r\nb: \r\n"


@looped(("status", "words"), [(200, "OK"), (404, "Not Found"), (499, "Status")])
def test_an_answer_begins_with_the_version_that_was_asked(status: int, words: str) -> None:
    assert start_line(HttpVersion11, status) == f"HTTP/1.1 {status} {words}\r\n"
    assert start_line(HttpVersion10, status) == f"HTTP/1.0 {status} {words}\r\n"
    for foreign in (HttpVersion(2, 0), HttpVersion(0, 9), HttpVersion(1, 2)):
        assert start_line(foreign, status) == f"HTTP/1.1 {status} {words}\r\n"


class Client(asyncio.Transport):
    """A client's connection, which accepts every write."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.sent += data

    def is_closing(self) -> bool:
        return self.closing


class Connection(BaseProtocol):
    """A connection whose client has no address."""

    peername = None


def request_of(client: Client | None) -> tuple[PlainRequest, BaseProtocol]:
    """Return a request of this client, or of a client that has disconnected."""
    head = read_plain_head(request("GET", "/"))
    assert head is not None
    protocol = Connection(asyncio.get_running_loop())
    protocol.transport = client
    return PlainRequest(head, b"", cast(RequestHandler, protocol), 1), protocol


async def test_an_answer_to_a_client_that_has_left_raises() -> None:
    leaving = Client()
    leaving.closing = True
    for client in (None, leaving):
        with pytest.raises(ConnectionError):
            await BufferedResponse(200, b"{}", "").prepare(request_of(client)[0])
    assert leaving.sent == b""


async def test_an_answer_is_sent_once_and_waits_for_a_client_that_does_not_read() -> None:
    client = Client()
    http, protocol = request_of(client)
    protocol.pause_writing()
    response = BufferedResponse(200, b"{}", "")
    sending = asyncio.ensure_future(response.prepare(http))
    await asyncio.sleep(0)
    assert not sending.done()
    # From this, a probe of a half-closed client would know that it would become part of the response.
    assert http.writer.output_size == len(client.sent)
    protocol.resume_writing()
    await sending
    sent = client.sent
    await response.prepare(http)
    await response.write_eof()
    assert client.sent == sent
    assert sent.endswith(b"\r\n\r\n{}")


async def test_a_long_answer_comes_whole_to_a_client_that_reads_late_and_none_to_one_that_has_left() -> None:
    data, ended = bytes(range(256)) * 65536, asyncio.Event()

    async def handle(http: web.BaseRequest) -> BufferedResponse:
        response = BufferedResponse(200, data, "")
        try:
            await response.prepare(http)
        except (ConnectionError, asyncio.CancelledError):
            ended.set()
            raise
        return response

    async with listening(handle) as port:
        async with connected(port) as client:
            for _ in range(2):
                await client.send(request("GET", "/"))
                await asyncio.sleep(0.05)
                answer = await client.answer()
                assert (answer.whole, answer.body == data) == (True, True)
            await client.send(request("GET", "/"))
            await client.reader.readexactly(100)
        await ended.wait()
