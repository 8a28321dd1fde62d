"""The names of a target: one for people, one whose values a client cannot multiply."""

from dataclasses import replace

from tests.providers.dialects.anthropic.kit import TARGET


def test_a_targets_name_is_what_the_answer_is_said_to_come_from() -> None:
    assert TARGET.name == "anthropic/claude-haiku-4-5/default"


def test_a_targets_label_is_its_row_of_the_table_whatever_model_was_asked_for() -> None:
    wildcard = replace(TARGET, table_key="anthropic/*")
    assert wildcard.label == replace(wildcard, model="anything").label == "anthropic/*/default"
