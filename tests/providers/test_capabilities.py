"""The cells of the capability matrix: the features that exist, and how a value distinguishes one from another."""

from providers.capabilities import ALWAYS, FEATURES, NATIVE, Capabilities, Support, emulated, feature_of, refused
from providers.unified_request import Guided, Operation
from tests.support.looped import looped


def test_a_feature_is_named_after_its_field() -> None:
    assert all(name.partition(".")[0] == feature.field for name, feature in FEATURES.items())
    assert all(feature.operations for feature in FEATURES.values())
    assert FEATURES["messages"].operations == (Operation.CHAT,)


@looped(
    ("name", "value", "feature"),
    [
        ("temperature", 1, "temperature"),
        ("guided", Guided("choice", ("a",)), "guided_choice"),
        ("response_format", {"type": "json_object"}, "response_format.json_object"),
        ("response_format", {"type": "json_object", "schema": {}}, "response_format.json_schema"),
        ("response_format", {"type": "grammar", "grammar": "x"}, "response_format.grammar"),
        ("response_format", {"type": "structural_tag"}, "response_format.structural_tag"),
        ("response_format", {"type": "of tomorrow"}, "response_format.json_schema"),
        ("tool_choice", "auto", "tools"),
        ("tool_choice", "required", "tool_choice.required"),
        ("tool_choice", {"type": "function", "function": {"name": "f"}}, "tool_choice.named"),
        ("context_length_exceeded_behavior", "truncate", "context_length_exceeded_behavior.truncate"),
    ],
)
def test_a_value_tells_which_use_of_its_field_is_asked_for(name: str, value: object, feature: str) -> None:
    assert feature_of(name, value) == feature
    assert feature in FEATURES


def test_a_cell_is_one_of_three_things() -> None:
    for cell, support in ((NATIVE, Support.NATIVE), (emulated("x"), Support.EMULATED), (refused("y"), Support.REFUSED)):
        assert cell.support is support
        assert [cell.native, cell.emulated, cell.refused].count(True) == 1


def test_a_table_gives_its_cells_by_feature() -> None:
    table = Capabilities({"n": refused("no"), **ALWAYS})
    assert table["n"].how == "no"
    assert set(table) == {"n", *ALWAYS}
