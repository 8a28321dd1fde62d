"""Strict reading of a request body."""

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from providers.mock.errors import MockError
from providers.mock.request import KNOWN_FIELDS, MAX_BODY, MAX_TEXT, MockLogprobs, MockRequest, parse
from providers.mock.script import MAX_MESSAGES, ScriptedTurn
from providers.request_fields import REQUEST_FIELDS
from tests.providers.mock.kit import refused
from tests.support.looped import looped

TEXT: JsonObject = {"model": "m", "prompt": "Say hi"}
CHAT: JsonObject = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def text_request(**more: JsonValue) -> MockRequest:
    return parse("/completions", orjson.dumps({**TEXT, **more}))


def chat_request(**more: JsonValue) -> MockRequest:
    return parse("/chat/completions", orjson.dumps({**CHAT, **more}))


@looped(
    ("prompt", "counts"),
    [("Say hi", [2]), ("", [0]), (["a b", "c"], [2, 1]), ([1, 2, 3], [3]), ([[1], [2, 3]], [1, 2])],
)
def test_all_four_forms_of_a_prompt_are_read(prompt: JsonValue, counts: list[int]) -> None:
    assert [len(one.tokens) for one in text_request(prompt=prompt).prompts] == counts


@looped("prompt", [None, 3, [], [[]], ["a", 1], [True], [-1], [1.5], [[1], "a"]])
def test_another_prompt_is_a_400(prompt: JsonValue) -> None:
    assert refused(text_request, prompt=prompt) == (400, "prompt")


def test_a_conversation_is_read_whole_and_the_last_user_message_is_repeated() -> None:
    request = chat_request(
        messages=[
            {"role": "system", "content": "Be kind."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "x"}}],
            },
            {"role": "assistant", "content": None},
        ]
    )
    assert request.prompts[0].text == "system: Be kind.\nuser: one\nassistant: "
    assert request.prompts[0].repeated == "one"
    assert len(request.prompts[0].tokens) == 4


def test_without_a_user_the_last_message_is_repeated() -> None:
    messages: JsonValue = [{"role": "developer", "content": "Be kind."}, {"role": "system", "content": "Be brief."}]
    assert chat_request(messages=messages).prompts[0].repeated == "Be brief."


@looped("messages", [None, [], ["hi"], [{"content": "hi"}], [{"role": "user", "content": 3}]])
def test_another_conversation_is_a_400(messages: JsonValue) -> None:
    assert refused(chat_request, messages=messages) == (400, "messages")


@looped(
    ("more", "expected"),
    [
        ({}, None),
        ({"logprobs": False}, None),
        ({"logprobs": 0}, MockLogprobs(0, legacy=True)),
        ({"logprobs": 5}, MockLogprobs(5, legacy=True)),
        ({"logprobs": True}, MockLogprobs(0, legacy=False)),
        ({"logprobs": True, "top_logprobs": 20}, MockLogprobs(20, legacy=False)),
    ],
)
def test_log_probabilities_follow_the_type_of_the_field(more: JsonObject, expected: MockLogprobs | None) -> None:
    assert text_request(**more).logprobs == expected


def test_the_newer_name_of_the_limit_wins() -> None:
    assert chat_request(max_tokens=5, max_completion_tokens=3).limit == 3
    assert chat_request(max_tokens=5).limit == 5
    assert chat_request().limit is None


def test_settings_of_sampling_are_accepted() -> None:
    assert text_request(temperature=0.3, top_p=0.5, top_k=3, logit_bias={"5": 1}, user="u").n == 1


@looped(
    ("more", "param"),
    [
        ({"strange": 1}, "strange"),
        ({"messages": []}, "messages"),
        ({"model": None}, "model"),
        ({"n": 0}, "n"),
        ({"n": 3, "best_of": 2}, "best_of"),
        ({"best_of": 2, "stream": True}, "best_of"),
        ({"stream_options": {}}, "stream_options"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logprobs": 6}, "logprobs"),
        ({"logprobs": "yes"}, "logprobs"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"stop": [""]}, "stop"),
        ({"seed": 1.5}, "seed"),
        ({"guided_grammar": "x"}, "guided_grammar"),
    ],
)
def test_a_bad_field_is_a_400_that_names_it(more: JsonObject, param: str) -> None:
    assert refused(text_request, **more) == (400, param)


