"""Each string of a client's JSON."""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from providers.json_types import JsonValue
from proxy.errors import GatewayError
from proxy.plugins.request_strings.walk_strings import changed
from tests.support.cpu_growth import TIMES, growth
from tests.support.looped import looped

BYTES = b64encode(bytes(range(255))).decode()
PDF = b64encode(b"%PDF-" + bytes(range(256))).decode()
SOURCE: JsonValue = {"type": "base64", "media_type": "image/png", "data": BYTES}
SAID = "data: 123-45-6789"


@dataclass(slots=True)
class TextVisitor:
    """A visitor that notes each text, and changes it by `change`."""

    change: Callable[[str], str] = str
    texts: list[str] = field(default_factory=list)

    def take(self, text: str, key: str, place: str) -> str:
        self.texts.append(text)
        return self.change(text)

    def take_name(self, name: str, place: str) -> str:
        self.texts.append(name)
        return self.change(name)


def shown(value: JsonValue, kind: str = "free") -> list[str]:
    seen = TextVisitor()
    assert changed(value, "", "here", seen, kind) == value
    return seen.texts


KEYS = ("data", "name", "format", "detail", "status", "voice", "model", "required", "$ref", "ttl", "role", "type", "id")


@looped("key", [*KEYS, "signature", "media_type", "url", "file_data", "tool_call_id", "encrypted_content"])
def test_no_key_hides_a_text_by_its_name(key: str) -> None:
    assert shown({key: SAID}) == [SAID]
    assert shown({key: [SAID, {key: SAID}]}) == [SAID, SAID]


@looped(
    ("value", "kind", "texts"),
    [
        ({"role": "user", "content": "user"}, "message", ["user"]),
        ({"role": "nurse", "content": "a"}, "message", ["nurse", "a"]),
        ({"type": ["string", "null"], "format": "date"}, "free", []),
        ({"mine": {"content": "a"}}, "free", ["mine", "a"]),
        ({"a": 1, "b": None, "c": True}, "free", ["a", "b", "c"]),
        ({"tool_call_id": "call_1", "content": "a"}, "message", ["a"]),
        ({"tool_call_id": "call_1"}, "free", ["call_1"]),
        ({"content": [{"type": "input_audio", "input_audio": {"data": BYTES, "format": "wav"}}]}, "message", []),
        ({"content": [{"type": "file", "file": {"file_data": PDF, "filename": "f"}}]}, "message", ["f"]),
        ({"content": [{"type": "image_url", "image_url": f"data:image/png;base64,{BYTES}"}]}, "message", []),
        ({"input_audio": {"data": BYTES}}, "free", [BYTES]),
        ({"messages": [{"content": [{"source": {"type": "text", "data": BYTES}}]}]}, "native body", [BYTES]),
        ({"messages": [{"content": [{"source": SOURCE}]}]}, "native body", []),
        ({"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}, "message", ["f", "{}"]),
        ({"messages": [{"content": [{"type": "tool_use", "id": "1", "input": {"id": "2"}}]}]}, "native body", ["2"]),
    ],
)
def test_what_is_not_shown_is_known_by_its_place(value: JsonValue, kind: str, texts: list[str]) -> None:
    assert shown(value, kind) == texts


def test_texts_and_keys_are_replaced_where_they_stand() -> None:
    value: JsonValue = {"mine": ["a", {"type": "object", "required": ["b"]}], "url": "data:,x"}
    made = changed(value, "", "", TextVisitor(str.upper))
    assert made == {"MINE": ["A", {"type": "object", "required": ["B"]}], "url": "data:,X"}


def test_two_keys_that_become_one_are_refused() -> None:
    with pytest.raises(GatewayError) as caught:
        changed({"x": 1, "y": 2}, "", "here", TextVisitor(lambda _: "z"))
    assert "'here.y' cannot be read by the plugins" in caught.value.facts.message


def test_media_that_are_none_are_refused_by_their_place() -> None:
    value: JsonValue = {"content": [{"image_url": {"url": "data:image/png;base64,no base64!"}}]}
    with pytest.raises(GatewayError) as caught:
        changed(value, "", "messages[0]", TextVisitor(), "message")
    assert caught.value.facts.param == "messages[0].content[0].image_url.url"


def test_the_work_grows_with_the_request() -> None:
    def asked(size: int) -> JsonValue:
        parts: list[JsonValue] = [
            {"type": "text", "text": f"data:{number}", f"k{number}": {"$ref": "x", "url": f"data:,{number}"}}
            for number in range(size)
        ]
        return {"content": [*parts, {"image_url": f"data:image/png;base64,{BYTES * size}"}]}

    small, large = asked(1000), asked(1000 * TIMES)
    fault = growth(
        lambda: changed(small, "", "m", TextVisitor(), "message"),
        lambda: changed(large, "", "m", TextVisitor(), "message"),
    )
    assert fault == ""
