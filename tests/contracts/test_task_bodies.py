"""Bodies of embeddings and rankings equal the bodies that the vendors' own SDKs accept or send for the same request."""

import pytest

from providers.dialects.task_matrix import TaskMatrixEntry, task_entries
from providers.profiles.load_profiles import load_profiles
from providers.tasks.embeddings import EmbeddingsRequest
from providers.tasks.forms.prepare_task import embeddings_calls, rerank_calls
from providers.tasks.rerank import RerankRequest
from providers.unified_request import Task
from tests.contracts.sdk_judges import Judges
from tests.providers.dialects.kit import target_of
from tests.support.looped import looped

VERTEX = "https://eu-aiplatform.googleapis.com/v1/projects/p/locations/eu"
JUDGED = ("openai", "azure", "together", "mistral", "ollama", "ollama_native", "cohere", "gemini", "vertex")
ENTRIES = list(task_entries([load_profiles()[name] for name in JUDGED]))


def bodies(entry: TaskMatrixEntry) -> list[bytes]:
    """Return the body of a request without optional fields, and the body of a request with all fields that the vendor
    honours."""
    address = {"base_url": VERTEX} if entry.profile == "vertex" else {}
    target = target_of(entry.profile, entry.model, **address)
    native = {name for name, cell in entry.cells.items() if cell.native}
    if entry.task is Task.RERANK:
        plain = RerankRequest("v/m", "which", ("one", "two"))
        full = RerankRequest(
            "v/m",
            "which",
            ("one", "two"),
            top_n=1 if "top_n" in native else None,
            max_tokens_per_doc=9 if "max_tokens_per_doc" in native else None,
        )
        return [call.body for request in (plain, full) for call in rerank_calls(request, target).calls]
    use = "search_query" if "input_type" in native else None
    least = EmbeddingsRequest("v/m", ("one", "two"), input_type=use)
    most = EmbeddingsRequest(
        "v/m",
        ("one", "two"),
        base64="encoding_format" in native,
        dimensions=256 if "dimensions" in native else None,
        input_type=use,
        truncate="end" if "truncate" in native else "none",
        user="u" if "user" in native else None,
    )
    return [call.body for request in (least, most) for call in embeddings_calls(request, target).calls]


@pytest.mark.clients
@pytest.mark.timeout(300)
@looped("entry", ENTRIES, ids=lambda entry: f"{entry.profile}-{entry.model}-{entry.task}")
def test_what_goes_out_is_what_the_sdk_takes_or_sends(entry: TaskMatrixEntry, judges: Judges) -> None:
    own = entry.wire.form if entry.wire.form == "vertex_content" else entry.profile
    for body in bodies(entry):
        assert judges.fault("task_sdk_types", "body", [body], f"{own} {entry.task}") is None, body
