"""The non-streaming requests for which the vendor is called with a stream."""

from dataclasses import replace

import orjson

from providers.completion import Completion
from providers.emulation.collect_stream import Gatherer
from providers.emulation.plan_calls import plan_calls
from providers.emulation.prefer_streaming import prefer_stream, refuses_streams
from providers.failure import Failure, FailureKind
from providers.unified_request import Guided, LogprobsWanted, Params, TextPrompt, UnifiedRequest
from tests.providers.dialects.openai.kit import DIALECT, chat, completion, fixture, one_param, sent, target
from tests.support.looped import looped

AUTO = replace(target("openai"), stream_upstream="auto")


def streamed(request: UnifiedRequest, row: str = "openai", version: str | None = None) -> bool:
    """Return whether the one call of a request is a stream if the configuration allows it."""
    made = replace(target(row, api_version=version), stream_upstream="auto")
    (call,) = plan_calls(request, made).calls
    body = orjson.loads(call.sent.body)
    assert call.sent.stream is call.request.stream is body.get("stream", False)
    return call.sent.stream


def test_nothing_is_streamed_that_nobody_wants_streamed() -> None:
    request = chat({"max_tokens": 3})
    assert prefer_stream(request, target("openai")) is request
    (call,) = plan_calls(request, target("openai")).calls
    assert b"stream" not in call.sent.body


def test_a_client_s_own_stream_is_as_ever() -> None:
    request = chat(stream=True)
    assert prefer_stream(request, AUTO) is request


def test_a_call_that_is_streamed_asks_for_its_usage() -> None:
    (call,) = plan_calls(chat(), AUTO).calls
    assert orjson.loads(call.sent.body)["stream_options"] == {"include_usage": True}


PLAIN: list[Params] = [
    {},
    {"max_tokens": 5, "temperature": 0.5, "top_p": 0.5, "seed": 1, "stop": ("x",), "user": "u"},
    {"metadata": {"a": "b"}, "store": False, "service_tier": "auto", "safety_identifier": "s"},
    {"n": 1, "echo": False, "tools": [], "response_format": {"type": "text"}},
]


@looped("params", PLAIN)
def test_a_plain_request_is_streamed(params: Params) -> None:
    assert streamed(chat(params))


@looped(
    ("name", "value"),
    [
        ("n", 2),
        ("logprobs", LogprobsWanted(0, "content")),
        ("tools", [{"type": "function", "function": {"name": "f"}}]),
        ("response_format", {"type": "json_object"}),
        ("guided", Guided("choice", ("a", "b"))),
        ("modalities", ["text", "audio"]),
        ("prediction", {"type": "content", "content": "x"}),
    ],
)
def test_one_whose_stream_might_not_tell_all_is_not(name: str, value: object) -> None:
    assert not streamed(chat(one_param(name, value)))


def test_nor_one_of_several_prompts() -> None:
    assert not prefer_stream(completion(prompt=TextPrompt(("a", "b"))), AUTO).stream


def test_nor_one_with_members_that_nobody_here_reads() -> None:
    assert not streamed(replace(chat(), extra_params={"x": 1}))
    assert not streamed(replace(chat(), extra_headers={"traceparent": "x"}))
    assert not streamed(replace(chat(), unknown={"x": 1}), "vllm")
    assert prefer_stream(replace(chat(), unknown={"x": 1}), AUTO).stream is False


@looped(
    ("row", "version", "expected"),
    [
        ("azure", None, True),
        ("azure", "2024-06-01", False),
        ("fireworks", None, True),
        ("openai_compatible", None, False),
        ("vllm", None, False),
    ],
)
def test_only_a_row_whose_streams_tell_all_is_asked_for_them(row: str, version: str | None, expected: bool) -> None:
    assert streamed(chat(), row, version) is expected


def test_a_text_completion_is_streamed_too() -> None:
    instruct = replace(target("openai", "gpt-3.5-turbo-instruct"), stream_upstream="auto")
    (call,) = plan_calls(completion(), instruct).calls
    assert (call.sent.stream, call.sent.url) == (True, "http://up/v1/completions")


@looped(
    ("failure", "expected"),
    [
        (Failure(FailureKind.INVALID_REQUEST, "Your organization must be verified to stream this model.", 400), True),
        (Failure(FailureKind.INVALID_REQUEST, "Unsupported value.", 400, param="stream"), True),
        (Failure(FailureKind.INVALID_REQUEST, "Unsupported value.", 400, param="seed"), False),
        (Failure(FailureKind.SERVER, "The stream broke.", 500), False),
    ],
)
def test_a_vendor_that_will_not_stream_is_told_from_one_that_will_not_answer(failure: Failure, expected: bool) -> None:
    assert refuses_streams(failure) is expected


def test_a_stream_tells_the_tier_and_the_fingerprint_as_a_whole_answer_does() -> None:
    stream = (
        b'data: {"id":"1","system_fingerprint":"fp_1","service_tier":"default","choices":[{"index":0,"delta":'
        b'{"role":"assistant","content":" Par"},"finish_reason":null}]}\n\n'
        b'data: {"id":"1","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":"is"}}]}\n\n'
        b'data: {"id":"1","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
        b'data: {"id":"1","choices":[],"usage":{"prompt_tokens":6,"completion_tokens":2,"total_tokens":8,'
        b'"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"completion_tokens_details":'
        b'{"reasoning_tokens":1}}}\n\ndata: [DONE]\n\n'
    )
    assert gathered(stream) == DIALECT.decode(sent(), fixture("openai/openai_chat.json"))


def gathered(stream: bytes) -> Completion:
    gatherer = Gatherer(1)
    for event in DIALECT.stream(sent()).feed(stream):
        gatherer.add(event)
    return gatherer.completion()
