"""The fields read from a plain head equal the fields that aiohttp's parser reads. Every other head is left to that
parser."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from proxy.listener import fast_head_parser
from proxy.listener.fast_head_parser import (
    CACHED_HEADS,
    MAX_CACHED_HEAD,
    MAX_PLAIN_HEAD,
    PlainHead,
    head_fault,
    read_plain_head,
)
from tests.proxy.kit.parsed_requests import parsed
from tests.proxy.kit.smuggled_requests import OFFERS, READ, REFUSED
from tests.support.examples import examples
from tests.support.looped import looped

BODY = b'{"a": 1}'

CLIENTS = {
    "openai 1.99 for Python": (
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept-Encoding: gzip, deflate\r\n"
        b"Connection: keep-alive\r\nAccept: application/json\r\nContent-Type: application/json\r\n"
        b"User-Agent: OpenAI/Python 1.99.1\r\nX-Stainless-Lang: python\r\nX-Stainless-Async: false\r\n"
        b"Authorization: Bearer sk-x\r\nx-stainless-read-timeout: 600\r\nContent-Length: 8\r\n\r\n"
    ),
    "anthropic with a query": (
        b"POST /v1/messages?beta=true HTTP/1.1\r\nhost: localhost\r\nx-api-key: sk-x\r\n"
        b"anthropic-version: 2023-06-01\r\nanthropic-beta: a,b\r\ncontent-length: 8\r\n\r\n"
    ),
    "fetch of Node 20": (
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost:80\r\nconnection: keep-alive\r\n"
        b"content-type: application/json\r\naccept: */*\r\naccept-language: *\r\nsec-fetch-mode: cors\r\n"
        b"user-agent: node\r\naccept-encoding: gzip, deflate\r\ncontent-length: 8\r\n\r\n"
    ),
    "Go": (
        b"POST /v2/chat/completions HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Go-http-client/1.1\r\n"
        b"Content-Length: 8\r\nContent-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
    ),
    "curl": b"GET /v1/models/a%2Fb HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/7.88.1\r\nAccept: */*\r\n\r\n",
    "one answer only": b"DELETE /v1/responses/x HTTP/1.1\r\nHost: x\r\nConnection: Close\r\n\r\n",
}


def read_like_aiohttp(data: bytes) -> PlainHead | None:
    """Return the head that is read, if any; aiohttp's parser must then read the same request from its bytes."""
    head = read_plain_head(data)
    if head is None:
        return None
    body = b"x" * min(head.length, 60_000)
    ((message, payload),) = parsed(data[: head.size] + body)
    assert (message.method, message.path) == (head.method, head.target)
    pairs = [(name.decode().lower(), value.decode()) for name, value in message.raw_headers]
    assert list(head.headers.items()) == [(name, value) for name, value in pairs if name != "content-length"]
    assert all(head.headers[name] == message.headers[name] for name in head.headers)
    assert head_fault(message) is None
    assert (tuple(message.version), message.should_close) == ((1, 1), not head.keep_alive)
    assert (bool(message.upgrade), bool(message.chunked)) == (False, False)
    if head.length == len(body):
        assert payload.is_eof()
        assert payload.read_nowait() == body
    assert message.headers.get("Content-Length", "0").lstrip("0") == str(head.length).lstrip("0")
    return head


@pytest.mark.smoke
@looped("head", CLIENTS.values(), ids=CLIENTS)
def test_what_clients_send_is_read(head: bytes) -> None:
    data = head + (BODY if b"ength: 8" in head else b"")
    found = read_like_aiohttp(data)
    assert found is not None
    assert found.size == len(head)
    assert found.length == len(data) - len(head)
    assert found.keep_alive == (b"Close" not in head)


@pytest.mark.smoke
def test_a_head_is_read_from_its_last_byte_on_and_the_bytes_behind_it_change_nothing() -> None:
    for head in CLIENTS.values():
        for cut in range(len(head)):
            assert read_plain_head(head[:cut]) is None
        for behind in (b"", BODY, b"\0", head, b"\r\n"):
            found = read_plain_head(head + behind)
            assert found is not None
            assert found == read_plain_head(head)


