"""Items while they are written: their events, and the items that remain."""

from collections.abc import Callable

import pytest

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.response.cited_texts import CitedTexts
from proxy.surfaces.responses.open_items import (
    CallItem,
    CustomCallItem,
    ImageItem,
    MessageItem,
    OpenItem,
    ReasoningItem,
    SummaryItem,
)
from proxy.surfaces.responses.write_events import EventWriter
from tests.proxy.surfaces.responses.kit import events, typed

CALLED: JsonObject = {"call_id": "c", "name": "f"}


def kinds(found: list[JsonObject]) -> list[str]:
    return [str(event["type"]).removeprefix("response.") for event in found]


def message() -> MessageItem:
    return MessageItem(EventWriter(), "msg_1", 0, CitedTexts())


def test_a_message_opens_its_part_with_its_first_text() -> None:
    item = message()
    found = events(item.open() + item.text("a", []) + item.text("b", []) + item.close("completed"))
    assert kinds(found) == [
        "output_item.added",
        "content_part.added",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
        "content_part.done",
        "output_item.done",
    ]
    assert found[0]["item"] == {
        "id": "msg_1",
        "type": "message",
        "status": "in_progress",
        "role": "assistant",
        "content": [],
    }
    part = typed("output_text", text="ab", annotations=[], logprobs=[])
    assert found[5]["part"] == part
    assert item.item["content"] == [part]
    assert (item.head, item.size()) == (b"", 0)


def test_a_refusal_after_text_is_a_part_of_its_own() -> None:
    item = message()
    found = events(item.open() + item.text("a", []) + item.refusal("no") + item.close("completed"))
    assert [event["content_index"] for event in found if "part" in event] == [0, 0, 1, 1]
    assert item.item["content"] == [
        typed("output_text", text="a", annotations=[], logprobs=[]),
        typed("refusal", refusal="no"),
    ]


def test_annotations_and_log_probabilities_belong_to_their_part() -> None:
    item = message()
    odds: list[JsonValue] = [{"token": "a", "logprob": -1.0}]
    cited = typed("url_citation", url="https://x")
    found = events(item.open() + item.text("a", odds) + item.annotate([cited, cited]) + item.close("completed"))
    added = [event for event in found if event["type"] == "response.output_text.annotation.added"]
    assert [event["annotation_index"] for event in added] == [0, 1]
    assert item.item["content"] == [typed("output_text", text="a", annotations=[cited, cited], logprobs=odds)]


def test_a_message_that_nobody_spoke_is_empty() -> None:
    item = message()
    assert kinds(events(item.open() + item.close("incomplete"))) == ["output_item.added", "output_item.done"]
    assert (item.item["content"], item.item["status"]) == ([], "incomplete")


@pytest.mark.parametrize(
    ("make", "delta", "shown"),
    [
        (ReasoningItem, "reasoning_text", {"summary": [], "content": [typed("reasoning_text", text="ab")]}),
        (SummaryItem, "reasoning_summary_text", {"summary": [typed("summary_text", text="ab")]}),
    ],
)
def test_thinking_is_shown_raw_or_as_a_summary(
    make: Callable[[EventWriter, str, int], ReasoningItem], delta: str, shown: JsonObject
) -> None:
    item = make(EventWriter(), "rs_1", 0)
    found = events(item.open() + item.text("a") + item.text("b") + item.close("completed"))
    assert kinds(found)[2:4] == [f"{delta}.delta"] * 2
    assert item.item == {"id": "rs_1", "type": "reasoning", "status": "completed", **shown}


def test_hidden_thinking_has_no_part() -> None:
    item = SummaryItem(EventWriter(), "rs_1", 0)
    item.details.add([typed("reasoning.encrypted", data="x")])
    assert kinds(events(item.open() + item.close("completed"))) == ["output_item.added", "output_item.done"]
    assert item.item["summary"] == []
    assert item.item["encrypted_content"]


@pytest.mark.parametrize(
    ("make", "held", "delta", "nothing"),
    [(CallItem, "arguments", "function_call_arguments", "{}"), (CustomCallItem, "input", "custom_tool_call_input", "")],
)
def test_a_call_comes_piece_by_piece(
    make: Callable[[EventWriter, str, int, int, JsonObject], CallItem], held: str, delta: str, nothing: str
) -> None:
    item = make(EventWriter(), "fc_1", 0, 0, CALLED)
    found = events(
        item.open() + item.add("a", None) + item.add("", None) + item.add("b", {"x": 1}) + item.close("completed")
    )
    assert kinds(found)[1:-1] == [f"{delta}.delta", f"{delta}.delta", f"{delta}.done"]
    assert found[3][held] == "ab"
    assert (item.item[held], item.item["x"], item.item["call_id"]) == ("ab", 1, "c")
    empty = make(EventWriter(), "fc_1", 0, 0, CALLED)
    empty.open()
    empty.close("completed")
    assert empty.item[held] == nothing


def test_a_picture_comes_whole() -> None:
    item = ImageItem(EventWriter(), "ig_1", 3, "AAAA")
    found = events(item.open() + item.close("completed"))
    assert [event["item"]["result"] for event in found] == [None, "AAAA"]  # type: ignore[index,call-overload]
    assert [event["output_index"] for event in found] == [3, 3]


def test_an_item_of_no_kind_has_no_form() -> None:
    with pytest.raises(NotImplementedError):
        OpenItem(EventWriter(), "x", 0).open()
