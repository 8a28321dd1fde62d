"""The cost of requests and streamed chunks on each surface for chats, and of embeddings.

`python -m tests.bench.surfaces`. It runs in this process, without a socket: a body is parsed and encoded as a vendor's
call; a vendor's chunk is decoded and rendered; a vendor's embeddings are decoded and rendered. The chat surface is the
reference for the others, in alternate turns of one run.
"""

import base64
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import orjson

from providers.completion import Chunk
from providers.emulation.plan_calls import plan_calls
from providers.tasks.forms.prepare_task import embeddings_calls
from providers.unified_request import Operation
from proxy.surfaces.anthropic.surface import ANTHROPIC
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.surface import AnswerFacts, Surface
from proxy.surfaces.tasks.embeddings import parse_embeddings, render_embeddings
from tests.bench.readings import Reading, cheapest
from tests.providers.dialects.openai.kit import target
from tests.support.openai_wire import chat_frames

ROUNDS = 30
CHUNKS = 200
VECTORS, DIMENSIONS = 16, 1024
CHUNK_LIMIT = 1.3
"""The limit of another surface's chunk, as a multiple of a chat's chunk."""

FACTS = AnswerFacts("0" * 24, 1_795_000_000, "v/m")
TURNS = [{"role": ("user", "assistant")[turn % 2], "content": "Shall I compare thee? " * 8} for turn in range(9)]
BODIES: dict[str, tuple[Surface, bytes]] = {
    "chat": (OPENAI, orjson.dumps({"model": "v/m", "messages": TURNS, "max_tokens": 64, "stream": True})),
    "messages": (ANTHROPIC, orjson.dumps({"model": "v/m", "messages": TURNS, "max_tokens": 64, "stream": True})),
    "responses": (RESPONSES, orjson.dumps({"model": "v/m", "input": TURNS, "max_output_tokens": 64, "stream": True})),
}


def request(name: str) -> None:
    """Parse a body of a surface and encode the call of an OpenAI-compatible vendor."""
    surface, body = BODIES[name]
    plan_calls(surface.parse(Operation.CHAT, body, None), target("groq"))


def stream(name: str) -> Callable[[], None]:
    """Return a function that decodes and renders one stream of CHUNKS chunks on a surface."""
    surface, body = BODIES[name]
    asked = surface.parse(Operation.CHAT, body, None)
    sent = plan_calls(asked, target("groq")).calls[0].sent
    frames = chat_frames([f" word{number}" for number in range(CHUNKS)])

    def relay() -> None:
        decoder, renderer = sent.target.dialect.stream(sent), surface.renderer(asked, FACTS)
        for frame in frames:
            for event in decoder.feed(frame):
                if isinstance(event, Chunk):
                    renderer.chunk(event)
                else:
                    renderer.usage(event)
        renderer.end()

    return relay


def vectors() -> Callable[[], None]:
    """Return a function that serves a request for VECTORS embeddings in base64 from a vendor that supports base64."""
    vector = base64.b64encode(struct.pack(f"<{DIMENSIONS}f", *[0.1] * DIMENSIONS)).decode()
    data = [{"object": "embedding", "index": index, "embedding": vector} for index in range(VECTORS)]
    answer = orjson.dumps({"object": "list", "data": data, "usage": {"prompt_tokens": 9, "total_tokens": 9}})
    body = orjson.dumps({"model": "v/m", "input": ["some text"] * VECTORS, "encoding_format": "base64"})

    def serve() -> None:
        asked = parse_embeddings(body)
        calls = embeddings_calls(asked, target("openai"), "error")
        decoded = [calls.decode(call, {}, answer) for call in calls.calls]
        render_embeddings(asked, calls.join(decoded), FACTS)

    return serve


@dataclass(frozen=True, slots=True)
class Work:
    """A measured piece of work: its name, its function, and the number of units in one call."""

    name: str
    run: Callable[[], None]
    count: int


def works() -> list[Work]:
    """Return all measured work."""
    return [
        *(Work(f"{name} request", partial(request, name), 1) for name in BODIES),
        *(Work(f"{name} chunk", stream(name), CHUNKS) for name in BODIES),
        Work("embeddings request", vectors(), 1),
    ]


def measure(work: Work) -> Reading:
    """Return the cost of one run."""
    cpu, wall = time.process_time(), time.perf_counter()
    work.run()
    return Reading(time.process_time() - cpu, time.perf_counter() - wall, work.count)


HEADER = f"{'CPU µs on a surface':<24}{'each':>10}{'of chat':>9}"


def line(name: str, own: Sequence[Reading], chat: Sequence[Reading] | None) -> str:
    """Return a row: the cheapest reading, and its ratio to chat's, which is empty if chat has no such work."""
    each = cheapest(own).microseconds
    ratio = "" if chat is None else f"{each / cheapest(chat).microseconds:.2f}"
    return f"{name:<24}{each:>10.2f}{ratio:>9}"


def main() -> None:
    measured = works()
    readings: dict[str, list[Reading]] = {work.name: [] for work in measured}
    for _ in range(ROUNDS):
        for work in measured:
            readings[work.name] += [measure(work) for _ in range(3)]
    print(HEADER)
    for name, own in readings.items():
        print(line(name, own, readings.get(f"chat {name.rpartition(' ')[2]}") if "embeddings" not in name else None))


if __name__ == "__main__":
    main()
