"""A vendor refuses the operator's account: another target responds, and the log has the vendor's message."""

from pathlib import Path
from typing import Final, NamedTuple, cast

import pytest

from providers.json_types import JsonObject
from tests.faults.fault_rig import KEY, OPERATOR_KEY, TABLE, Rig, rig, samples
from tests.faults.request_outcomes import ONE
from tests.proxy.kit.raw_client import Answer
from tests.support.http_scripts import body_answer, json_answer, sse_answer
from tests.support.openai_wire import chat, chat_frames
from tests.support.vendor_script import Received, Script

pytestmark = pytest.mark.smoke

SURFACES: Final = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}


def error(message: str, code: str | int | None = None, kind: str = "invalid_request_error") -> JsonObject:
    return {"error": {"message": message, "type": kind, "code": code}}


RESTRICTED = "Organization has been restricted. Please reach out to support."
VERIFY = "Your organization must be verified to stream this model."
OLD = "The model `m` has been deprecated, learn more here: https://platform.openai.com/docs/deprecations"
SPENT = "Key limit exceeded (total limit). Manage it using https://openrouter.ai/settings/keys"
POLICY = "No endpoints found matching your data policy."
CREDITS = "Your team 7a-5e has either used all available credits or reached its monthly spending limit."
PAGE: Final = b"<html><body>Attention Required!</body></html>"


class Row(NamedTuple):
    """A vendor's refusal. `said` is the log's excerpt of its message, `alone` says whether the circuit opens."""

    profile: str
    status: int
    body: JsonObject | bytes
    outcome: str
    said: str
    alone: bool


ROWS: Final = (
    Row("openrouter", 403, error(SPENT, 403), "quota", SPENT, True),
    Row("openrouter", 404, error(POLICY, 404), "not_found", POLICY, False),
    Row("openrouter", 403, error("This model is not available in your region.", 403), "forbidden", "region", False),
    Row("groq", 400, error(RESTRICTED, "organization_restricted"), "auth", RESTRICTED, True),
    Row(
        "anthropic", 400, error("This organization has been disabled."), "auth", "organization has been disabled", True
    ),
    Row("anthropic", 404, error("model: m", kind="not_found_error"), "model_not_found", "model: m", True),
    Row("openai", 400, error(VERIFY, "unsupported_value"), "forbidden", VERIFY, False),
    Row("openai", 404, error(OLD, "model_not_found"), "model_not_found", OLD, True),
    Row(
        "openai", 401, error(f"Incorrect API key provided: {OPERATOR_KEY}."), "auth", "Incorrect API key provided", True
    ),
    Row("openai", 403, PAGE, "forbidden", "Attention Required!", False),
    Row("xai", 429, {"code": "Some resource has been exhausted", "error": CREDITS}, "quota", CREDITS, True),
)


def table(profile: str) -> str:
    one = "one: {profile: openai_compatible"
    return TABLE.replace(one, f"one: {{profile: {profile}").replace(":${ONE}/v1", ":${ONE}")


def second(received: Received) -> Script:
    stream = cast(JsonObject, received.json()).get("stream")
    return sse_answer(chat_frames(["two"])) if stream else json_answer(200, chat("two"))


async def response_of(made: Rig, surface: str, model: str = "both") -> Answer:
    turn: JsonObject = {"role": "user", "content": "hi"}
    said: JsonObject = {"input": [turn]} if surface == "responses" else {"messages": [turn], "max_tokens": 9}
    return await made.post({"model": model, "stream": made.stream, **said}, SURFACES[surface])


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.profile}-{row.status}-{row.outcome}")
async def test_trouble_of_the_operators_account_is_not_the_clients(row: Row, stream: bool, tmp_path: Path) -> None:
    status, body, alone = row.status, row.body, row.alone
    ids = [("x-request-id", "req_of-the-vendor")]
    async with rig(tmp_path, stream, table(row.profile)) as made:
        made.one.default = body_answer(status, body, ids) if isinstance(body, bytes) else json_answer(status, body, ids)
        made.two.default = second
        for number, surface in enumerate(SURFACES):
            answer = await response_of(made, surface)
            assert (answer.status, b"two" in answer.body) == (200, True)
            skipped = alone and number > 0
            assert answer.headers["x-dragoman-attempts"] == ("1" if skipped else "2")
            line = (await made.logged())[-1]
            assert (line["status"], line["outcome"], "attempts" in line) == (200, "ok", not skipped)
        (attempt,) = cast(list[JsonObject], made.lines()[0]["attempts"])
        assert (attempt["outcome"], attempt["status"], attempt["upstream_request_id"]) == (
            row.outcome,
            status,
            ids[0][1],
        )
        assert row.said in str(attempt["message"])
        made.forget()
        answer = await response_of(made, "chat", "one/m")
        last = (await made.logged())[-1]
        assert (last["outcome"], last["upstream_request_id"]) == ("upstream_error", ids[0][1])
        assert answer.headers["x-dragoman-upstream-request-id"] == ids[0][1]
        assert answer.status >= 429
        assert row.said not in answer.message
        calls = 2 if alone else 4
        told = samples(await made.exposition(), "attempts_total")
        assert told[f"attempts_total deployment={ONE} outcome={row.outcome}"] == calls
        assert OPERATOR_KEY.encode() not in made.log.getvalue()


