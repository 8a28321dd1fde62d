"""The gateway's own headers report how a request was answered."""

from proxy.gateway.gateway_headers import answer_headers, answer_lines, attempt_headers
from proxy.listener.buffered_response import header_lines
from proxy.request_outcomes import CacheUse
from proxy.request_record import Attempt, RequestRecord


def record(**fields: object) -> RequestRecord:
    """A request that one deployment was called for."""
    made = RequestRecord("r1", 0.0, "openai", "/v1/completions", called="v/m", attempts=[Attempt("v/m", 0.0)])
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def test_no_headers_name_a_deployment_before_one_is_called() -> None:
    assert attempt_headers(RequestRecord("r1", 0.0, "openai", "/")) == {}
    assert answer_lines(RequestRecord("r1", 0.0, "openai", "/")) == ""


def test_the_deployment_is_named_with_the_attempts_and_the_name_that_a_budget_chose() -> None:
    named = {"x-dragoman-deployment": "v/m", "x-dragoman-attempts": "1"}
    assert attempt_headers(record()) == named
    assert attempt_headers(record(routed="cheap")) == {**named, "x-dragoman-budget-route": "cheap"}


def test_lines_are_the_headers_whatever_they_report() -> None:
    for each in (
        record(),
        record(emulated=("usage",), dropped=("user", "store")),
        record(max_tokens=7),
        record(cache=CacheUse("hit", 3.0)),
        record(passed={"retry-after": "1"}),
    ):
        assert answer_lines(each) == header_lines(answer_headers(each))
    assert answer_headers(record(dropped=("user", "store")))["x-dragoman-dropped"] == "user, store"
    assert answer_headers(record(cache=CacheUse("hit", 3.0)))["age"] == "3"
