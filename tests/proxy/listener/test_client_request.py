"""A plain request returns the same to every call of a handler as aiohttp's request."""

import asyncio
from types import SimpleNamespace
from typing import cast
from unittest import mock

import pytest
from aiohttp.http_writer import StreamWriter
from aiohttp.web_protocol import RequestHandler
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.errors import GatewayError
from proxy.listener.client_request import Incoming, PlainRequest
from proxy.listener.fast_head_parser import read_plain_head
from proxy.listener.http_connection import path_of
from proxy.listener.request_body import read_body
from tests.proxy.kit.parsed_requests import parsed
from tests.proxy.kit.raw_client import request
from tests.support.looped import looped

LIMIT = 1000
PROTOCOL = cast(
    RequestHandler,
    SimpleNamespace(
        _loop=None, peername=("127.0.0.1", 5), sockname=None, ssl_context=None, transport=None, resume_reading=int
    ),
)


def parsed_twice(data: bytes) -> tuple[PlainRequest, Incoming]:
    """Return the request of these bytes, parsed here and by aiohttp."""
    head = read_plain_head(data)
    assert head is not None
    ((message, payload),) = parsed(data)
    payload._protocol = mock.Mock(_reading_paused=False)
    loop, task, writer = mock.Mock(), mock.Mock(), mock.create_autospec(StreamWriter, instance=True)
    theirs = Incoming(message, payload, PROTOCOL, writer, task, loop, client_max_size=LIMIT)
    return PlainRequest(head, data[head.size :], PROTOCOL, LIMIT), theirs


SEGMENTS = st.sampled_from(
    ["/", "//", ".", "..", "%2F", "%2f", "%25", "%", "%zz", "%C3%A9", "%FF", "a", "+", "?", "&=;"]
)
PLAIN = st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#"), max_size=8)


@pytest.mark.smoke
@given(st.lists(st.one_of(SEGMENTS, PLAIN), max_size=12))
@example(["v1/chat/completions"])
@example(["a?b=%20&c=d%2Fe&f=+"])
@example(["a;b=c//"])
def test_path_and_query_are_those_of_aiohttp(parts: list[str]) -> None:
    ours, theirs = parsed_twice(request("GET", "/" + "".join(parts)))
    assert path_of(ours) == path_of(theirs)
    assert ours.path == theirs.path
    assert ours.rel_url == theirs.rel_url
    assert list(ours.query.items()) == list(theirs.query.items())
    assert ours.query_string == theirs.query_string


@pytest.mark.smoke
@pytest.mark.parametrize("connection", ["keep-alive", "close"])
def test_everything_that_handlers_ask_is_answered_alike(connection: str) -> None:
    fields = {"Content-Type": "application/json; a=b", "X-Odd": "1", "Connection": connection}
    ours, theirs = parsed_twice(request("POST", "/x", b"{}", fields))
    for name in ("method", "version", "remote", "keep_alive", "content_length", "content_type", "charset"):
        assert getattr(ours, name) == getattr(theirs, name)
    for name in ("client_max_size", "protocol", "transport", "cors"):
        assert getattr(ours, name) == getattr(theirs, name)
    # The length is stored separately, so that heads can be cached: no handler reads it from the headers.
    others = [(name.lower(), value) for name, value in theirs.headers.items() if name != "Content-Length"]
    assert [(name.lower(), value) for name, value in ours.headers.items()] == others
    assert ours.headers.getall("content-type") == theirs.headers.getall("content-type")
    assert ours.content.is_eof()
    assert theirs.content.is_eof()


@looped("body", [b"", b"{}", b"x" * LIMIT, b"x" * (LIMIT + 1)])
@looped("fields", [{}, {"Content-Type": "text/plain"}, {"Content-Encoding": "gzip"}])
async def test_bodies_are_read_and_refused_alike(body: bytes, fields: dict[str, str]) -> None:
    outcomes = []
    for http in parsed_twice(request("POST", "/x", body, fields)):
        received: list[int] = []
        try:
            found: bytes | tuple[int, str] = await read_body(http, received.append)
            assert http.content.at_eof()
        except GatewayError as error:
            found = (error.facts.status, str(error))
        outcomes.append((found, received))
    assert outcomes[0] == outcomes[1]


async def test_a_body_is_read_piece_by_piece_too_and_once() -> None:
    ours, _ = parsed_twice(request("POST", "/x", b"{}"))
    assert not ours.content.at_eof()
    assert await ours.content.readany() == b"{}"
    assert ours.content.at_eof()
    assert await ours.content.readany() == b""
    again, _ = parsed_twice(request("POST", "/x", b"{}"))
    assert await again.read() == b"{}"


def test_what_was_sent_is_let_go_but_not_where_it_came_from() -> None:
    for http in parsed_twice(request("POST", "/x?y=z", b"", {"a": "b"})):
        assert (http.headers["a"], http.query["y"]) == ("b", "z")
        http.let_head_and_body_go()
        assert len(http.headers) == 0
        assert http.content.is_eof()
        assert http.remote == "127.0.0.1"
        assert http.method == "POST"


def test_an_address_that_is_no_pair_is_told_as_it_is() -> None:
    for address, remote in ((None, None), ("/run/socket", "/run/socket"), (("::1", 1, 0, 0), "::1")):
        head = read_plain_head(request("GET", "/"))
        assert head is not None
        protocol = cast(RequestHandler, SimpleNamespace(_loop=asyncio, peername=address))
        assert PlainRequest(head, b"", protocol, 1).remote == remote
