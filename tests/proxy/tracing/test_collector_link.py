"""Exports go only to the configured address, are repeated if OTLP allows it, and responses are not read."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from proxy.tracing import collector_link
from proxy.tracing.collector_link import MOST_RESPONSE, TOO_SLOW, UNREACHED, CollectorLink

Answer = tuple[int, Mapping[str, str], bytes]
EMPTY = {"content-length": "0"}
GOOD: Answer = (200, EMPTY, b"")


@dataclass
class Server:
    """The requests that a server received, each with the client's port."""

    port: int = 0
    got: list[tuple[str, Mapping[str, str], bytes, int]] = field(default_factory=list)

    def link(self, timeout: float = 5.0, path: str = "") -> CollectorLink:
        return CollectorLink(f"http://127.0.0.1:{self.port}{path}", {"authorization": "canary"}, timeout)


@contextmanager
def answering(*answers: Answer) -> Iterator[Server]:
    """Run a server that sends these responses in turn."""
    seen, left = Server(), [*answers]

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            seen.got.append((self.path, dict(self.headers.items()), body, self.client_address[1]))
            status, headers, data = left.pop(0)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)
            self.close_connection = "connection" in headers or status == 307

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        seen.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield seen
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector_link, "PAUSE", 0.01)


@pytest.mark.smoke
def test_one_connection_carries_all_exports_under_the_endpoints_path() -> None:
    with answering(GOOD, (200, {"content-length": "2"}, b"{}"), GOOD) as server:
        link = server.link(path="/otlp/")
        assert [link.post("/v1/traces", b"x") for _ in range(3)] == [None] * 3
        link.close()
    path, headers, body, _ = server.got[0]
    assert (path, body, headers["authorization"]) == ("/otlp/v1/traces", b"x", "canary")
    assert headers["Content-Type"] == "application/x-protobuf"
    assert len({port for *_, port in server.got}) == 1


@pytest.mark.smoke
@pytest.mark.parametrize("status", sorted(collector_link.REPEATED_STATUSES))
def test_what_may_pass_is_repeated(status: int) -> None:
    with answering((status, EMPTY, b""), (status, {**EMPTY, "retry-after": "0"}, b""), GOOD) as server:
        link = server.link()
        assert link.post("/v1/traces", b"x") is None
        link.close()
    assert len(server.got) == 3


@pytest.mark.parametrize("status", [301, 400, 401, 404, 413, 500])
def test_what_does_not_pass_is_not_repeated(status: int) -> None:
    with answering((status, EMPTY, b"")) as server:
        link = server.link()
        assert link.post("/v1/traces", b"x") == f"the collector answers with status {status}"
        link.close()
    assert len(server.got) == 1


def test_a_redirect_is_not_followed() -> None:
    with answering() as other:
        with answering((307, {**EMPTY, "location": f"http://127.0.0.1:{other.port}/"}, b"")) as server:
            link = server.link()
            assert link.post("/v1/traces", b"x") == "the collector answers with status 307"
            link.close()
        assert other.got == []


def test_a_wait_that_is_longer_than_an_export_may_take_is_not_waited_for() -> None:
    with answering((503, {**EMPTY, "retry-after": "3600"}, b"")) as server:
        link = server.link()
        assert link.post("/v1/traces", b"x") == "the collector answers with status 503"
        link.close()


def test_at_the_end_nothing_is_repeated() -> None:
    with answering((503, EMPTY, b"")) as server:
        link = server.link()
        link.stop_repeating()
        assert link.post("/v1/traces", b"x") == "the collector answers with status 503"
        link.close()
    assert len(server.got) == 1


def test_the_environments_proxy_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with answering(GOOD) as server:
        link = server.link()
        assert link.post("/v1/traces", b"x") is None
        link.close()


def test_a_long_answer_is_not_read() -> None:
    endless = {"content-length": str(MOST_RESPONSE + 2**40)}
    with answering((200, {**endless, "connection": "close"}, b"x" * 10), GOOD) as server:
        link = server.link()
        assert [link.post("/v1/traces", b"x") for _ in range(2)] == [None, None]
        link.close()
    assert len({port for *_, port in server.got}) == 2


def test_a_connection_that_the_collector_has_closed_is_made_anew() -> None:
    with answering((200, {**EMPTY, "Connection": "close"}, b""), GOOD) as server:
        link = server.link()
        assert [link.post("/v1/traces", b"x") for _ in range(2)] == [None, None]
        link.close()


def test_nobody_there_is_told_after_the_time_of_one_export() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    link = CollectorLink(f"http://127.0.0.1:{port}", {}, 0.1)
    assert link.post("/v1/traces", b"x") == UNREACHED
    link.close()


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 2"])
def test_one_who_does_not_answer_is_too_slow(first: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hanging:
        link = CollectorLink(f"http://127.0.0.1:{hanging.getsockname()[1]}", {}, 0.1)
        accepted: list[socket.socket] = []

        def accept() -> None:
            accepted.append(hanging.accept()[0])
            accepted[0].sendall(first)

        thread = threading.Thread(target=accept)
        thread.start()
        assert link.post("/v1/traces", b"x") == TOO_SLOW
        link.close()
        thread.join()
        accepted[0].close()


@pytest.mark.parametrize("garbage", [b"\x00\x01\x02\n\n", b"HTTP/1.1 " + b"9" * 70_000])
def test_garbage_is_no_answer(garbage: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as odd:
        link = CollectorLink(f"http://127.0.0.1:{odd.getsockname()[1]}", {}, 0.3)
        ended = threading.Event()

        def answer() -> None:
            while not ended.is_set():
                connection, _ = odd.accept()
                with connection:
                    connection.sendall(garbage)

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        assert link.post("/v1/traces", b"x") in (UNREACHED, TOO_SLOW)
        ended.set()
        link.close()


def test_tls_is_checked() -> None:
    with answering() as server:
        link = CollectorLink(f"https://127.0.0.1:{server.port}", {}, 0.3)
        assert link.post("/v1/traces", b"x") in (UNREACHED, TOO_SLOW)
        link.close()
    assert server.got == []
