"""The cost of relaying a streamed chunk of text, of reasoning or of arguments: `python -m tests.bench.chunks`.

The decoder, the relay and the renderer run in this process, from the bytes of an OpenAI-compatible vendor or of Claude
to the bytes of each surface, without a socket. Streams are measured alternately, and the cheapest of several counts.
"""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import orjson
from typing_extensions import override

from providers.dialect import UpstreamRequest
from providers.json_types import JsonObject
from providers.unified_request import UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.relay.relay_to_client import Relay
from proxy.request_record import RequestRecord
from proxy.surfaces.anthropic.surface import ANTHROPIC
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.surface import AnswerFacts, Surface
from proxy.upstream.read_answer import until_content
from proxy.upstream.transport import Take
from proxy.upstream.vendor_stream import OpenStream
from tests.bench.readings import Reading, cheapest
from tests.providers.dialects.anthropic.native_kit import own_call, own_request
from tests.providers.dialects.kit import chat_request, sent_for, target_of
from tests.proxy.kit.chat_events import DONE, OPENED, ROLE, STOP, USAGE, argued, chat, thought
from tests.proxy.kit.mark_streams import Body

ROUNDS = 20
CHUNKS = 400
SURFACES: Mapping[str, Surface] = {"chat": OPENAI, "messages": ANTHROPIC, "responses": RESPONSES}
PARTS = ("text", "reasoning", "arguments")
_CHAT = replace(chat_request(), stream=True)
_OWN = own_request(stream=True)
_CLAUDE = target_of("anthropic", max_output_tokens=100)


class PushedBody(Body):
    """A body whose chunks are all available. The relay takes each by a call, as from a socket's callback."""

    @override
    async def each(self, take: Take) -> None:
        piece = await self.read()
        while take(piece) and piece:
            piece = await self.read()


def literals(part: str) -> list[bytes]:
    """Return the JSON strings of a part's chunks."""
    words = [f" word{number % 97}" for number in range(CHUNKS)]
    return [orjson.dumps(word) for word in (words if part != "arguments" else ['{"a":"', *words[2:], '"}'])]


def family(part: str) -> list[bytes]:
    """Return a stream in the OpenAI family's format."""
    made: Mapping[str, Callable[[bytes], bytes]] = {"text": chat, "reasoning": thought, "arguments": argued}
    make = made[part]
    opened = [ROLE, OPENED] if part == "arguments" else [ROLE]
    return [*opened, *[make(literal) for literal in literals(part)], STOP, USAGE, DONE, b""]


_BLOCKS: Mapping[str, tuple[JsonObject, str, str]] = {
    "text": ({"type": "text", "text": ""}, "text_delta", "text"),
    "reasoning": ({"type": "thinking", "thinking": "", "signature": ""}, "thinking_delta", "thinking"),
    "arguments": ({"type": "tool_use", "id": "t1", "name": "f", "input": {}}, "input_json_delta", "partial_json"),
}


def _event(kind: str, members: JsonObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), orjson.dumps({"type": kind, **members}))


def claude(part: str) -> list[bytes]:
    """Return a stream in Claude's format."""
    block, kind, name = _BLOCKS[part]
    message: JsonObject = {"id": "m", "type": "message", "model": "c", "usage": {"input_tokens": 5, "output_tokens": 1}}
    said = [
        _event("content_block_delta", {"index": 0, "delta": {"type": kind, name: orjson.loads(literal)}})
        for literal in literals(part)
    ]
    ended: JsonObject = {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
    return [
        _event("message_start", {"message": message}),
        _event("content_block_start", {"index": 0, "content_block": block}),
        *said,
        _event("content_block_stop", {"index": 0}),
        _event("message_delta", ended),
        _event("message_stop", {}),
        b"",
    ]


@dataclass(frozen=True, slots=True)
class Work:
    """A stream to relay: its name, its bytes, the client's request and surface, and the vendor's call."""

    name: str
    steps: Sequence[bytes]
    asked: UnifiedRequest
    surface: Surface
    sent: UpstreamRequest


def works() -> list[Work]:
    """Return every stream."""
    target = target_of("openai")
    found: list[Work] = []
    for part in PARTS:
        for name, surface in SURFACES.items():
            found.append(Work(f"openai {part} {name}", family(part), _CHAT, surface, sent_for(_CHAT, target)))
            found.append(Work(f"claude {part} {name}", claude(part), _CHAT, surface, sent_for(_CHAT, _CLAUDE)))
        found.append(Work(f"claude {part} own", claude(part), _OWN, ANTHROPIC, own_call(_OWN, _CLAUDE)[0]))
    return found


async def relay(work: Work) -> Reading:
    """Return the cost of relaying a stream once, from its first content."""
    decoder = work.sent.target.dialect.stream(work.sent)
    renderer = work.surface.renderer(work.asked, AnswerFacts("0" * 24, 1_795_000_000, "v/m"))
    record, written = RequestRecord("id", 0.0, "openai", "/"), [b""]

    def write(data: bytes) -> bool:
        written[0] = data
        return True

    with Deadlines(600.0) as clock:
        body = PushedBody(*work.steps)
        opened = OpenStream(body, decoder, *await until_content(body, decoder))
        clock.commit(60.0, 600.0, 3600.0)
        record.first_content = 0.0
        relayed = Relay(opened, renderer, write, clock, record, work.asked)
        cpu, wall = time.process_time(), time.perf_counter()
        await relayed.run()
        return Reading(time.process_time() - cpu, time.perf_counter() - wall, CHUNKS)


HEADER = f"{'CPU µs to relay':<32}{'chunk':>8}"


def line(name: str, readings: Sequence[Reading]) -> str:
    """Return a row."""
    return f"{name:<32}{cheapest(readings).microseconds:>8.2f}"


def main() -> None:
    measured = works()
    readings: dict[str, list[Reading]] = {work.name: [] for work in measured}
    for _ in range(ROUNDS):
        for work in measured:
            readings[work.name].append(asyncio.run(relay(work)))
    print(HEADER)
    for name, taken in readings.items():
        print(line(name, taken))


if __name__ == "__main__":
    main()
