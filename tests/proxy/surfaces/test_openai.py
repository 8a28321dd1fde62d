"""OpenAI's surface: paths, defaults, and complete streams byte for byte."""

import pytest

from providers.completion import Chunk
from providers.unified_request import Operation, Task, UnifiedRequest
from proxy.errors import ErrorFacts
from proxy.surfaces.completion_surface import task_endpoints
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.surface import ReadAction
from tests.proxy.surfaces.kit import FACTS, USAGE, complete, converse, play, refuse_bytes

BROKEN = ErrorFacts(502, "server_error", "upstream_error", "The upstream closed the connection.")
ERROR_FRAME = (
    b'data: {"error":{"message":"The upstream closed the connection.","type":"server_error","param":null,'
    b'"code":"upstream_error"}}\n\n'
)


def text_frame(choice: bytes, rest: bytes = b"") -> bytes:
    head = b'data: {"id":"cmpl-1","object":"text_completion","created":1795246123,"model":"openai/gpt-x","choices":['
    return head + choice + b"]" + rest + b"}\n\n"


def chat_frame(choice: bytes, rest: bytes = b"") -> bytes:
    head = b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795246123,"model":"openai/gpt-x",'
    return head + b'"choices":[' + choice + b"]" + rest + b"}\n\n"


TOTALS = b',"usage":{"prompt_tokens":6,"completion_tokens":2,"total_tokens":8}'
EVENTS = (Chunk(text=" Par"), Chunk(text="is", finish_reason="stop"), USAGE)


def test_a_text_stream_shows_no_usage_unless_asked() -> None:
    assert play(OPENAI.renderer(complete(stream=True), FACTS), *EVENTS) == (
        text_frame(b'{"index":0,"text":" Par","logprobs":null,"finish_reason":null}')
        + text_frame(b'{"index":0,"text":"is","logprobs":null,"finish_reason":"stop"}')
        + b"data: [DONE]\n\n"
    )


def test_a_text_stream_with_usage_ends_in_a_frame_of_its_own() -> None:
    request = complete(stream=True, stream_options={"include_usage": True})
    null = b',"usage":null'
    assert play(OPENAI.renderer(request, FACTS), *EVENTS) == (
        text_frame(b'{"index":0,"text":" Par","logprobs":null,"finish_reason":null}', null)
        + text_frame(b'{"index":0,"text":"is","logprobs":null,"finish_reason":"stop"}', null)
        + text_frame(b"", TOTALS)
        + b"data: [DONE]\n\n"
    )


def test_a_chat_stream_opens_with_the_role_and_closes_with_an_empty_delta() -> None:
    request = converse(stream=True, stream_options={"include_usage": True})
    null = b',"usage":null'
    assert play(OPENAI.renderer(request, FACTS), *EVENTS) == (
        chat_frame(
            b'{"index":0,"delta":{"role":"assistant","content":" Par"},"logprobs":null,"finish_reason":null}', null
        )
        + chat_frame(b'{"index":0,"delta":{"content":"is"},"logprobs":null,"finish_reason":null}', null)
        + chat_frame(b'{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}', null)
        + chat_frame(b"", TOTALS)
        + b"data: [DONE]\n\n"
    )


@pytest.mark.parametrize("asked", [complete(stream=True), converse(stream=True)], ids=["text", "chat"])
def test_a_broken_stream_ends_in_an_error_and_nothing_that_means_success(asked: UnifiedRequest) -> None:
    renderer = OPENAI.renderer(asked, FACTS)
    renderer.chunk(Chunk(text="a"))
    assert renderer.error(BROKEN) == ERROR_FRAME


def test_defaults_are_those_of_the_completions_endpoint() -> None:
    request = complete()
    assert request.params == {"max_tokens": 16, "context_length_exceeded_behavior": "error"}
    assert request.injected == {"max_tokens", "context_length_exceeded_behavior"}
    assert "max_tokens" not in converse().params
    assert complete(max_new_tokens=3).injected == {"context_length_exceeded_behavior"}


def test_an_error_body_is_openais() -> None:
    status, body = OPENAI.error(refuse_bytes(b'{"model":"m","prompt":"p","n":0,"seed":"x"}'))
    assert status == 400
    assert body == (
        b'{"error":{"message":"\'n\' must be an integer from 1 to 128.","type":"invalid_request_error",'
        b'"param":"n","code":"invalid_value"}}'
    )


def test_paths_exist_with_and_without_the_version() -> None:
    every = {(endpoint.method, endpoint.path, endpoint.action) for endpoint in OPENAI.endpoints}
    found = {each for each in every if not each[1].startswith(("/openai/", "/engines/", "/v1/engines/"))}
    assert {
        ("POST", "/openai/deployments/{model}/chat/completions", Operation.CHAT),
        ("POST", "/openai/v1/completions", Operation.COMPLETIONS),
        ("POST", "/v1/engines/{model}/completions", Operation.COMPLETIONS),
    } <= every
    assert found - {(e.method, e.path, e.action) for e in task_endpoints("/v1", "")} == {
        ("POST", "/v1/completions", Operation.COMPLETIONS),
        ("POST", "/completions", Operation.COMPLETIONS),
        ("POST", "/v1/chat/completions", Operation.CHAT),
        ("POST", "/chat/completions", Operation.CHAT),
        ("GET", "/v1/models", ReadAction.MODELS),
        ("GET", "/models", ReadAction.MODELS),
        ("GET", "/v1/usage", ReadAction.USAGE),
        ("GET", "/usage", ReadAction.USAGE),
        ("POST", "/v1/embeddings", Task.EMBEDDINGS),
        ("POST", "/embeddings", Task.EMBEDDINGS),
        ("POST", "/v1/rerank", Task.RERANK),
        ("POST", "/v2/rerank", Task.RERANK),
        ("POST", "/rerank", Task.RERANK),
    }
    assert OPENAI.key_headers[0] == "authorization"
    assert OPENAI.default_vendor is None
