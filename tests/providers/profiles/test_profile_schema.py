"""Rows as written: which values apply to which operation, and that no value is converted silently."""

import pytest
from pydantic import ValidationError

from providers.failure import FailureKind
from providers.profiles.profile_schema import ErrorsEntry, ProfileEntry, Scope, scoped_fields, scoped_names
from providers.unified_request import Operation
from tests.support.looped import looped


def test_what_is_said_of_all_holds_for_each_operation_beside_its_own() -> None:
    fields: dict[Scope, list[str]] = {"all": ["n"], Operation.CHAT: ["tools"]}
    assert scoped_fields(fields, Operation.CHAT) == ["n", "tools"]
    assert scoped_fields(fields, Operation.COMPLETIONS) == ["n"]


def test_an_operation_s_own_name_of_a_field_wins() -> None:
    names: dict[Scope, dict[str, str]] = {"all": {"seed": "random_seed"}, Operation.COMPLETIONS: {"seed": "s"}}
    assert scoped_names(names, Operation.CHAT) == {"seed": "random_seed"}
    assert scoped_names(names, Operation.COMPLETIONS) == {"seed": "s"}


def test_the_fields_a_row_names_are_told_with_their_knob() -> None:
    row = ProfileEntry(accepts={Operation.CHAT: ["a"]}, bounds={"b": (0, None)})
    named = {knob: fields for knob, fields in row.fields().items() if fields}
    assert named == {"accepts.chat": ["a"], "bounds": ["b"]}


def test_kinds_of_failure_are_written_as_words() -> None:
    assert ErrorsEntry.model_validate({"statuses": {402: "quota"}}).statuses == {402: FailureKind.QUOTA}


@looped("row", [{"stop_most": "4"}, {"developer_role": 1}, {"errors": {"statuses": {"402": "quota"}}}, {"nonsense": 1}])
def test_nothing_is_converted_and_nothing_unknown_is_taken(row: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ProfileEntry.model_validate(row)
