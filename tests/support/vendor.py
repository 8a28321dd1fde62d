"""A fake vendor on a raw loopback socket that follows a script, so that a test controls its responses and failures
exactly.

A script is a sequence of steps (`vendor_script.py`); `http_scripts.py` has ready-made scripts. A script runs once per
request. It is chosen in this order: the queue (`answer`), the request's model (`answer_model`), its path
(`answer_path`), the default.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Self

from typing_extensions import override

from tests.support.vendor_connection import Connection, Owner
from tests.support.vendor_script import Behaviour, Received, Script, Send


def unscripted(request: Received) -> Script:
    """Return the default answer: a 501 that names the unexpected request."""
    text = f"no script for {request.method} {request.target} (model {request.model!r})".encode()
    return (Send(b"HTTP/1.1 501 Not Implemented\r\ncontent-length: %d\r\n\r\n%s" % (len(text), text)),)


class FakeVendor(Owner):
    """An async context manager: a server on 127.0.0.1 and a free port, for the duration of the block.

    Leaving the block ends every connection and task. It raises an `ExceptionGroup` of the exceptions of script
    functions and of every request that was not HTTP. `requests` holds the received requests in order.
    """

    def __init__(self, default: Behaviour = unscripted) -> None:
        self.default = default
        self.requests: list[Received] = []
        self.connections = 0
        self._errors: list[Exception] = []
        self._queue: deque[Behaviour] = deque()
        self._by_model: dict[str, Behaviour] = {}
        self._by_path: dict[str, Behaviour] = {}
        self._at_accept: deque[Script] = deque()
        self._changed = asyncio.Event()
        self._open: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    def answer(self, *behaviours: Behaviour) -> None:
        """Queue behaviours, each for one of the next requests."""
        self._queue.extend(behaviours)

    def forget_answers(self) -> None:
        """Empty the queue."""
        self._queue.clear()

    def answer_model(self, model: str, behaviour: Behaviour) -> None:
        """Use this behaviour for every request for this model."""
        self._by_model[model] = behaviour

    def answer_path(self, path: str, behaviour: Behaviour) -> None:
        """Use this behaviour for every request to this path."""
        self._by_path[path] = behaviour

    def at_accept(self, *scripts: Script) -> None:
        """Queue scripts, each for one of the next connections. A script runs before a byte of its connection is
        read."""
        self._at_accept.extend(scripts)

    async def received(self, count: int) -> list[Received]:
        """Wait until `count` requests have arrived since the start, and return all of them."""
        await self._until(lambda: len(self.requests) >= count)
        return self.requests

    async def connected(self, count: int) -> None:
        """Wait until exactly `count` connections are open."""
        await self._until(lambda: len(self._open) == count)

    @property
    def base_url(self) -> str:
        """Return `http://127.0.0.1:PORT`, without a path or a trailing slash."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def open_connections(self) -> int:
        return len(self._open)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.get_running_loop().create_server(self._connect, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await asyncio.gather(*(connection.end() for connection in list(self._open)))
        await self._server.wait_closed()
        if self._errors:
            trouble = ExceptionGroup("in the fake vendor", self._errors)
            if error is None:
                raise trouble
            error.add_note(f"{trouble}: {self._errors}")

    @override
    def script_at_accept(self) -> Script:
        return self._at_accept.popleft() if self._at_accept else ()

    @override
    def script_for(self, request: Received) -> Script:
        self.requests.append(request)
        self._note_change()
        if self._queue:
            behaviour = self._queue.popleft()
        elif request.model in self._by_model:
            behaviour = self._by_model[request.model or ""]
        else:
            behaviour = self._by_path.get(request.path, self.default)
        return behaviour(request) if callable(behaviour) else behaviour

    @override
    def began(self, connection: Connection) -> None:
        self._open.add(connection)
        self._note_change()

    @override
    def ended(self, connection: Connection) -> None:
        self._open.discard(connection)
        self._note_change()

    @override
    def failed(self, error: Exception) -> None:
        self._errors.append(error)

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            await self._changed.wait()

    def _connect(self) -> Connection:
        self.connections += 1
        return Connection(self, self.connections - 1)
