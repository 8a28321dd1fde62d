"""Raw prompts on InvokeModel, in each maker's body."""

from dataclasses import replace
from typing import cast

import orjson
import pytest

from providers.completion import Usage
from providers.failure import FailureKind
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import Guided, LogprobsWanted, Operation, Params, UnifiedRequest
from tests.providers.dialects.bedrock.kit import answer, invoked, target
from tests.providers.dialects.kit import body_for, chat_request, refusal_for, refused, sent_for, streamed, text_request
from tests.support.looped import looped


def invoke_request(**params: object) -> UnifiedRequest:
    return replace(text_request(), params=cast(Params, params))


def of(model: str, name: str | None = None) -> Target:
    return target(model, "bedrock_invoke", name)


TITAN, LLAMA = of("amazon.titan-text-premier-v1:0"), of("us.meta.llama3-1-8b-instruct-v1:0")
MISTRAL, R1, COHERE = of("mistral.mistral-7b-instruct-v0:2"), of("us.deepseek.r1-v1:0"), of("cohere.command-text-v14")
EVERY = (TITAN, LLAMA, MISTRAL, R1, COHERE)
ASKED = {"max_tokens": 9, "temperature": 0.5, "top_p": 1}


@looped(
    ("to", "body"),
    [
        (TITAN, {"inputText": "Once", "textGenerationConfig": {"maxTokenCount": 9, "temperature": 0.5, "topP": 1}}),
        (LLAMA, {"prompt": "Once", "max_gen_len": 9, "temperature": 0.5, "top_p": 1}),
        (MISTRAL, {"prompt": "Once", "max_tokens": 9, "temperature": 0.5, "top_p": 1}),
        (R1, {"prompt": "Once", "max_tokens": 9, "temperature": 0.5, "top_p": 1}),
        (COHERE, {"prompt": "Once", "truncate": "NONE", "stream": True, "max_tokens": 9, "temperature": 0.5, "p": 1}),
    ],
)
def test_a_prompt_goes_as_it_is_with_its_settings(to: Target, body: JsonObject) -> None:
    sent = sent_for(text_request("Once", **ASKED), to)
    assert orjson.loads(sent.body) == body
    assert sent.operation is Operation.COMPLETIONS
    assert sent.emulated == ()
    assert not sent.stream


def test_nothing_is_said_that_was_not_asked() -> None:
    assert body_for(text_request("Once"), TITAN) == {"inputText": "Once"}
    assert body_for(text_request("Once"), LLAMA) == {"prompt": "Once"}


STREAMED = {"x-amzn-bedrock-accept": "application/json"}


@pytest.mark.parametrize("to", [TITAN, LLAMA], ids=lambda each: each.model)
def test_a_stream_is_asked_for_by_the_path(to: Target) -> None:
    whole, streamed = sent_for(text_request(), to), sent_for(replace(text_request(), stream=True), to)
    assert whole.url.endswith("/invoke")
    assert whole.headers == {"accept": "application/json"}
    assert streamed.url == f"{whole.url}-with-response-stream"
    assert streamed.headers == STREAMED
    assert streamed.body == whole.body


@looped("to", [MISTRAL, R1, COHERE], ids=lambda each: each.model)
def test_models_that_count_in_streams_alone_are_always_asked_for_one(to: Target) -> None:
    whole, streamed = sent_for(text_request(), to), sent_for(replace(text_request(), stream=True), to)
    assert whole == replace(streamed, stream=False)
    assert whole.url.endswith("/invoke-with-response-stream")
    assert whole.headers == STREAMED


@looped(
    ("to", "params", "members"),
    [
        (MISTRAL, {"top_k": 40, "stop": ("a", "\n")}, {"top_k": 40, "stop": ["a", "\n"]}),
        (COHERE, {"top_k": 40, "stop": ("a",)}, {"k": 40, "stop_sequences": ["a"]}),
        (COHERE, {"temperature": 1.5}, {"temperature": 1.5}),
    ],
)
def test_some_makers_know_more(to: Target, params: dict[str, object], members: JsonObject) -> None:
    assert body_for(invoke_request(**params), to) == {**body_for(text_request(), to), **members}


