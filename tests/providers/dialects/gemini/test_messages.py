"""Conversations in Gemini's API."""

from collections.abc import Callable
from functools import partial

from providers.dialects.shared.thought_signatures import SKIP_SIGNATURE, pack_call_id
from providers.json_types import JsonObject, JsonValue
from tests.providers.dialects.gemini.kit import DIALECT, OLD, SAID, SIGNATURE, TARGET, body_of, config_of, contents_of
from tests.providers.dialects.gemini.turns import calls, result, says, text, turn
from tests.providers.dialects.kit import chat_request, refusal_for, sent_for, target_of, text_request, user
from tests.support.cpu_growth import growth
from tests.support.looped import looped

PNG = "data:image/png;base64,iVBORw0KGgo="
INLINE: JsonObject = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


def image(url: JsonValue, **more: JsonValue) -> JsonObject:
    return user([{"type": "image_url", "image_url": {"url": url, **more}}])


def test_turns_of_one_role_are_joined_and_blank_ones_left_out() -> None:
    assert contents_of(
        user("one"), user([{"type": "text", "text": "two"}, {"type": "text", "text": " \n"}]), says("three"), says("")
    ) == [turn("user", text("one"), text("two")), turn("model", text("three"))]


def test_instructions_stand_apart() -> None:
    body = body_of(chat_request({"role": "system", "content": "Be kind."}, user("hi")))
    assert body["systemInstruction"] == {"parts": [text("Be kind.")]}
    assert body["contents"] == [turn("user", text("hi"))]


def test_an_instruction_from_the_middle_is_named_as_moved() -> None:
    sent = DIALECT.encode(chat_request(user("hi"), {"role": "developer", "content": "Be brief."}), TARGET)
    assert sent.emulated == ("messages",)


def test_instructions_alone_are_a_turn() -> None:
    request = chat_request({"role": "system", "content": "Write a haiku."})
    assert body_of(request) == {"contents": [turn("user", text("Write a haiku."))]}
    assert DIALECT.encode(request, TARGET).emulated == ("messages",)


def test_a_refusal_of_the_model_is_text() -> None:
    expected = [turn("user", text("a")), turn("model", text("No.")), turn("user", text("b"))]
    member: JsonObject = {"role": "assistant", "content": None, "refusal": "No."}
    part: JsonObject = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    for said in (member, part):
        assert contents_of(user("a"), said, user("b")) == expected


def test_calls_and_results_go_out_with_ids_and_signatures() -> None:
    first, second = pack_call_id("fc-1", SIGNATURE), "fc-2"
    contents = contents_of(
        user("weather?"),
        calls((first, "get_weather", '{"city":"Oslo"}'), (second, "get_weather", ""), content="I look."),
        result(second, "4 °C"),
        result(first, [{"type": "text", "text": "3 °C"}]),
        user("and now?"),
    )
    assert contents == [
        turn("user", text("weather?")),
        turn(
            "model",
            text("I look."),
            {
                "functionCall": {"name": "get_weather", "args": {"city": "Oslo"}, "id": "fc-1"},
                "thoughtSignature": SIGNATURE,
            },
            {"functionCall": {"name": "get_weather", "args": {}, "id": "fc-2"}},
        ),
        turn(
            "user",
            {"functionResponse": {"name": "get_weather", "response": {"output": "3 °C"}, "id": "fc-1"}},
            {"functionResponse": {"name": "get_weather", "response": {"output": "4 °C"}, "id": "fc-2"}},
        ),
        turn("user", text("and now?")),
    ]


def test_older_models_get_no_ids_and_keep_the_signature_of_the_text() -> None:
    call = pack_call_id("call_1", None, SAID)
    contents = contents_of(
        user("weather?"), calls((call, "now", "{}"), content="I look."), result(call, "noon"), target=OLD
    )
    assert contents == [
        turn("user", text("weather?")),
        turn("model", text("I look.", thoughtSignature=SAID), {"functionCall": {"name": "now", "args": {}}}),
        turn("user", {"functionResponse": {"name": "now", "response": {"output": "noon"}}}),
    ]


def test_a_foreign_call_gets_the_documented_signature_once_a_turn() -> None:
    contents = contents_of(
        user("hi"), calls(("call_1", "f", "{}"), ("call_2", "g", "{}")), result("call_1", "a"), result("call_2", "b")
    )
    assert contents[1] == turn(  # type: ignore[index]  # a list of turns
        "model",
        {"functionCall": {"name": "f", "args": {}, "id": "call_1"}, "thoughtSignature": SKIP_SIGNATURE},
        {"functionCall": {"name": "g", "args": {}, "id": "call_2"}},
    )


