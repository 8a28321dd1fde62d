"""A relay to a server. Its connections can fall silent: both ends stay open, and no bytes come through."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class SilentRelay:
    """A relay of connections to a port of this machine. The first connection that sends `words` is silent from then on,
    and `silent` is set. `connections` counts all connections."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.words: bytes | None = None
        self.silent = threading.Event()
        self.connections = 0

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def silence_at(self, words: bytes) -> None:
        self.silent.clear()
        self.words = words

    def serve(self) -> None:
        """Accept connections until the relay is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._open += [client, server]
                self.connections += 1
                ended = threading.Event()
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(source, sink, source is client, ended)).start()

    def _pump(self, source: socket.socket, sink: socket.socket, asks: bool, ended: threading.Event) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if asks and self.words is not None and self.words in data:
                    self.words = None
                    ended.set()
                    self.silent.set()
                if not ended.is_set():
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """End every connection."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for each in self._open:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


@contextmanager
def silent_relay(to: int) -> Iterator[SilentRelay]:
    """Run a relay for the duration of the block."""
    relay = SilentRelay(to)
    accepting = threading.Thread(target=relay.serve)
    accepting.start()
    try:
        yield relay
    finally:
        relay.close()
        accepting.join()
