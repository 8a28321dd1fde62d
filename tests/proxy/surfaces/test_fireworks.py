"""Fireworks' surface: defaults, and complete streams byte for byte."""

from providers.completion import Chunk
from proxy.errors import ErrorFacts
from proxy.surfaces.fireworks import FIREWORKS
from tests.proxy.surfaces.kit import FACTS, USAGE, complete, converse, play, refuse

TEXT = b'data: {"id":"cmpl-1","object":"text_completion","created":1795246123,"model":"openai/gpt-x","choices":['
TOTALS = b'"usage":{"prompt_tokens":6,"completion_tokens":2,"total_tokens":8}}\n\n'
DONE = b"data: [DONE]\n\n"
EVENTS = (
    Chunk(0, " Par"),
    Chunk(1, "Lon"),
    Chunk(0, finish_reason="length"),
    Chunk(1, "don", finish_reason="stop"),
    USAGE,
)
PAR, LON = (
    TEXT + b'{"index":%d,"text":"%b","logprobs":null,"finish_reason":null}]' % (index, text)
    for index, text in ((0, b" Par"), (1, b"Lon"))
)
PAR_END = TEXT + b'{"index":0,"text":"","logprobs":null,"finish_reason":"length"}]'
LON_END = TEXT + b'{"index":1,"text":"don","logprobs":null,"finish_reason":"stop"}]'
END = b"}\n\n"


def test_usage_rides_on_the_last_finish_without_being_asked_for() -> None:
    request = complete(FIREWORKS, n=2, stream=True)
    assert play(FIREWORKS.renderer(request, FACTS), *EVENTS) == (
        PAR + END + LON + END + PAR_END + END + LON_END + b"," + TOTALS + DONE
    )


def test_usage_asked_for_comes_in_a_frame_of_its_own_instead() -> None:
    request = complete(FIREWORKS, n=2, stream=True, stream_options={"include_usage": True})
    null = b',"usage":null' + END
    assert play(FIREWORKS.renderer(request, FACTS), *EVENTS) == (
        PAR + null + LON + null + PAR_END + null + LON_END + null + TEXT + b"]," + TOTALS + DONE
    )


def test_a_chat_stream_follows_the_same_rule() -> None:
    stream = play(
        FIREWORKS.renderer(converse(FIREWORKS, stream=True), FACTS), Chunk(text="a", finish_reason="stop"), USAGE
    )
    assert stream.endswith(b'"delta":{},"logprobs":null,"finish_reason":"stop"}],' + TOTALS + DONE)
    assert stream.count(b"usage") == 1


def test_a_broken_stream_says_so_beside_an_answer_without_choices() -> None:
    renderer = FIREWORKS.renderer(complete(FIREWORKS, stream=True), FACTS)
    assert renderer.chunk(Chunk(text="a", finish_reason="stop")) == b""
    assert renderer.error(ErrorFacts(504, "server_error", "upstream_timeout", "Nothing came.")) == (
        TEXT + b'],"error":{"object":"error","message":"Nothing came.","type":"server_error","param":null,'
        b'"code":"upstream_timeout"}}\n\n'
    )


def test_overflow_truncates_by_default_and_only_then() -> None:
    for request in (complete(FIREWORKS), converse(FIREWORKS)):
        assert request.params == {"context_length_exceeded_behavior": "truncate"}
        assert request.injected == {"context_length_exceeded_behavior"}
    asked = complete(FIREWORKS, context_length_exceeded_behavior="error")
    assert asked.params == {"context_length_exceeded_behavior": "error"}
    assert asked.injected == frozenset()


def test_an_error_body_says_that_it_is_one() -> None:
    assert FIREWORKS.error(refuse(FIREWORKS, n=0)) == (
        400,
        b'{"error":{"object":"error","message":"\'n\' must be an integer from 1 to 128.",'
        b'"type":"invalid_request_error","param":"n","code":"invalid_value"}}',
    )


def test_the_doubled_version_of_its_sdk_is_an_alias() -> None:
    assert [endpoint.path for endpoint in FIREWORKS.endpoints] == [
        "/inference/v1/completions",
        "/inference/v1/chat/completions",
        "/inference/v1/v1/completions",
        "/inference/v1/v1/chat/completions",
    ]
    assert (FIREWORKS.default_vendor, FIREWORKS.key_headers[0]) == ("fireworks", "authorization")
