"""One connection as a state machine: bytes in, the caller's events out, however the bytes are cut."""

import socket
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.http_client.answer_head import FIELD_LIMIT, HEAD_LIMIT, LINE_LIMIT
from proxy.http_client.http1_connection import (
    AHEAD,
    FRAMING_LIMIT,
    INTERIM_LIMIT,
    SHORT,
)
from tests.proxy.kit.wire import CHUNKED, END, OK, Line
from tests.support.examples import examples
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


GOOD = {
    "length": (OK, b"{}"),
    "no body": (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", b""),
    "chunks": (CHUNKED + b"3\r\none\r\n3;a=b\r\ntwo\r\n" + END, b"onetwo"),
    "trailers": (CHUNKED + b"3\r\none\r\n0\r\nx-sum: 1\r\n\r\n", b"one"),
    "204": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "304 with a length": (b"HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", b""),
    "interim": (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK, b"{}"),
    "HTTP/1.0 kept alive": (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
    "no reason": (b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\n{}", b"{}"),
}
LAST = {
    "close": (b"HTTP/1.1 200 OK\r\nConnection: close\r\ncontent-length: 2\r\n\r\n{}", b"{}"),
    "HTTP/1.0": (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}", b"{}"),
    "HTTP/1.0 in chunks": (
        b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        b"{}",
    ),
    "surplus": (OK + b"stray", b"{}"),
    "a second answer": (OK + OK, b"{}"),
    "a second answer's head": (OK + OK[:-2], b"{}"),
    "a second answer behind chunks": (CHUNKED + b"2\r\n{}\r\n" + END + OK, b"{}"),
    "a body where there is none": (b"HTTP/1.1 204 No Content\r\ncontent-length: 2\r\n\r\n{}", b""),
}
GARBLED = {
    "another protocol": b"SSH-2.0-OpenSSH_9.6\r\n",
    "RTSP": b"RTSP/1.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    "HTTP/2.0": b"HTTP/2.0 200 OK\r\ncontent-length: 2\r\n\r\n{}",
    "a leading line": b"\r\n" + OK,
    "no number": b"HTTP/1.1 two OK\r\n\r\n",
    "two spaces": b"HTTP/1.1  200 OK\r\n\r\n",
    "a status below 100": b"HTTP/1.1 099 OK\r\ncontent-length: 2\r\n\r\n{}",
    "101": b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nbytes",
    "101 without an upgrade": b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + OK,
    "bare line feeds": b"HTTP/1.1 200 OK\ncontent-length: 2\n\n{}",
    "a folded line": b"HTTP/1.1 200 OK\r\na: b\r\n c\r\ncontent-length: 2\r\n\r\n{}",
    "a space before the colon": b"HTTP/1.1 200 OK\r\ncontent-length : 2\r\n\r\n{}",
    "nul": b"HTTP/1.1 200 OK\r\na: \0\r\ncontent-length: 2\r\n\r\n{}",
    "a bare carriage return": b"HTTP/1.1 200 OK\r\na: x\ry\r\ncontent-length: 2\r\n\r\n{}",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    "the same length twice": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\n{}",
    "lengths in a list": b"HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\n{}",
    "a negative length": b"HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\n{}",
    "a signed length": b"HTTP/1.1 200 OK\r\ncontent-length: +2\r\n\r\n{}",
    "a length too large": b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999\r\n\r\n{}",
    "length and chunks": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
    "another coding": b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n{}",
    "another coding first": b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
    "another coding last": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, identity\r\n\r\n",
    "chunked twice": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n",
    "nearly chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: xchunked\r\n\r\n",
    "a long line": b"HTTP/1.1 200 OK\r\na: " + b"x" * LINE_LIMIT + b"\r\ncontent-length: 2\r\n\r\n{}",
    "a long reason": b"HTTP/1.1 200 " + b"x" * LINE_LIMIT + b"\r\ncontent-length: 2\r\n\r\n{}",
    "many fields": b"HTTP/1.1 200 OK\r\n" + b"a: 1\r\n" * (FIELD_LIMIT + 1) + b"\r\n",
    "a head without end": b"HTTP/1.1 200 OK\r\n" + b"a: 1\r\n" * (HEAD_LIMIT // 6),
}
BROKEN = {
    "no number": b"zz\r\n",
    "a sign": b"-1\r\n",
    "a prefix": b"0x3\r\nabc\r\n",
    "a space": b"3 \r\nabc\r\n",
    "a bare line feed": b"3\nabc\n",
    "a number too large": b"f" * 17 + b"\r\n",
    "more than the number says": b"3\r\nabcd\r\n",
    "no line between": b"3\r\nabc3\r\nabc\r\n",
}


def cuts(data: bytes) -> Iterator[list[bytes]]:
    """Return the bytes whole, cut in two at every position, and one by one."""
    yield [data]
    yield from ([data[:at], data[at:]] for at in range(1, len(data)))
    yield [data[at : at + 1] for at in range(len(data))]


@looped("name", GOOD)
def test_an_answer_is_whole_however_it_is_cut_and_its_connection_serves_on(name: str) -> None:
    data, body = GOOD[name]
    for pieces in cuts(data):
        line = Line().feed(*pieces)
        assert line.told == ("ended", body), pieces
        assert line.reused, pieces


@looped("name", LAST)
def test_after_some_answers_a_connection_serves_no_more(name: str) -> None:
    data, body = LAST[name]
    for pieces in cuts(data):
        line = Line().feed(*pieces)
        assert line.told == ("ended", body), pieces
        assert not line.reused, pieces
        assert line.wire.aborted


@looped("name", GARBLED)
def test_a_head_that_makes_no_sense_ends_the_connection(name: str) -> None:
    data = GARBLED[name]
    for pieces in cuts(data) if len(data) < 200 else ([data], [data[:100], data[100:]]):
        line = Line().feed(*pieces)
        assert line.told == ("garbled", b""), pieces
        assert line.wire.aborted


@looped("name", BROKEN)
def test_chunks_that_make_no_sense_break_an_answer_off(name: str) -> None:
    for pieces in cuts(BROKEN[name]):
        line = Line().feed(CHUNKED + b"3\r\none\r\n", *pieces)
        told, body = line.told
        assert told == "broken off", pieces
        assert body in (b"one", b"oneabc", b"onea", b"oneab")
        assert line.wire.aborted


STREAM = CHUNKED + b"".join(b"%x\r\n%s\r\n" % (size, b"x" * size) for size in (1, 15, 16, 300)) + END


@examples(200)
@given(st.lists(st.integers(1, len(STREAM) - 1), max_size=8), st.booleans())
def test_a_body_is_the_same_in_whatever_pieces_it_comes_and_is_taken(places: list[int], taken: bool) -> None:
    line = Line()
    for start, end in zip([0, *sorted(places)], [*sorted(places), len(STREAM)], strict=True):
        if start < end:
            line.feed(STREAM[start:end])
        if taken and line.connection.pieces:
            line.read()
    assert line.told == ("ended", b"x" * 332)
    assert line.reused


# The end of the connection --------------------------------------------------------------------------------------------


@looped("reset", [False, True])
@looped(
    ("data", "told"),
    [
        (b"", "unanswered"),
        (b"HTTP/1.1 200 OK\r\ncontent-", "unanswered"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "unanswered"),
        (OK[:-1], "broken off"),
        (CHUNKED, "broken off"),
        (CHUNKED + b"2\r\n{}\r\n", "broken off"),
        (OK, "ended"),
    ],
)
def test_what_an_end_of_the_connection_means_depends_on_what_was_missing(data: bytes, told: str, reset: bool) -> None:
    line = Line()
    if data:
        line.feed(data)
    if not reset:
        line.connection.eof_received()
    line.connection.connection_lost(ConnectionResetError() if reset else None)
    assert line.told[0] == told
    assert not line.reused


def test_a_body_that_nothing_delimits_ends_with_its_connection_but_not_by_a_reset() -> None:
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    line = Line().feed(head, b"{}")
    line.connection.eof_received()
    line.connection.connection_lost(None)
    assert line.told == ("ended", b"{}")
    assert not line.reused
    line = Line().feed(head + b"{}")
    line.connection.connection_lost(ConnectionResetError())
    assert line.told == ("lost", b"{}")


def test_an_answer_to_head_has_no_body_and_its_connection_serves_on_where_that_is_certain() -> None:
    for data, kept in ((b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", False), (GOOD["no body"][0], True)):
        line = Line()
        line.ask(bodiless=True)
        line.feed(data)
        assert line.told == ("ended", b"")
        assert line.reused is kept


# Bounds ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "framing",
    [b"1;" + b"e" * FRAMING_LIMIT, b"0\r\n" + b"x: y\r\n" * FRAMING_LIMIT],
    ids=["an extension of a chunk", "trailers"],
)
def test_framing_without_a_body_is_bounded(framing: bytes) -> None:
    line = Line().feed(CHUNKED)
    for at in range(0, len(framing), 1024):
        line.feed(framing[at : at + 1024])
    assert line.told == ("broken off", b"")
    assert Line().feed(CHUNKED + framing).told == ("broken off", b"")
    assert Line().feed(CHUNKED, framing).told == ("broken off", b"")


def test_reading_never_stops_while_there_is_nothing_to_take() -> None:
    head = CHUNKED[:-2] + b"".join(b"a%d: %s\r\n" % (number, b"x" * 8000) for number in range(8)) + b"\r\n"
    assert len(head) < HEAD_LIMIT
    line = Line().feed(head + b"1;" + b"e" * (FRAMING_LIMIT - 100))
    assert line.reading == "resumed"
    assert line.feed(b"\r\nx\r\n" + END).told == ("ended", b"x")


def test_interim_answers_are_read_up_to_a_number_and_then_nothing_is() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\n"
    line = Line().feed(interim * INTERIM_LIMIT)
    assert (line.connection.state, line.reading) == ("head", "resumed")
    assert Line().feed(interim * INTERIM_LIMIT + OK).told == ("ended", b"{}")
    line.feed(interim)
    assert (line.connection.state, line.reading) == ("head", "paused")


def test_a_body_that_nobody_reads_is_read_no_further_and_costs_no_more_than_its_bytes() -> None:
    line = Line().feed(CHUNKED)
    fed = 0
    while (told := line.reading) == "resumed":
        line.feed(b"1\r\nx\r\n" * 1000)
        fed += 1000
    assert told == "paused"
    assert fed <= AHEAD
    assert line.connection.pieces == [b"x" * fed]
    assert line.read() == b"x" * fed
    assert line.reading == "resumed"
    assert line.feed(END).told == ("ended", b"x" * fed)
    assert line.reused


# Requests, and the connection after the response ---------------------------------------------------------------------


def test_a_head_and_a_body_of_common_size_leave_in_one_write() -> None:
    line = Line()
    assert line.wire.written == [b"POST / HTTP/1.1\r\n\r\n{}"]
    line.connection.begin(b"head", b"x" * (SHORT + 1), False)
    assert line.wire.written[1:] == [b"head", b"x" * (SHORT + 1)]


def test_a_connection_serves_no_more_while_a_part_of_its_request_or_of_its_answer_is_left() -> None:
    unsent = Line().feed(OK)
    unsent.wire.unsent = 1
    assert not unsent.reused
    unread = Line().feed(OK)
    unread.connection.release()
    assert unread.shelf.taken_back == []
    half = Line().feed(OK[:-1])
    assert not half.reused
    spoilt = Line().feed(OK)
    spoilt.connection.spoil()
    assert not spoilt.reused


@looped("data", [b"stray", OK, b"\r\n"])
def test_what_comes_while_no_answer_is_awaited_ends_the_connection(data: bytes) -> None:
    over = Line().feed(OK).feed(data)
    assert over.told == ("ended", b"{}")
    assert over.wire.aborted
    assert not over.reused
    idle = Line().feed(OK)
    assert idle.reused
    idle.feed(data)
    assert idle.wire.aborted
    assert not idle.connection.has_no_input


@pytest.mark.parametrize("change", [lambda far: far.send(b"x"), lambda far: far.close()], ids=["bytes", "end"])
def test_what_the_loop_has_not_read_yet_shows_on_an_idle_connection(change: Callable[[socket.socket], None]) -> None:
    line = Line().feed(OK)
    near, far = line.wire.ends
    with near, far:
        assert line.reused
        assert line.connection.has_no_input
        change(far)
        assert not line.connection.has_no_input


def test_a_fresh_connection_that_the_vendor_has_closed_shows_that_before_the_loop_does() -> None:
    line = Line()
    near, far = line.wire.ends
    with near:
        assert not line.connection.closed_unsent
        far.close()
        assert line.connection.closed_unsent


def test_a_vendor_that_refuses_a_request_before_its_end_wants_no_more_of_it() -> None:
    line = Line()
    assert not line.connection.wants_no_more
    assert not line.feed(CHUNKED).connection.wants_no_more
    assert Line().feed(b"HTTP/1.1 413 No\r\ncontent-length: 2\r\n\r\n").connection.wants_no_more
    gone = Line()
    gone.connection.connection_lost(None)
    assert gone.connection.wants_no_more


def test_a_closed_connection_holds_nothing_that_holds_it() -> None:
    line = Line().feed(OK)
    line.connection.connection_lost(None)
    assert line.shelf.open == 0
    assert not hasattr(line.connection, "_parser")
    line.connection.abort()
    assert line.connection.state == "dead"