@looped(
    ("to", "params", "param"),
    [
        *((each, {"n": 2}, "n") for each in EVERY),
        *((LLAMA, *row) for row in refused(stop=("a",), top_k=5, temperature=1.5, max_tokens=0, seed=1, echo=True)),
        *((LLAMA, *row) for row in refused(best_of=2, suffix="end", logprobs=LogprobsWanted(0, "legacy"))),
        *((LLAMA, *row) for row in refused(guided=Guided("json", {"type": "object"}))),
        *((LLAMA, *row) for row in refused(response_format={"type": "json_object"})),
        *((LLAMA, *row) for row in refused(tools=[{"type": "function", "function": {"name": "a"}}])),
        *((LLAMA, *row) for row in refused(images=(("data:image/png;base64,AA==",),))),
        *((COHERE, *row) for row in refused(max_tokens=4097)),
        *((MISTRAL, *row) for row in refused(top_k=500)),
    ],
)
def test_a_field_that_cannot_be_honoured_is_refused_by_name(to: Target, params: dict[str, object], param: str) -> None:
    refusal = refusal_for(invoke_request(**params), to)
    assert refusal.param == param
    assert to.name in refusal.message


def test_a_user_is_left_out_and_named() -> None:
    sent = sent_for(invoke_request(user="u"), LLAMA)
    assert sent.dropped == ("user",)
    assert b"user" not in sent.body


def test_an_answer_may_be_as_long_as_cohere_s_command_writes() -> None:
    assert body_for(invoke_request(max_tokens=4096), COHERE)["max_tokens"] == 4096
    assert refusal_for(invoke_request(max_tokens=4097), COHERE).code == "invalid_value"
    assert body_for(invoke_request(max_tokens=4097), MISTRAL)["max_tokens"] == 4097


def test_conversations_are_for_another_profile() -> None:
    refusal = refusal_for(chat_request(), LLAMA)
    assert refusal.param == "messages"
    assert "'bedrock'" in refusal.message


def test_a_model_whose_name_says_nothing_is_refused_with_the_remedy() -> None:
    arn = "arn:aws:bedrock:us-east-1:123456789012:imported-model/abc"
    refusal = refusal_for(text_request(), of(arn))
    assert refusal.param == "prompt"
    assert "'bedrock'" in refusal.message
    assert body_for(text_request("Once"), of(arn, "meta.llama3-mine")) == {"prompt": "Once"}


@looped(("to", "name"), [(TITAN, "inputText"), (LLAMA, "prompt"), (COHERE, "num_generations"), (COHERE, "stream")])
def test_prompt_and_number_of_answers_are_not_for_extra_params(to: Target, name: str) -> None:
    refusal = refusal_for(replace(text_request(), extra_params={name: 2}), to)
    assert refusal.param == "inference_extra_params"


def test_extra_params_and_headers_go_along() -> None:
    request = replace(
        text_request(max_tokens=5),
        extra_params={"textGenerationConfig": {"topP": 0.5}},
        extra_headers={"Accept": "application/x", "X-Amzn-Bedrock-Trace": "ENABLED"},
    )
    sent = sent_for(request, TITAN)
    assert orjson.loads(sent.body)["textGenerationConfig"] == {"maxTokenCount": 5, "topP": 0.5}
    assert sent.headers == {"accept": "application/x", "x-amzn-bedrock-trace": "ENABLED"}


@looped(("to", "most"), [(TITAN, 0), (LLAMA, 0), (MISTRAL, 10), (R1, 0), (COHERE, 4)])
def test_stops_beyond_what_a_maker_takes_are_left_to_the_gateway(to: Target, most: int) -> None:
    table = to.dialect.capabilities(text_request(), to)
    assert table.most_stops == most
    assert table["stop"].native == (most > 0)
    assert table["stop.many"].emulated
    assert table["include_stop_str_in_output"].emulated


def test_answers_streams_and_errors_have_their_decoders() -> None:
    sent = sent_for(text_request(), LLAMA)
    assert LLAMA.dialect.decode(sent, answer("llama", "invoke")).choices[0].text == " It is 3 °C."
    whole = MISTRAL.dialect.decode(sent_for(text_request(), MISTRAL), invoked("mistral"))
    assert whole.usage == Usage(8, 5)
    assert streamed(sent, invoked("llama"))
    assert LLAMA.dialect.classify(sent, 503, {}, b"").kind is FailureKind.OVERLOADED
