"""The facts noted while a body is read."""

from providers.unified_request import Operation
from proxy.surfaces.request.parse_state import ParsedFields
from proxy.surfaces.responses.read_request import RULES
from proxy.surfaces.responses.request_draft import ResponsesDraft


def draft() -> ResponsesDraft:
    return ResponsesDraft({}, ParsedFields(RULES, Operation.CHAT))


def test_two_fields_may_say_the_same_but_not_something_else() -> None:
    noted = draft()
    noted.put("max_output_tokens", "max_tokens", 3)
    noted.put("max_output_tokens", "max_tokens", 3)
    assert not noted.parsed.problems
    noted.put("max_output_tokens", "max_tokens", 4)
    assert [problem.code for problem in noted.parsed.problems] == ["conflicting_parameters"]
    assert noted.parsed.values == {"max_tokens": 3}
