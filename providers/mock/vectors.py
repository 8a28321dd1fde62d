"""The mock's embeddings and rankings. A vector depends on the words of a text alone, so texts with the same words have
similar vectors.

Fields and bounds: OpenAI OpenAPI 2.3.0 "Create embeddings"; the ranking has Cohere's and Jina's form.
"""

import base64
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from math import sqrt

import orjson

from providers.json_types import JsonObject, JsonValue
from providers.mock.errors import bad_request
from providers.mock.fields import Fields
from providers.mock.vocabulary import tokenize

DIMENSIONS = 256
MAX_DIMENSIONS = 1024
MAX_INPUTS = 256
MAX_DOCUMENTS = 1000
_POSITIONS_PER_WORD = 4
_COMMON_FIELDS = frozenset({"model", "user"})
_KNOWN_FIELDS: Mapping[str, frozenset[str]] = {
    "/embeddings": _COMMON_FIELDS | {"input", "encoding_format", "dimensions", "input_type"},
    "/rerank": _COMMON_FIELDS | {"query", "documents", "top_n"},
}


def is_task(path: str) -> bool:
    """Return whether a path, relative to the base URL, is one of these endpoints."""
    return path in _KNOWN_FIELDS


def task_model(path: str, data: bytes) -> tuple[str, JsonObject]:
    """Return the model and the body of a request. Raises MockError."""
    try:
        body = orjson.loads(data)
    except orjson.JSONDecodeError:
        raise bad_request(None, "We could not parse the JSON body of your request.") from None
    if not isinstance(body, dict):
        raise bad_request(None, "The body of your request must be a JSON object.")
    for name in body:
        if name not in _KNOWN_FIELDS[path]:
            raise bad_request(name, f"Unrecognized request argument supplied: {name}")
    model = Fields(body).text("model")
    if not model:
        raise bad_request("model", "you must provide a model parameter")
    return model, body


def task_body(path: str, model: str, body: JsonObject) -> bytes:
    """Return the body of the response. Raises MockError."""
    return orjson.dumps(_RESPONSES[path](model, Fields(body)))


def _embeddings(model: str, fields: Fields) -> JsonObject:
    inputs = _inputs(fields.any("input"))
    length = fields.integer("dimensions", 1, MAX_DIMENSIONS) or DIMENSIONS
    form = fields.text("encoding_format") or "float"
    if form not in ("float", "base64"):
        raise bad_request("encoding_format", f"Invalid value for 'encoding_format': {form}.")
    data: list[JsonValue] = []
    for index, tokens in enumerate(inputs):
        vector = _vector(tokens, length)
        embedding: JsonValue = [*vector] if form == "float" else _base64(vector)
        data.append({"object": "embedding", "index": index, "embedding": embedding})
    count = sum(map(len, inputs))
    usage: JsonObject = {"prompt_tokens": count, "total_tokens": count}
    return {"object": "list", "data": data, "model": model, "usage": usage}


def _ranking(model: str, fields: Fields) -> JsonObject:
    query, documents = fields.text("query"), fields.strings("documents")
    if not query or not documents:
        raise bad_request("query" if documents else "documents", "'query' and 'documents' must not be empty.")
    if len(documents) > MAX_DOCUMENTS:
        raise bad_request("documents", f"'documents' must not have more than {MAX_DOCUMENTS} texts.")
    count = fields.integer("top_n", 1, 10**6) or len(documents)
    words = [tokenize(query), *map(tokenize, documents)]
    query_vector, *vectors = [_vector(tuple(each), DIMENSIONS) for each in words]
    scores = [(1 + sum(a * b for a, b in zip(query_vector, vector, strict=True))) / 2 for vector in vectors]
    best = sorted(range(len(scores)), key=lambda index: (-scores[index], index))[:count]
    results: list[JsonValue] = [{"index": index, "relevance_score": round(scores[index], 6)} for index in best]
    usage: JsonObject = {"total_tokens": sum(map(len, words))}
    return {"model": model, "results": results, "usage": usage}


def _inputs(value: JsonValue) -> list[tuple[str, ...]]:
    """Return the words of each input. The value is a text, texts, token ids, or lists of token ids."""
    input_list = value if isinstance(value, list) else [value]
    if input_list and all(isinstance(item, int) for item in input_list):
        input_list = [value]
    if not input_list or len(input_list) > MAX_INPUTS:
        raise bad_request("input", f"'input' must have from 1 to {MAX_INPUTS} texts.")
    return [_words(item) for item in input_list]


def _words(item: JsonValue) -> tuple[str, ...]:
    if isinstance(item, str) and item:
        return tuple(tokenize(item))
    if isinstance(item, list) and item and all(isinstance(each, int) for each in item):
        return tuple([str(each) for each in item])
    raise bad_request("input", "'input' must be a string, strings, token ids or lists of token ids, and not empty.")


def _vector(words: Sequence[str], length: int) -> list[float]:
    """Return the unit vector of a text. Each word adds to a few positions of the vector, which depend on the word."""
    sums = [0] * length
    for each in words:
        for position, sign in _positions(each.strip().lower()):
            sums[position % length] += sign
    size = sqrt(sum([value * value for value in sums]))
    if not size:
        return [1.0, *([0.0] * (length - 1))]
    return [round(value / size, 7) for value in sums]


@lru_cache(maxsize=4096)
def _positions(text: str) -> tuple[tuple[int, int], ...]:
    digest = blake2b(text.encode(errors="replace"), digest_size=2 * _POSITIONS_PER_WORD).digest()
    numbers = struct.unpack(f"<{_POSITIONS_PER_WORD}H", digest)
    return tuple([(value >> 1, 1 if value & 1 else -1) for value in numbers])


def _base64(vector: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")


_RESPONSES: Mapping[str, Callable[[str, Fields], JsonObject]] = {"/embeddings": _embeddings, "/rerank": _ranking}
