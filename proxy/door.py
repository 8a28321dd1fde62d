"""Refusals before HTTP is parsed: under overload thousands of them a second must leave the time to serve the others.

Never refuses what anybody could read differently: bytes count only while nothing is under way on their connection and
the parser has nothing of another request, and only when they are exactly one request of a closed form. Whatever else
comes goes the ordinary way, where it is refused with the same bytes. Never decides who is refused.
"""

import re
import time
from collections.abc import Callable
from typing import Protocol

from aiohttp import HttpVersion11
from aiohttp.http_parser import RawRequestMessage

from providers.unified import Operation
from proxy.admission import Admission, Admitted, Reason
from proxy.browser_guard import BrowserGuard
from proxy.errors import overloaded
from proxy.line import Line
from proxy.ready import head, lines
from proxy.server import fresh_id
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import Surface

MAX_HEAD = 4096
"""Bytes of a head that is looked at; far below what the parser takes of one line."""

_NAME = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]"
_VALUE = rb"[\t -~]*+"
_HEAD = re.compile(
    rb"POST (/[0-9A-Za-z/._-]*) HTTP/1\.1\r\n(?:(?:"
    # Most fields are none of those below by their first letters, which is all that is looked at.
    rb"[AaBbDdFfGgI-Li-l]" + _NAME + rb"*+:" + _VALUE + rb"|[Xx]-(?![Rr])" + _NAME + rb"*+:" + _VALUE +
    # Those that the parser takes once, by the group that has been found then; the first two have to be there.
    rb"|(?i:(?(2)(?!)|content-length): ?([0-9]{1,9})"
    rb"|(?(3)(?!)|host):(" + _VALUE + rb")"
    rb"|(?(4)(?!)|content-type):(" + _VALUE + rb")"
    rb"|(?(5)(?!)|user-agent):(" + _VALUE + rb")"
    rb"|connection: ?keep-alive"
    # Any other but those that frame, switch or end, that are to be echoed, that a browser's page is judged by, or that
    # the parser has rules for.
    rb"|(?!(?:content-(?:length|type|location|range)|host|user-agent|(?:proxy-)?connection|transfer-encoding|upgrade"
    rb"|expect|x-request-id|origin|sec-fetch-site|sec-websocket-key1|etag|max-forwards|server):)"
    + _NAME
    + rb"++:"
    + _VALUE
    + rb"))\r\n){2,64}+\r\n"
)


def read(data: bytes) -> tuple[bytes, int, bytes] | None:
    """The path, the bytes of the body and the Host where this is one whole request of the closed form, and nothing
    else."""
    found = _HEAD.match(data, 0, MAX_HEAD)
    if found is None:
        return None
    path, length, host = found.group(1, 2, 3)
    if length is None or host is None or found.end() + int(length) != len(data):
        return None
    return path, int(length), host.strip(b" \t")


def comes_from(data: bytes, message: RawRequestMessage) -> bool:
    """Whether the parser has made this message of a request of the closed form alone, so that it began where that does.

    What the parser had before would be a part of the first line, or another header line.
    """
    text, _, _ = data.partition(b"\r\n\r\n")
    first = f"{message.method} {message.path} HTTP/1.1\r\n".encode()
    return text.startswith(first) and text.count(b"\r\n") == len(message.raw_headers)


Knock = tuple[Surface, int]
"""A request's surface and the bytes of its body."""


class Refusal:
    """The answer to a surface's requests for one reason, and how many got it since it was last told."""

    __slots__ = ("_after", "_before", "_body", "_own", "_second", "_status", "count", "reason", "surface")

    def __init__(self, surface: Surface, reason: Reason) -> None:
        facts = overloaded(reason).facts
        self._status, self._body = surface.error(facts)
        self._own = lines(facts.headers)
        self._second = -1
        self._before = self._after = b""
        self.surface = surface.name
        self.reason = reason
        self.count = 0

    def answer(self) -> bytes:
        """Another one, as the ordinary way words it."""
        if (second := int(time.time())) != self._second:
            self._second = second
            place = "x" * 24
            own = f"x-request-id: {place}\r\n{self._own}"
            text = head(HttpVersion11, self._status, own, len(self._body), keep=True) + self._body
            self._before, _, self._after = text.partition(place.encode())
        self.count += 1
        return b"%b%b%b" % (self._before, fresh_id().encode(), self._after)


class Drains(Protocol):
    """Whoever may be about to end."""

    draining: bool


class Door:
    """Stands before the paths of all surfaces. Bodies of more than `most` bytes, and hosts that `guard` does not serve,
    are none of its business.

    `told` receives a surface's name, a reason and how many requests were refused since it was last told. `watch` is the
    number of the time in which all that came was seen, from 1 on.
    """

    def __init__(
        self,
        gateway: Drains,
        admission: Admission,
        line: Line,
        most: int,
        guard: BrowserGuard,
        told: Callable[[str, Reason, int], None],
    ) -> None:
        self.admission = admission
        self.line = line
        self.watch = 1
        self._gateway = gateway
        self._most = most
        self._guard = guard
        self._told = told
        self._refusals: dict[tuple[str, Reason], Refusal] = {}
        self._surfaces: dict[bytes, Surface] = {}
        for surface in SURFACES:
            for endpoint in surface.endpoints:
                if isinstance(endpoint.action, Operation):
                    self._surfaces.setdefault(endpoint.path.encode(), surface)

    def read(self, data: bytes) -> Knock | None:
        """What this is where it is a request that may be refused here."""
        if (found := read(data)) is None or self._gateway.draining:
            return None
        path, length, host = found
        surface = self._surfaces.get(path)
        if surface is None or length > self._most or not self._guard.serves(host.decode("ascii")):
            return None
        return surface, length

    def answer(self, knock: Knock) -> bytes | None:
        """The refusal of a request, or None where it is to be taken on."""
        surface, _ = knock
        reason = self.admission.refusal()
        if reason is None:
            return None
        made = self._refusals.get((surface.name, reason))
        if made is None:
            made = self._refusals[surface.name, reason] = Refusal(surface, reason)
        return made.answer()

    def let_in(self, knock: Knock) -> Admitted:
        """The place of a request that is not refused, until it claims it: many may come in one turn of the loop, and
        each has to see that the others are there."""
        self.line.coming += 1
        return self.admission.begin(knock[1])

    def look(self) -> None:
        """Called every second: tell of what was refused. Another watch begins when nothing was, for then bytes may
        pass that nobody looks at."""
        for made in self._refusals.values():
            if made.count:
                self._told(made.surface, made.reason, made.count)
                made.count = 0
        self.watch += not self.admission.look()