def test_signatures_are_taken_from_where_the_vendors_own_endpoint_puts_them() -> None:
    extra: JsonObject = {"google": {"thought_signature": SIGNATURE}}
    call: JsonObject = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message: JsonObject = {"role": "assistant", "content": None, "tool_calls": [{**call, "extra_content": extra}]}
    said: JsonObject = {"role": "assistant", "content": "I see.", "extra_content": extra}
    contents = contents_of(user("hi"), said, user("go on"), message, result("a", "x"))
    assert contents[1] == turn("model", text("I see.", thoughtSignature=SIGNATURE))  # type: ignore[index]
    assert contents[3]["parts"][0]["thoughtSignature"] == SIGNATURE  # type: ignore[index,call-overload]


def test_names_of_called_functions_are_made_fit() -> None:
    contents = contents_of(user("hi"), calls(("a", "get weather", "{}")), result("a", "x"), target=OLD)
    assert contents[2] == turn(  # type: ignore[index]
        "user", {"functionResponse": {"name": "get_weather", "response": {"output": "x"}}}
    )


def test_an_image_in_a_result_goes_along() -> None:
    contents = contents_of(
        user("hi"),
        calls(("a", "look", "{}")),
        result("a", [{"type": "text", "text": "seen"}, {"type": "image_url", "image_url": {"url": PNG}}]),
    )
    assert contents[2:] == [  # type: ignore[index]
        turn(
            "user", {"functionResponse": {"name": "look", "response": {"output": "seen"}, "parts": [INLINE], "id": "a"}}
        )
    ]


def test_before_gemini_3_an_image_of_a_result_follows_in_a_turn_of_its_own() -> None:
    seen: JsonValue = [{"type": "text", "text": "seen"}, {"type": "image_url", "image_url": {"url": PNG}}]
    messages = (user("hi"), calls(("a", "look", "{}")), result("a", seen), user("and?"))
    contents = contents_of(*messages, target=OLD)
    assert contents[2:] == [  # type: ignore[index]
        turn("user", {"functionResponse": {"name": "look", "response": {"output": "seen"}}}),
        turn("user", text("Files that 'look' returned:"), INLINE, text("and?")),
    ]
    assert DIALECT.encode(chat_request(*messages), OLD).emulated == ("messages",)


def test_a_sound_of_a_result_follows_it_on_every_model() -> None:
    sound: JsonValue = [{"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}]
    contents = contents_of(user("hi"), calls(("a", "listen", "{}")), result("a", sound))
    assert contents[3] == turn(  # type: ignore[index]
        "user", text("Files that 'listen' returned:"), {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}}
    )


def test_the_texts_of_a_result_stand_on_lines_of_their_own() -> None:
    texts: JsonValue = [{"type": "text", "text": "A"}, {"type": "text", "text": "B"}]
    contents = contents_of(user("hi"), calls(("a", "look", "{}")), result("a", texts), target=OLD)
    assert contents[2] == turn("user", {"functionResponse": {"name": "look", "response": {"output": "A\nB"}}})  # type: ignore[index]


def test_a_failed_call_is_told_as_one() -> None:
    failed: JsonObject = {**result("a", "no such city"), "is_error": True}
    contents = contents_of(user("hi"), calls(("a", "look", "{}")), failed, target=OLD)
    assert contents[2] == turn(  # type: ignore[index]
        "user", {"functionResponse": {"name": "look", "response": {"error": "no such city"}}}
    )


def test_what_promises_nothing_is_left_out_and_named() -> None:
    marker: JsonObject = {"type": "ephemeral"}
    messages: tuple[JsonObject, ...] = (
        {"role": "user", "name": "ann", "content": [{"type": "text", "text": "hi", "cache_control": marker}]},
        {"role": "assistant", "content": "Yes?", "reasoning_content": "A greeting."},
        user("bye"),
    )
    sent = DIALECT.encode(chat_request(*messages), TARGET)
    assert sent.dropped == ("name", "cache_control", "thinking")
    assert body_of(chat_request(*messages))["contents"] == [
        turn("user", text("hi")),
        turn("model", text("Yes?")),
        turn("user", text("bye")),
    ]


def test_a_legacy_function_call_and_its_result_belong_together() -> None:
    call: JsonObject = {"role": "assistant", "content": None, "function_call": {"name": "now", "arguments": "{}"}}
    contents = contents_of(user("hi"), call, {"role": "function", "name": "now", "content": "noon"}, target=OLD)
    assert contents[1:] == [  # type: ignore[index]
        turn("model", {"functionCall": {"name": "now", "args": {}}}),
        turn("user", {"functionResponse": {"name": "now", "response": {"output": "noon"}}}),
    ]


def test_the_vendors_own_parts_go_back_to_it() -> None:
    code: JsonObject = {"language": "PYTHON", "code": "print(1)"}
    said: JsonObject = {"role": "assistant", "content": [{"type": "executableCode", "executableCode": code}]}
    assert contents_of(user("hi"), said, user("so?"))[1] == turn("model", {"executableCode": code})  # type: ignore[index]


def test_a_long_conversation_costs_time_in_proportion() -> None:
    def encoded(number: int) -> Callable[[], object]:
        said: list[JsonObject] = [user("hi")]
        for at in range(number):
            said += [calls((f"c{at}", "f", "{}")), result(f"c{at}", [{"type": "text", "text": "x"}])]
        parts: JsonValue = [{"type": "text", "text": "y"}] * number
        return partial(DIALECT.encode, chat_request(*said, user(parts)), TARGET)

    assert growth(encoded(2_500), encoded(10_000)) == ""


# Media --------------------------------------------------------------------------------------------------------------


def test_media_become_parts() -> None:
    sound: JsonObject = {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}}
    native: JsonObject = {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}}
    assert contents_of(image(PNG), user([sound])) == [turn("user", INLINE, native)]


