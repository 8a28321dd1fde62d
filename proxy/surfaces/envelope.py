"""Error bodies: OpenAI's `error` object, alone or beside FastAPI's `detail`. Never decides a status.

Both are read: the openai SDK takes code, type and param from `error` only, FastAPI-style clients take `detail`.
"""

from proxy.errors import ErrorFacts, Problem


def error_object(facts: ErrorFacts) -> dict[str, object]:
    """OpenAI's four members."""
    return {"message": facts.message, "type": facts.type, "param": facts.param, "code": facts.code}


def openai_body(facts: ErrorFacts, status: int) -> dict[str, object]:
    """OpenAI OpenAPI 2.3.0 `ErrorResponse`."""
    return {"error": error_object(facts)}


def fireworks_body(facts: ErrorFacts, status: int) -> dict[str, object]:
    """The same with Fireworks' `object` member."""
    return {"error": fireworks_error(facts)}


def fireworks_error(facts: ErrorFacts) -> dict[str, object]:
    """The error object of a Fireworks answer."""
    return {"object": "error", **error_object(facts)}


def detail_body(facts: ErrorFacts, status: int) -> dict[str, object]:
    """FastAPI's `detail`, a list for 422 (`HTTPValidationError`) and a string otherwise, beside the `error` object."""
    return {"detail": _details(facts) if status == 422 else facts.message, "error": error_object(facts)}


def _details(facts: ErrorFacts) -> list[dict[str, object]]:
    at_fault = (facts.param,) if facts.param else ()
    problems = facts.problems or (Problem(at_fault, facts.message, facts.code),)
    return [
        {
            "loc": ["body", *problem.loc],
            "msg": problem.message,
            "type": problem.code if problem.loc else "json_invalid",
        }
        for problem in problems
    ]
