"""The losses that a translation notes, and the paths of its errors."""

from proxy.surfaces.anthropic.translation import Translation, kind_of, with_path
from proxy.surfaces.request.rule_kinds import Invalid
from tests.support.not_none import not_none


def test_a_translation_that_says_everything_loses_nothing() -> None:
    assert Translation().losses() is None


def test_instructions_within_the_conversation_are_for_the_planning_to_know_of() -> None:
    losses = not_none(Translation(instructs_later=True).losses())
    assert (losses.binding, losses.left_out, losses.instead) == ({}, (), {})


def test_the_first_of_a_field_s_bindings_is_told() -> None:
    made = Translation()
    made.bind("tools", "a tool of type 'a'")
    made.bind("tools", "a tool of type 'b'")
    made.bind("container")
    made.leave_out("display")
    losses = not_none(made.losses())
    assert losses.binding == {"tools": "'tools' with a tool of type 'a'", "container": "'container'"}
    assert losses.left_out == ("display",)


def test_a_path_comes_before_that_of_the_problem() -> None:
    made = with_path(Invalid("must be good", "text", code="some_code"), 1, "content", 2)
    assert (made.loc, made.message, made.code) == ((1, "content", 2, "text"), "must be good", "some_code")


def test_a_type_is_shown_in_part() -> None:
    assert kind_of({"type": "x" * 100}) == "x" * 64
    assert kind_of({"type": 1}, "none") == "none"
