"""OpenAI's embeddings as a client API: parses a body into an EmbeddingsRequest, and renders the response.

Sources: OpenAI OpenAPI 2.3.0 "Create embeddings". The other names of fields, and the values of `input_type`, come from
cohere 7.3.1, voyageai 0.5.0, Jina's "Embeddings API", google-genai 3.4.0 and the Nomic Atlas API, November 2026.
"""

from collections.abc import Mapping
from typing import Final

import orjson

from providers.json_types import JsonObject, JsonValue
from providers.tasks.embeddings import Embeddings, EmbeddingsRequest, Texts, TokenLists, Vector
from providers.tasks.read_vectors import write_base64
from providers.tasks.task_fields import VECTOR_FORMS
from proxy.surfaces.request.rule_kinds import Check, Invalid, check_at, integer, one_of, string, text
from proxy.surfaces.surface import AnswerFacts
from proxy.surfaces.tasks.answer_members import usage_fields, with_id
from proxy.surfaces.tasks.read_fields import TaskFields, read_fields

MAX_INPUTS: Final = 2048
MAX_DIMENSIONS: Final = 65536
_LARGEST_ID: Final = 2**32 - 1
_RENDERED_FIELDS: Final = frozenset({"object", "data"})

_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("query", "search_query", "retrieval.query", "retrieval_query", "nl2code.query"), "search_query"),
    **dict.fromkeys(("document", "passage", "search_document", "retrieval.passage"), "search_document"),
    **dict.fromkeys(("retrieval_document",), "search_document"),
    **dict.fromkeys(("classification",), "classification"),
    **dict.fromkeys(("clustering", "separation"), "clustering"),
    **dict.fromkeys(("similarity", "semantic_similarity", "text-matching"), "similarity"),
    **dict.fromkeys(("code_query", "code.query", "code_retrieval_query"), "code_query"),
    **dict.fromkeys(("code_document", "code.passage"), "code_document"),
    "question_answering": "question_answering",
    "fact_verification": "fact_verification",
}
"""Maps the words of all vendors' clients for the purpose of inputs to the unified words. Other words go to the vendor
unchanged."""


def _input(value: JsonValue) -> Texts | TokenLists:
    """Check the input: a text, a list of texts, the token ids of one text, or the token ids of several texts."""
    if isinstance(value, str):
        return (text(value),)
    if not isinstance(value, list) or not value:
        raise Invalid("must be a non-empty string, token ids, or a list of either, and not empty")
    if type(value[0]) is int:
        return (_token_ids(value),)
    if len(value) > MAX_INPUTS:
        raise Invalid(f"may hold at most {MAX_INPUTS} inputs")
    if not isinstance(value[0], str | list):
        raise Invalid("must be a text or token ids, which are integers", 0)
    if isinstance(value[0], list):
        return tuple([check_at(_token_ids, item, index) for index, item in enumerate(value)])
    return tuple([check_at(text, item, index) for index, item in enumerate(value)])


def _token_ids(value: JsonValue) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise Invalid("must be a list of token ids, and not empty")
    ids = tuple([item for item in value if type(item) is int])
    if len(ids) < len(value) or min(ids) < 0 or max(ids) > _LARGEST_ID:
        raise Invalid("must hold token ids, integers from 0, alone")
    return ids


def _input_type(value: JsonValue) -> str:
    word = string(value)
    return _TYPES.get(word.lower(), word)


_CHECKS: Mapping[str, Check] = {
    "input": _input,
    "encoding_format": one_of("float", "base64"),
    "dimensions": integer(1, MAX_DIMENSIONS),
    "input_type": _input_type,
}

_ALIASES: Mapping[str, str] = {
    "task": "input_type",
    "task_type": "input_type",
    "output_dimension": "dimensions",
    "dimensionality": "dimensions",
    "truncation": "truncate",
}


def parse_embeddings(body: bytes, default_model: str | None = None) -> EmbeddingsRequest:
    """Return the checked request, with `default_model` as its model if the body has no `model`. Raises GatewayError
    with all problems."""
    fields = read_fields(body, _CHECKS, _ALIASES)
    _check_forms(fields, fields.unknown)
    _check_forms(fields, fields.get("inference_extra_params", dict) or {})
    inputs: Texts | TokenLists = fields.required("input", tuple, ())
    model = fields.model(default_model)
    fields.end()
    return EmbeddingsRequest(
        model,
        inputs,
        base64=fields.get("encoding_format", str) == "base64",
        dimensions=fields.get("dimensions", int),
        input_type=fields.get("input_type", str),
        truncate=fields.truncate,
        user=fields.get("user", str),
        unknown=fields.unknown or None,
        timeout=fields.get("inference_timeout", float),
        extra_params=fields.get("inference_extra_params", dict),
        extra_headers=fields.get("inference_extra_headers", dict),
    )


def _check_forms(fields: TaskFields, given: JsonObject) -> None:
    """Remove fields that request vectors of single floats, because all vectors have this form. Refuse fields that
    request another form."""
    for name in VECTOR_FORMS.keys() & given.keys():
        if given.pop(name) not in VECTOR_FORMS[name]:
            advice = "would give vectors that are not single floats, which this API cannot carry"
            fields.refuse(name, Invalid(advice, code="unsupported_parameter"))


def render_embeddings(request: EmbeddingsRequest, answer: Embeddings, facts: AnswerFacts) -> bytes:
    """Return the body of the response. Vectors are written one by one, because their lists of numbers take much
    memory."""
    vendor_fields = {name: value for name, value in answer.own.items() if name not in _RENDERED_FIELDS}
    rest: dict[str, object] = {**with_id(vendor_fields, f"embd-{facts.unique}"), "model": facts.model}
    if usage := usage_fields(answer.usage, answer.details):
        rest["usage"] = usage
    write = _in_base64 if request.base64 else _as_numbers
    parts = [b'{"object":"list","data":[']
    for index, vector in enumerate(answer.vectors):
        comma = b"," if index else b""
        parts.append(b'%b{"object":"embedding","index":%d,"embedding":%b}' % (comma, index, write(vector)))
    parts.append(b"],%b" % orjson.dumps(rest)[1:])
    return b"".join(parts)


def _as_numbers(vector: Vector) -> bytes:
    return orjson.dumps(vector.tolist())


def _in_base64(vector: Vector) -> bytes:
    return b'"%b"' % write_base64(vector).encode("ascii")