def test_only_text_is_spoken() -> None:
    assert chat_request(modalities=["text"]).chat
    assert refused(chat_request, modalities=["text", "audio"]) == (400, "modalities")


@looped("body", [b"", b"{", b"[]", b"\xff", b"[" * 3000])
def test_a_body_that_is_no_object_is_a_400(body: bytes) -> None:
    assert refused(parse, "/completions", body) == (400, None)


def test_an_unknown_path_is_a_404() -> None:
    assert refused(parse, "/embeddings", b"{}") == (404, None)


def test_the_mock_calls_fields_what_clients_call_them() -> None:
    spellings = {name for field in REQUEST_FIELDS for name in (field.name, *field.aliases)}
    assert {name for known in KNOWN_FIELDS.values() for name in known} - {"safety_identifier", "store"} <= spellings


SCRIPT: JsonObject = {"model": "slow-1+script", "messages": [{"role": "user", "content": '```script\n["Hi."]\n```'}]}


def test_a_model_that_plays_scripts_reads_the_turn_and_estimates_the_prompt() -> None:
    request = chat_request(**SCRIPT)
    assert request.turn == ScriptedTurn("", "Hi.", ())
    assert (request.prompts[0].tokens, request.prompts[0].size) == ((), len("user: ```script\n['Hi.']\n```") // 4)
    assert chat_request(**{**SCRIPT, "model": "m"}).turn is None
    assert chat_request(model="script").turn is None


def test_a_constraint_on_the_text_comes_before_a_script_and_a_script_before_a_forced_call() -> None:
    constrained = chat_request(**SCRIPT, response_format={"type": "json_object"})
    assert (constrained.turn, constrained.options) == (None, ('{"answer":"text"}',))
    tools: JsonValue = [{"type": "function", "function": {"name": "f"}}]
    forced = chat_request(**SCRIPT, tools=tools, tool_choice="required")
    assert (forced.turn, forced.tool) == (ScriptedTurn("", "Hi.", ()), None)


def overflows(path: str, body: JsonObject) -> bool:
    try:
        parse(path, orjson.dumps(body))
    except MockError as error:
        return error.code == "context_length_exceeded"
    return False


def test_what_is_made_into_tokens_and_what_constrains_an_answer_is_shorter_than_what_is_only_read() -> None:
    long = "a" * (MAX_TEXT + 1)
    tools: JsonValue = [{"type": "function", "function": {"name": "f", "description": long}}]
    assert overflows("/chat/completions", {**CHAT, "messages": [{"role": "user", "content": long}]})
    assert overflows("/completions", {**TEXT, "prompt": long})
    assert not overflows("/chat/completions", {**CHAT, "tools": tools, "tool_choice": "auto"})
    assert overflows("/chat/completions", {**CHAT, "tools": tools, "tool_choice": "required"})
    assert overflows("/chat/completions", {**CHAT, "tools": tools, "response_format": {"type": "json_object"}})


def test_a_conversation_with_a_script_may_be_longer() -> None:
    script = SCRIPT["messages"]
    assert isinstance(script, list)
    messages: list[JsonValue] = [{"role": "system", "content": "a" * (MAX_TEXT + 1)}, *script]
    assert not overflows("/chat/completions", {"model": "script", "messages": messages})
    messages.append({"role": "system", "content": "a" * MAX_BODY})
    assert overflows("/chat/completions", {"model": "script", "messages": messages})


def test_the_messages_of_a_conversation_are_limited() -> None:
    with pytest.raises(MockError, match=str(MAX_MESSAGES)):
        chat_request(messages=[{"role": "user", "content": "a"}] * (MAX_MESSAGES + 1))
