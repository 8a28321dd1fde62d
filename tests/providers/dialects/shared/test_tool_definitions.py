"""What definitions of tools have in common."""

import pytest

from providers.dialects.shared.tool_definitions import offers_tools, read_parameters
from providers.failure import Refusal
from providers.json_types import JsonValue


@pytest.mark.parametrize("choice", ["none", "auto"])
def test_no_tools_need_no_choice(choice: str) -> None:
    assert not offers_tools({})
    assert not offers_tools({"tools": [], "tool_choice": choice})


def test_a_choice_needs_tools() -> None:
    assert offers_tools({"tools": [{"type": "function"}], "tool_choice": "required"})
    with pytest.raises(Refusal, match="needs 'tools'"):
        offers_tools({"tool_choice": "required"})


def test_parameters_are_those_of_an_object() -> None:
    assert read_parameters({"name": "f"}) == {}
    assert read_parameters({"parameters": {"properties": {}}}) == {"properties": {}}


@pytest.mark.parametrize("parameters", [["a"], {"type": "string"}])
def test_other_parameters_are_refused(parameters: JsonValue) -> None:
    with pytest.raises(Refusal, match="type 'object'"):
        read_parameters({"parameters": parameters})
