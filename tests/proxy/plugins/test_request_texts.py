"""The texts of requests, and requests with other texts in their place."""

from base64 import b64encode
from dataclasses import replace

import pytest

from providers.dialect import Upload
from providers.json_types import JsonObject
from providers.tasks.embeddings import EmbeddingsRequest
from providers.tasks.pass_on import PassedForm, PassedRequest
from providers.tasks.rerank import RerankRequest
from providers.unified_request import (
    ChatPrompt,
    Guided,
    NativeApi,
    NativeRequest,
    Operation,
    Params,
    Task,
    TextPrompt,
    TokenPrompt,
    TranslationLosses,
    UnifiedRequest,
)
from proxy.errors import GatewayError
from proxy.plugins.request_texts import rewritten, texts_of

PICTURE = f"data:image/png;base64,{b64encode(bytes(range(256))).decode()}"

CHAT = UnifiedRequest(
    Operation.CHAT,
    "m",
    ChatPrompt(
        (
            {"role": "system", "content": "rules", "name": "boss"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "hello"}, {"type": "image_url", "image_url": PICTURE}],
            },
            {
                "role": "assistant",
                "content": "calls",
                "reasoning_content": "thinks",
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a":"b"}'}}],
            },
            {"role": "tool", "tool_call_id": "1", "content": "result", "name": "f"},
        )
    ),
    {
        "tools": [{"type": "function", "function": {"name": "f", "description": "does"}}],
        "stop": ("end",),
        "guided": Guided("choice", ("yes", "no")),
    },
    unknown={"system_note": "extra"},
    extra_params={"deep": [{"er": "most"}]},
    native=NativeRequest(NativeApi.MESSAGES, {"system": "rules", "only_here": "native"}),
)


def test_every_text_is_shown_with_its_role_and_place() -> None:
    shown = {each.place: (each.text, each.role, each.kind) for each in texts_of(CHAT)}
    assert shown == {
        "messages[0].content": ("rules", "system", "content"),
        "messages[0].name": ("boss", "system", "content"),
        "messages[1].content[0].text": ("hello", "user", "content"),
        "messages[2].content": ("calls", "assistant", "content"),
        "messages[2].reasoning_content": ("thinks", "assistant", "reasoning"),
        "messages[2].tool_calls[0].function.name": ("f", "assistant", "name"),
        "messages[2].tool_calls[0].function.arguments": ('{"a":"b"}', "assistant", "tool_arguments"),
        "messages[3].content": ("result", "tool", "tool_result"),
        "messages[3].name": ("f", "tool", "name"),
        "tools[0].function.name": ("f", "", "name"),
        "tools[0].function.description": ("does", "", "tool_definition"),
        "stop[0]": ("end", "", "other"),
        "guided_choice[0]": ("yes", "", "other"),
        "guided_choice[1]": ("no", "", "other"),
        ".system_note, key": ("system_note", "", "name"),
        ".system_note": ("extra", "", "other"),
        "inference_extra_params.deep, key": ("deep", "", "name"),
        "inference_extra_params.deep[0].er, key": ("er", "", "name"),
        "inference_extra_params.deep[0].er": ("most", "", "other"),
        "body.only_here, key": ("only_here", "", "name"),
        "body.only_here": ("native", "", "other"),
    }


def test_escapes_of_the_history_s_arguments_hide_nothing() -> None:
    written, shown = '{"n":"M\\u00fcller"}', '{"n":"Müller"}'
    call: JsonObject = {"id": "1", "type": "function", "function": {"name": "f", "arguments": written}}
    messages: tuple[JsonObject, ...] = ({"role": "assistant", "tool_calls": [call]}, {"role": "user", "content": "a"})
    native = NativeRequest(NativeApi.RESPONSES, {"input": [{"type": "function_call", "arguments": written}]})
    request = UnifiedRequest(Operation.CHAT, "m", ChatPrompt(messages), {}, native=native)
    assert [each.text for each in texts_of(request)] == ["f", shown, "a"]
    same, _ = rewritten(request, ["f", shown, "b"])
    assert same.prompt == ChatPrompt((messages[0], {"role": "user", "content": "b"}))
    other, _ = rewritten(request, ["f", '{"n":"*"}', "a"])
    assert [each.text for each in texts_of(other)] == ["f", '{"n":"*"}', "a"]


def test_a_rewritten_request_has_nothing_of_what_it_was() -> None:
    made, dropped = rewritten(CHAT, [each.text.upper() for each in texts_of(CHAT)])
    assert [each.text for each in texts_of(made)] == [
        *("RULES", "BOSS", "HELLO", "CALLS", "F", '{"A":"B"}', "RESULT", "F", "F", "DOES", "END", "YES", "NO"),
        *("SYSTEM_NOTE", "EXTRA", "DEEP", "ER", "MOST"),
    ]
    assert made.native is None
    assert dropped == ("reasoning",)
    assert isinstance(made.prompt, ChatPrompt)
    assert made.prompt.messages[1]["content"][1] == {"type": "image_url", "image_url": PICTURE}  # type: ignore[index]
    assert made.params["stop"] == ("END",)


def test_what_is_not_changed_keeps_its_thinking() -> None:
    made, dropped = rewritten(CHAT, [each.text for each in texts_of(CHAT)])
    assert (made.prompt, made.params, dropped) == (CHAT.prompt, CHAT.params, ())


def test_the_reference_request_is_not_changed_itself() -> None:
    before = texts_of(CHAT)
    rewritten(CHAT, ["x"] * len(before))
    assert texts_of(CHAT) == before


