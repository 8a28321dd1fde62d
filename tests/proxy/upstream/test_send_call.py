"""Calls that are repeated within their attempt, over real sockets: the requests sent, and the log."""

from pathlib import Path
from typing import Literal

import orjson
import pytest

from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from providers.mock.server import SimulatedResponse
from providers.unified_request import Task
from proxy.request_record import Attempt, RequestRecord
from proxy.upstream.mock_transport import MockResponse
from proxy.upstream.send_call import CallSender, may_repeat_call
from proxy.upstream.transport import RepeatableError, RepeatCause, Repeats, UpstreamResponse
from tests.providers.dialects.openai.kit import target
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.vendor_credentials.test_in_the_gateway import TABLE, World, give, serve, world
from tests.support.http_scripts import json_answer
from tests.support.looped import looped
from tests.support.vendor_script import Fin, Script

TOO_LONG = (
    "This model's maximum context length is 100 tokens. However, you requested 150 tokens (50 in the messages, 100 in "
    "the completion)."
)

CAUSES: dict[str, Script] = {
    "stale_connection": (Fin(),),
    "credential_refreshed": json_answer(401, {"error": {"message": "the token has been revoked"}}),
    "context_window": json_answer(400, {"error": {"message": TOO_LONG, "code": "context_length_exceeded"}}),
}

ALL = (CAUSES["stale_connection"], CAUSES["credential_refreshed"], give, CAUSES["context_window"])
"""All causes one after the other; the identity provider's response is between them."""


async def post(made: World, stream: bool) -> tuple[int, str]:
    asked = ask(stream=stream, max_tokens=100, context_length_exceeded_behavior="truncate")
    body = request("POST", "/v1/completions", asked)
    answer = await exchange(int(made.app.url.rpartition(":")[2]), body)
    return answer.status, answer.headers["x-dragoman-attempts"]


@pytest.mark.smoke
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("cause", CAUSES)
async def test_a_call_made_again_is_one_attempt_with_repeats_logged(tmp_path: Path, cause: str, stream: bool) -> None:
    async with world(tmp_path) as made:
        assert await post(made, stream) == (200, "1")
        made.vendor.answer(CAUSES[cause])
        assert await post(made, stream) == (200, "1")
        assert len(made.authorizations()) == 3
    first, second = map(orjson.loads, made.log.getvalue().splitlines())
    assert ("repeated" in first, "attempts" in second, second["repeated"]) == (False, False, {cause: 1})


@pytest.mark.smoke
@pytest.mark.parametrize("stream", [False, True])
async def test_each_cause_repeats_a_call_that_the_others_repeated_before(tmp_path: Path, stream: bool) -> None:
    async with world(tmp_path) as made:
        assert await post(made, stream) == (200, "1")
        made.vendor.answer(*ALL)
        assert await post(made, stream) == (200, "1")
        assert len(made.authorizations()) == 5
    assert orjson.loads(made.log.getvalue().splitlines()[1])["repeated"] == dict.fromkeys(CAUSES, 1)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_repeat_takes_nothing_of_the_attempts_that_the_operator_allows(tmp_path: Path, stream: bool) -> None:
    async with world(tmp_path) as made:
        assert await post(made, stream) == (200, "1")
        made.vendor.answer(*ALL, json_answer(500, {"error": {"message": "down"}}), serve)
        assert await post(made, stream) == (200, "2")
    line = orjson.loads(made.log.getvalue().splitlines()[1])
    assert [each["outcome"] for each in line["attempts"]] == ["server"]
    assert line["repeated"] == dict.fromkeys(CAUSES, 1)


@looped("cause", RepeatCause)
@looped("safety", ["safe", "strict", "off"])
def test_a_call_is_repeated_once_for_each_cause_and_never_where_it_may_have_run_against_the_operator_s_will(
    cause: RepeatCause, safety: Literal["safe", "strict", "off"]
) -> None:
    allowed = cause is not RepeatCause.STALE_CONNECTION or safety == "safe"
    assert may_repeat_call(cause, (), safety) is allowed
    assert may_repeat_call(cause, tuple(each for each in RepeatCause if each is not cause), safety) is allowed
    assert not may_repeat_call(cause, (cause,), safety)


UNKNOWN = json_answer(404, {"error": {"message": "The model `tiny` does not exist", "code": "model_not_found"}})


@pytest.mark.parametrize(
    ("model", "answer", "status", "code"),
    [
        ("v/tiny", UNKNOWN, 404, "model_not_found"),
        ("v/tiny", json_answer(404, {"detail": "Not Found"}), 502, "upstream_error"),
        ("v/m", UNKNOWN, 502, "upstream_error"),
    ],
)
async def test_a_model_that_the_vendor_lacks_is_the_mistake_of_whoever_named_it(
    tmp_path: Path, model: str, answer: Script, status: int, code: str
) -> None:
    async with world(tmp_path, TABLE.replace("v/other", "v/*")) as made:
        assert (await made.post(model)).status == 200
        made.vendor.answer(answer)
        told = await made.post(model)
        assert (told.status, orjson.loads(told.body)["error"]["code"]) == (status, code)


class Failing:
    """A transport that fails with each of its errors in turn, and then responds with 200."""

    def __init__(self, *errors: UpstreamError) -> None:
        self.errors = [*errors]
        self.seen: list[Repeats] = []

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        self.seen.append(repeats)
        if self.errors:
            raise self.errors.pop(0)
        return MockResponse(SimulatedResponse(200, {}, ()))

    async def aclose(self) -> None:
        """Do nothing: nothing is open."""


STALE = RepeatableError(Failure(FailureKind.STALE, "closed"), RepeatCause.STALE_CONNECTION)
CALL = UpstreamRequest(target("openai"), Task.EMBEDDINGS, "http://up", b"{}", stream=False)


async def test_a_call_that_is_not_planned_is_repeated_once_for_a_cause() -> None:
    vendor, record = Failing(STALE), RequestRecord("r", 0.0, "openai", "/v1/embeddings")
    record.attempts.append(Attempt("v/m", 0.0))
    assert (await CallSender(vendor).send(CALL, record)).status == 200
    assert vendor.seen == [(), (RepeatCause.STALE_CONNECTION,)]
    assert record.repeats == ["stale_connection"]
    with pytest.raises(RepeatableError):
        await CallSender(Failing(STALE, STALE)).send(CALL, record)
