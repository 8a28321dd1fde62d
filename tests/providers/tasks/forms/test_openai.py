"""The OpenAI family's embeddings: the request at each address, and responses as vendors send them."""

import pytest

from providers.completion import Usage
from providers.failure import FailureKind, UpstreamError
from providers.tasks.forms.openai import family_answer, usage_in
from providers.tasks.forms.prepare_task import embeddings_calls
from tests.providers.tasks.kit import (
    answered,
    at,
    body_of,
    embed,
    embed_ids,
    failure_of,
    numbers,
    openai_answer,
    url_of,
)
from tests.support.looped import looped

OPENAI = b"""{
  "object": "list",
  "data": [
    {"object": "embedding", "index": 0, "embedding": [0.0023064255, -0.009327292]},
    {"object": "embedding", "index": 1, "embedding": [-0.0028842222, 1e-5]}
  ],
  "model": "text-embedding-3-small",
  "usage": {"prompt_tokens": 8, "total_tokens": 8}
}
"""
BASE64 = (
    b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AACAPwAAAMA="}],'
    b'"model":"text-embedding-3-small","usage":{"prompt_tokens":2,"total_tokens":2}}'
)
VOYAGE = (
    b'{"object":"list","data":[{"object":"embedding","embedding":[0.5,0.25],"index":0}],"model":"voyage-3.5",'
    b'"usage":{"total_tokens":7}}'
)
TOGETHER = (
    b'{"object":"list","data":[{"index":0,"object":"embedding","embedding":[0.5,0.25]}],"model":"m","request_id":"x"}'
)
CLOUDFLARE = (
    b'{"object":"list","data":[{"object":"embedding","embedding":[0.5,0.25],"index":0}],"model":"@cf/baai/bge"}'
)


def test_vectors_come_in_the_order_of_their_index() -> None:
    answer = answered(embed("a", "b"), at("openai"), OPENAI)
    assert numbers(answer) == [[0.0023064255, -0.009327292], [-0.0028842222, 1e-5]]
    assert answer.usage == Usage(8, 0)
    turned = OPENAI.replace(b'"index": 0', b'"index": 9').replace(b'"index": 1', b'"index": 0')
    assert numbers(answered(embed("a", "b"), at("openai"), turned.replace(b'"index": 9', b'"index": 1')))[0][1] == 1e-5


def test_base64_is_asked_for_where_the_client_wants_it_and_read() -> None:
    request = embed("a", base64=True)
    assert body_of(request, at("openai"))["encoding_format"] == "base64"
    assert numbers(answered(request, at("openai"), BASE64)) == [[1.0, -2.0]]


@looped("body", [BASE64, openai_answer([[1.0, -2.0]])])
@looped("base64", [True, False])
def test_either_form_is_read_whichever_was_asked_for(body: bytes, base64: bool) -> None:
    assert numbers(answered(embed("a", base64=base64), at("openai"), body)) == [[1.0, -2.0]]


def test_a_total_alone_is_the_usage_and_none_is_estimated() -> None:
    assert answered(embed("a"), at("voyage"), VOYAGE).usage == Usage(7, 0)
    assert answered(embed("12345"), at("together"), TOGETHER).usage == Usage(2, 0, estimated=True)
    assert answered(embed("12345"), at("cloudflare"), CLOUDFLARE).usage == Usage(2, 0, estimated=True)


def test_token_ids_go_as_lists() -> None:
    assert body_of(embed_ids((1, 2), (3,)), at("openai"))["input"] == [[1, 2], [3]]


@looped(
    ("profile", "url"),
    [
        ("openai", "https://api.openai.com/v1/embeddings"),
        ("azure", "https://r.example/openai/deployments/m%2Fx/embeddings?api-version=2024-10-21"),
        ("fireworks", "https://api.fireworks.ai/inference/v1/embeddings"),
        ("deepinfra", "https://api.deepinfra.com/v1/openai/embeddings"),
        ("databricks", "https://h.example/serving-endpoints/m%2Fx/invocations"),
        ("mistral", "https://api.mistral.ai/v1/embeddings"),
        ("jina", "https://api.jina.ai/v1/embeddings"),
    ],
)
def test_addresses(profile: str, url: str) -> None:
    own = {"azure": "https://r.example", "databricks": "https://h.example/serving-endpoints"}
    target = at(profile, "m/x", **({"base_url": own[profile]} if profile in own else {}))
    assert url_of(embed(), target) == url


def test_renamed_fields() -> None:
    assert body_of(embed("a", dimensions=5), at("mistral"))["output_dimension"] == 5
    assert body_of(embed("a", input_type="similarity"), at("jina"))["task"] == "text-matching"


@looped(
    "body",
    [
        *(b"", b"[]", b"null", b"{}", b'{"data":{}}', b'{"data":[1]}', b'{"data":[{}]}', b"\xff", b'{"data":['),
        b'{"data":[{"embedding":[NaN]}]}',
        b'{"data":[{"embedding":[1e999]}]}',
        b'{"data":[{"index":1,"embedding":[1.0]}]}',
        b'{"data":[{"index":-1,"embedding":[1.0]}]}',
        b'{"data":[{"index":"0","embedding":[1.0]}]}',
        b'{"data":[{"index":true,"embedding":[1.0]}]}',
        b'{"data":[{"index":0,"embedding":[1.0]},{"index":0,"embedding":[1.0]}]}',
        b'{"data":[]}',
        b'{"data":[{"embedding":[[1.0]]}]}',
    ],
)
def test_what_makes_no_sense_is_a_malformed_upstream(body: bytes) -> None:
    assert failure_of(embed("a"), at("openai"), body).kind is FailureKind.MALFORMED


def test_an_answer_of_very_many_empty_objects_is_not_held() -> None:
    body = b'{"data":[' + b"{}," * 2_000_000 + b"{}]}"
    assert failure_of(embed("a"), at("openai"), body).kind is FailureKind.MALFORMED


def test_an_error_within_a_200_is_an_error() -> None:
    body = b'{"error":{"message":"The model is overloaded.","type":"overloaded_error","code":"overloaded_error"}}'
    assert failure_of(embed("a"), at("openai"), body).kind is FailureKind.OVERLOADED
    call = b'{"object":"error","message":"bad","code":400}'
    sent = embeddings_calls(embed("a"), at("vllm")).calls[0]
    with pytest.raises(UpstreamError):
        family_answer(sent, call)


def test_usage_that_is_no_count_is_none() -> None:
    assert usage_in({"usage": {"prompt_tokens": "3"}}) is None
    assert usage_in({"usage": {"prompt_tokens": -3, "total_tokens": 4}}) == Usage(4, 0)
    assert usage_in({"usage": []}) is None
