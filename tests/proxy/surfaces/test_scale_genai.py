"""Scale's surfaces: complete streams byte for byte, and the differences between v4 and v5."""

import pytest

from providers.completion import Chunk
from proxy.errors import ErrorFacts
from proxy.surfaces.completion_surface import CompletionSurface
from proxy.surfaces.scale_genai import SCALE_V4, SCALE_V5
from tests.proxy.surfaces.kit import FACTS, USAGE, complete, converse, play, refuse

both = pytest.mark.parametrize("row", [SCALE_V4, SCALE_V5], ids=["v4", "v5"])

TEXT = b'data: {"id":"cmpl-1","object":"text_completion","created":1795246123,"model":"openai/gpt-x","choices":['
CHAT = (
    b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1795246123,"model":"openai/gpt-x","choices":['
)
TOTALS = b'"usage":{"prompt_tokens":6,"completion_tokens":2,"total_tokens":8}}\n\n'
BROKEN = ErrorFacts(502, "server_error", "upstream_error", "The upstream closed the connection.")
ERROR = (
    b'"error":{"message":"The upstream closed the connection.","status_code":502,"type":"server_error",'
    b'"code":"upstream_error"}}\n\n'
)


@both
@pytest.mark.parametrize("asked", [False, True])
def test_a_text_stream_ends_with_usage_on_its_last_finish_unterminated(row: CompletionSurface, asked: bool) -> None:
    request = complete(row, stream=True, stream_options={"include_usage": True} if asked else None)
    events = (Chunk(text=" Par"), Chunk(text="is", finish_reason="stop"), USAGE)
    assert play(row.renderer(request, FACTS), *events) == (
        TEXT
        + b'{"index":0,"text":" Par","logprobs":null,"finish_reason":null}]}\n\n'
        + TEXT
        + b'{"index":0,"text":"is","logprobs":null,"finish_reason":"stop"}],'
        + TOTALS
    )


@both
def test_a_chat_stream_ends_the_same_way(row: CompletionSurface) -> None:
    events = (Chunk(text="Hi"), USAGE, Chunk(finish_reason="length"))
    assert play(row.renderer(converse(row, stream=True), FACTS), *events) == (
        CHAT
        + b'{"index":0,"delta":{"role":"assistant","content":"Hi"},"logprobs":null,"finish_reason":null}]}\n\n'
        + CHAT
        + b'{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}],'
        + TOTALS
    )


def test_a_broken_stream_has_an_error_chunk_before_the_cut_and_on_v4_an_event_too() -> None:
    renderer = SCALE_V5.renderer(complete(SCALE_V5, stream=True), FACTS)
    renderer.chunk(Chunk(text="a", finish_reason="stop"))
    assert renderer.error(BROKEN) == TEXT + b'],"chunk_type":"error",' + ERROR
    renderer = SCALE_V4.renderer(complete(SCALE_V4, stream=True), FACTS)
    renderer.chunk(Chunk(text="a"))
    assert renderer.error(BROKEN) == (TEXT + b'],"chunk_type":"error",' + ERROR + b"event: error\ndata: {" + ERROR)


@both
def test_validation_lists_every_problem_beside_the_error(row: CompletionSurface) -> None:
    assert row.error(refuse(row, n=0, stop=["a", ""])) == (
        422,
        b'{"detail":[{"loc":["body","n"],"msg":"\'n\' must be an integer from 1 to 128.","type":"invalid_value"},'
        b'{"loc":["body","stop",1],"msg":"\'stop.1\' must be a non-empty string.","type":"invalid_value"}],'
        b'"error":{"message":"\'n\' must be an integer from 1 to 128.","type":"invalid_request_error",'
        b'"param":"n","code":"invalid_value"}}',
    )


@both
def test_both_request_schemas_parse_on_both_paths(row: CompletionSurface) -> None:
    older = complete(row, max_new_tokens=5, logprobs=True, top_logprobs=2, stop_sequences=["a"], guided_regex="x")
    newer = complete(row, prompt=["a", "b"], max_tokens=5, logprobs=2, echo=True, best_of=2, suffix="s")
    assert older.params["max_tokens"] == newer.params["max_tokens"] == 5
    assert older.params["logprobs"].shape == "content"
    assert newer.params["logprobs"].shape == "legacy"


@both
def test_nothing_but_the_overflow_rule_is_filled_in(row: CompletionSurface) -> None:
    assert complete(row).params == converse(row).params == {"context_length_exceeded_behavior": "error"}


def test_the_account_key_comes_first_and_the_paths_are_scales() -> None:
    assert SCALE_V4.key_headers == SCALE_V5.key_headers == ("x-api-key", "authorization", "api-key")
    assert [endpoint.path for endpoint in SCALE_V4.endpoints] == ["/v4/beta/completions", "/v4/beta/chat/completions"]
    assert [endpoint.path for endpoint in SCALE_V5.endpoints] == ["/v5/completions", "/v5/chat/completions"]
    assert {SCALE_V4.name, SCALE_V5.name} == {"scale"}
    assert SCALE_V4.default_vendor is None
