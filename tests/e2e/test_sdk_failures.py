"""The exceptions of the vendors' own SDKs if the gateway refuses, if a vendor fails, and if a stream breaks."""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson
import pytest

from providers.json_types import JsonObject
from tests.e2e.kit import CLIENTS, Sdks, choices_of, gateway_of
from tests.proxy.kit.tables import digest_of
from tests.support.clients import RECIPES, Options, Raised
from tests.support.gateway import RunningGateway
from tests.support.nightly import by_day

pytestmark = CLIENTS

KEY, OTHER_KEY = "sk-of-search", "sk-of-ads"
FAULTS = (
    *("error-429", "error-500", "error-401", "error-400", "overflow", "malformed", "midstream-error-0"),
    *("midstream-error-1", "midstream-error-2", "cut-1", "cut-2", "eof-2", "hang-0"),
)
HASTY = {"error-429": "{retries: {attempts: 1}}"}
"""Rules without the wait of one second that the mock requests, which is a fault of `tests/faults`."""
ROWS = "\n".join(f"  mock/{name}: {HASTY.get(name, '{}')}" for name in FAULTS)
TABLE = f"""\
version: 1
vendors:
  mock: {{}}
  mine: {{profile: mock}}
  pais: {{profile: mock}}
models:
  mock/echo: {{}}
  mock/*: {{}}
{ROWS}
  mine/secret: {{}}
teams:
  search: {{keys: ["{digest_of(KEY)}"], models: [mock/*]}}
  ads: {{keys: ["{digest_of(OTHER_KEY)}"], models: ["*"]}}
"""

PAIS = "/api/v1/compatibility/openai/v1"
TEXT = "Say hi now"
ASK: JsonObject = {"model": "mock/echo", "prompt": TEXT}
CHAT: JsonObject = {"model": "mock/echo", "messages": [{"role": "user", "content": TEXT}]}

STAINLESS: Mapping[int, str] = {
    400: "BadRequestError",
    401: "AuthenticationError",
    403: "PermissionDeniedError",
    404: "NotFoundError",
    422: "UnprocessableEntityError",
    429: "RateLimitError",
    502: "InternalServerError",
    504: "InternalServerError",
}
OLD_FIREWORKS: Mapping[int, str] = {
    400: "InvalidRequestError",
    401: "AuthenticationError",
    403: "PermissionError",
    404: "InvalidRequestError",
    429: "RateLimitError",
    502: "BadGatewayError",
    504: "HTTPStatusError",
}


@dataclass(frozen=True, slots=True)
class Way:
    """One SDK with one surface: the status for a bad field there, and the exception for a broken stream."""

    sdk: str
    bad_field: int
    broken: str
    prefix: str | None = None

    def options(self, key: str = KEY, max_retries: int = 0) -> Options:
        return Options(api_key=key, prefix=self.prefix, max_retries=max_retries)

    def kind(self, status: int) -> str:
        return (OLD_FIREWORKS if self.sdk == "fireworks0" else STAINLESS)[status]


# Only openai reads an error frame, and scale-gp an error event. The others notice only the missing end.
WAYS = {
    "openai2": Way("openai2", 400, "APIError"),
    "openai3": Way("openai3", 400, "APIError"),
    "scale_gp_a58": Way("scale_gp_a58", 422, "APIStatusError"),
    "scale_gp": Way("scale_gp", 422, "APIStatusError"),
    "scale_gp_beta": Way("scale_gp_beta", 422, "RemoteProtocolError"),
    "fireworks0": Way("fireworks0", 400, "RemoteProtocolError"),
    "fireworks1": Way("fireworks1", 400, "RemoteProtocolError"),
    "openai3 to pais": Way("openai3", 422, "APIError", PAIS),
}
BY_DAY = ("openai3", "scale_gp", "fireworks1", "openai3 to pais")
"""One of each family of SDKs. Older ones, and the beta, run in the nightly run."""
TRIED = {name: WAYS[name] for name in by_day(BY_DAY, (*WAYS,))}
EVERY = pytest.mark.parametrize("way", [pytest.param(way, id=name) for name, way in TRIED.items()])
RETRYING = pytest.mark.parametrize(
    "way", [pytest.param(way, id=name) for name, way in TRIED.items() if way.sdk != "fireworks0"]
)
"""fireworks-ai 0.x never retries by itself."""


