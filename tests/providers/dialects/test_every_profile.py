"""Rules for the calls of every profile, in any dialect."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

import orjson

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind, Refusal
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from providers.target import Target
from providers.unified_request import Guided, Operation, Prompt, TextPrompt, TokenPrompt, UnifiedRequest
from tests.providers.dialects.kit import chat_request, refusal_for, target_of, text_request, tool, user
from tests.providers.neutral import EACH_NEUTRAL
from tests.support.looped import looped

EACH = [(name, model) for name, profile in load_profiles().items() if profile.wires for model in profile.examples]
each_profile = looped(("name", "model"), EACH)


def calls(target: Target, *requests: UnifiedRequest) -> Iterator[UpstreamRequest]:
    """Yield the calls of the requests that are not refused."""
    for request in requests:
        try:
            yield target.dialect.encode(request, target)
        except Refusal:
            continue


def plain_requests() -> Iterator[UnifiedRequest]:
    for request in (text_request(max_tokens=16), chat_request(max_tokens=16)):
        yield from (request, replace(request, stream=True))


@each_profile
def test_a_field_that_nobody_knows_is_forwarded_or_refused_by_name(name: str, model: str) -> None:
    target = target_of(name, model)
    taken = [request for request in plain_requests() if [*calls(target, request)]]
    for request in (replace(request, unknown={"strange": 3}) for request in taken):
        if target.profile.forwards_unknown or "anthropic" in target.profile.dialect:
            assert orjson.loads(target.dialect.encode(request, target).body)["strange"] == 3
        else:
            assert refusal_for(request, target).param == "strange"
    assert taken


@each_profile
def test_the_client_s_headers_go_along_and_an_error_means_what_its_status_says(name: str, model: str) -> None:
    target = target_of(name, model)
    for sent in calls(target, *(replace(each, extra_headers={"x-trace": "1"}) for each in plain_requests())):
        assert sent.headers["x-trace"] == "1"
        assert target.dialect.classify(sent, 401, {}, b"<html>").kind is FailureKind.AUTH


FORMS: list[tuple[Prompt, str]] = [
    (TextPrompt(("a", "b")), "prompt.batch"),
    (TokenPrompt(((1, 2),)), "prompt.tokens"),
    (TokenPrompt(((1, 2), (3,))), "prompt.token_batch"),
]


@each_profile
def test_prompts_that_one_call_cannot_say_are_refused_as_the_table_says(name: str, model: str) -> None:
    target = target_of(name, model)
    if not [*calls(target, request := text_request(max_tokens=16))]:
        assert refusal_for(request, target).param == "prompt"
        return
    for prompt, feature in FORMS:
        asked = replace(request, prompt=prompt)
        if target.dialect.capabilities(asked, target)[feature].native:
            assert target.dialect.encode(asked, target)
        else:
            assert refusal_for(asked, target).param == "prompt"
    if target.dialect.encode(request, target).operation is Operation.CHAT:
        assert refusal_for(replace(request, prompt=TextPrompt(("",))), target).param == "prompt"


@each_profile
def test_a_value_that_asks_for_nothing_is_no_error(name: str, model: str) -> None:
    target = target_of(name, model)
    for ask in (text_request, chat_request):
        if [*calls(target, ask(max_tokens=16))]:
            for asked in EACH_NEUTRAL:
                assert target.dialect.encode(ask(**{"max_tokens": 16, **asked}), target), asked


CALL: JsonObject = {"id": "call:1", "type": "function", "function": {"name": "a b", "arguments": "{}"}}
SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"const": 1}}}
TALK: tuple[JsonObject, ...] = (
    {"role": "system", "content": [{"type": "text", "text": "zero", "cache_control": {"type": "ephemeral"}}]},
    user([{"type": "text", "text": "one"}, {"type": "text", "text": ""}]),
    user("two"),
    {"role": "system", "content": "three"},
    {"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "call:1", "content": [{"type": "text", "text": "x"}]},
)
RICH = [
    chat_request(*TALK, tools=[tool("a b", strict=True), tool("c", strict=False)], max_tokens=16),
    chat_request(*TALK, response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}),
    chat_request(guided=Guided("json", SCHEMA), metadata={"a": "b"}, logit_bias={"1": 2.0}),
    chat_request(*TALK[:3], temperature=0.5, stop=("a", "b"), prediction={"a": {"b": "c"}}),
    text_request("Once", temperature=0.5, stop=("a",), logit_bias={"1": 2.0}, response_format={"type": "json_object"}),
]


@each_profile
def test_a_request_is_left_as_it_was(name: str, model: str) -> None:
    extra: JsonObject = {"prediction": {"a": {"d": "e"}}, "generationConfig": {"x": 1}, "inferenceConfig": {"x": 1}}
    for request in RICH:
        for given in (request, replace(request, extra_params=extra), replace(request, unknown={"metadata": {}})):
            before = deepcopy(given)
            assert len([*calls(target_of(name, model), given)]) <= 1
            assert given == before
