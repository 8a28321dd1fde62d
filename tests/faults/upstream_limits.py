"""F19 to F22: exceeded rate limits, and empty accounts."""

import asyncio
import random
from collections.abc import Mapping
from typing import Final, cast

import pytest

from providers.failure import Failure, FailureKind
from providers.json_types import JsonObject, JsonValue
from providers.vendor_text.read_retry_after import read_rate_limit_wait, read_retry_after
from proxy.deployment_health.circuit_breaker import AnswerKind, Breaker
from proxy.errors import DAY, upstream_failed
from tests.faults.check_answers import good, refusal
from tests.faults.fault_rig import KEY, SCALED, TABLE, Rig, ok
from tests.faults.lifecycle_load import stopped
from tests.faults.registry import fault, single_fault
from tests.faults.request_outcomes import (
    ONE,
    ExpectedEnd,
    assert_answered_elsewhere,
    assert_fails_alone,
    assert_skipped,
    consecutive_failures,
    failed_attempts,
    health,
    unspent_retries,
)
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import json_answer
from tests.support.vendor_script import Behaviour, Received, Script

OFF: Final = TABLE.replace("  timeouts:", "  retries: {safety: off}\n  timeouts:")
SECOND: Final = TABLE.replace("total: 4s", "total: 1s")