gateway = gateway_of(TABLE)


def facts_of(raised: Raised) -> JsonObject:
    if raised["body"] is None:  # fireworks-ai 0.x has the body as its message
        return dict(orjson.loads(raised["message"])["error"])
    return dict(raised["body"].get("error", raised["body"]))


async def raised_by(sdks: Sdks, way: Way, kind: str, fields: JsonObject, options: Options) -> Raised:
    outcome = await sdks.run(way.sdk, kind, fields, options)
    assert outcome["error"] is not None, outcome
    return outcome["error"]


def check(way: Way, raised: Raised, status: int, code: str, param: str | None) -> None:
    """Assert that the exception has that status, with code and param in the attributes that callers read."""
    assert raised["kind"] == way.kind(status)
    assert raised["status_code"] == (None if way.sdk == "fireworks0" else status)
    facts = facts_of(raised)
    assert (facts["code"], facts["param"]) == (code, param)
    if way.sdk.startswith("openai"):
        assert (raised["code"], raised["param"], raised["type"]) == (code, param, facts["type"])


async def answered(gateway: RunningGateway) -> float:
    series = await gateway.metrics()
    return sum(value for name, value in series.items() if name.startswith("dragoman_requests_total"))


def test_every_sdk_is_driven() -> None:
    assert {way.sdk for way in WAYS.values()} == RECIPES.keys()


# Refusals of the gateway ---------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize("kind", ["completion", "chat_stream"])
async def test_a_wrong_key_is_an_authentication_error_that_is_not_tried_again(way: Way, kind: str, sdks: Sdks) -> None:
    before = await answered(sdks.gateway)
    fields = ASK if kind == "completion" else CHAT
    raised = await raised_by(sdks, way, kind, fields, way.options("sk-nobody", max_retries=2))
    check(way, raised, 401, "invalid_api_key", None)
    assert await answered(sdks.gateway) - before == 1
    assert "sk-nobody" not in raised["message"]


@EVERY
async def test_another_team_s_model_is_not_found_and_named(way: Way, sdks: Sdks) -> None:
    fields: JsonObject = {**ASK, "model": "mine/secret"}
    raised = await raised_by(sdks, way, "completion", fields, way.options())
    check(way, raised, 404, "model_not_found", "model")
    assert "mine/secret" in raised["message"]
    outcome = await sdks.run(way.sdk, "completion", fields, way.options(OTHER_KEY))
    assert outcome["error"] is None


@EVERY
async def test_an_unknown_model_is_not_found_and_the_nearest_ones_of_the_team_are_named(way: Way, sdks: Sdks) -> None:
    fields: JsonObject = {**ASK, "model": "mocks/echo"}
    raised = await raised_by(sdks, way, "completion", fields, way.options())
    check(way, raised, 404, "model_not_found", "model")
    assert "'mock/echo'" in raised["message"]
    hidden = await raised_by(sdks, way, "completion", {**ASK, "model": "mine/secrets"}, way.options())
    assert "'mine/secret'" not in hidden["message"]


@EVERY
async def test_a_bad_field_is_named_with_its_own_status(way: Way, sdks: Sdks) -> None:
    raised = await raised_by(sdks, way, "completion", {**ASK, "temperature": 9}, way.options())
    check(way, raised, way.bad_field, "invalid_value", "temperature")
    assert "'temperature' must be a number from 0 to 2" in raised["message"]


@pytest.mark.parametrize("name", ["scale_gp_a58", "scale_gp", "scale_gp_beta"])
async def test_every_bad_field_is_in_the_detail_list(name: str, sdks: Sdks) -> None:
    fields: JsonObject = {**ASK, "temperature": 9, "top_p": 7}
    raised = await raised_by(sdks, WAYS[name], "completion", fields, WAYS[name].options())
    assert [problem["loc"] for problem in raised["body"]["detail"]] == [["body", "temperature"], ["body", "top_p"]]