@looped("field", ["Content-Length: ", "content-length: ", "CONTENT-LENGTH:\t", "Content-Length:"])
def test_each_body_of_many_behind_the_same_head_has_its_own_length(field: str) -> None:
    for length in (*range(12), 2**20, 999_999_999, 3):
        head = told("A: 1", f"{field}{length}", "b: 2")
        found = read_like_aiohttp(head)
        assert found is not None
        assert (found.length, found.size) == (length, len(head))


def test_a_head_that_differs_in_one_byte_is_another() -> None:
    for key in ("sk-a", "sk-b", "sk-a"):
        found = read_plain_head(told(f"Authorization: {key}", "Content-Length: 5"))
        assert found is not None
        assert found.headers["authorization"] == key


def test_a_number_of_heads_of_common_size_is_kept() -> None:
    fast_head_parser._read_cached.cache_clear()
    for number in range(2 * CACHED_HEADS):
        read_plain_head(told(f"a: {number}", "Content-Length: 5"))
    assert fast_head_parser._read_cached.cache_info().currsize == CACHED_HEADS
    fast_head_parser._read_cached.cache_clear()
    rest = MAX_CACHED_HEAD - len(told("a: "))
    assert read_plain_head(told("a: " + "x" * (rest + 1))) is not None
    assert fast_head_parser._read_cached.cache_info().currsize == 0
    assert read_plain_head(told("a: " + "x" * rest)) is not None
    assert fast_head_parser._read_cached.cache_info().currsize == 1


def told(*fields: str, first: str = "POST /x HTTP/1.1") -> bytes:
    return "".join(f"{line}\r\n" for line in (first, "Host: a", *fields, "")).encode("latin-1")


LEFT = {
    "another method": told(first="PATCH /x HTTP/1.1"),
    "another version": told(first="POST /x HTTP/1.0"),
    "a fragment": told(first="POST /x#y HTTP/1.1"),
    "a whole address": told(first="POST http://a/x HTTP/1.1"),
    "a byte beyond ASCII in the target": told(first="POST /\xe9 HTTP/1.1"),
    "a long target": told(first=f"POST /{'x' * 2048} HTTP/1.1"),
    "no host": told().replace(b"Host: a\r\n", b""),
    "two hosts": told("host: a"),
    "two of any field": told("A: 1", "a: 1"),
    "two lengths": told("Content-Length: 0", "content-length: 0"),
    "a length that is none": told("Content-Length: +2"),
    "no length": told("Content-Length:"),
    "a list of lengths": told("Content-Length: 2, 2"),
    "a length of ten digits": told("Content-Length: 1000000000"),
    "a length in other digits": told("Content-Length: \xb2"),
    "chunks": told("Transfer-Encoding: chunked"),
    "no chunks": told("TRANSFER-ENCODING: identity"),
    "an expectation": told("Expect: 100-continue"),
    "an offer": told("Connection: upgrade", "Upgrade: websocket"),
    "an offer without its announcement": told("Upgrade: h2c"),
    "an announcement without its offer": told("Connection: upgrade"),
    "more than one word on the connection": told("Connection: keep-alive, close"),
    "a word for a proxy": told("Proxy-Connection: close"),
    "an old key": told("Sec-WebSocket-Key1: x"),
    "a folded line": told("a: b", " c"),
    "a space before the colon": told("a : b"),
    "no name": told(": b"),
    "no colon": told("abc"),
    "a control": told("a: b\x0bc"),
    "a form feed": told("a: b\x0cc"),
    "a byte beyond ASCII in a value": told("a: \xe9"),
    "a line feed": told("a: b\nc"),
    "a return": told("a: b\rc"),
    "a line before": b"\r\n" + told(),
    "too many fields": told(*(f"a{number}: b" for number in range(100))),
    "a long head": told("a: " + "x" * MAX_PLAIN_HEAD),
    "nothing": b"",
}


@looped("data", LEFT.values(), ids=LEFT)
def test_anything_else_is_left_to_the_parser(data: bytes) -> None:
    assert read_plain_head(data) is None


def test_as_many_fields_are_read_as_the_listener_takes() -> None:
    assert read_like_aiohttp(told(*(f"a{number}: b" for number in range(99)))) is not None


