"""The name of a target for people, its label whose values a client cannot multiply, the cost of its responses, and the
fields that clients may send to it."""

from dataclasses import replace

from providers.target import NO_MEDIA, NO_PERMITS, Media
from tests.providers.dialects.anthropic.kit import TARGET


def test_a_targets_name_is_what_the_answer_is_said_to_come_from() -> None:
    assert TARGET.name == "anthropic/claude-haiku-4-5/default"


def test_a_targets_label_is_its_row_of_the_table_whatever_model_was_asked_for() -> None:
    wildcard = replace(TARGET, model_key="anthropic/*")
    assert wildcard.label == replace(wildcard, model="anything").label == "anthropic/*/default"


def test_the_nearer_word_counts_setting_by_setting() -> None:
    team, deployment = Media(frozenset({"data"})), Media(frozenset({"gs"}), allow_private=True)
    assert team.over(deployment) == Media(frozenset({"data"}), allow_private=True)
    assert NO_MEDIA.over(deployment) == deployment
    assert Media(allow_private=False).over(deployment) == Media(frozenset({"gs"}), allow_private=False)


def test_an_empty_list_is_a_word_too() -> None:
    assert Media(frozenset()).over(Media(frozenset({"gs"}))).schemes == frozenset()


def test_nothing_is_allowed_unasked() -> None:
    assert (NO_PERMITS.fields, NO_PERMITS.headers, NO_PERMITS.media) == (frozenset(), (), NO_MEDIA)
    assert NO_PERMITS.reach("10.0.0.9") == "unknown"
