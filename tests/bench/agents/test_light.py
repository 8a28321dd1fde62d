"""A light request's time does not include the waiting for its own core."""

import socket
import threading

import pytest

from tests.bench.agents.light import asked_times
from tests.bench.load import WrongAnswer


def serve_one(listener: socket.socket, response: bytes) -> None:
    connection, _ = listener.accept()
    with connection:
        while connection.recv(1024):
            connection.sendall(response)


def asked_of(response: bytes, count: int) -> list[float]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve_one, args=(listener, response), daemon=True)
        thread.start()
        return asked_times(listener.getsockname()[1], count, 0.0, b"ask")


def test_each_request_has_its_time() -> None:
    assert len(asked_of(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", 3)) == 3


def test_a_refusal_is_no_time() -> None:
    with pytest.raises(WrongAnswer):
        asked_of(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n", 1)
