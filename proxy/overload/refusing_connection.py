"""Connections of the public listener that refuse requests before parsing under overload, and count malformed
requests."""

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from proxy.errors import GatewayError, OverloadReason
from proxy.listener.client_request import PlainRequest
from proxy.listener.cors_and_host_names import BrowserGuard
from proxy.listener.http_connection import Envelope, PublicHandler, PublicServer, Refuse, RequestHandling
from proxy.overload.admission_limits import Admission, Admitted
from proxy.overload.malformed_requests import MalformedRequests
from proxy.overload.refuse_before_parsing import EarlyRefusal
from proxy.overload.start_queue import StartQueue
from proxy.surfaces.registry import surface_envelope


class EarlyRefusingConnection(PublicHandler):
    """A connection that, while requests are being refused, first offers received bytes to EarlyRefusal if the bytes
    begin a request (`at_boundary`)."""

    __slots__ = ("_admission", "_admitted", "_early", "_malformed")

    def __init__(
        self,
        server: web.Server,
        envelope: Envelope,
        early: EarlyRefusal,
        malformed: MalformedRequests,
        **settings: object,
    ) -> None:
        super().__init__(server, envelope, **settings)
        self._early = early
        self._malformed = malformed
        self._admission = early.admission
        self._admitted: Admitted | None = None

    def data_received(self, data: bytes) -> None:
        # All received bytes pass here, so the cost without overload must be minimal.
        if data and self._admission.sheds and self._refuse_early(data):
            return
        PublicHandler.data_received(self, data)

    def refusal(self, path: str, error: GatewayError) -> web.Response:
        response = super().refusal(path, error)
        self._malformed.count(response.status)
        return response

    def claim(self) -> Admitted | None:
        """Return the admission of the latest request if it was admitted before parsing, else `None`."""
        admitted, self._admitted = self._admitted, None
        if admitted is not None:
            self._early.queue.coming -= 1
        return admitted

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if (admitted := self.claim()) is not None:
            admitted.end()

    def _refuse_early(self, data: bytes) -> bool:
        """Return whether the request in these bytes has been refused."""
        early, transport = self._early, self.transport
        if transport is None or self._paused or not self.at_boundary or (found := early.read(data)) is None:
            return False
        answer = early.refusal(found)
        if answer is None:
            self._admitted = early.admit(found)
            return False
        transport.write(answer)
        self._next_keepalive_close_time = self._loop.time() + self._keepalive_timeout
        return True


def admit(http: web.BaseRequest, admission: Admission, queue: StartQueue) -> Admitted | OverloadReason:
    """Admit a request whose head has been read, unless it was admitted before parsing. Return its admission, or the
    reason why it is refused. An admitted request starts at once if `starts` of its admission is set, else when
    `queue.wait` returns."""
    connection: EarlyRefusingConnection = http._protocol  # type: ignore[assignment]  # the listener creates only these
    admitted = None if connection._admitted is None else connection.claim()
    if admitted is None:
        reason = admission.refusal()
        if reason is not None:
            return reason
        whole = isinstance(http, PlainRequest) or http.content.is_eof()
        admitted = admission.begin(0) if whole else admission.expect()
    admitted.starts = queue.may_start()
    return admitted


class EarlyRefusingServer(PublicServer):
    """A public server that makes EarlyRefusingConnections. `malformed` counts their responses to malformed requests."""

    def __init__(
        self,
        handler: RequestHandling,
        max_body: int,
        early: EarlyRefusal,
        guard: BrowserGuard,
        refuse: Refuse,
        malformed: MalformedRequests,
    ) -> None:
        self._early = early
        self._malformed = malformed
        super().__init__(handler, max_body, surface_envelope, guard, refuse)

    def __call__(self) -> RequestHandler:
        return EarlyRefusingConnection(
            self, self._envelope, self._early, self._malformed, loop=self._loop, **self._kwargs
        )

    async def shutdown(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - aiohttp's own
        await super().shutdown(timeout)
        self._report()

    def _look(self) -> None:
        super()._look()
        self._report()

    def _report(self) -> None:
        self._early.look()
        self._malformed.look()
