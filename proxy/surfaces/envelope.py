"""Error bodies: OpenAI's `error` object, alone or beside FastAPI's `detail`. Never decides a status.

Both are read: the openai SDK takes code, type and param from `error` only, FastAPI-style clients take `detail`.
"""

from proxy.errors import ErrorFacts


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
    if not facts.problems:
        return [_detail((facts.param,) if facts.param else (), facts.message, facts.code)]
    return [
        _detail(problem.loc, problem.message, problem.code if problem.loc else "json_invalid")
        for problem in facts.problems
    ]


def _detail(loc: tuple[str | int, ...], message: str, kind: str) -> dict[str, object]:
    return {"loc": ["body", *loc], "msg": message, "type": kind}
