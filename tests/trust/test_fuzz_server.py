"""The fuzzer of the whole server finds violations, and no violation appears at once. The tests do not search for
long."""

from pathlib import Path

from tests.support.looped import looped
from tests.trust import fuzz_server
from tests.trust.fuzz_server import Broken, answers_in


def test_nothing_breaks_at_once(tmp_path: Path) -> None:
    result = fuzz_server.whole_server(tmp_path, 150, 30)
    assert result.value.startswith("0 answers that were 500, no envelope or none, of 150 requests and 30 raw"), result


@looped(
    ("status", "body"),
    [
        (500, b'{"error":{"message":"m"}}'),
        (700, b"{}"),
        (400, b"<html>"),
        (404, b"[]"),
        (422, b'{"error":"m"}'),
        (200, b"... sk-of-the-operator ..."),
    ],
)
def test_a_broken_promise_is_noted(status: int, body: bytes) -> None:
    broken = Broken()
    broken.check(status, body, b"GET / HTTP/1.1")
    assert len(broken.found) == 1


@looped(("status", "body"), [(200, b"x"), (204, b""), (404, b'{"error":{"message":"m"},"detail":[]}')])
def test_a_sound_answer_is_none(status: int, body: bytes) -> None:
    broken = Broken()
    broken.check(status, body, b"GET / HTTP/1.1")
    assert broken.found == []


def test_every_answer_on_a_connection_is_looked_at() -> None:
    go_on = b"HTTP/1.1 100 Continue\r\n\r\n"
    good = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    bad = b"HTTP/1.0 400 Bad Request\r\nServer: x\r\nContent-Length: 3\r\n\r\nbad"
    assert answers_in(go_on + good + good + bad) == [(200, b"ok"), (200, b"ok"), (400, b"bad")]
    assert answers_in(b"no HTTP at all") == []
