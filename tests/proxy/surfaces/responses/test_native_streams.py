"""OpenAI's recorded streams through its dialect and the surface: the client gets the vendor's stream."""

import orjson

from providers.completion import Chunk
from providers.framing.parse_sse import SSEParser
from tests.providers.dialects.kit import streamed as decoded
from tests.providers.dialects.responses.kit import FIXTURES, STREAMED, WHOLE
from tests.proxy.surfaces.responses.kit import rendering
from tests.support.looped import looped

STREAMS = sorted(path.stem for path in (FIXTURES / "recorded").glob("*.sse") if path.stem != "error")


def frames(stream: bytes) -> list[tuple[str, object]]:
    return [(name, orjson.loads(data)) for name, data in SSEParser().feed(stream)]


def as_ours(name: str, event: object) -> object:
    """Return an event with the fields that the gateway overwrites."""
    assert isinstance(event, dict)
    held = event.get("response")
    if not isinstance(held, dict):
        return event
    return {**event, "response": {**held, "model": "openai/gpt-x", "store": True, "previous_response_id": None}}


@looped("name", STREAMS)
def test_a_recorded_stream_passes_event_by_event(name: str) -> None:
    data = (FIXTURES / "recorded" / f"{name}.sse").read_bytes()
    renderer = rendering(stream=True)
    shown = b""
    for event in decoded(STREAMED, data):
        shown += renderer.chunk(event) if isinstance(event, Chunk) else renderer.usage(event)
    shown += renderer.end()
    expected = [(kind, as_ours(kind, event)) for kind, event in frames(data)]
    assert frames(shown) == expected
    assert shown.isascii()
    kept = renderer.stored()
    assert kept is not None
    last = expected[-1][1]
    assert isinstance(last, dict)
    assert kept.response == last["response"]


@looped("name", sorted(path.stem for path in (FIXTURES / "recorded").glob("*.json")))
def test_a_recorded_answer_passes_as_it_is(name: str) -> None:
    data = (FIXTURES / "recorded" / f"{name}.json").read_bytes()
    target = WHOLE.target
    shown = rendering().completion(target.dialect.decode(WHOLE, data))
    expected = as_ours("", {"response": orjson.loads(data)})
    assert isinstance(expected, dict)
    assert orjson.loads(shown) == expected["response"]