# Failures of a vendor ------------------------------------------------------------------------------------------------


@EVERY
@pytest.mark.parametrize(
    ("model", "status", "code"),
    [
        ("error-429", 429, "rate_limit_exceeded"),
        ("error-500", 502, "upstream_error"),
        ("error-401", 502, "upstream_auth_failed"),
        ("error-400", 400, "invalid_value"),
        ("overflow", 400, "context_length_exceeded"),
        ("malformed", 502, "malformed_upstream"),
        ("midstream-error-1", 502, "upstream_error"),
        ("cut-1", 502, "upstream_error"),
    ],
)
async def test_a_vendors_failure_is_raised_as_what_it_means_to_the_caller(
    way: Way, model: str, status: int, code: str, sdks: Sdks
) -> None:
    fields: JsonObject = {**ASK, "model": f"mock/{model}"}
    raised = await raised_by(sdks, way, "completion", fields, way.options())
    assert raised["kind"] == way.kind(status)
    assert facts_of(raised)["code"] == code
    assert "sk-mock" not in raised["message"]


@EVERY
async def test_a_stream_that_fails_before_its_first_content_is_refused_like_a_whole_answer(
    way: Way, sdks: Sdks
) -> None:
    for model in ("error-429", "overflow", "midstream-error-0"):
        fields: JsonObject = {**ASK, "model": f"mock/{model}"}
        whole = await raised_by(sdks, way, "completion", fields, way.options())
        streamed = await raised_by(sdks, way, "completion_stream", fields, way.options())
        assert (streamed["kind"], facts_of(streamed)) == (whole["kind"], facts_of(whole))


@EVERY
@pytest.mark.parametrize(
    ("kind", "model", "code"),
    [
        ("completion_stream", "midstream-error-2", "upstream_error"),
        ("completion_stream", "eof-2", "upstream_error"),
        ("completion_stream", "malformed", "malformed_upstream"),
        ("chat_stream", "cut-2", "upstream_error"),
    ],
)
async def test_a_stream_that_breaks_is_noticed_after_its_text_and_never_looks_finished(
    way: Way, kind: str, model: str, code: str, sdks: Sdks
) -> None:
    fields: JsonObject = {**(CHAT if kind == "chat_stream" else ASK), "model": f"mock/{model}"}
    outcome = await sdks.run(way.sdk, kind, fields, way.options())
    raised = outcome["error"]
    assert raised is not None
    assert raised["kind"] == way.broken
    assert (outcome["finish_reason"], outcome["usage"]) == (None, None)
    assert len(choices_of(outcome)) == (1 if model == "malformed" else 2)
    if way.broken != "RemoteProtocolError":
        assert facts_of(raised)["code"] == code
    if way.sdk in {"fireworks1", "scale_gp_beta"}:  # they return the error as a chunk before they raise
        assert outcome["chunks"][-1]["error"]["code"] == code


# Retries -------------------------------------------------------------------------------------------------------------


@RETRYING
@pytest.mark.parametrize(
    "model",
    [
        "error-500",  # the gateway has tried twice itself
        "error-401",  # a retry does not help: the operator's key is wrong
        "error-400",
        "overflow",
    ],
)
async def test_an_sdk_does_not_try_again_what_has_been_tried_or_is_no_use(way: Way, model: str, sdks: Sdks) -> None:
    before = await answered(sdks.gateway)
    fields: JsonObject = {**ASK, "model": f"mock/{model}"}
    await raised_by(sdks, way, "completion", fields, way.options(max_retries=1))
    assert await answered(sdks.gateway) - before == 1


async def test_an_answer_that_took_too_long_is_not_asked_for_again(sdks: Sdks) -> None:
    before = await answered(sdks.gateway)
    way = WAYS["scale_gp_a58"]
    fields: JsonObject = {**ASK, "model": "mock/hang-0", "inference_timeout": "0.05"}
    raised = await raised_by(sdks, way, "completion", fields, way.options(max_retries=2))
    check(way, raised, 504, "upstream_timeout", None)
    assert await answered(sdks.gateway) - before == 1
