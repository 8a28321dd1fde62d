"""The errors that callers get."""

from providers.failure import UNKNOWN_MODEL, VERDICTS, Failure, FailureKind, Refusal
from proxy import errors
from proxy.errors import DAY, MAX_RETRY_AFTER, ErrorFacts, FieldProblem, GatewayError, OverloadReason
from tests.support.looped import looped


@looped(("loc", "param"), [((), None), (("model",), "model"), (("messages", 0, "content"), "messages.0.content")])
def test_a_problems_param_is_its_path(loc: tuple[str | int, ...], param: str | None) -> None:
    assert FieldProblem(loc, "bad").param == param


def test_the_first_problem_leads_and_all_are_kept() -> None:
    problems = (FieldProblem(("n",), "n is bad", "conflicting_parameters"), FieldProblem(("stop",), "stop is bad"))
    assert errors.invalid_request(problems).facts == ErrorFacts(
        400, "invalid_request_error", "conflicting_parameters", "n is bad", "n", problems=problems, validation=True
    )


def test_a_refusal_is_a_fault_of_the_request_that_names_the_field() -> None:
    facts = errors.field_refused(Refusal("guided_regex", "mock/a does not take it")).facts
    assert (facts.status, facts.code, facts.param) == (400, "unsupported_parameter", "guided_regex")
    assert facts.message == "mock/a does not take it"
    assert facts.validation


@looped(
    ("error", "status", "code", "param"),
    [
        (errors.invalid_key(), 401, "invalid_api_key", None),
        (errors.model_not_allowed("a/b"), 403, "model_not_allowed", "model"),
        (errors.model_not_found("a/b", ()), 404, "model_not_found", "model"),
        (errors.not_found("/x"), 404, "not_found", None),
        (errors.method_not_allowed("GET", "POST"), 405, "method_not_allowed", None),
        (errors.websocket_refused("POST"), 426, "upgrade_required", None),
        (errors.bad_http("Bad line."), 400, "bad_request", None),
        (errors.bad_http("Too slow.", 408), 408, "bad_request", None),
        (errors.too_large(10), 413, "request_too_large", None),
        (errors.internal_error(), 500, "internal_error", None),
    ],
)
def test_each_error_has_its_status_and_code(error: GatewayError, status: int, code: str, param: str | None) -> None:
    facts = error.facts
    assert (facts.status, facts.code, facts.param) == (status, code, param)
    assert facts.message.endswith(".")
    assert not facts.validation


def test_an_exceptions_own_text_holds_no_message() -> None:
    assert str(errors.model_not_found("secret-model", ())) == "(404, 'model_not_found')"


def test_the_nearest_names_are_offered() -> None:
    assert "Did you mean 'a/b' or 'a/c'?" in errors.model_not_found("a", ("a/b", "a/c")).facts.message
    assert "Did you mean" not in errors.model_not_found("a", ()).facts.message


def test_headers_say_what_a_client_can_do_about_it() -> None:
    assert errors.invalid_key().facts.headers == {"x-should-retry": "false"}
    assert errors.method_not_allowed("GET", "POST").facts.headers == {"allow": "POST"}
    assert errors.websocket_refused("POST").facts.headers == {"upgrade": "HTTP/1.1"}


@looped("kind", FailureKind)
def test_a_failures_verdict_is_what_the_client_gets(kind: FailureKind) -> None:
    facts = errors.upstream_failed(Failure(kind, "why")).facts
    verdict = VERDICTS[kind]
    assert (facts.status, facts.type, facts.code) == (verdict.status, verdict.type, verdict.code)
    assert facts.message == "why"
    assert ("x-should-retry" in facts.headers) is not verdict.passes


@looped("kind", FailureKind)
def test_after_several_attempts_a_client_is_told_not_to_try_again_unless_it_found_no_place(kind: FailureKind) -> None:
    facts = errors.upstream_failed(Failure(kind, "why"), attempts=2).facts
    assert facts.headers.get("x-should-retry") == (None if kind is FailureKind.BUSY else "false")


