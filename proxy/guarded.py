"""The public listener's protocol behind its door: what is one whole request may be refused before it is parsed, and
what is none is counted.

Never knows an answer's words, and never decides who is refused.
"""

from aiohttp import web
from aiohttp.web_protocol import RequestHandler, _ErrInfo

from proxy.admission import Admitted
from proxy.browser_guard import BrowserGuard
from proxy.door import Door, comes_from
from proxy.errors import GatewayError
from proxy.malformed import Malformed
from proxy.server import Envelope, PublicHandler, PublicServer, Refuse, RequestHandling, surface_envelope


class GuardedHandler(PublicHandler):
    """Shows the door what comes while requests are refused, where a request can only begin with it.

    `_clean` is the number of the door's watch in which the parser was last known to have nothing of another request:
    that is so when no byte has come before, and after a request that came alone.
    """

    __slots__ = ("_admitted", "_clean", "_door", "_malformed", "_pressure")

    def __init__(
        self, server: web.Server, envelope: Envelope, door: Door, malformed: Malformed, **settings: object
    ) -> None:
        super().__init__(server, envelope, **settings)
        self._door = door
        self._malformed = malformed
        self._pressure = door.admission
        self._clean = 0
        self._admitted: Admitted | None = None

    def data_received(self, data: bytes) -> None:
        # Everything that comes passes here; the rest is for hard times.
        if self._pressure.sheds and self._answered(data):
            return
        PublicHandler.data_received(self, data)

    def refusal(self, path: str, error: GatewayError) -> web.Response:
        response = super().refusal(path, error)
        self._malformed.count(response.status)
        return response

    def claim(self) -> Admitted | None:
        admitted, self._admitted = self._admitted, None
        if admitted is not None:
            self._door.line.coming -= 1
        return admitted

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if (admitted := self.claim()) is not None:
            admitted.end()

    def _answered(self, data: bytes) -> bool:
        """Whether the door has answered these bytes, or what they are had to be left to the parser."""
        clean, self._clean = self._clean, 0
        door, transport = self._door, self.transport
        found = door.read(data)
        if found is None or transport is None or self._messages:
            return False
        if not self._at_rest() or (clean != door.watch and not self.untouched):
            PublicHandler.data_received(self, data)
            self._clean = door.watch if self._made_of(data) else 0
            return True
        self._clean = door.watch
        answer = door.answer(found)
        if answer is None:
            self._admitted = door.let_in(found)
            return False
        transport.write(answer)
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        return True

    def _at_rest(self) -> bool:
        """Nothing is under way, nothing is about to end, and the client reads its answers."""
        waiter = self._waiter
        waits = self.untouched if waiter is None else not waiter.done()
        return waits and not (self._paused or self._close or self._force_close)

    def _made_of(self, data: bytes) -> bool:
        """Whether what the parser has just made is these bytes and nothing before them; it had made nothing else."""
        if len(self._messages) != 1:
            return False
        message, _ = self._messages[0]
        return not isinstance(message, _ErrInfo) and comes_from(data, message)


class GuardedServer(PublicServer):
    """A public server behind a door. `malformed` counts what it answers without asking anybody."""

    def __init__(
        self,
        handler: RequestHandling,
        max_body: int,
        door: Door,
        guard: BrowserGuard,
        refuse: Refuse,
        malformed: Malformed,
    ) -> None:
        self._door = door
        self._malformed = malformed
        super().__init__(handler, max_body, surface_envelope, guard, refuse)

    def __call__(self) -> RequestHandler:
        return GuardedHandler(self, self._envelope, self._door, self._malformed, loop=self._loop, **self._kwargs)

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - aiohttp's own
        await super().shutdown(timeout)
        self._door.look()
        self._malformed.look()

    def _look(self) -> None:
        super()._look()
        self._door.look()
        self._malformed.look()
