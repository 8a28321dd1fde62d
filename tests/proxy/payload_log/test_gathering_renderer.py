"""The client's bytes equal the other renderer's bytes, and the content sent to the client is gathered once."""

from typing import cast

import orjson

from providers.completion import Choice, Chunk, Completion, TextRun, Usage
from proxy.errors import internal_error
from proxy.payload_log.gathering_renderer import GatheringRenderer
from proxy.payload_log.request_content import Allowance, LoggedContent
from proxy.telemetry.metrics import Metrics
from proxy.telemetry.observer_guard import ObserverGuard, OneGuard


def guard(metrics: Metrics | None = None) -> OneGuard:
    return ObserverGuard((metrics or Metrics()).observer_failed).of("payload_log", "req-1")


class Plain:
    """A renderer that renders runs of choice 0 at once, and everything as its text."""

    def completion(self, completion: Completion) -> bytes:
        return completion.choices[0].text.encode()

    def chunk(self, chunk: Chunk) -> bytes:
        return chunk.text.encode()

    def run(self, run: TextRun) -> bytes | None:
        return None if run.index else b"".join(run.literals)

    def usage(self, usage: Usage) -> bytes:
        return b"usage"

    def end(self) -> bytes:
        return b"end"

    def error(self, facts: object) -> bytes:
        return b"error"


def test_a_run_that_is_rendered_in_chunks_is_gathered_as_chunks() -> None:
    content = LoggedContent(Allowance(10**6), b"", 1024)
    renderer = GatheringRenderer(Plain(), content, guard())
    whole, pieces = TextRun(0, [b"a", b"b"], {}, 2, 2), TextRun(1, [b"c"], {}, 1, 1)
    assert renderer.run(whole) == b"ab"
    assert renderer.run(pieces) is None
    assert [renderer.chunk(chunk) for chunk in pieces.chunks()] == [b"c"]
    assert (renderer.usage(Usage(1, 1)), renderer.end()) == (b"usage", b"end")
    assert renderer.error(internal_error().facts) == b"error"
    assert renderer.completion(Completion((Choice(0, "x", "stop"),), None)) == b"x"
    assert orjson.loads(content.streamed() or b"") == [{"index": 0, "text": "ab"}, {"index": 1, "text": "c"}]


def test_after_a_fault_the_client_is_sent_all_and_nothing_more_is_gathered() -> None:
    content, metrics = LoggedContent(Allowance(10**6), b"", 1024), Metrics()
    renderer = GatheringRenderer(Blank(), content, guard(metrics))
    runs = [TextRun(0, [text], {}, 1, 1) for text in (b"a", cast(bytes, 7), b"c")]
    assert [renderer.run(runs[0]), renderer.chunk(Chunk(0, "b"))] == [b"-", b"b"]
    assert [renderer.run(runs[1]), renderer.run(runs[2]), renderer.chunk(Chunk(0, "d"))] == [b"-", b"-", b"d"]
    assert orjson.loads(content.streamed() or b"") == [{"index": 0, "text": "ab"}]
    assert b'observer_failures_total{observer="payload_log"} 1.0' in metrics.render()


class Blank(Plain):
    """A renderer that renders each run as a dash."""

    def run(self, run: TextRun) -> bytes | None:
        return b"-"
