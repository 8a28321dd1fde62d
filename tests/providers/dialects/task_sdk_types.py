"""Check the bodies of embeddings and rankings against the vendors' own SDKs.

openai 3.54.0, together 3.1.1, mistralai 3.7.0, ollama 0.6.3: against their types. cohere 7.3.1, google-genai 3.4.0:
against the body that the SDK itself would send for the same request.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import httpx  # type: ignore[import-not-found]
from cohere import ClientV2  # type: ignore[import-not-found]
from cohere.core.api_error import ApiError  # type: ignore[import-not-found]
from google import genai  # type: ignore[attr-defined,unused-ignore]
from google.auth.credentials import AnonymousCredentials
from mistralai.client.models import EmbeddingRequest  # type: ignore[import-not-found]
from ollama._types import EmbedRequest  # type: ignore[import-not-found]
from openai.types.embedding_create_params import EmbeddingCreateParams  # type: ignore[import-not-found]
from together.types import embedding_create_params, rerank_create_params  # type: ignore[import-not-found]

from tests.contracts.strict_types import strict_adapter

Foreign: TypeAlias = Any  # an SDK's object; no SDK is installed for the type check

_ONCE = {"max_retries": 0}


class _SentError(Exception):
    """Raised with the body that the SDK was about to send."""


def check_body(operation: str, body: bytes) -> None:
    """Raise for anything that the SDK's types do not have, or that the SDK would not send."""
    _CHECKS[operation](json.loads(body))


def _typed(types: Foreign) -> Callable[[Foreign], None]:
    def check(body: Foreign) -> None:
        strict_adapter(types).validate_python(body)

    return check


def _model(types: Foreign) -> Callable[[Foreign], None]:
    def check(body: Foreign) -> None:
        known = {each.alias or name for name, each in types.model_fields.items()}
        assert body.keys() <= known, body.keys() - known
        types.model_validate(body)

    return check


def _cohere(call: Callable[[ClientV2, Foreign], object]) -> Callable[[Foreign], None]:
    def check(body: Foreign) -> None:
        sent: list[Foreign] = []

        def answer(request: httpx.Request) -> httpx.Response:
            sent.append(json.loads(request.content))
            return httpx.Response(500)

        client = ClientV2(api_key="k", httpx_client=httpx.Client(transport=httpx.MockTransport(answer)))
        with suppress(ApiError):
            call(client, body)
        assert sent == [body]

    return check


def _google(
    client: Callable[[], Foreign], texts: Callable[[Foreign], Foreign], config: Callable[[Foreign], Foreign]
) -> Callable[[Foreign], None]:
    def check(body: Foreign) -> None:
        sent: list[Foreign] = []

        def request(method: str, path: str, data: Foreign, http_options: object = None) -> None:
            sent.append({name: value for name, value in data.items() if name != "_url"})
            raise _SentError

        made = client()
        made._api_client.request = request
        model = body.get("requests", [{"model": "gemini-embedding-2" if "content" in body else "text-embedding-005"}])
        try:
            made.models.embed_content(model=model[0]["model"], contents=texts(body), config=config(body))
        except _SentError:
            assert [json.loads(json.dumps(sent[0]).replace(', "role": "user"', ""))] == [body]
            return
        raise AssertionError("nothing was sent")

    return check


def _of_gemini(body: Foreign) -> Foreign:
    first = body["requests"][0]
    return {"task_type": first.get("taskType"), "output_dimensionality": first.get("outputDimensionality")}


def _of_predict(body: Foreign) -> Foreign:
    parameters = body["parameters"]
    return {
        "task_type": body["instances"][0].get("task_type"),
        "output_dimensionality": parameters.get("outputDimensionality"),
        "auto_truncate": parameters.get("autoTruncate"),
    }


def _of_content(body: Foreign) -> Foreign:
    own = body["embedContentConfig"]
    return {
        "task_type": own.get("taskType"),
        "output_dimensionality": own.get("outputDimensionality"),
        "auto_truncate": own.get("autoTruncate"),
    }


def _studio() -> Foreign:
    return genai.Client(api_key="k")


def _vertex() -> Foreign:
    return genai.Client(vertexai=True, project="p", location="eu", credentials=AnonymousCredentials())  # type: ignore[no-untyped-call,unused-ignore]


_CHECKS: Mapping[str, Callable[[Foreign], None]] = {
    "openai embeddings": _typed(EmbeddingCreateParams),
    "azure embeddings": _typed(EmbeddingCreateParams),
    "together embeddings": _typed(embedding_create_params.EmbeddingCreateParams),
    "together rerank": _typed(rerank_create_params.RerankCreateParams),
    "mistral embeddings": _model(EmbeddingRequest),
    "ollama embeddings": _model(EmbedRequest),
    "ollama_native embeddings": _model(EmbedRequest),
    "cohere embeddings": _cohere(lambda client, body: client.embed(**body, request_options=_ONCE)),
    "cohere rerank": _cohere(lambda client, body: client.rerank(**body, request_options=_ONCE)),
    "gemini embeddings": _google(
        _studio, lambda body: [each["content"]["parts"][0]["text"] for each in body["requests"]], _of_gemini
    ),
    "vertex embeddings": _google(_vertex, lambda body: [each["content"] for each in body["instances"]], _of_predict),
    "vertex_content embeddings": _google(_vertex, lambda body: body["content"]["parts"][0]["text"], _of_content),
}
"""The checks, by task and by profile or, if a model of the profile has its own, by wire form."""