LIMITED: Final[JsonValue] = {"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}


def limited(*waits: str) -> Script:
    """Return a 429 with these Retry-After headers."""
    return json_answer(429, LIMITED, [("retry-after", wait) for wait in waits])


def told(retry: str | None = None, after: str | None = None, calls: int = 1) -> ExpectedEnd:
    """Return the expected end of a request that is over a limit."""
    return ExpectedEnd(429, "rate_limit_exceeded", "rate_limited", 429, retry, after, calls)


# F19 and F20: over a limit -------------------------------------------------------------------------------------------


@fault(19)
async def wait_of_a_deployment_that_is_alone(rig: Rig) -> None:
    times: list[float] = []

    def timed(script: Script) -> Behaviour:
        def answer(received: Received) -> Script:
            times.append(asyncio.get_running_loop().time())
            return script

        return answer

    rig.one.answer(timed(json_answer(429, LIMITED, [("retry-after-ms", "200")])), timed(ok(rig.stream, "one")))
    answer = await rig.ask("one/m")
    assert good(answer, rig.stream) == "one"
    assert answer.headers["x-dragoman-attempts"] == "2"
    assert times[1] - times[0] >= 0.2
    (line,) = await rig.logged()
    assert (line["outcome"], failed_attempts(line)) == ("ok", [(ONE, "rate_limited", 429)])
    assert unspent_retries(rig, "one/m") == 9
    assert consecutive_failures(rig) == 0


@single_fault(19)
async def wait_of_one_second(rig: Rig) -> None:
    rig.one.answer(limited("1"))
    answer = await rig.ask("one/m")
    assert (answer.status, answer.headers["x-dragoman-attempts"]) == (200, "2")
    (line,) = await rig.logged()
    assert cast(float, line["duration_ms"]) >= 1000


@fault(19)
async def wait_that_led_to_another(rig: Rig) -> None:
    rig.one.default = json_answer(429, LIMITED, [("retry-after-ms", "100")])
    await assert_fails_alone(rig, told("false", "1", calls=2))


@fault(19)
async def wait_that_is_too_long(rig: Rig) -> None:
    rig.one.default = limited("5")
    await assert_fails_alone(rig, told(after="5"))
    again = await rig.ask("one/m")
    assert (refusal(again), again.headers["retry-after"]) == ((429, "rate_limit_exceeded"), "5")
    assert "x-should-retry" not in again.headers
    assert len(rig.one.requests) == 1
    assert (await rig.series("deployment_state"))[f"deployment_state deployment={ONE}"] == 2


@fault(19, SECOND)
async def wait_beyond_the_deadline(rig: Rig) -> None:
    rig.one.default = limited("1")
    await assert_fails_alone(rig, told(after="1"))


@fault(20)
async def limit_where_there_is_another_deployment(rig: Rig) -> None:
    clock = stopped(rig)
    rig.one.default = limited("5")
    await assert_answered_elsewhere(rig, told())
    await assert_skipped(rig)
    assert health(rig).wait(clock.now) == pytest.approx(5)
    assert health(rig).only_cooling_down(clock.now), "left alone for what it said, and for nothing else"
    assert unspent_retries(rig) == 10


@fault(20)
async def limit_that_does_not_say_how_long(rig: Rig) -> None:
    clock = stopped(rig)
    rig.one.default = limited()
    await assert_answered_elsewhere(rig, told())
    await assert_skipped(rig)
    assert health(rig).wait(clock.now) == pytest.approx(SCALED.health.cooldown)


# F21: exhausted quotas -----------------------------------------------------------------------------------------------

EMPTY: Final = ExpectedEnd(429, "insufficient_quota", "quota", 429, retry="false")
NO_CREDIT: Final[JsonValue] = {
    "error": {"message": "You exceeded your current quota.", "type": "insufficient_quota", "code": "insufficient_quota"}
}
_DAY: Final[JsonObject] = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
_SPENT: Final[JsonValue] = {"error_code": "enforced_spend_limit_reached"}

_MONTH: Final = (
    "You are using a Trial key, which is limited to 1000 API calls / month. You can continue to use it for free."
)

QUOTAS: Final[tuple[tuple[str, int, JsonValue], ...]] = (
    ("openai", 429, NO_CREDIT),
    ("openai", 429, {"error": {"message": "limit", "type": "x", "code": "billing_hard_limit_reached"}}),
    ("anthropic", 400, {"error": {"type": "invalid_request_error", "message": "Your credit balance is too low."}}),
    ("anthropic", 402, {"error": {"type": "billing_error", "message": "pay"}}),
    ("anthropic", 429, {"error": {"type": "rate_limit_error", "message": "spent", "details": _SPENT}}),
    ("gemini", 429, {"error": {"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED", "details": [_DAY]}}),
    ("deepseek", 402, {"error": {"message": "Insufficient Balance", "code": "invalid_request_error"}}),
    ("openrouter", 402, {"error": {"message": "credits", "code": 402, "metadata": {"error_type": "payment_required"}}}),
    ("moonshot", 429, {"error": {"message": "suspended", "type": "exceeded_current_quota_error"}}),
    ("zai", 429, {"error": {"message": "balance", "code": "1113"}}),
    ("dashscope", 400, {"error": {"message": "in arrears", "code": "Arrearage"}}),
    ("cohere", 429, {"message": _MONTH}),
)
"""Profile, status and body of each vendor's quota error."""

VENDORS: Final = dict.fromkeys(name for name, _, _ in QUOTAS)
ACCOUNTS: Final = TABLE[: TABLE.index("vendors:")] + "\n".join(
    [
        "vendors:",
        *(f'  {name}: {{profile: {name}, base_url: "http://127.0.0.1:${{ONE}}/{name}"}}' for name in VENDORS),
        "models:",
        *(f"  {name}/m: {{}}" for name in VENDORS),
        f'teams: {{search: {{keys: ["{digest_of(KEY)}"], models: ["*"]}}}}',
    ]
)


@fault(21)
async def account_without_credit(rig: Rig) -> None:
    rig.one.default = json_answer(429, NO_CREDIT)
    await assert_fails_alone(rig, EMPTY)
    rig.forget()
    clock = stopped(rig)
    await assert_answered_elsewhere(rig, EMPTY)
    await assert_skipped(rig)
    assert health(rig).wait(clock.now) == pytest.approx(SCALED.health.quota)
    assert health(rig).only_cooling_down(clock.now)


@fault(21, ACCOUNTS)
async def account_without_credit_in_each_vendors_words(rig: Rig) -> None:
    clock = stopped(rig)
    for name, status, body in QUOTAS:
        rig.forget()
        rig.one.requests.clear()
        rig.one.default = json_answer(status, body)
        asked: JsonObject = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5, "stream": rig.stream}
        first = await rig.post({"model": f"{name}/m", **asked}, "/v1/chat/completions")
        assert refusal(first) == (429, "insufficient_quota"), body
        assert first.headers["x-should-retry"] == "false"
        assert first.message == "The upstream's account has no credit left."
        again = await rig.post({"model": f"{name}/m", **asked}, "/v1/chat/completions")
        assert again.status == 429
        assert len(rig.one.requests) == 1
        known = health(rig, f"{name}/m/default")
        assert known.wait(clock.now) == pytest.approx(SCALED.health.quota)
        assert known.only_cooling_down(clock.now)