@looped("reason", OverloadReason)
def test_a_full_gateway_says_of_what_it_is_full_and_invites_another_try(reason: OverloadReason) -> None:
    facts = errors.overloaded(reason).facts
    assert (facts.status, facts.type, facts.code, facts.param) == (503, "server_error", "overloaded", None)
    assert facts.headers == {"retry-after": "1"}
    assert errors.overloaded(reason, 7).facts.headers == {"retry-after": "7"}
    assert facts.message.startswith("The gateway ")
    assert {errors.overloaded(other).facts.message for other in OverloadReason if other != reason}.isdisjoint(
        {facts.message}
    )


def test_a_bad_credential_of_ours_is_never_the_clients() -> None:
    assert errors.upstream_failed(Failure(FailureKind.AUTH, "why", status=401)).facts.status == 502


@looped(("upstream", "shown"), [(400, 400), (409, 409), (413, 413), (422, 422), (404, 400), (None, 400)])
def test_a_fault_of_the_request_keeps_the_upstreams_status_and_words(upstream: int | None, shown: int) -> None:
    failure = Failure(FailureKind.INVALID_REQUEST, "why", status=upstream, code="bad_thing", param="n")
    facts = errors.upstream_failed(failure).facts
    assert (facts.status, facts.code, facts.param) == (shown, "bad_thing", "n")
    assert not facts.validation


@looped(
    ("wait", "header", "retry"),
    [
        (0.2, "1", None),
        (7.4, "8", None),
        (MAX_RETRY_AFTER, str(MAX_RETRY_AFTER), None),
        (3600, "3600", "false"),
        (1e6, str(DAY), "false"),
        (None, None, None),
    ],
)
def test_the_upstreams_wait_is_passed_on_up_to_a_day(wait: float | None, header: str | None, retry: str | None) -> None:
    headers = errors.upstream_failed(Failure(FailureKind.RATE_LIMITED, "why", retry_after=wait)).facts.headers
    assert (headers.get("retry-after"), headers.get("x-should-retry")) == (header, retry)


@looped(
    ("wait", "headers"),
    [
        (0.2, {"retry-after": "1", "retry-after-ms": "200"}),
        (60.0, {"retry-after": "60", "retry-after-ms": "60000"}),
        (3600.0, {"retry-after": "3600", "x-should-retry": "false"}),
    ],
)
def test_the_wait_for_a_limit_of_the_operators_is_told_as_it_is(wait: float, headers: dict[str, str]) -> None:
    failure = Failure(FailureKind.RATE_LIMITED, "why", code="tokens", retry_after=wait, unsent=True)
    facts = errors.upstream_failed(failure, attempts=2).facts
    assert (facts.type, facts.code, facts.headers) == ("tokens", "rate_limit_exceeded", headers)


def test_a_wait_is_not_passed_on_where_a_retry_is_no_use() -> None:
    facts = errors.upstream_failed(Failure(FailureKind.QUOTA, "why", retry_after=5)).facts
    assert dict(facts.headers) == {"x-should-retry": "false"}


def test_an_overflow_of_the_window_is_the_prompt_s_fault_whatever_the_vendor_calls_it() -> None:
    facts = errors.upstream_failed(Failure(FailureKind.CONTEXT_LENGTH, "too long", 400, param="messages")).facts
    assert (facts.status, facts.code, facts.param) == (400, "context_length_exceeded", "prompt")


def test_a_model_that_only_the_client_named_is_its_own_mistake() -> None:
    failure = Failure(FailureKind.NOT_FOUND, "why", 404, UNKNOWN_MODEL, "model")
    facts = errors.upstream_failed(failure).facts
    assert (facts.status, facts.type, facts.code, facts.param, facts.message) == (
        404,
        "invalid_request_error",
        "model_not_found",
        "model",
        "why",
    )
    assert facts.headers == {"x-should-retry": "false"}
