"""Fields that the Responses API has and a chat does not."""

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import LogprobsWanted, StreamOptions
from tests.proxy.surfaces.responses.kit import ask, losses, native_body, refused
from tests.support.looped import looped

SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"type": "string"}}}


@looped(
    ("field", "params"),
    [
        ({"max_output_tokens": 9}, {"max_tokens": 9}),
        ({"temperature": 0.5, "top_p": 0.9}, {"temperature": 0.5, "top_p": 0.9}),
        ({"top_logprobs": 3}, {"logprobs": LogprobsWanted(3, "content")}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": LogprobsWanted(0, "content")}),
        ({"reasoning": {"effort": "low", "summary": "auto"}}, {"reasoning_effort": "low"}),
        ({"text": {"verbosity": "low"}}, {"verbosity": "low"}),
        ({"text": {"format": {"type": "json_object"}}}, {"response_format": {"type": "json_object"}}),
        (
            {
                "text": {
                    "format": {
                        "type": "json_schema",
                        "name": "n",
                        "schema": SCHEMA,
                        "strict": True,
                        "description": None,
                    }
                }
            },
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
                }
            },
        ),
        (
            {"metadata": {"a": "b"}, "user": "u", "service_tier": "auto"},
            {"metadata": {"a": "b"}, "user": "u", "service_tier": "auto"},
        ),
    ],
)
def test_a_field_says_the_same_in_the_unified_request(field: dict[str, JsonValue], params: dict[str, object]) -> None:
    request = ask(**field)
    assert {name: value for name, value in request.params.items() if name not in request.injected} == params
    assert native_body(request) == {"model": "m", "input": "hi", **field}


@looped(
    "field",
    [
        {"store": True},
        {"store": False},
        {"background": False},
        {"truncation": "disabled"},
        {"max_tool_calls": 3},
        {"include": []},
        {"include": ["reasoning.encrypted_content", "web_search_call.action.sources"]},
        {"top_logprobs": 0},
        {"text": {"format": {"type": "text"}}},
        {"reasoning": {"summary": "auto"}},
        {"context_management": []},
        {"conversation": None},
        {"prompt": None},
    ],
)
def test_what_asks_for_nothing_of_a_target_is_taken(field: dict[str, JsonValue]) -> None:
    request = ask(**field)
    assert set(request.params) == set(request.injected)
    assert request.native is not None
    assert not losses(request).binding
    assert not losses(request).left_out


@looped(
    "field",
    [
        {"context_management": [{"type": "compaction"}]},
        {"moderation": {"x": 1}},
        {"image": {"x": 1}},
        {"access_programs": ["x"]},
    ],
)
def test_what_openai_s_own_api_alone_has_goes_there_and_nowhere_else(field: dict[str, JsonValue]) -> None:
    (name,) = field
    request = ask(**field)
    assert native_body(request)[name] == field[name]
    assert [*losses(request).binding] == [name]
    facts = refused(**field, seed=1)
    assert (facts.param, facts.code) == (name, "unsupported_parameter")


@looped("field", [{"conversation": "conv_1"}, {"background": True}, {"prompt": {"id": "pmpt_1"}}])
def test_what_is_kept_at_openai_is_refused_by_name(field: dict[str, JsonValue]) -> None:
    facts = refused(**field)
    assert (facts.status, facts.param, facts.code) == (400, next(iter(field)), "unsupported_parameter")


@looped(
    ("field", "param"),
    [
        ({"instructions": 3}, "instructions"),
        ({"previous_response_id": 3}, "previous_response_id"),
        ({"store": "no"}, "store"),
        ({"background": "no"}, "background"),
        ({"truncation": "some"}, "truncation"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"max_tool_calls": 0}, "max_tool_calls"),
        ({"include": "x"}, "include"),
        ({"top_logprobs": 21}, "top_logprobs"),
        ({"text": 3}, "text"),
        ({"text": {"verbosity": 3}}, "text.verbosity"),
        ({"text": {"format": {}}}, "text.format.type"),
        ({"reasoning": 3}, "reasoning"),
        ({"reasoning": {"summary": 3}}, "reasoning.summary"),
        ({"client_metadata": 3}, "client_metadata"),
        ({"messages": []}, "messages"),
        ({"functions": []}, "functions"),
        ({"n": 2}, "n"),
        ({"audio": {}}, "audio"),
        ({"base_url": "http://x"}, "base_url"),
        ({"max_output_tokens": 3, "max_completion_tokens": 4}, "max_tokens"),
        ({"text": {"format": {"type": "json_object"}}, "response_format": {"type": "text"}}, "text"),
    ],
)
def test_a_value_that_makes_no_sense_is_refused_by_name(field: dict[str, JsonValue], param: str) -> None:
    assert refused(**field).param == param


def test_further_members_of_reasoning_go_on() -> None:
    assert ask(reasoning={"effort": "low", "context": "auto"}).unknown == {"reasoning": {"context": "auto"}}


def test_options_of_a_stream_are_those_of_padding() -> None:
    request = ask(stream=True, stream_options={"include_obfuscation": True, "include_usage": True})
    assert request.stream_options == StreamOptions(include_obfuscation=True)


def test_notes_of_codex_are_left_out_and_named() -> None:
    request = ask(client_metadata={"turn": "1"})
    assert losses(request).left_out == ("client_metadata",)
    assert not request.unknown


def test_the_oldest_turns_may_be_left_out_where_the_client_says_so() -> None:
    assert ask(truncation="auto").shortens
    assert native_body(ask(truncation="auto"))["truncation"] == "auto"
    assert not ask(truncation="disabled").shortens
    assert not ask().shortens