def test_prompts_are_texts_and_token_ids_are_refused() -> None:
    request = UnifiedRequest(Operation.COMPLETIONS, "m", TextPrompt(("a", "b")), {"suffix": "c"})
    assert [(each.text, each.place) for each in texts_of(request)] == [
        *(("a", "prompt[0]"), ("b", "prompt[1]"), ("c", "suffix"))
    ]
    made, _ = rewritten(request, ["x", "y", "z"])
    assert (made.prompt, made.params["suffix"]) == (TextPrompt(("x", "y")), "z")
    with pytest.raises(GatewayError) as caught:
        texts_of(UnifiedRequest(Operation.COMPLETIONS, "m", TokenPrompt(((1, 2),)), {}))
    assert caught.value.facts.code == "unsupported_parameter"


def test_other_tasks_have_their_texts_too() -> None:
    vectors = EmbeddingsRequest("m", ("a", "b"), unknown={"x": "c"})
    assert [each.text for each in texts_of(vectors)] == ["a", "b", "x", "c"]
    assert rewritten(vectors, ["1", "2", "x", "3"])[0].texts == ("1", "2")
    ranking = RerankRequest("m", "q", ("a",), objects={0: {"text": "a", "more": "z"}})
    made, _ = rewritten(ranking, ["Q", "A"])
    assert (made.query, made.documents, made.objects) == ("Q", ("A",), {})
    passed = PassedRequest(Task.MODERATIONS, "m", {"model": "m", "input": ["a", {"type": "text", "text": "b"}]})
    assert [each.text for each in texts_of(passed)] == ["a", "b"]
    assert rewritten(passed, ["x", "y"])[0].content == {"model": "m", "input": ["x", {"type": "text", "text": "y"}]}
    with pytest.raises(GatewayError):
        texts_of(EmbeddingsRequest("m", ((1,),)))


def test_a_request_of_an_unknown_kind_does_not_pass_unseen() -> None:
    with pytest.raises(TypeError):
        texts_of(object())


def test_settings_identities_and_headers_are_texts_too() -> None:
    params: Params = {"user": "me@example.com", "prompt_cache_key": "0a" * 16, "seed": 5, "logit_bias": {"7": 1.0}}
    headers = {"x-title": "my title", "x-session-id": "s-1"}
    request = replace(UnifiedRequest(Operation.CHAT, "m", ChatPrompt(()), params), extra_headers=headers)
    assert [(each.text, each.place) for each in texts_of(request)] == [
        ("me@example.com", "user"),
        ("my title", "inference_extra_headers.x-title"),
    ]
    made, _ = rewritten(request, ["*", "yours"])
    assert made.params == {**params, "user": "*"}
    assert made.extra_headers == {**headers, "x-title": "yours"}
    with pytest.raises(GatewayError):
        rewritten(request, ["*", "a\r\nb: c"])
    vectors = EmbeddingsRequest("m", ("a",), input_type="my own", user="me", extra_headers=headers)
    assert rewritten(vectors, ["1", "2", "3", "4"])[0] == EmbeddingsRequest(
        "m", ("1",), input_type="2", user="3", extra_headers={**headers, "x-title": "4"}
    )
    ranking = RerankRequest("m", "q", ("a",), user="me")
    assert rewritten(ranking, ["1", "2", "3"])[0] == RerankRequest("m", "1", ("2",), user="3")


def test_a_form_is_shown_and_cannot_be_rewritten() -> None:
    form = PassedForm({"model": "m", "prompt": "a", "file": "RIFF"}, "multipart/form-data", lambda _: upload())
    request = PassedRequest(Task.TRANSCRIPTIONS, "m", form)
    assert [(each.text, each.kind) for each in texts_of(request)] == [("a", "content")]
    assert rewritten(request, ["a"])[0] is request
    with pytest.raises(GatewayError) as caught:
        rewritten(request, ["b"])
    assert "'a form' cannot be read by the plugins" in caught.value.facts.message


def upload() -> Upload:
    raise AssertionError("nothing is sent")


def test_what_may_be_sent_instead_of_a_param_is_a_text_too() -> None:
    losses = TranslationLosses({}, instead={"thinking": {"reasoning_effort": "as hard as you can"}})
    request = UnifiedRequest(Operation.CHAT, "m", ChatPrompt(()), {}, losses=losses)
    assert [each.text for each in texts_of(request)] == ["as hard as you can"]
    made, _ = rewritten(request, ["*"])
    assert made.losses == TranslationLosses({}, instead={"thinking": {"reasoning_effort": "*"}})


def test_words_that_are_split_over_parts_are_seen_and_do_not_pass() -> None:
    parts: JsonObject = {
        "role": "user",
        "content": [{"type": "text", "text": "my 123-45"}, {"type": "text", "text": "-6"}],
    }
    request = UnifiedRequest(Operation.CHAT, "m", ChatPrompt((parts,)), {})
    shown = [each.text for each in texts_of(request)]
    assert shown == ["my 123-45", "-6", "my 123-45-6"]
    with pytest.raises(GatewayError) as caught:
        rewritten(request, ["my 123-45", "-6", "my ***"])
    assert (caught.value.facts.status, caught.value.facts.param) == (400, "messages[0].content")
    made, _ = rewritten(request, ["my ***", "-6", "my ***-6"])
    assert [each.text for each in texts_of(made)] == ["my ***", "-6", "my ***-6"]
