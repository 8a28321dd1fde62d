"""Targets, requests and responses for the tests of tasks."""

from collections.abc import Mapping, Sequence
from typing import cast

import orjson
import pytest

from providers.dialect import TaskCalls
from providers.failure import Failure, Refusal, UpstreamError
from providers.json_types import JsonObject
from providers.target import OnUnsupported, Target
from providers.tasks.embeddings import Embeddings, EmbeddingsRequest
from providers.tasks.forms.prepare_task import embeddings_calls, rerank_calls
from providers.tasks.rerank import Ranking, RerankRequest
from tests.providers.dialects.kit import target_of


def embed(*inputs: str, **members: object) -> EmbeddingsRequest:
    """Return a request for the embeddings of texts."""
    return _with(EmbeddingsRequest("v/m", inputs or ("one", "two")), members)


def embed_ids(*inputs: tuple[int, ...], **members: object) -> EmbeddingsRequest:
    return _with(EmbeddingsRequest("v/m", inputs), members)


def _with(request: EmbeddingsRequest, members: Mapping[str, object]) -> EmbeddingsRequest:
    for name, value in members.items():
        object.__setattr__(request, name, value)
    return request


def rank(*documents: str, **members: object) -> RerankRequest:
    """Return a request to rank documents."""
    request = RerankRequest("v/m", "which", documents or ("one", "two", "three"))
    for name, value in members.items():
        object.__setattr__(request, name, value)
    return request


def at(profile: str, model: str = "tiny", **members: object) -> Target:
    return target_of(profile, model, **members)


def _prepared(
    request: EmbeddingsRequest | RerankRequest, target: Target, on_unsupported: OnUnsupported = "error"
) -> TaskCalls[Embeddings] | TaskCalls[Ranking]:
    if isinstance(request, EmbeddingsRequest):
        return embeddings_calls(request, target, on_unsupported)
    return rerank_calls(request, target, on_unsupported)


def bodies(calls: TaskCalls[Embeddings] | TaskCalls[Ranking]) -> list[JsonObject]:
    return [cast(JsonObject, orjson.loads(call.body)) for call in calls.calls]


def body_of(request: EmbeddingsRequest | RerankRequest, target: Target) -> JsonObject:
    """Return the body of the only call."""
    calls = _prepared(request, target)
    (body,) = bodies(calls)
    return body


def url_of(request: EmbeddingsRequest | RerankRequest, target: Target) -> str:
    calls = _prepared(request, target)
    return calls.calls[0].url


def answered(
    request: EmbeddingsRequest, target: Target, *answers: bytes, headers: Mapping[str, str] | None = None
) -> Embeddings:
    """Return the embeddings that result from the vendor's responses, one for each call."""
    calls = embeddings_calls(request, target)
    assert len(calls.calls) == len(answers)
    parts = [calls.decode(call, headers or {}, body) for call, body in zip(calls.calls, answers, strict=True)]
    return calls.join(parts)


def ranked(request: RerankRequest, target: Target, answer: bytes) -> Ranking:
    calls = rerank_calls(request, target)
    (call,) = calls.calls
    return calls.join([calls.decode(call, {}, answer)])


def numbers(embeddings: Embeddings) -> list[list[float]]:
    return [[*vector] for vector in embeddings.vectors]


def places(ranking: Ranking) -> list[tuple[int, float]]:
    return [(each.index, each.score) for each in ranking.results]


def refusal_of(
    request: EmbeddingsRequest | RerankRequest, target: Target, on_unsupported: OnUnsupported = "error"
) -> Refusal:
    with pytest.raises(Refusal) as caught:
        _prepared(request, target, on_unsupported)
    return caught.value


def failure_of(request: EmbeddingsRequest, target: Target, *answers: bytes) -> Failure:
    with pytest.raises(UpstreamError) as caught:
        answered(request, target, *answers)
    return caught.value.failure


def openai_answer(vectors: Sequence[Sequence[float] | str], tokens: int | None = 3) -> bytes:
    """Return a response in OpenAI's form."""
    data = [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(vectors)]
    usage = {} if tokens is None else {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
    return orjson.dumps({"object": "list", "data": data, "model": "m", **usage})
