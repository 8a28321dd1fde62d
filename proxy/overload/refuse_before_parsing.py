"""Refuses requests under overload before HTTP is parsed, so that thousands of refusals a second leave time to serve
other requests.

A request is refused here only if every parser would read its bytes in the same way. No other request may be in flight
on its connection, the parser must hold no bytes of another request, and the received bytes must be exactly one request
of a restricted form. All other bytes are parsed as usual, and are then refused with the same response.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from providers.unified_request import Operation
from proxy.errors import OverloadReason
from proxy.listener.cors_and_host_names import BrowserGuard
from proxy.overload.admission_limits import Admission, Admitted
from proxy.overload.refusal_responses import RefusalResponse, RefusalResponses
from proxy.overload.start_queue import StartQueue
from proxy.request_record import fresh_id
from proxy.surfaces.registry import PATHS
from proxy.surfaces.surface import Surface

MAX_HEAD = 4096
"""The most bytes of a request head that is matched here. The parser accepts far more in a single line."""

_NAME = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
_VALUE = rb"[\t -~]*+"
_HEAD = re.compile(
    rb"POST (/[0-9A-Za-z/._-]*) HTTP/1\.1\r\n(?:(?:"
    # Most fields differ from the fields below in their first letter, which is cheap to check.
    rb"[AaBbDdFfGgI-Li-l]" + _NAME + rb"*+:" + _VALUE + rb"|[Xx]-(?![Rr])" + _NAME + rb"*+:" + _VALUE +
    # Fields that the parser accepts only once. The conditional groups refuse a second one. The first two are required.
    rb"|(?i:(?(2)(?!)|content-length): ?([0-9]{1,9})"
    rb"|(?(3)(?!)|host):(" + _VALUE + rb")"
    rb"|(?(4)(?!)|content-type):(" + _VALUE + rb")"
    rb"|(?(5)(?!)|user-agent):(" + _VALUE + rb")"
    rb"|connection: ?keep-alive"
    # Any other field, except those that frame the body, switch protocols, close the connection, are echoed, are judged
    # by the browser guard, or have rules in the parser.
    rb"|(?!(?:content-(?:length|type|location|range)|host|user-agent|(?:proxy-)?connection|transfer-encoding|upgrade"
    rb"|expect|x-request-id|origin|sec-fetch-site|sec-websocket-key1|etag|max-forwards|server):)"
    + _NAME
    + rb"++:"
    + _VALUE
    + rb"))\r\n){2,64}+\r\n"
)


def read_whole_request(data: bytes) -> tuple[bytes, int, bytes] | None:
    """Return the path, the body's length and the Host if the bytes are exactly one request of the restricted form, else
    `None`."""
    found = _HEAD.match(data, 0, MAX_HEAD)
    if found is None:
        return None
    path, length, host = found.group(1, 2, 3)
    if length is None or host is None or found.end() + int(length) != len(data):
        return None
    return path, int(length), host.strip(b" \t")


WholeRequest = tuple[Surface, int]
"""The surface of a request, and the length of its body in bytes."""

_GENERATING: dict[bytes, Surface] = {
    path.encode(): match.surface for path, match in PATHS.items() if isinstance(match.methods.get("POST"), Operation)
}


class RefusingGateway(Protocol):
    """The gateway. `refusals` are its prepared refusals. While it is `draining`, it closes connections."""

    draining: bool
    refusals: RefusalResponses


@dataclass(slots=True, eq=False)
class EarlyRefusal:
    """Decides on requests before they are parsed. Requests with a body of more than `max_body` bytes, and requests to a
    host that `guard` does not serve, are left to the parser.

    `report` receives a surface's name, the status of its refusals, a reason and the number of requests refused since
    the last report.
    """

    gateway: RefusingGateway
    admission: Admission
    queue: StartQueue
    max_body: int
    guard: BrowserGuard
    report: Callable[[str, int, OverloadReason, int], None]
    _counts: Counter[RefusalResponse] = field(default_factory=Counter)

    def read(self, data: bytes) -> WholeRequest | None:
        """Return the request in these bytes; `None` if they are left to the parser."""
        if (found := read_whole_request(data)) is None or self.gateway.draining:
            return None
        path, length, host = found
        surface = _GENERATING.get(path)
        if surface is None or length > self.max_body or not self.guard.serves(host.decode("ascii")):
            return None
        return surface, length

    def refusal(self, request: WholeRequest) -> bytes | None:
        """Return the response that refuses a request; `None` if the request is admitted."""
        reason = self.admission.refusal()
        if reason is None:
            return None
        prepared = self.gateway.refusals.get(request[0], reason)
        self._counts[prepared] += 1
        return prepared.encode(fresh_id())

    def admit(self, request: WholeRequest) -> Admitted:
        """Count an admitted request before it is parsed. Otherwise many requests in one event loop iteration would not
        count against each other. The queue counts the request as coming until its admission is claimed."""
        self.queue.coming += 1
        return self.admission.begin(request[1])

    def look(self) -> None:
        """Report the refusals since the last call. It must be called every second."""
        counts, self._counts = self._counts, Counter()
        for prepared, count in counts.items():
            self.report(prepared.surface, prepared.status, prepared.reason, count)
        self.admission.look()
