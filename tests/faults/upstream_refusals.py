"""F23 to F30: refusals of every form but a rate limit."""

from collections.abc import Callable, Iterator
from typing import Final, cast
from unittest.mock import patch

import pytest

from providers.json_types import JsonObject, JsonValue
from tests.faults.check_answers import good
from tests.faults.fault_rig import OPERATOR_KEY, SCALED, TABLE, Rig, ok
from tests.faults.lifecycle_load import stopped
from tests.faults.memory import growth
from tests.faults.registry import fault, single_fault
from tests.faults.request_outcomes import (
    ONE,
    ExpectedEnd,
    assert_answered_elsewhere,
    assert_fails_alone,
    assert_not_sent_elsewhere,
    assert_skipped,
    consecutive_failures,
    health,
    unspent_retries,
)
from tests.faults.upstream_limits import LIMITED, NO_CREDIT
from tests.support.http_scripts import DONE, body_answer, chunk, data_frames, head, json_answer, sse_answer
from tests.support.vendor_script import Behaviour, Delay, Hang, Received, Script, Send

BRIEF: Final = TABLE.replace("first_event: 500ms", "first_event: 300ms").replace("total: 4s", "total: 1500ms")


# F23 and F24: errors of the server -----------------------------------------------------------------------------------


def broken(status: int, code: str, attempt: str, upstream: int) -> ExpectedEnd:
    """Return the expected end of a request that had a second attempt at its only deployment."""
    return ExpectedEnd(status, code, attempt, upstream, retry="false", calls=2)


@fault(23)
async def error_of_the_server(rig: Rig) -> None:
    for end in (
        broken(502, "upstream_error", "server", 500),
        broken(502, "upstream_error", "server", 502),
        broken(503, "overloaded", "overloaded", 503),
        broken(503, "overloaded", "overloaded", 529),
        ExpectedEnd(504, "upstream_timeout", "timeout", 504, retry="false"),
    ):
        rig.forget()
        rig.one.default = json_answer(end.upstream or 0, {"error": {"message": "broken", "type": "server_error"}})
        assert (await assert_fails_alone(rig, end)).message == "broken"
        await assert_answered_elsewhere(rig, end)
        assert consecutive_failures(rig) == end.calls + 1


@fault(23)
async def error_of_the_server_that_passes(rig: Rig) -> None:
    rig.one.answer(json_answer(500, {}))
    answer = await rig.ask("one/m")
    assert (good(answer, rig.stream), answer.headers["x-dragoman-attempts"]) == ("one", "2")
    assert unspent_retries(rig, "one/m") == 9
    assert consecutive_failures(rig) == 0


FAILED: Final = broken(502, "upstream_error", "server", 500)
ERROR: Final = head(500, [("content-type", "text/plain"), ("transfer-encoding", "chunked")])


@fault(24)
async def error_body_without_end(rig: Rig) -> None:
    sent = 0

    def flood(received: Received) -> Iterator[Send]:
        nonlocal sent
        yield Send(ERROR)
        while True:
            sent += 1
            yield Send(chunk(b"x" * 65536))

    rig.one.default = cast(Behaviour, flood)
    with growth() as grown:
        await assert_fails_alone(rig, FAILED)
        await assert_answered_elsewhere(rig, FAILED)
    for request in rig.one.requests:
        await request.gone.wait()
    assert grown.bytes < 1024 * 1024
    assert sent < 3 * 256, "what the sockets hold, and no more"
    assert consecutive_failures(rig) == 3


@fault(24)
async def error_body_that_trickles(rig: Rig) -> None:
    def trickle(received: Received) -> Iterator[Send | Delay]:
        yield Send(ERROR)
        while True:
            yield Send(chunk(b"x"))
            yield Delay(0.01)

    rig.one.default = cast(Behaviour, trickle)
    with patch("proxy.upstream.transport.ERROR_BODY_WAIT", 0.1):
        await assert_fails_alone(rig, FAILED)
        await assert_answered_elsewhere(rig, FAILED)
    for request in rig.one.requests:
        await request.gone.wait()


