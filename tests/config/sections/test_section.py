"""The base classes of sections."""

import pytest
from pydantic import ValidationError

from config.sections.section import Section, ShorthandSection


class Named(ShorthandSection):
    name: str


def test_a_section_takes_no_key_that_it_does_not_know_and_converts_nothing() -> None:
    for value in ({"name": 1}, {"name": "a", "nam": "b"}):
        with pytest.raises(ValidationError):
            Named.model_validate(value)


def test_a_section_hides_what_it_refuses() -> None:
    with pytest.raises(ValidationError) as caught:
        Named.model_validate({"name": ["canary"]})
    assert "canary" not in str(caught.value)


def test_editors_know_both_forms() -> None:
    schema = Named.model_json_schema()
    forms = schema["$defs"]["Named"]["anyOf"] if "$defs" in schema else schema["anyOf"]
    assert [form.get("type") for form in forms] == ["string", "object"]
    assert "anyOf" not in Section.model_json_schema()
