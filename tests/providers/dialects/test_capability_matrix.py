"""The matrix gives the behavior of the dialects for each vendor, model and endpoint. The test of its truth is in
tests/conformance."""

import pytest

from providers.capabilities import FEATURES, Support
from providers.dialects.capability_matrix import MatrixEntry, count_cells, matrix_entries, summarize
from providers.profiles.load_profiles import load_profiles
from providers.request_fields import ADVISORY
from providers.unified_request import Operation

EVERY = tuple(matrix_entries(load_profiles().values()))


def row(profile: str, model: str, operation: Operation, window: int | None = None) -> MatrixEntry:
    made = matrix_entries([load_profiles()[profile]], window)
    return next(each for each in made if (each.model, each.operation) == (model, operation))


def test_every_example_of_every_profile_that_generates_text_has_a_row_for_each_operation() -> None:
    generating = {name: each for name, each in load_profiles().items() if each.wires}
    expected = [(name, model, op) for name, each in generating.items() for model in each.examples for op in Operation]
    assert [(each.profile, each.model, each.operation) for each in EVERY] == expected


def test_a_row_has_a_cell_for_each_feature_its_clients_can_ask_for() -> None:
    for each in EVERY:
        assert list(each.cells) == [name for name, feature in FEATURES.items() if each.operation in feature.operations]


def test_a_feature_is_asked_at_the_endpoint_its_request_goes_to() -> None:
    deepseek = row("deepseek", "deepseek-chat", Operation.COMPLETIONS).cells
    assert deepseek["prompt"].emulated
    assert deepseek["suffix"].native
    vllm = row("vllm", "model", Operation.COMPLETIONS).cells
    assert vllm["prompt"].native
    assert vllm["tools"].native
    assert vllm["tool_choice.required"].native


def test_an_endpoint_that_a_model_lacks_is_refused_with_the_reason() -> None:
    chat = row("openai", "gpt-3.5-turbo-instruct", Operation.CHAT)
    reason = "the model takes raw prompts only; use a completions endpoint"
    assert {(cell.support, cell.how) for cell in chat.cells.values()} == {(Support.REFUSED, reason)}
    assert chat.closed == reason
    assert row("openai", "gpt-3.5-turbo-instruct", Operation.COMPLETIONS).closed == ""


@pytest.mark.parametrize("operation", Operation)
def test_a_window_in_the_table_lets_the_gateway_count(operation: Operation) -> None:
    feature = "context_length_exceeded_behavior.error"
    assert row("ollama", "model", operation).cells[feature].refused
    assert row("ollama", "model", operation, 4096).cells[feature].emulated


def test_the_sizes_are_counted_by_kind() -> None:
    found = count_cells(EVERY)
    assert list(found) == list(Support)
    assert sum(found.values()) == sum(len(each.cells) for each in EVERY)
    assert min(found.values()) > 0
    total, native, emulated, left_out, refused = (sum(found.values()), *found.values())
    words = f"{native} native, {emulated} emulated, {left_out} left out, {refused} refused"
    assert summarize(EVERY) == f"{total} cells: {words}"


def test_a_model_leaves_out_advisory_fields_alone_and_refuses_none() -> None:
    for each in EVERY:
        for name, cell in each.cells.items():
            advisory = FEATURES[name].field_class is ADVISORY
            assert not cell.left_out or advisory
            assert not (advisory and cell.refused) or each.closed, (each.profile, each.model, name)
