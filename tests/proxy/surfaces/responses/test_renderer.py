"""Responses of the Responses API: non-streaming, streamed, broken and stored."""

import sys

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.completion import Choice, Chunk, Completion, Extras, ToolCall, ToolCallDelta
from providers.json_types import JsonObject
from proxy.errors import ErrorFacts
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.responses.responses_surface import RESPONSES
from proxy.surfaces.surface import Renderer
from tests.proxy.surfaces.kit import FACTS as CHAT_FACTS
from tests.proxy.surfaces.kit import converse
from tests.proxy.surfaces.responses.kit import (
    FACTS,
    USAGE,
    events,
    final,
    output,
    play,
    rendering,
    streamed,
    typed,
    whole,
)
from tests.support.looped import looped
from tests.support.not_none import not_none

END = Chunk(finish_reason="stop")
BROKEN = ErrorFacts(502, "server_error", "upstream_error", "The upstream closed the connection.")


def test_a_plain_stream_byte_for_byte_in_the_middle() -> None:
    renderer = rendering(stream=True)
    renderer.chunk(Chunk(text="a"))
    assert renderer.chunk(Chunk(text=' "é\u2028')) == (
        b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":5,'
        b'"item_id":"msg_u1_0","output_index":0,"content_index":0,"delta":" \\"\\u00e9\\u2028","logprobs":[]}\n\n'
    )
    assert renderer.chunk(Chunk(text="")) == b""


def test_a_stream_begins_and_ends_with_the_response() -> None:
    found = streamed(Chunk(text="a"), Chunk(text="b"), END, instructions="x")
    assert [str(event["type"]) for event in found] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert found[0]["response"] == found[1]["response"]
    begun = final(found[:1])
    assert (begun["status"], begun["output"], begun["instructions"]) == ("in_progress", [], "x")
    ended = final(found)
    assert (ended["status"], ended["id"], ended["model"]) == ("completed", "resp_u1", "openai/gpt-x")
    assert ended["usage"] == {
        "input_tokens": 6,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 8,
    }


