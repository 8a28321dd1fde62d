"""The request during parsing."""

from providers.unified_request import Operation
from proxy.surfaces.request.field_rules import FIELDS
from proxy.surfaces.request.parse_state import ParsedFields, SurfaceRules
from proxy.surfaces.request.rule_kinds import Invalid


def draft() -> ParsedFields:
    return ParsedFields(SurfaceRules(FIELDS, {}), Operation.CHAT)


def test_a_value_is_read_by_its_type_and_taken_once() -> None:
    work = draft()
    work.values["n"] = 2
    assert work.get("n", str) is None
    assert work.get("n", int) == 2
    assert work.take("n", int) == 2
    assert work.take("n", int) is None


def test_a_complaint_names_the_whole_path() -> None:
    work = draft()
    work.refuse("messages", Invalid("must be a string", 0, "content"))
    (problem,) = work.problems
    assert problem.loc == ("messages", 0, "content")
    assert problem.param == "messages.0.content"
    assert problem.message == "'messages.0.content' must be a string."


def test_a_conflict_has_its_own_code() -> None:
    work = draft()
    work.conflict("max_new_tokens", "differs from 'max_tokens'")
    assert work.problems[0].code == "conflicting_parameters"


def test_a_refused_field_is_known_as_such() -> None:
    work = draft()
    work.refuse("stream", Invalid("must be true or false"))
    assert work.refused("model", "stream")
    assert not work.refused("model")
