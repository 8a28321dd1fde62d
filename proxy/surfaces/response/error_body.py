"""Error bodies: OpenAI's `error` object, alone or beside FastAPI's `detail`.

Clients read one or the other: the openai SDK reads code, type and param only from `error`; clients of FastAPI servers
read `detail`.
"""

from proxy.errors import ErrorFacts


def error_object(facts: ErrorFacts) -> dict[str, object]:
    """Return OpenAI's error object."""
    return {"message": facts.message, "type": facts.type, "param": facts.param, "code": facts.code}


def openai_body(facts: ErrorFacts, status: int) -> dict[str, object]:
    """Return the body of OpenAI OpenAPI 2.3.0 `ErrorResponse`."""
    return {"error": error_object(facts)}


def fireworks_body(facts: ErrorFacts, status: int) -> dict[str, object]:
    """Return OpenAI's body with Fireworks' `object` field."""
    return {"error": fireworks_error(facts)}


def fireworks_error(facts: ErrorFacts) -> dict[str, object]:
    """Return Fireworks' error object."""
    return {"object": "error", **error_object(facts)}


def detail_body(facts: ErrorFacts, status: int) -> dict[str, object]:
    """Return FastAPI's `detail`, a list for 422 (`HTTPValidationError`) and otherwise a string, beside the `error`
    object."""
    return {"detail": _details(facts) if status == 422 else facts.message, "error": error_object(facts)}


def _details(facts: ErrorFacts) -> list[dict[str, object]]:
    if not facts.problems:
        return [_detail((facts.param,) if facts.param else (), facts.message, facts.code)]
    return [
        _detail(problem.loc, problem.message, problem.code if problem.loc else "json_invalid")
        for problem in facts.problems
    ]


def _detail(loc: tuple[str | int, ...], message: str, kind: str) -> dict[str, object]:
    return {"loc": ["body", *loc], "msg": message, "type": kind}