# F25 to F27: errors of the client or the account ---------------------------------------------------------------------


@fault(25)
async def fault_of_the_request(rig: Rig) -> None:
    for status in (400, 413, 422):
        error: JsonObject = {"message": f"bad {'word ' * 1000}", "type": "invalid_request_error", "param": "top_p"}
        rig.one.default = json_answer(status, {"error": error})
        answer = await assert_fails_alone(
            rig, ExpectedEnd(status, "invalid_value", "invalid_request", status, retry="false")
        )
        assert answer.error()["param"] == "top_p"
        assert answer.message.startswith("bad word")
        assert len(answer.message) <= 1024
        await assert_not_sent_elsewhere(
            rig, ExpectedEnd(status, "invalid_value", "invalid_request", status, retry="false")
        )
    assert consecutive_failures(rig) == 0
    assert unspent_retries(rig) == 10


@fault(25)
async def model_that_the_upstream_does_not_know(rig: Rig) -> None:
    end = ExpectedEnd(502, "upstream_error", "model_not_found", 404, retry="false")
    rig.one.default = json_answer(404, {"error": {"message": "no model 'secret'", "code": "model_not_found"}})
    assert "secret" not in (await assert_fails_alone(rig, end)).message
    rig.forget()
    await assert_answered_elsewhere(rig, end)
    await assert_skipped(rig)


@fault(25)
async def thing_that_the_upstream_does_not_know(rig: Rig) -> None:
    end = ExpectedEnd(502, "upstream_error", "not_found", 404, retry="false")
    rig.one.default = json_answer(404, {"error": {"message": "File file-secret not found"}})
    assert "secret" not in (await assert_fails_alone(rig, end)).message
    await assert_answered_elsewhere(rig, end)
    assert consecutive_failures(rig) == 0


@fault(26)
async def page_of_a_firewall(rig: Rig) -> None:
    end = ExpectedEnd(502, "upstream_error", "forbidden", 403, retry="false")
    rig.one.default = body_answer(403, b"<html><h1>You have been blocked</h1>", [("content-type", "text/html")])
    await assert_fails_alone(rig, end)
    await assert_answered_elsewhere(rig, end)
    assert consecutive_failures(rig) == 0
    assert "You have been blocked" in rig.log.getvalue().decode()


@fault(26)
async def credential_that_is_refused(rig: Rig) -> None:
    for status in (401, 403):
        rig.forget()
        end = ExpectedEnd(502, "upstream_auth_failed", "auth", status, retry="false")
        error: JsonObject = {"message": f"Incorrect API key provided: {OPERATOR_KEY}.", "code": "invalid_api_key"}
        rig.one.default = json_answer(status, {"error": error}, [("www-authenticate", f"Bearer {OPERATOR_KEY}")])
        await assert_fails_alone(rig, end)
        rig.forget()
        clock = stopped(rig)
        await assert_answered_elsewhere(rig, end)
        await assert_skipped(rig)
        assert (await rig.series("deployment_state"))[f"deployment_state deployment={ONE}"] == 2
        assert health(rig).wait(clock.now) == pytest.approx(SCALED.health.auth)


@fault(27)
async def redirect(rig: Rig) -> None:
    for status in (301, 302, 303, 307, 308):
        rig.forget()
        rig.one.default = json_answer(status, {}, [("location", f"{rig.two.base_url}/latest/meta-data")])
        await assert_fails_alone(rig, ExpectedEnd(502, "malformed_upstream", "malformed", status, retry="false"))
        await assert_answered_elsewhere(rig, ExpectedEnd(502, "malformed_upstream", "malformed", status))
        assert consecutive_failures(rig) == 2
    assert {request.path for request in rig.two.requests} == {"/v1/completions"}
    assert len(rig.two.requests) == 5