# F22: waits in every spelling ----------------------------------------------------------------------------------------

_MOST, _USUAL = SCALED.health.requested_most, SCALED.health.cooldown
_NOON: Final = "Sat, 21 Nov 2026 12:00:00 GMT"

SPELLINGS: Final[tuple[tuple[Mapping[str, str], float], ...]] = (
    ({"retry-after": "3"}, 3.0),
    ({"retry-after": " 3.5 "}, 3.5),
    ({"retry-after": "1000000000"}, _MOST),
    ({"retry-after": "0"}, SCALED.health.requested_least),
    ({"retry-after": "-1"}, _USUAL),
    ({"retry-after": "1e9"}, _USUAL),
    ({"retry-after": "NaN"}, _USUAL),
    ({"retry-after": "inf"}, _USUAL),
    ({"retry-after": "0x10"}, _USUAL),
    ({"retry-after": "1_0"}, _USUAL),
    ({"retry-after": ""}, _USUAL),
    ({"retry-after": "soon"}, _USUAL),
    ({"retry-after": "Sat, 21 Nov 2026 12:00:04 GMT", "date": _NOON}, 4.0),
    ({"retry-after": "Sat, 21 Nov 2036 12:00:00 GMT", "date": _NOON}, _MOST),
    ({"retry-after": "Sat, 21 Nov 2016 12:00:00 GMT", "date": _NOON}, SCALED.health.requested_least),
    ({"retry-after": "Sat, 21 Nov 2099 12:00:00 GMT"}, _MOST),
    ({"retry-after": "Sat, 21 Nov 2015 12:00:00 GMT"}, SCALED.health.requested_least),
)
"""Headers, and the seconds of cooldown that they cause."""


@fault(22, OFF)
async def wait_in_every_spelling(rig: Rig) -> None:
    clock = stopped(rig)
    for headers, seconds in SPELLINGS:
        rig.forget()
        rig.one.default = json_answer(429, LIMITED, list(headers.items()))
        assert refusal(await rig.ask("one/m")) == (429, "rate_limit_exceeded")
        assert health(rig).wait(clock.now) == pytest.approx(seconds), headers


@fault(22)
async def wait_said_twice_or_for_too_long(rig: Rig) -> None:
    for waits, retry, shown in (
        (("9000", "3"), None, "3"),
        (("3", "9000"), "false", "9000"),
        (("1000000000",), "false", str(DAY)),
    ):
        rig.forget()
        rig.one.default = limited(*waits)
        await assert_fails_alone(rig, told(retry, shown))
        again = (await rig.ask("one/m")).headers["retry-after"]
        assert int(shown) - 5 <= int(again) <= int(shown), "a client that is refused meanwhile is told the same"


@single_fault(22)
async def wait_in_ten_thousand_spellings(rig: Rig) -> None:
    draw = random.Random(22)
    pieces = [
        "-",
        "+",
        "0",
        "1",
        "9",
        "99999",
        ".",
        "e",
        "x",
        "_",
        " ",
        "NaN",
        "inf",
        "GMT",
        "Sat, 21 Nov 2026",
        ":",
        "٣",
    ]
    for _ in range(10_000):
        headers = {
            name: "".join(draw.choices(pieces, k=draw.randrange(6)))
            for name in ("retry-after", "retry-after-ms", "date", "x-ratelimit-reset")
        }
        for wait in (read_retry_after(headers), read_rate_limit_wait(headers, "", {})):
            failure = Failure(FailureKind.RATE_LIMITED, "slow down", 429, retry_after=wait)
            known = Breaker(SCALED.health, draw.random)
            known.begin(0.0, AnswerKind.WHOLE).failed(0.0, failure)
            assert SCALED.health.requested_least <= known.wait(0.0) <= SCALED.health.requested_most
            assert 1 <= int(upstream_failed(failure).facts.headers.get("retry-after", "1")) <= DAY
