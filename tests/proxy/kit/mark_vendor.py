"""A vendor of marks: the dialect that reads them, and a transport with one scripted response."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from providers.capabilities import FEATURES, NATIVE, Capabilities
from providers.completion import Choice, Chunk, Completion
from providers.dialect import StreamDecoder, UpstreamRequest
from providers.failure import Failure, FailureKind, Refusal, UpstreamError
from providers.target import Target
from providers.unified_request import UnifiedRequest
from proxy.upstream.transport import Repeats, UpstreamResponse
from tests.proxy.kit.mark_streams import USAGE, Body, Marks


class Scripted:
    """A dialect of marks: a complete body's `+` are its choices; a target named `picky` refuses `suffix`."""

    def capabilities(self, request: UnifiedRequest, target: Target) -> Capabilities:
        return Capabilities({name: NATIVE for name in FEATURES})

    def encode(self, request: UnifiedRequest, target: Target) -> UpstreamRequest:
        if "picky" in target.deployment:
            raise Refusal("suffix", f"'suffix' is not supported by {target.name}.")
        return UpstreamRequest(target, request.operation, "http://v.example.com", b"{}", request.stream)

    def decode(self, sent: UpstreamRequest, body: bytes) -> Completion:
        chunks = (event for event in Marks().feed(body) if isinstance(event, Chunk))
        return Completion(tuple(Choice(index, chunk.text, "stop") for index, chunk in enumerate(chunks)), USAGE)

    def stream(self, sent: UpstreamRequest) -> StreamDecoder:
        return Marks()

    def classify(self, sent: UpstreamRequest, status: int, headers: Mapping[str, str], body: bytes) -> Failure:
        return Failure(FailureKind.SERVER, f"{status} {headers.get('a')} {len(body)}", status)


@dataclass
class Door:
    """A transport with one scripted response, which comes after `delay` seconds, or a failure instead."""

    answer: Body | UpstreamError
    delay: float = 0.0
    seen: list[tuple[UpstreamRequest, str]] = field(default_factory=list)

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        self.seen.append((request, request_id))
        await asyncio.sleep(self.delay)
        if isinstance(self.answer, UpstreamError):
            raise self.answer
        return self.answer

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""