@pytest.mark.parametrize(("reason", "why"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
def test_an_answer_that_was_cut_is_never_completed(reason: str, why: str) -> None:
    found = streamed(Chunk(text="a"), Chunk(finish_reason=reason))
    assert found[-1]["type"] == "response.incomplete"
    assert final(found)["incomplete_details"] == {"reason": why}
    assert whole(Completion((Choice(0, "a", reason),), USAGE))["status"] == "incomplete"


def test_what_the_vendor_says_of_the_end_stands_in_the_response() -> None:
    last = Chunk(finish_reason="stop", native_finish_reason="eos", matched_stop="\n", service_tier="flex")
    response = final(streamed(Chunk(text="a"), last))
    assert (response["native_finish_reason"], response["stop_reason"], response["service_tier"]) == (
        "eos",
        "\n",
        "flex",
    )


def test_an_answer_of_nothing_is_whole() -> None:
    assert output(final(streamed(END))) == []
    assert whole(Completion((Choice(0, "", "stop"),), None))["output"] == []


texts = st.text(max_size=5)
calls = st.lists(
    st.builds(ToolCall, st.just("c"), st.just("f"), texts, st.sampled_from(["function", "custom"])), max_size=3
)


@given(texts, st.none() | texts, calls, st.sampled_from(["stop", "length", "tool_calls"]), st.booleans())
def test_a_whole_answer_is_what_its_stream_ends_with(
    text: str, reasoning: str | None, called: list[ToolCall], reason: str, summary: bool
) -> None:
    fields: JsonObject = {"reasoning": {"summary": "auto"}} if summary else {}
    choice = Choice(0, text, reason, reasoning=reasoning, tool_calls=tuple(called))
    pieces = [Chunk(reasoning=letter) for letter in reasoning or ""] + [Chunk(text=letter) for letter in text]
    for index, each in enumerate(called):
        pieces.append(Chunk(tool_calls=(ToolCallDelta(index, each.id, each.name, "", each.kind),)))
        pieces += [Chunk(tool_calls=(ToolCallDelta(index, None, None, one, each.kind),)) for one in each.arguments]
    shown = whole(Completion((choice,), USAGE), **fields)
    assert shown == final(streamed(*pieces, Chunk(finish_reason=reason), **fields))


def test_members_of_a_whole_answer_that_have_no_common_form_are_kept() -> None:
    extras = Extras(message={"steps": [1]})
    completion = Completion((Choice(0, "a", "stop", extras=extras),), USAGE, service_tier="flex", extra={"cost": 1})
    response = whole(completion)
    assert (response["steps"], response["cost"], response["service_tier"]) == ([1], 1, "flex")


@looped("cut", range(6))
def test_a_stream_cut_anywhere_ends_in_a_failure_and_nothing_else(cut: int) -> None:
    chunks = (
        Chunk(reasoning="h"),
        Chunk(text="a"),
        Chunk(tool_calls=(ToolCallDelta(0, "c", "f", "{"),)),
        Chunk(tool_calls=(ToolCallDelta(1, "d", "g", "{"),)),
        Chunk(tool_calls=(ToolCallDelta(0, arguments="}"),)),
    )
    renderer = rendering(stream=True)
    found = events(b"".join([renderer.chunk(chunk) for chunk in chunks[:cut]]) + renderer.error(BROKEN))
    assert found[0]["type"] == "response.created"
    assert [event["type"] for event in found if str(event["type"]).split(".")[-1] in ("completed", "incomplete")] == []
    assert found[-1]["type"] == "response.failed"
    error = {"type": "server_error", "code": "server_error", "message": BROKEN.message, "param": None}
    told = {name: error[name] for name in ("code", "message", "param")}
    assert found[-2] == {"type": "error", "sequence_number": len(found) - 2, **told, "error": error}
    failed = final(found)
    assert (failed["status"], failed["usage"]) == ("failed", None)
    assert failed["error"] == {"code": "server_error", "message": "The upstream closed the connection."}
    assert renderer.stored() is None


@looped(
    ("code", "shown"),
    [
        ("rate_limit_exceeded", "rate_limit_exceeded"),
        ("context_length_exceeded", "context_length_exceeded"),
        ("insufficient_quota", "insufficient_quota"),
        ("overloaded", "server_error"),
        ("upstream_timeout", "server_error"),
    ],
)
def test_codes_that_clients_act_on_are_kept(code: str, shown: str) -> None:
    found = events(rendering(stream=True).error(ErrorFacts(500, "x", code, "m")))
    assert final(found)["error"] == {"code": shown, "message": "m"}


# Stored responses -----------------------------------------------------------------------------------------------------


def test_what_is_stored_is_what_the_client_got_with_its_own_items() -> None:
    item = typed("message", role="user", content="x")
    renderer = rendering(stream=True, input=[item, {**item, "id": "mine"}])
    found = events(play(renderer, Chunk(text="a"), END))
    kept = not_none(renderer.stored())
    assert (kept.id, kept.ancestors) == ("resp_u1", ())
    assert kept.input == ({**item, "id": "msg_u1_i0"}, {**item, "id": "mine"})
    assert orjson.loads(orjson.dumps(kept.response)) == final(found)


def test_a_whole_answer_is_stored_too_unless_the_client_forbids_it_and_nothing_before_it() -> None:
    renderer = rendering()
    assert renderer.stored() is None
    body = renderer.completion(Completion((Choice(0, "a", "length"),), USAGE))
    assert not_none(renderer.stored()).response == orjson.loads(body)
    renderer = rendering(stream=True, store=False)
    play(renderer, Chunk(text="a"), END)
    assert renderer.stored() is None


def test_a_request_of_another_form_is_answered_without_its_echoes() -> None:
    body = RESPONSES.renderer(converse(), FACTS).completion(Completion((Choice(0, "a", "stop"),), USAGE))
    assert orjson.loads(body)["status"] == "completed"


# The cost of a chunk --------------------------------------------------------------------------------------------------


def calls_of(renderer: Renderer, chunk: Chunk) -> int:
    """Return the number of Python and C calls for one plain chunk in the middle of a stream."""
    renderer.chunk(Chunk(text="a"))
    renderer.chunk(chunk)
    count = 0

    def profile(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        renderer.chunk(chunk)
    finally:
        sys.setprofile(None)
    return count


def test_a_plain_chunk_costs_no_more_calls_than_one_of_a_chat() -> None:
    chunk = Chunk(text=" word")
    chat = OPENAI.renderer(converse(stream=True), CHAT_FACTS)
    assert calls_of(rendering(stream=True), chunk) <= calls_of(chat, chunk) + 1


@pytest.mark.parametrize("text", ["hi", "a\ndata: b\n\nevent: c"])
def test_an_answer_that_could_not_be_stored_says_so_whole_and_streamed(text: str) -> None:
    whole = rendering()
    body = whole.completion(Completion((Choice(0, text, "stop"),), USAGE))
    assert orjson.loads(body)["store"] is True
    assert orjson.loads(whole.unstored(body)) == {**orjson.loads(body), "store": False}
    streamed = rendering(stream=True)
    begun = streamed.chunk(Chunk(text=text))
    streamed.chunk(Chunk(finish_reason="stop"))
    end = streamed.end()
    changed = streamed.unstored(end)
    assert begun
    assert changed == end.replace(b'"store":true', b'"store":false')
    assert changed != end