VENDORS_OWN: Final = [
    ("request-id", "req_011"),
    ("anthropic-ratelimit-unified-status", "allowed"),
    ("anthropic-ratelimit-requests-remaining", "5"),
    ("x-ratelimit-remaining-requests", "7"),
]
LIMITED: Final = error("slow down", "rate_limit_exceeded", "rate_limit_error")


@pytest.mark.parametrize(
    ("profile", "surface", "extra", "passed"),
    [
        ("anthropic", "messages", [], {"anthropic-ratelimit-unified-status", "anthropic-ratelimit-requests-remaining"}),
        ("anthropic", "messages", [("x-should-retry", "false")], {"x-should-retry"}),
        ("anthropic", "chat", [], set()),
        ("openai", "chat", [], {"x-ratelimit-remaining-requests"}),
        ("openai", "responses", [], {"x-ratelimit-remaining-requests"}),
        ("openai", "messages", [], set()),
        ("groq", "chat", [], set()),
    ],
)
async def test_clients_of_a_vendors_own_api_get_its_limits_and_its_wait(
    profile: str, surface: str, extra: list[tuple[str, str]], passed: set[str], tmp_path: Path
) -> None:
    async with rig(tmp_path, table=table(profile)) as made:
        made.one.default = json_answer(429, LIMITED, [*VENDORS_OWN, *extra, ("retry-after", "3600")])
        answer = await response_of(made, surface, "one/m")
        assert (answer.status, answer.headers["retry-after"]) == (429, "3600")
        assert answer.headers["x-should-retry"] == "false"
        assert passed <= answer.headers.keys()
        theirs = {name for name in answer.headers if "ratelimit" in name}
        assert theirs == {name for name in passed if "ratelimit" in name} or extra
        if surface == "chat" and profile == "openai":
            made.forget()
            made.one.default = json_answer(200, chat("hi"), VENDORS_OWN)
            good = await response_of(made, surface, "one/m")
            assert (good.status, good.headers["x-ratelimit-remaining-requests"]) == (200, "7")
            assert good.headers["x-dragoman-upstream-request-id"] == "req_011"
            assert (await made.logged())[-1]["upstream_request_id"] == "req_011"


async def test_the_gateways_own_limits_stand_in_the_vendors_place(tmp_path: Path) -> None:
    limited = table("openai").replace('models: ["one/m"', 'limits: {requests_per_minute: 60}, models: ["one/m"')
    async with rig(tmp_path, table=limited) as made:
        made.one.default = json_answer(200, chat("hi"), VENDORS_OWN)
        answer = await response_of(made, "chat", "one/m")
        assert answer.headers["x-ratelimit-remaining-requests"] != "7"


@pytest.mark.parametrize("echo", [OPERATOR_KEY, OPERATOR_KEY.upper(), f"id-{OPERATOR_KEY[3:18]}"])
async def test_an_id_that_repeats_the_credential_is_not_shown(echo: str, tmp_path: Path) -> None:
    async with rig(tmp_path, table=table("openai")) as made:
        made.one.default = json_answer(200, chat("hi"), [("x-request-id", echo), ("x-ratelimit-x", echo)])
        answer = await response_of(made, "chat", "one/m")
        made.one.default = json_answer(400, {**error("no"), "request_id": echo})
        refused = await response_of(made, "chat", "one/m")
        assert (answer.status, refused.status) == (200, 400)
        for shown in (*answer.headers.values(), *refused.headers.values(), made.log.getvalue().decode()):
            assert echo not in shown
        assert KEY not in made.log.getvalue().decode()


async def test_an_id_in_the_body_of_an_error_is_the_vendors_id(tmp_path: Path) -> None:
    async with rig(tmp_path, table=table("anthropic")) as made:
        made.one.default = json_answer(400, {**error("max_tokens: no"), "request_id": "req_body"})
        answer = await response_of(made, "messages", "one/m")
        assert (answer.status, answer.headers["x-dragoman-upstream-request-id"]) == (400, "req_body")
