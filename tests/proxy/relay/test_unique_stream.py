"""A stream's calls get unique ids however it is read, and its runs pass unchanged."""

from collections.abc import Iterable
from dataclasses import replace

import orjson
import pytest

from providers.adaptation.unique_calls import UniqueCalls
from providers.completion import Chunk, StreamPart, TextRun
from providers.emulation.plan_calls import plan_calls
from providers.json_types import JsonObject
from proxy.relay.unique_stream import UniqueStream, with_unique_ids
from proxy.upstream.gateway_streams import LocalStream
from proxy.upstream.read_answer import until_content
from proxy.upstream.vendor_stream import OpenStream, Parts, aside_of, hand_each
from tests.providers.dialects.kit import chat_request, sent_for, tool, user
from tests.providers.dialects.openai.kit import target
from tests.proxy.kit.mark_streams import Body
from tests.proxy.kit.virtual_time import run
from tests.support.looped import looped

pytestmark = pytest.mark.smoke

HISTORY: tuple[JsonObject, ...] = ({"role": "tool", "tool_call_id": "call_0", "content": "r"},)
SENT = sent_for(replace(chat_request(user("go"), tools=[tool("f")]), stream=True), target("vllm"))


def frame(delta: JsonObject, finish: str | None = None) -> bytes:
    choice: JsonObject = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: %b\n\n" % orjson.dumps({"id": "1", "object": "chat.completion.chunk", "choices": [choice]})


def call(number: int) -> bytes:
    function: JsonObject = {"name": "f", "arguments": "{}"}
    return frame({"tool_calls": [{"index": number, "id": "call_0", "type": "function", "function": function}]})


TEXTS = [frame({"content": text}) for text in ("a", "b", "c", "d")]
STREAM = (frame({"role": "assistant", "content": "0"}), *TEXTS, call(0), call(1), frame({}, "tool_calls"))


def ids(parts: Iterable[StreamPart]) -> list[str]:
    return [str(each.id) for part in parts if isinstance(part, Chunk) for each in part.tool_calls if each.id]


async def opened() -> UniqueStream:
    body, decoder = Body(*STREAM, b"data: [DONE]\n\n"), SENT.target.dialect.stream(SENT)
    return UniqueStream(OpenStream(body, decoder, *await until_content(body, decoder)), UniqueCalls(HISTORY))


@looped("way", ["pulled", "pushed"])
def test_ids_are_replaced_in_each_way_of_reading(way: str) -> None:
    async def main() -> tuple[list[str], int]:
        stream, runs = await opened(), 0
        found: list[str] = []

        def hand(parts: Parts) -> bool:
            found.extend(ids(parts))
            return True

        def hand_run(run: TextRun) -> bool:
            nonlocal runs
            runs += 1
            return True

        if way == "pulled":
            hand(stream.first())
            while not stream.over:
                await stream.wait()
                hand(stream.take())
        else:
            hand(stream.first_parts())
            while not stream.over:
                await hand_each(stream, hand, hand_run)
        await stream.finish()
        return found, runs

    found, runs = run(main())
    assert len({*found, "call_0"}) == len(found) + 1 == 3
    assert bool(runs) == (way == "pushed")


def test_a_stream_in_one_piece_has_unique_ids_too() -> None:
    event = Chunk(tool_calls=next(iter(SENT.target.dialect.stream(SENT).feed(call(0)))).tool_calls)  # type: ignore[union-attr]
    stream = UniqueStream(LocalStream([event]), UniqueCalls(HISTORY))
    assert ids(stream.first_parts()) not in ([], ["call_0"])
    assert (stream.over, aside_of(stream), [*stream.take(), *stream.conclude()]) == (True, None, [])
    stream.close()


def test_a_stream_of_the_clients_own_api_and_one_without_calls_are_returned_unchanged() -> None:
    stream = LocalStream([])
    request = chat_request(user("go"), tools=[tool("f")])
    plan = plan_calls(request, target("vllm"))
    own = replace(plan, calls=tuple([replace(each, sent=replace(each.sent, native=True)) for each in plan.calls]))
    assert isinstance(with_unique_ids(stream, plan, request), UniqueStream)
    assert with_unique_ids(stream, own, request) is stream
    assert with_unique_ids(stream, plan, chat_request(user("go"))) is stream
