"""A configuration whose vendors are discovered, and a transport with scripted responses."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import orjson

from providers.dialect import UpstreamRequest
from providers.failure import UpstreamError
from proxy.routing.snapshot import Snapshot
from proxy.upstream.transport import Repeats, Take, read_each
from tests.proxy.kit.tables import snapshot

VENDORS = """\
vendors:
  v: {profile: openai_compatible, base_url: 'http://127.0.0.1:1/v1', allow_private: true, discover: true}
  w: {profile: openai_compatible, base_url: 'http://127.0.0.1:2/v1', allow_private: true, discover: true}
"""
BOTH = VENDORS + "models: {v/*: {}, w/*: {}}\n"


def table(text: str = BOTH) -> Snapshot:
    return snapshot(text)


@dataclass(slots=True)
class Given:
    """A scripted response, which comes after `wait` seconds."""

    body: bytes
    status: int = 200
    wait: float = 0.0
    headers: Mapping[str, str] = field(default_factory=dict)
    head: bytes = b""
    closed: bool = False
    released: bool = False
    _pieces: Iterator[bytes] | None = None

    def take_all(self) -> bytes | None:
        return None

    async def read(self) -> bytes:
        if self._pieces is None:
            await asyncio.sleep(self.wait)
            self._pieces = iter([self.body])
        return next(self._pieces, b"")

    async def each(self, take: Take) -> None:
        await read_each(self, take)

    def release(self) -> None:
        self.released = True

    def close(self) -> None:
        self.closed = True


def listing(*names: str, wait: float = 0.0, **members: object) -> Given:
    return Given(orjson.dumps({"data": [{"id": name} for name in names], **members}), wait=wait)


Answering = Callable[[UpstreamRequest], Given | UpstreamError]


@dataclass(slots=True)
class ScriptedTransport:
    """A transport that responds by `answering` and records each call with its time."""

    answering: Answering
    calls: list[UpstreamRequest] = field(default_factory=list)
    moments: list[float] = field(default_factory=list)
    repeats: list[Repeats] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> Given:
        self.calls.append(request)
        self.moments.append(asyncio.get_running_loop().time())
        self.repeats.append(repeats)
        answer = self.answering(request)
        if isinstance(answer, UpstreamError):
            raise answer
        self.given.append(answer)
        return answer

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""