# F28: interim responses ----------------------------------------------------------------------------------------------

CONTINUE: Final = Send(b"HTTP/1.1 100 Continue\r\n\r\n")


@fault(28)
async def interim_answers_before_a_good_one(rig: Rig) -> None:
    rig.one.answer((*[CONTINUE] * 50, *ok(rig.stream, "one")))
    assert good(await rig.ask("one/m"), rig.stream) == "one"
    assert len(rig.one.requests) == 1


@fault(28, BRIEF)
async def interim_answers_without_end(rig: Rig) -> None:
    def flood(received: Received) -> Iterator[Send]:
        while True:
            yield CONTINUE

    rig.one.default = cast(Behaviour, flood)
    end = ExpectedEnd(504, "upstream_timeout", "timeout", retry="false")
    await assert_fails_alone(rig, end)
    await assert_answered_elsewhere(rig, end)
    await rig.one.connected(0)
    assert consecutive_failures(rig) == 2


# F29 and F30: errors in place of a response --------------------------------------------------------------------------

DISGUISED: Final[tuple[tuple[JsonValue, ExpectedEnd], ...]] = (
    (
        {"error": {"message": "lost", "type": "server_error"}},
        ExpectedEnd(502, "upstream_error", "server", 200, retry="false", calls=2),
    ),
    (
        {"error": {"message": "full", "type": "overloaded_error", "code": None}},
        ExpectedEnd(503, "overloaded", "overloaded", 200, retry="false", calls=2),
    ),
    (
        {"object": "error", "message": "lost", "type": "InternalServerError", "param": None, "code": 500},
        ExpectedEnd(502, "upstream_error", "server", 500, retry="false", calls=2),
    ),
    (NO_CREDIT, ExpectedEnd(429, "insufficient_quota", "quota", 200, retry="false")),
    (
        {"error": {"message": "no key", "type": "x", "code": "invalid_api_key"}},
        ExpectedEnd(502, "upstream_auth_failed", "auth", 200, retry="false"),
    ),
)
"""Errors in place of responses, and their meaning."""

REQUEST: Final[JsonValue] = {"object": "error", "message": "bad top_p", "type": "BadRequestError", "code": 400}
REQUEST_END: Final = ExpectedEnd(400, "invalid_value", "invalid_request", 400, retry="false")
LIMIT_END: Final = ExpectedEnd(429, "rate_limit_exceeded", "rate_limited", 200, retry="false", calls=2)


@fault(29)
async def error_under_a_good_status(rig: Rig) -> None:
    await disguised(rig, lambda body: json_answer(200, body))


@single_fault(30)
async def error_in_the_first_event(rig: Rig) -> None:
    rig.stream = True
    await disguised(rig, lambda body: sse_answer([*data_frames(body), DONE]))


@single_fault(30)
async def error_in_the_first_event_that_nothing_follows(rig: Rig) -> None:
    rig.stream = True
    start = head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
    await disguised(rig, lambda body: (Send(start), Send(chunk(b": hi\n\n")), Send(chunk(*data_frames(body))), Hang()))


@single_fault(30)
async def error_in_an_event_of_that_name(rig: Rig) -> None:
    rig.stream = True
    await disguised(rig, lambda body: sse_answer([b"event: error\n" + data_frames(body)[0], DONE]))


async def disguised(rig: Rig, wrapped: Callable[[JsonValue], Script]) -> None:
    """An error is mapped by its code, in whatever form it came."""
    for body, end in DISGUISED:
        rig.one.default = wrapped(body)
        rig.forget()
        await assert_fails_alone(rig, end)
        rig.forget()
        await assert_answered_elsewhere(rig, end)
    rig.forget()
    rig.one.default = wrapped(LIMITED)
    await assert_fails_alone(rig, LIMIT_END)
    rig.forget()
    rig.one.default = wrapped(REQUEST)
    await assert_not_sent_elsewhere(rig, REQUEST_END)
    assert consecutive_failures(rig) == 0
