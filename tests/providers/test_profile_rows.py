"""Rows as written: what holds for which operation, and that nothing is converted in silence."""

import pytest
from pydantic import ValidationError

from providers.failure import FailureKind
from providers.profile_rows import ByOperation, ErrorsRow, Names, ProfileRow
from providers.unified import Operation


def test_what_is_said_of_all_holds_for_each_operation_beside_its_own() -> None:
    fields = ByOperation(all=["n"], chat=["tools"])
    assert fields.of(Operation.CHAT) == ["n", "tools"]
    assert fields.of(Operation.COMPLETIONS) == ["n"]


def test_an_operation_s_own_name_of_a_field_wins() -> None:
    names = Names(all={"seed": "random_seed"}, completions={"seed": "s"})
    assert names.of(Operation.CHAT) == {"seed": "random_seed"}
    assert names.of(Operation.COMPLETIONS) == {"seed": "s"}


def test_the_fields_a_row_names_are_told_with_their_knob() -> None:
    row = ProfileRow(accepts=ByOperation(chat=["a"]), bounds={"b": (0, None)})
    named = {knob: fields for knob, fields in row.fields().items() if fields}
    assert named == {"accepts.chat": ["a"], "bounds": ["b"]}


def test_kinds_of_failure_are_written_as_words() -> None:
    assert ErrorsRow.model_validate({"statuses": {402: "quota"}}).statuses == {402: FailureKind.QUOTA}


@pytest.mark.parametrize(
    "row", [{"stop_most": "4"}, {"developer_role": 1}, {"errors": {"statuses": {"402": "quota"}}}, {"nonsense": 1}]
)
def test_nothing_is_converted_and_nothing_unknown_is_taken(row: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ProfileRow.model_validate(row)