def test_the_longest_head_is_read_in_one_line_or_many() -> None:
    rest = MAX_PLAIN_HEAD - len(told("a: "))
    assert read_like_aiohttp(told("a: " + "x" * rest)) is not None
    assert read_plain_head(told("a: " + "x" * (rest + 1))) is None


@looped("name", [*REFUSED, *OFFERS])
def test_nothing_that_servers_read_differently_is_read(name: str) -> None:
    assert read_plain_head({**REFUSED, **OFFERS}[name] + b"\r\n") is None


@looped("name", READ)
def test_what_the_corpus_has_to_read_is_read_alike_or_left(name: str) -> None:
    data, _, body = READ[name]
    found = read_like_aiohttp(data)
    assert found is None or data[found.size :] == body


def test_any_byte_in_any_place_is_read_alike_or_left() -> None:
    data = b"GET /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 2 \r\nConnection:\tclose\r\n\r\n{}"
    assert read_like_aiohttp(data) is not None
    alike = 0
    for place in range(len(data)):
        for byte in range(256):
            alike += read_like_aiohttp(data[:place] + bytes([byte]) + data[place + 1 :]) is not None
            alike += read_like_aiohttp(data[:place] + bytes([byte]) + data[place:]) is not None
    assert alike > 5000


TOKENS = "".join(chr(code) for code in range(33, 127) if chr(code) not in '"(),/:;<=>?@[\\]{}')
RULED = (
    *("Host", "host", "CONTENT-LENGTH", "Content-Length", "content-type", "Content-Type", "User-Agent", "Connection"),
    *("proxy-connection", "Transfer-Encoding", "Upgrade", "Expect", "Sec-WebSocket-Key1", "Origin", "Server", "ETag"),
    *("Max-Forwards", "Content-Range", "Content-Location", "Content-Encoding", "HTTP2-Settings", "TE", "Trailer"),
    *("Cookie", "X-Forwarded-For", "Keep-Alive", "Via", "Accept", "Date", "If-Modified-Since", "Range"),
)
NAMES = st.one_of(st.text(TOKENS, min_size=1, max_size=20), st.sampled_from(RULED))
FRAMING = ("2", " 2", "0", "02", "2 ", "2\t", "", "chunked", "gzip", "keep-alive", "Keep-Alive ", "close", "close\t")
VALUES = st.one_of(st.text(st.characters(codec="latin-1"), max_size=12), st.sampled_from(FRAMING))
COLONS = st.sampled_from([": ", ":", ":  ", ":\t", " : "])
HEADS = st.lists(st.tuples(NAMES, COLONS, VALUES), max_size=8)
TARGETS = st.one_of(
    st.sampled_from(["/", "/v1/completions", "//x/../y", "/%2F%25%00", "/?", "/a?b=c&d", "*", "/a b"]),
    st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=20).map("/".__add__),
)
METHODS = st.sampled_from(["GET", "POST", "HEAD", "DELETE", "OPTIONS", "PUT", "CONNECT", "post"])


@given(METHODS, TARGETS, HEADS)
@example("GET", "/", [("Content-Length", ": ", "002")])
@example("POST", "/", [("Content-Encoding", ": ", "gzip"), ("Content-Length", ": ", "2")])
@examples(500)
def test_a_made_up_head_is_read_alike_or_left(method: str, target: str, fields: list[tuple[str, str, str]]) -> None:
    lines = "".join(f"{name}{colon}{value}\r\n" for name, colon, value in [("Host", ": ", "a"), *fields])
    read_like_aiohttp(f"{method} {target} HTTP/1.1\r\n{lines}\r\n{{}}".encode("latin-1"))


@given(
    st.sampled_from([*CLIENTS.values(), *READ["a body where none is usual"][:1]]),
    st.lists(st.tuples(st.integers(0, 400), st.integers(0, 3), st.binary(max_size=3)), min_size=1, max_size=3),
)
@examples(500)
def test_a_spoilt_head_is_read_alike_or_left(data: bytes, changes: list[tuple[int, int, bytes]]) -> None:
    for place, taken, put in changes:
        data = data[:place] + put + data[place + taken :]
    read_like_aiohttp(data + BODY)
