"""Decides when the head of a client's response is sent, and sends keep-alives during silence.

A load balancer closes a connection that has been silent for its idle time, which is 60 s in most load balancers. Before
that time is over, the gateway sends the head with status 200 and a keep-alive: a comment, a ping, or white space before
JSON. Attempts continue meanwhile. Headers that are known too late for the head are sent as a comment before the first
event.
"""

from collections.abc import Callable
from typing import Final, Protocol

from proxy.listener.streamed_response import StreamedResponse
from proxy.request_record import RequestRecord
from proxy.timers import Slot, TimerWheel

BLANK: Final = b"\n"
"""The keep-alive before a JSON body: white space, which every parser skips (RFC 8259, 2)."""

ROUNDING: Final = 0.001
"""The tolerance in seconds for comparing two times that were computed in different ways."""


class Sender(Protocol):
    """A sender of events to the client. `sent_at` is the time of its last bytes."""

    sent_at: float


class ClientStream:
    """The response of one client: the only object that decides when its head is sent.

    `open_response` makes the response; its argument is the header lines that the head has besides the request's own.
    `filler` is sent after every `every` seconds without a byte to the client, and never if `every` is `None`.
    `response` is `None` until the head has been made. `begun` is set once events follow the head. Times are seconds of
    the event loop's clock.
    """

    __slots__ = ("_every", "_filler", "_open", "_record", "_sender", "_sent_at", "_slot", "_wheel", "begun", "response")

    def __init__(
        self,
        open_response: Callable[[str], StreamedResponse],
        record: RequestRecord,
        wheel: TimerWheel,
        filler: bytes,
        every: float | None,
    ) -> None:
        self._open = open_response
        self._record = record
        self._wheel = wheel
        self._filler = filler
        self._every = every
        self._sent_at = record.started
        self._sender: Sender | None = None
        self._slot: Slot | None = None
        self.response: StreamedResponse | None = None
        self.begun = False

    def start(self) -> None:
        """Begin to watch for silence. The time since the request began already counts as silence."""
        if self._every is not None:
            self._slot = self._wheel.set(self._sent_at + self._every, self._every, self)

    def begin(self, lines: str) -> StreamedResponse:
        """Return the response whose first event follows. `lines` are in its head, or in a comment before the event if
        the head has already been sent."""
        if self.response is None:
            self.response = self._open(lines)
        else:
            self.response.precede(comment(lines))
        self.begun = True
        return self.response

    def follow(self, sender: Sender, every: float | None) -> None:
        """Watch `sender` from now on, with the `keep_alive` of the responding deployment."""
        self._sender = sender
        if every != self._every:
            self.stop()
            self._every = every
            self.start()

    def stop(self) -> None:
        """Stop the keep-alives. It must always be called at the end of the request."""
        if self._slot is not None:
            self._wheel.drop(self._slot, self)
            self._slot = None

    def ring(self, now: float) -> None:
        """Send a keep-alive if one is due. The timer is not reset for each chunk. It fires every `every` seconds, and
        is then set to the time that remains."""
        self._slot = None
        every, sender = self._every, self._sender
        if every is None:
            return
        due = every + (self._sent_at if sender is None else sender.sent_at)
        if now + ROUNDING >= due:
            if not self._keep_alive():
                return
            due = now + every
            if sender is None:
                self._sent_at = now
            else:
                sender.sent_at = now
        self._slot = self._wheel.set(due, every, self)

    def _keep_alive(self) -> bool:
        """Send a keep-alive, and before the first one the head. Return whether more may follow."""
        response = self.response
        if response is None:
            response = self.response = self._open("")
            self._record.status = 200
        if not response.is_open:
            return False
        if response.interject(self._filler):
            self._record.keep_alives += 1
        return True


def comment(lines: str) -> bytes:
    """Return header lines as a comment of an event stream; empty if there are no lines."""
    comments = "".join([f": {line}\n" for line in lines.split("\r\n") if line])
    return f"{comments}\n".encode() if comments else b""
