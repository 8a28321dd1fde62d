"""The cells of the task matrix: every field of every vendor that has the task, and its handling by the encoder."""

import pytest

from providers.failure import Refusal
from providers.profiles.load_profiles import load_profiles
from providers.tasks.forms.prepare_task import embeddings_calls, rerank_calls
from providers.tasks.forms.registry import EMBEDDINGS_FORMS, RERANK_FORMS
from providers.tasks.task_fields import TASK_FIELDS, TOKENS, no_task, task_cells
from providers.unified_request import Task
from tests.providers.kit import refusal_of
from tests.providers.tasks.kit import at, bodies, embed, embed_ids, rank
from tests.support.looped import looped

PROFILES = load_profiles()
EMBEDDING = [name for name, profile in PROFILES.items() if Task.EMBEDDINGS in profile.tasks]
RANKING = [name for name, profile in PROFILES.items() if Task.RERANK in profile.tasks]
OF_ISSUE = (
    *("openai", "azure", "azure_v1", "vllm", "llamacpp", "ollama", "ollama_native", "tei", "mistral", "cohere"),
    *("gemini", "vertex", "bedrock", "voyage", "jina", "nomic", "together", "watsonx", "databricks", "cloudflare"),
)
ASKED = {
    "encoding_format": embed(base64=True, input_type="search_query"),
    "dimensions": embed(dimensions=64, input_type="search_query"),
    "input_type": embed(input_type="search_query"),
    "truncate": embed(truncate="end", input_type="search_query"),
    "user": embed(user="u", input_type="search_query"),
    "unknown": embed(unknown={"odd": 1}, input_type="search_query"),
}
RANK_ASKED = {
    "top_n": rank(top_n=2),
    "return_documents": rank(return_documents=True),
    "max_tokens_per_doc": rank(max_tokens_per_doc=9),
    "truncate": rank(truncate="end"),
    "user": rank(user="u"),
    "unknown": rank(unknown={"odd": 1}),
}


@looped("name", OF_ISSUE)
def test_the_vendors_that_are_promised_embed(name: str) -> None:
    assert name in EMBEDDING


@looped("name", ["cohere", "jina", "voyage", "vllm", "tei", "bedrock", "llamacpp", "together"])
def test_the_vendors_that_are_promised_rank(name: str) -> None:
    assert name in RANKING


@looped("name", PROFILES)
def test_a_profile_names_forms_and_fields_that_exist(name: str) -> None:
    forms = {Task.EMBEDDINGS: set(EMBEDDINGS_FORMS), Task.RERANK: set(RERANK_FORMS)}
    profiles = [PROFILES[name], *(profile for _, profile in PROFILES[name].overrides)]
    for profile in profiles:
        for task, fields in TASK_FIELDS.items():
            wire = profile.tasks.get(task)
            if wire is not None:
                assert wire.form in forms[task]
                assert wire.accepts <= set(fields)
                assert set(wire.rename) <= set(fields)
                assert set(wire.words) <= set(fields)
                assert wire.examples


@looped("field", ASKED)
@looped("name", EMBEDDING)
def test_the_encoder_of_embeddings_does_what_the_cell_says(name: str, field: str) -> None:
    target = at(name)
    cells = task_cells(PROFILES[name], Task.EMBEDDINGS)
    request = ASKED[field]
    if cells["input_type"].refused and field != "input_type":
        request = embed(
            base64=request.base64,
            dimensions=request.dimensions,
            truncate=request.truncate,
            user=request.user,
            unknown=request.unknown,
        )
    cell = cells[field]
    if cell.refused:
        refusal = refusal_of(embeddings_calls, request, target)
        assert refusal.param == ("odd" if field == "unknown" else field)
        assert cell.how in refusal.message
        return
    calls = embeddings_calls(request, target)
    assert (field in calls.emulated) == cell.emulated
    assert (field in calls.dropped) == cell.left_out
    if cell.native:
        plain = embeddings_calls(embed(input_type=request.input_type), target)
        assert bodies(calls) != bodies(plain) or field in ("input_type", "encoding_format")


@looped("name", EMBEDDING)
def test_token_ids_go_where_the_cell_says(name: str) -> None:
    request = embed_ids((1, 2))
    if task_cells(PROFILES[name], Task.EMBEDDINGS)[TOKENS].native:
        assert b"[[1,2]]" in embeddings_calls(request, at(name)).calls[0].body
    else:
        with pytest.raises(Refusal, match="LangChain: check_embedding_ctx_length=False") as caught:
            embeddings_calls(request, at(name))
        assert caught.value.param == "input"


@looped("field", RANK_ASKED)
@looped("name", RANKING)
def test_the_encoder_of_rankings_does_what_the_cell_says(name: str, field: str) -> None:
    target = at(name)
    if name == "bedrock":
        object.__setattr__(target, "base_url", "https://bedrock-runtime.eu-west-1.amazonaws.com")
    cell = task_cells(PROFILES[name], Task.RERANK)[field]
    if cell.refused:
        assert refusal_of(rerank_calls, RANK_ASKED[field], target).param == ("odd" if field == "unknown" else field)
        return
    calls = rerank_calls(RANK_ASKED[field], target)
    assert (field in calls.emulated) == cell.emulated
    assert (field in calls.dropped) == cell.left_out
    if cell.native:
        assert bodies(calls) != bodies(rerank_calls(rank(), target))


def test_a_vendor_without_the_task_refuses_every_field_of_it() -> None:
    cells = task_cells(PROFILES["anthropic"], Task.RERANK)
    assert set(cells.values()) == {no_task(Task.RERANK)}
