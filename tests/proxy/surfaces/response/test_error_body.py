"""The bodies of errors."""

from proxy.errors import ErrorFacts, FieldProblem
from proxy.surfaces.response.error_body import detail_body, error_object, fireworks_body, openai_body
from tests.support.looped import looped

FACTS = ErrorFacts(404, "invalid_request_error", "model_not_found", "No such model.", "model")
ERROR = {"message": "No such model.", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}


def test_openais_error_has_all_four_members_and_fireworks_says_that_it_is_one() -> None:
    assert error_object(FACTS) == ERROR
    assert openai_body(FACTS, 404) == {"error": ERROR}
    assert error_object(ErrorFacts(500, "server_error", "internal_error", "x"))["param"] is None
    assert fireworks_body(FACTS, 404) == {"error": {"object": "error", **ERROR}}


@looped("status", [400, 404, 500])
def test_detail_is_a_string_when_nothing_was_validated(status: int) -> None:
    assert detail_body(FACTS, status) == {"detail": "No such model.", "error": ERROR}


def test_detail_lists_every_problem_of_a_validation() -> None:
    problems = (
        FieldProblem(("stop", 1), "bad stop"),
        FieldProblem(("max_new_tokens",), "differs", "conflicting_parameters"),
        FieldProblem((), "not JSON"),
    )
    facts = ErrorFacts(400, "invalid_request_error", "invalid_value", "bad stop", "stop.1", problems=problems)
    assert detail_body(facts, 422)["detail"] == [
        {"loc": ["body", "stop", 1], "msg": "bad stop", "type": "invalid_value"},
        {"loc": ["body", "max_new_tokens"], "msg": "differs", "type": "conflicting_parameters"},
        {"loc": ["body"], "msg": "not JSON", "type": "json_invalid"},
    ]


def test_an_upstreams_own_422_still_lists_something() -> None:
    assert detail_body(FACTS, 422)["detail"] == [
        {"loc": ["body", "model"], "msg": "No such model.", "type": "model_not_found"}
    ]
    bare = ErrorFacts(422, "invalid_request_error", "invalid_value", "x")
    assert detail_body(bare, 422)["detail"] == [{"loc": ["body"], "msg": "x", "type": "invalid_value"}]
