"""The matrix of tasks: an entry for each example of each vendor that has the task."""

from providers.capabilities import Support
from providers.dialects.task_matrix import task_entries
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Task


def test_models_that_differ_have_entries_of_their_own() -> None:
    entries = {(entry.model, entry.task): entry for entry in task_entries([load_profiles()["openai"]])}
    assert set(entries) == {("text-embedding-3-small", Task.EMBEDDINGS), ("text-embedding-ada-002", Task.EMBEDDINGS)}
    supports = [entry.cells["dimensions"].support for entry in entries.values()]
    assert supports == [Support.NATIVE, Support.REFUSED]


def test_an_entry_has_the_wire_of_its_model() -> None:
    forms = {entry.model: entry.wire.form for entry in task_entries([load_profiles()["bedrock"]])}
    assert forms["cohere.embed-v4:0"] == "bedrock_cohere"
    assert forms["amazon.titan-embed-text-v2:0"] == "bedrock_titan"


def test_a_vendor_without_tasks_has_no_entry() -> None:
    assert list(task_entries([load_profiles()["anthropic"]])) == []