@looped(
    ("details", "resolution"),
    [(["low"], "LOW"), (["high"], "HIGH"), (["low", "auto", "high"], "HIGH"), (["low", "low"], "LOW")],
)
def test_the_sharpest_detail_asked_for_holds_for_all_images(details: list[str], resolution: str) -> None:
    messages = [image(PNG, detail=detail) for detail in details]
    assert config_of(chat_request(*messages)) == {"mediaResolution": f"MEDIA_RESOLUTION_{resolution}"}
    assert config_of(chat_request(image(PNG, detail="auto"))) is None


@looped(
    ("messages", "code"),
    [
        ((user(" "),), "invalid_value"),
        (({"role": "function", "name": "f", "content": "x"},), "invalid_value"),
        (({"role": "critic", "content": "x"},), "unsupported_parameter"),
        (({**user("hi"), "mood": "glad"},), "unsupported_parameter"),
        ((user([{"type": "video", "video": {}}]),), "unsupported_parameter"),
        (({"role": "system", "content": [{"type": "image_url", "image_url": PNG}]},), "unsupported_parameter"),
        ((image(None),), "invalid_value"),
        ((image("s3://bucket/a.png"),), "unsupported_parameter"),
        (
            (user([{"type": "input_audio", "input_audio": {"data": "AA==", "format": "midi"}}]),),
            "unsupported_parameter",
        ),
        ((user("hi"), result("call_9", "x")), "invalid_value"),
        ((user("hi"), {"role": "tool", "content": "x"}), "invalid_value"),
    ],
)
def test_what_cannot_be_said_is_refused_by_its_place(messages: tuple[JsonObject, ...], code: str) -> None:
    refusal = refusal_for(chat_request(*messages), TARGET)
    assert (refusal.param, refusal.code) == ("messages", code)
    assert "messages" in refusal.message


def test_images_of_a_prompt_stand_where_their_markers_were() -> None:
    body = body_of(text_request("See <image>!", images=((PNG,),)))
    assert body["contents"] == [turn("user", text("See "), INLINE, text("!"))]


def test_an_image_of_a_prompt_that_cannot_be_sent_is_refused_under_its_own_name() -> None:
    assert refusal_for(text_request("<image>", images=(("data:image/tiff;base64,AA==",),)), TARGET).param == "images"


def test_a_document_s_name_is_named_where_it_is_left_out() -> None:
    file: JsonObject = {"file_data": "data:application/pdf;base64,AAAA"}
    for held, dropped in ((file, ()), ({**file, "filename": "x.pdf"}, ("filename",))):
        part: JsonObject = {"type": "file", "file": held}
        assert sent_for(chat_request(user([part])), target_of("gemini")).dropped == dropped
