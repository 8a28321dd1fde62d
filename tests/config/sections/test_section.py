"""The base classes of sections."""

import pytest
from pydantic import ValidationError

from config.sections.section import Section, ShorthandSection, built_in, built_in_section, setting, settings_of
from config.sections.value_types import OptionalSwitch, Timeout


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


class Inner(Section):
    wait: Timeout = setting("A while. Built in: {built_in}, or longer.", "90s")
    later: Timeout = setting("Another.", "1h", resolved=False)


class Outer(Section):
    inner: Inner = setting("The inner one.", default=Inner())
    names: list[str] | None = setting("Some names.", ["a", "b"])
    silent: OptionalSwitch = setting("Whether it is silent.", built_in=False)
    plain: str = "no setting"


def test_a_setting_says_what_is_built_in_as_it_would_be_written() -> None:
    fields = {**Outer.model_fields, **Inner.model_fields}
    assert [fields[name].description for name in ("wait", "names", "silent", "inner")] == [
        "A while. Built in: 90s, or longer.",
        "Some names. Built in: [a, b].",
        "Whether it is silent. Built in: false.",
        "The inner one.",
    ]
    assert list(settings_of(Outer)) == ["inner", "names", "silent"]


def test_unwritten_settings_have_the_built_in_values_that_hold_for_every_deployment() -> None:
    found = built_in_section(Outer)
    assert (found.names, found.silent, found.inner.wait, found.inner.later) == (["a", "b"], False, 90.0, None)
    assert (found.model_fields_set, found.inner.model_fields_set) == (set(), set())


def test_other_code_may_ask_for_a_built_in_value() -> None:
    assert built_in(Inner, "later", float) == 3600.0
    with pytest.raises(TypeError, match="the built-in value of later is not of type str"):
        built_in(Inner, "later", str)
