"""Prepares the calls of an embeddings or rerank request on one target, and the functions that join their responses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from providers.completion import Usage, partial_usage
from providers.dialect import TaskCalls, UpstreamRequest
from providers.dialects.shared.read_json import malformed
from providers.failure import Refusal
from providers.json_types import JsonValue
from providers.target import OnUnsupported, Target
from providers.tasks.answer_bounds import check_members, most_of_ranking, most_of_vectors
from providers.tasks.embeddings import Embeddings, EmbeddingsRequest, Truncate
from providers.tasks.forms.registry import EMBEDDINGS_FORMS, RERANK_FORMS
from providers.tasks.rerank import Ranking, RerankRequest
from providers.tasks.split_inputs import MOST_LISTED, estimated_tokens, join_parts, split_inputs
from providers.tasks.task_draft import begin_draft, make_calls, profile_of
from providers.tasks.task_fields import TOKENS
from providers.unified_request import Task

_ENCODING = "encoding_format"

A = TypeVar("A")
Decode = Callable[[UpstreamRequest, Mapping[str, str], bytes], A]


def embeddings_calls(
    request: EmbeddingsRequest, target: Target, on_unsupported: OnUnsupported = "error"
) -> TaskCalls[Embeddings]:
    """Return the calls of an embeddings request, split by the vendor's limits. Raises Refusal."""
    draft = begin_draft(Task.EMBEDDINGS, request, _wanted_embeddings(request, target), target, on_unsupported)
    form = EMBEDDINGS_FORMS[draft.wire.form]
    compact = _ENCODING in draft.wire.accepts
    parts = split_inputs(request, draft.wire, len(request.inputs) if compact else MOST_LISTED)
    calls = make_calls(draft, form.url(draft), (form.body(draft, part) for part in parts))
    join = partial(join_parts, request, [len(part) for part in parts])
    largest = max(map(len, parts))
    decode = partial(_decode_checked, form.decode, largest)
    most = most_of_vectors(largest)
    return TaskCalls(target, calls, decode, join, most, tuple(draft.emulated), tuple(draft.dropped))


def _decode_checked(
    decode: Decode[A], inputs: int, sent: UpstreamRequest, headers: Mapping[str, str], body: bytes
) -> A:
    """Decode a response. Raises UpstreamError, also if the response has far more values than the number of inputs
    justifies."""
    check_members(sent.body, body, inputs)
    return decode(sent, headers, body)


def _wanted_embeddings(request: EmbeddingsRequest, target: Target) -> dict[str, JsonValue]:
    """Return the optional fields of a request, by name. Defaults are left out. Base64 is requested from every vendor
    that has it, since the response is a quarter as long and is read in a tenth of the time."""
    wanted: dict[str, JsonValue] = {}
    wire = profile_of(target).tasks.get(Task.EMBEDDINGS)
    if request.tokenized:
        wanted[TOKENS] = True
    if request.base64 or (wire is not None and _ENCODING in wire.accepts):
        wanted[_ENCODING] = "base64"
    input_type = request.input_type or _configured_type(target)
    fields = (("dimensions", request.dimensions), ("input_type", input_type), ("user", request.user))
    wanted.update((name, value) for name, value in fields if value is not None)
    return {**wanted, **_truncation(request.truncate, target, Task.EMBEDDINGS)}


def _configured_type(target: Target) -> str | None:
    """Return the configured `input_type`; `None` if the model does not accept one."""
    wire = profile_of(target).tasks.get(Task.EMBEDDINGS)
    return target.input_type if wire is not None and "input_type" in wire.accepts else None


def rerank_calls(request: RerankRequest, target: Target, on_unsupported: OnUnsupported = "error") -> TaskCalls[Ranking]:
    """Return the call of a rerank request. The documents are never split, because scores of two calls need not be
    comparable. Raises Refusal."""
    draft = begin_draft(Task.RERANK, request, _wanted_rerank(request, target), target, on_unsupported)
    if draft.wire.most is not None and len(request.documents) > draft.wire.most:
        message = f"{target.name} ranks at most {draft.wire.most} documents at once; 'documents' has more."
        raise Refusal("documents", message, "invalid_value")
    if request.objects:
        draft.dropped.append("documents")
    form = RERANK_FORMS[draft.wire.form]
    calls = make_calls(draft, form.url(draft), [form.body(draft, request)])
    join = partial(_join_ranking, request)
    decode = partial(_decode_checked, form.decode, len(request.documents))
    most = most_of_ranking(request.documents, calls[0].body)
    return TaskCalls(target, calls, decode, join, most, tuple(draft.emulated), tuple(draft.dropped))


def _wanted_rerank(request: RerankRequest, target: Target) -> dict[str, JsonValue]:
    wanted: dict[str, JsonValue] = {"return_documents": True} if request.return_documents else {}
    fields = (
        # Some vendors refuse a number above the number of documents.
        ("top_n", None if request.top_n is None else min(request.top_n, len(request.documents))),
        ("max_tokens_per_doc", request.max_tokens_per_doc),
        ("user", request.user),
    )
    wanted.update((name, value) for name, value in fields if value is not None)
    return {**wanted, **_truncation(request.truncate, target, Task.RERANK)}


def _join_ranking(request: RerankRequest, parts: Sequence[Ranking]) -> Ranking:
    """Return the ranking, best first and cut to the requested length, with the vendor's usage or an estimate. Raises
    UpstreamError(MALFORMED) if the ranking has documents that the request does not have, or too few documents."""
    (found,) = parts
    results = sorted(found.results, key=lambda each: -each.score)
    indices = {each.index for each in results}
    if len(indices) < len(results) or not indices.issubset(range(len(request.documents))):
        raise malformed("ranks a document twice, or one that does not exist")
    most = min(request.top_n or len(request.documents), len(request.documents))
    if len(results) < most:
        raise malformed(f"ranks {len(results)} of {most} documents")
    return replace(found, results=results[:most], usage=found.usage or _estimated(request))


def _estimated(request: RerankRequest) -> Usage | None:
    """Return an estimate of a ranking's usage. The model reads the query with each document (voyageai 0.5.0
    `Client.rerank`; vLLM 0.33 counts the same way)."""
    query = estimated_tokens(request.query) * len(request.documents)
    return partial_usage(query + sum(map(estimated_tokens, request.documents)), 0)


def _truncation(truncate: Truncate, target: Target, task: Task) -> dict[str, JsonValue]:
    """Return the field that says which end of a long input may be cut. The value `none` is sent only if the vendor has
    a word for it, since some vendors cut by default."""
    wire = profile_of(target).tasks.get(task)
    has_word_for_none = wire is not None and "none" in wire.words.get("truncate", ())
    return {"truncate": truncate} if has_word_for_none or truncate != "none" else {}
