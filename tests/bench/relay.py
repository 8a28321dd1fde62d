"""The cost of relaying a streamed chunk, without sockets: `python -m tests.bench.relay`.

It covers the way from the vendor's bytes in the socket callback to the client's bytes in the writer: decoder, renderer,
relay, record and deadlines, as in a running gateway. The costs of the kernel, the event loop and HTTP are left out.
Each load is measured in three forms: with one event in each read, like generated tokens; with a hundred events in each
read; and in reads of 64 KB that end anywhere, like a response that was not generated token by token.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import orjson

from providers.unified_request import UnifiedRequest
from proxy.deadlines import Deadlines, Phase
from proxy.eager_task import EagerTask, Signal
from proxy.relay.relay_to_client import Relay
from proxy.request_record import RequestRecord
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.surface import AnswerFacts
from proxy.upstream.read_answer import until_content
from proxy.upstream.transport import Take
from proxy.upstream.vendor_stream import OpenStream
from tests.bench.readings import Reading, cheapest
from tests.bench.streams import LONG_CHAT, words
from tests.providers.dialects.kit import sent_for, target_of

COUNT = 1000
"""Chunks of a stream."""

ROUNDS = 30
Cut = Callable[[Sequence[bytes]], list[bytes]]
"""A function that divides events into reads."""

_HEAD = b'{"id":"chatcmpl-AbCdEfGhIjKlMnOpQrStUvWxYz012","object":"chat.completion.chunk","created":1795000000,'
_HEAD += b'"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_0123456789"'


def _event(delta: bytes, finish: bytes = b"null", rest: bytes = b"") -> bytes:
    choice = b'[{"index":0,"delta":%b,"logprobs":null,"finish_reason":%b}]' % (delta, finish)
    return b'data: %b,"choices":%b%b}\n\n' % (_HEAD, choice, rest)


def _stream(texts: Sequence[str], rest: Callable[[int], bytes] = lambda number: b"") -> list[bytes]:
    """Return the events of a chat, with further fields in each."""
    said = [_event(b'{"content":%b}' % orjson.dumps(text), rest=rest(number)) for number, text in enumerate(texts)]
    first, last = _event(b'{"role":"assistant","content":""}', rest=rest(0)), _event(b"{}", b'"stop"', rest(1))
    usage = b'data: %b,"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":9,"total_tokens":18}}\n\n' % _HEAD
    return [first, *said, last, usage, b"data: [DONE]\n\n"]


def _padding(number: int) -> bytes:
    return b',"obfuscation":"%b"' % (b"x%d" % number * 3)[: number % 9 + 1]


_CHINESE = ("天", "空", "是", "蓝", "色", "的", "今天")


def _with_delta(begin: bytes) -> list[bytes]:
    """Return the events of a chat whose deltas with text begin differently."""
    begins = b'"delta":{"content":"'
    return [event.replace(begins, b'"delta":' + begin) for event in _stream(words(COUNT))]


def _call(texts: Sequence[str]) -> list[bytes]:
    """Return the events of a tool call with these arguments."""
    first = _event(b'{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]}')
    pieces = [orjson.dumps('\\n"' + text) for text in texts]
    said = [_event(b'{"tool_calls":[{"index":0,"function":{"arguments":%b}}]}' % piece) for piece in pieces]
    return [first, *said, _event(b"{}", b'"tool_calls"'), b"data: [DONE]\n\n"]


LOADS: Mapping[str, Callable[[], list[bytes]]] = {
    "text": lambda: _stream(words(COUNT)),
    "padded, as OpenAI's": lambda: _stream(words(COUNT), _padding),
    "Chinese": lambda: _stream([_CHINESE[place % len(_CHINESE)] for place in range(COUNT)]),
    "with a role, OpenRouter's": lambda: _with_delta(b'{"role":"assistant","content":"'),
    "with nulls, DeepSeek's": lambda: _with_delta(b'{"reasoning_content":null,"content":"'),
    "reasoning": lambda: _with_delta(b'{"reasoning_content":"'),
    "arguments of a call": lambda: _call(words(COUNT - 1)),
    "refusal, never quick": lambda: _with_delta(b'{"refusal":"'),
}


class Pushed:
    """A response body whose chunks are pushed by `push`. It implements UpstreamResponse."""

    status = 200
    headers: Mapping[str, str] = {}
    head = b""

    def __init__(self) -> None:
        self._piece = b""
        self._came = Signal()

    def push(self, piece: bytes) -> None:
        """Pass a chunk to the waiting reader. The reader continues before this returns."""
        if self._came.take is None:
            self._piece = piece
            self._came.set()
        elif not self._came.take(piece):
            self._came.refuse(None)

    def take_all(self) -> bytes | None:
        return None

    async def read(self) -> bytes:
        if not self._piece:
            await self._came
        return self._taken()

    def _taken(self) -> bytes:
        piece, self._piece = self._piece, b""
        return piece

    async def each(self, take: Take) -> None:
        await self._came.taking(take)

    def release(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def in_a_row(events: Sequence[bytes], count: int) -> list[bytes]:
    """Return the events, `count` in each read."""
    return [b"".join(events[start : start + count]) for start in range(0, len(events), count)]


def of_size(events: Sequence[bytes], size: int) -> list[bytes]:
    """Return the events in reads of `size` bytes."""
    whole = b"".join(events)
    return [whole[start : start + size] for start in range(0, len(whole), size)]


READS: Mapping[str, Cut] = {
    "1 a read": partial(in_a_row, count=1),
    "100 a read": partial(in_a_row, count=100),
    "64 KB a read": partial(of_size, size=64 * 1024),
}


@dataclass(slots=True)
class Load:
    """One stream cut into reads."""

    name: str
    pieces: Sequence[bytes]
    request: UnifiedRequest
    chunks: int = 0

    def reading(self) -> Reading:
        """Return the cost of relaying the stream once. Raise any exception of the relay."""
        return asyncio.run(self._relayed())

    async def _relayed(self) -> Reading:
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Reading] = loop.create_future()
        loop.call_soon(self._drive, loop, answered)
        return await answered

    def _drive(self, loop: asyncio.AbstractEventLoop, answered: "asyncio.Future[Reading]") -> None:
        """Push every chunk from a callback of the loop, as a vendor's socket does."""
        vendor = Pushed()
        failures: list[BaseException | None] = []
        record = RequestRecord("id", 0.0, "openai", "/")
        task = EagerTask(self._relay(vendor, record), loop, failures.append)
        cpu, wall = time.process_time(), time.perf_counter()
        task.begin()
        for piece in self.pieces:
            vendor.push(piece)
        reading = Reading(time.process_time() - cpu, time.perf_counter() - wall, COUNT)
        self.chunks = record.chunks
        failure = failures[0] if failures else RuntimeError("the relay has not ended")
        if failure is None:
            answered.set_result(reading)
        else:
            answered.set_exception(failure)

    async def _relay(self, vendor: Pushed, record: RequestRecord) -> None:
        sent = sent_for(self.request, target_of("openai"))
        decoder = sent.target.dialect.stream(sent)
        renderer = OPENAI.renderer(self.request, AnswerFacts("1", 1_795_000_000, "openai/tiny"))
        with Deadlines(600.0) as deadlines:
            deadlines.enter(Phase.FIRST_EVENT, 60.0)
            stream = OpenStream(vendor, decoder, *await until_content(vendor, decoder))
            deadlines.commit(60.0, 600.0, 3600.0)
            await Relay(stream, renderer, _taken, deadlines, record, self.request).run()


def _taken(data: bytes) -> bool:
    """Accept data as a client that always has room."""
    return True


def loads() -> list[Load]:
    """Return every stream in reads of each size."""
    asked = replace(LONG_CHAT, stream=True)
    return [Load(f"{name}, {how}", cut(write()), asked) for name, write in LOADS.items() for how, cut in READS.items()]


def line(load: Load, readings: Sequence[Reading]) -> str:
    """Return one line of the printed table."""
    return f"{load.name:<36}{cheapest(readings).microseconds:>8.2f}"


HEADER = f"{'CPU µs to relay':<36}{'chunk':>8}"


def measured(found: Sequence[Load], rounds: int) -> Iterator[str]:
    """Yield the line of each load. Readings are taken in alternate turns."""
    readings: dict[str, list[Reading]] = {load.name: [] for load in found}
    for _ in range(rounds):
        for load in found:
            readings[load.name].append(load.reading())
    for load in found:
        yield line(load, readings[load.name])


def main() -> None:
    print("\n".join([HEADER, *measured(loads(), ROUNDS)]))


if __name__ == "__main__":
    main()
