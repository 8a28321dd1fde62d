"""OpenAI's own responses, as they are shown and stored."""

from typing import Any

import orjson
import pytest

from providers.completion import Chunk, Completion, NativeEvent
from providers.json_types import JsonObject, JsonValue
from proxy.errors import ErrorFacts
from tests.proxy.surfaces.responses.kit import USAGE, events, rendering, typed

BROKEN = ErrorFacts(502, "server_error", "upstream_error", "The upstream closed the connection.")
ITEM: JsonObject = typed("web_search_call", id="ws_1", status="completed", action={"type": "search", "queries": ["é"]})


def response(status: str, *items: JsonValue) -> JsonObject:
    return {"id": "resp_68cf", "model": "gpt-x-2026", "status": status, "output": [*items], "store": False, "new": 1}


def sent(kind: str, number: int, **members: JsonValue) -> Chunk:
    return Chunk(native=NativeEvent(kind, orjson.dumps({"type": kind, "sequence_number": number, **members})))


CREATED = sent("response.created", 0, response=response("in_progress"))
DELTA = sent("response.output_text.delta", 1, delta="a", obfuscation="xyz")
DONE = sent("response.completed", 2, response=response("completed", ITEM))


def test_events_pass_with_the_model_as_the_table_has_it() -> None:
    renderer = rendering(stream=True, previous_response_id=None)
    stream = renderer.chunk(CREATED) + renderer.chunk(DELTA) + renderer.chunk(Chunk(text="a")) + renderer.chunk(DONE)
    stream += renderer.chunk(Chunk(finish_reason="stop")) + renderer.usage(USAGE) + renderer.end()
    found = events(stream)
    assert [it["type"] for it in found] == ["response.created", "response.output_text.delta", "response.completed"]
    assert found[1] == {"type": "response.output_text.delta", "sequence_number": 1, "delta": "a", "obfuscation": "xyz"}
    assert found[2]["response"] == {
        **response("completed", ITEM),
        "model": "openai/gpt-x",
        "store": True,
        "previous_response_id": None,
    }


def test_what_is_no_character_in_an_answer_or_an_event_is_the_replacement_character() -> None:
    whole = rendering().completion(Completion((), None, native=b'{"id":"resp_\xff","output":[]}'))
    assert orjson.loads(whole)["id"] == "resp_\ufffd"
    begun = b'{"type":"response.created","sequence_number":0,"response":{"id":"\\ud83d"}}'
    shown = rendering(stream=True).chunk(Chunk(native=NativeEvent("response.created", begun)))
    assert orjson.loads(shown.split(b"data: ")[1])["response"]["id"] == "\ufffd"


def test_the_vendor_s_response_is_stored_under_its_own_id() -> None:
    renderer = rendering(stream=True)
    for chunk in (CREATED, DELTA, DONE):
        renderer.chunk(chunk)
    assert renderer.stored() is None
    renderer.end()
    kept = renderer.stored()
    assert kept is not None
    assert kept.id == "resp_68cf"
    assert kept.response["output"] == [ITEM]
    assert kept.input[0]["id"] == "msg_u1_i0"


def test_a_whole_answer_is_the_vendor_s_own() -> None:
    renderer = rendering(store=False)
    body = renderer.completion(Completion((), USAGE, native=orjson.dumps(response("completed", ITEM))))
    assert orjson.loads(body) == {**response("completed", ITEM), "model": "openai/gpt-x", "previous_response_id": None}
    assert renderer.stored() is None


@pytest.mark.parametrize("data", ['{"type":"x","d":"\u2028"}'.encode(), b'{"type":"x",\n"d":"\xe2\x80\xa8"}'])
def test_an_event_is_one_line_of_ascii(data: bytes) -> None:
    shown = rendering(stream=True).chunk(Chunk(native=NativeEvent("x", data)))
    assert shown == b'event: x\ndata: {"type":"x","d":"\\u2028"}\n\n'


def at_the_end(shown: bytes) -> list[Any]:  # Any: our own JSON
    """Return the events `error` and `response.failed`, which must be the only ones."""
    assert [line for line in shown.splitlines() if line.startswith(b"event")] == [
        b"event: error",
        b"event: response.failed",
    ]
    return [orjson.loads(line[6:]) for line in shown.splitlines() if line.startswith(b"data: ")]


def test_a_failure_of_the_vendor_s_is_shown_as_it_is_once() -> None:
    renderer = rendering(stream=True)
    renderer.chunk(CREATED)
    failed = sent("response.failed", 1, response={**response("failed"), "error": {"code": "x", "message": "y"}})
    assert renderer.chunk(failed) == b""
    error, event = at_the_end(renderer.error(BROKEN))
    assert (error["type"], error["sequence_number"], event["sequence_number"]) == ("error", 1, 2)
    assert event["response"]["error"] == {"code": "x", "message": "y"}
    assert event["response"]["model"] == "openai/gpt-x"
    assert renderer.stored() is None


@pytest.mark.parametrize("given", [(), (sent("error", 1, code="x", message="y"),)])
def test_a_stream_that_breaks_ends_in_a_failure_of_its_response(given: tuple[Chunk, ...]) -> None:
    renderer = rendering(stream=True)
    stream = b"".join([renderer.chunk(chunk) for chunk in (CREATED, DELTA, *given)])
    error, last = at_the_end(renderer.error(BROKEN))
    assert len(events(stream)) == 2
    assert [error["sequence_number"], last["sequence_number"]] == [2, 3]
    assert last["type"] == "response.failed"
    assert last["response"]["id"] == "resp_68cf"
    assert last["response"]["error"]["code"] == "server_error"
    assert renderer.stored() is None
