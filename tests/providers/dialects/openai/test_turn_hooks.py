"""The results of the message hooks that reorder or complete turns. The hooks never change their input."""

from copy import deepcopy

from providers.dialects.openai.message_hooks import apply_hooks
from providers.dialects.openai.turn_hooks import calls_of, split_tool_results
from providers.json_types import JsonObject, JsonValue
from providers.profile import HookName
from tests.providers.dialects.openai.kit import target
from tests.support.looped import looped

TARGET = target("mistral")
USER: JsonObject = {"role": "user", "content": "q"}
OK: JsonObject = {"role": "assistant", "content": "OK"}
RESULT: JsonObject = {"role": "tool", "tool_call_id": "1", "content": "4"}


def model(content: JsonValue, **more: JsonValue) -> JsonObject:
    return {"role": "assistant", "content": content, **more}


def call(identity: str) -> JsonObject:
    return {"id": identity, "type": "function", "function": {"name": "f", "arguments": "{}"}}


TEXT: JsonObject = {"type": "text", "text": "4"}
IMAGE: JsonObject = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}


def result(content: JsonValue) -> JsonObject:
    return {**RESULT, "content": content}


def name(number: int) -> JsonObject:
    return {"type": "text", "text": f"[content {number} of the tools' results]"}


CALLING = model("", tool_calls=[call("1")])


@looped(
    ("name", "given", "expected"),
    [
        ("answered_results", [USER, CALLING, RESULT, USER], [USER, CALLING, RESULT, OK, USER]),
        ("answered_results", [USER, CALLING, RESULT, model("a"), USER], [USER, CALLING, RESULT, model("a"), USER]),
        ("prefixed_last_turn", [USER, model("Once")], [USER, model("Once", prefix=True)]),
        ("prefixed_last_turn", [model("Once"), USER], [model("Once"), USER]),
        ("prefixed_last_turn", [USER, CALLING], [USER, CALLING]),
        (
            "media_after_results",
            [CALLING, result([TEXT, IMAGE]), result("4"), result([IMAGE]), USER],
            [
                CALLING,
                result([TEXT, name(1)]),
                result("4"),
                result([name(2)]),
                {"role": "user", "content": [name(1), IMAGE, name(2), IMAGE]},
                USER,
            ],
        ),
        ("media_after_results", [CALLING, result([TEXT])], [CALLING, result([TEXT])]),
        (
            "reasoning_on_turns",
            [USER, model("a"), model("b", reasoning_content="hm"), CALLING],
            [
                USER,
                model("a", reasoning_content=" "),
                model("b", reasoning_content="hm"),
                {**CALLING, "reasoning_content": " "},
            ],
        ),
    ],
)
def test_turns_are_put_into_the_order_that_the_vendor_wants(
    name: HookName, given: list[JsonObject], expected: list[JsonObject]
) -> None:
    before = deepcopy(given)
    assert apply_hooks(TARGET, (name,), given) == expected
    assert given == before
    assert apply_hooks(TARGET, (name,), expected) == expected


def test_many_calls_are_split_in_linear_time() -> None:
    calls: list[JsonValue] = [call(str(number)) for number in range(20_000)]
    results = [{**RESULT, "tool_call_id": str(number)} for number in range(20_000)]
    split = split_tool_results(TARGET, [USER, model("", tool_calls=calls), *results])
    assert len(split) == 40_001
    assert calls_of(split[1]) == [call("0")]


def test_calls_are_read_without_trust_in_their_form() -> None:
    assert calls_of({"tool_calls": [call("1"), "x", None]}) == [call("1")]
    assert calls_of({"tool_calls": "x"}) == []
