"""The strings of a response's JSON that guards see."""

from base64 import b64encode

from providers.json_types import JsonValue
from proxy.plugins.request_strings.answer_strings import strings_of
from tests.support.looped import looped

SAID = "say it: 123-45-6789"
SEAL, HEX = "A" * 64, "0a" * 16
PICTURE = b64encode(b"\x89PNG" + bytes(range(256))).decode()
CUT = f"{PICTURE[:62]}\n{PICTURE[62:]}"
KEYS = ("id", "type", "data", "signature", "status", "finish_reason", "url", "file_id", "role", "encrypted_content")


@looped("kind", ["answer", "part", "spoken", "native answer"])
def test_no_key_hides_a_text_by_its_name(kind: str) -> None:
    for key in KEYS:
        assert [*strings_of({key: SAID, "content": [{key: [SAID]}]}, kind)] == [SAID, SAID], key


@looped(
    ("value", "kind", "texts"),
    [
        (None, "answer", []),
        ({"mine": 1, "a": ["b", {"c": None}]}, "answer", ["mine", "a", "b", "c"]),
        ({"id": HEX}, "answer", []),
        ({"id": f"chatcmpl-{HEX}"}, "answer", []),
        ({"id": "swordfish"}, "answer", ["swordfish"]),
        ({"signature": SEAL}, "answer", [SEAL]),
        ({"type": "thinking", "signature": SEAL}, "answer", []),
        ({"type": "text", "signature": SEAL}, "answer", [SEAL]),
        ({"type": "reasoning.encrypted", "data": SEAL, "id": "rs_1", "format": "openai-responses-v1"}, "part", []),
        ({"type": "reasoning.encrypted", "data": "swordfish"}, "part", ["swordfish"]),
        ({"finish_reason": "MAX_TOKENS", "stop_reason": "end_turn", "reason": "max_output_tokens"}, "answer", []),
        ({"stop_reason": "odd"}, "answer", ["odd"]),
        ({"role": "assistant", "status": "completed"}, "answer", []),
        ({"role": "odd"}, "answer", ["odd"]),
        ({"url": f"data:image/png;base64,{PICTURE}"}, "answer", []),
        ({"url": f"data:image/png;base64,{b64encode(SAID.encode() * 4).decode()}"}, "answer", [SAID * 4]),
        ({"url": "data:image/png;base64,no base64!"}, "answer", ["data:image/png;base64,no base64!"]),
        ({"content": PICTURE}, "answer", []),
        ({"content": CUT}, "answer", []),
        ({"content": f"{PICTURE} {SAID}"}, "answer", [f"{PICTURE} {SAID}"]),
        ({"content": SEAL}, "answer", [SEAL]),
        ({"data": PICTURE, "id": "audio_1"}, "spoken", []),
        ({"data": "swordfish123"}, "spoken", ["swordfish123"]),
        ({"model": "any", "id": "msg_1", "content": [{"type": "tool_use", "id": "toolu_1"}]}, "native answer", []),
        ({"content": [{"type": "tool_use", "input": {"id": "toolu_1"}}]}, "native answer", ["toolu_1"]),
    ],
)
def test_what_is_not_shown_is_known_by_its_place_and_its_form(value: JsonValue, kind: str, texts: list[str]) -> None:
    assert [*strings_of(value, kind)] == texts
