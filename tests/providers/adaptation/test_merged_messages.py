"""The texts of several messages stay separate when the messages are merged."""

from providers.adaptation.merged_messages import apart, merged_contents
from providers.json_types import JsonValue
from tests.support.looped import looped


def text(said: str, **more: JsonValue) -> JsonValue:
    return {"type": "text", "text": said, **more}


IMAGE: JsonValue = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}


@looped(
    ("contents", "merged"),
    [
        (["A", "B", "C"], "A\n\nB\n\nC"),
        (["A", "", None, "B"], "A\n\nB"),
        (["A"], "A"),
        (["A", [text("B1"), text("B2")], "C"], [text("A"), text("\n\nB1"), text("B2"), text("\n\nC")]),
        ([[IMAGE], "A", [IMAGE]], [IMAGE, text("A"), IMAGE]),
        ([[text("A", cache_control={})], "B"], [text("A", cache_control={}), text("\n\nB")]),
    ],
)
def test_contents_are_merged_with_a_blank_line_between_texts(contents: list[JsonValue], merged: JsonValue) -> None:
    assert merged_contents(contents) == merged


def test_parts_are_kept_apart_from_a_text_before_them_alone() -> None:
    assert apart([text("A")], [text("B"), text("C")]) == [text("\n\nB"), text("C")]
    assert apart([], [text("B")]) == apart([IMAGE], [text("B")]) == [text("B")]
    assert apart([text("A")], [IMAGE]) == [IMAGE]
