"""The vendors' own SDKs at a limit of their team: they wait as long as the response requests, or not at all."""

import asyncio
import sys

import pytest

from providers.json_types import JsonObject
from tests.e2e.agents.environments import environment
from tests.e2e.kit import CLIENTS, Sdks, gateway_of
from tests.proxy.kit.tables import digest_of
from tests.support.clients import Options
from tests.support.gateway import RunningGateway
from tests.support.looped import looped

pytestmark = CLIENTS

ANTHROPIC = """
import sys
from anthropic import Anthropic, RateLimitError
client = Anthropic(base_url=sys.argv[1], api_key=sys.argv[2], max_retries=2)
for _ in range(int(sys.argv[3])):
    try:
        client.messages.create(model="mock/echo", max_tokens=5, messages=[{"role": "user", "content": "hi"}])
        print("answered")
    except RateLimitError as error:
        print(error.body["error"]["type"])
"""
"""A program that sends `count` requests with Anthropic's SDK, and prints their outcomes."""

STAINLESS = ("openai2", "openai3", "scale_gp_a58", "scale_gp", "scale_gp_beta", "fireworks1")
"""SDKs that retry by themselves."""

EVERY = looped("sdk", STAINLESS)

TEAMS = "\n".join(
    f"""\
  fast_{sdk}: {{keys: ["{digest_of(f"fast-{sdk}")}"], models: ["*"], limits: {{requests_per_second: 1}}}}
  slow_{sdk}: {{keys: ["{digest_of(f"slow-{sdk}")}"], models: ["*"], limits: {{requests_per_month: 1}}}}
  poor_{sdk}: {{keys: ["{digest_of(f"poor-{sdk}")}"], models: ["*"], budget: {{tokens: 1, per: month}}}}"""
    for sdk in (*STAINLESS, "anthropic")
)
TABLE = f"""\
version: 1
vendors: {{mock: {{}}}}
models: {{mock/echo: {{}}}}
teams:
{TEAMS}
"""
ASK: JsonObject = {"model": "mock/echo", "prompt": "Say hi now"}


gateway = gateway_of(TABLE)


async def outcomes(gateway: RunningGateway, team: str) -> dict[str, float]:
    """Return how many requests of a team had each outcome."""
    found: dict[str, float] = {}
    for name, value in (await gateway.metrics()).items():
        if name.startswith("dragoman_requests_total") and f'team="{team}"' in name:
            outcome = name.partition('outcome="')[2].partition('"')[0]
            found[outcome] = found.get(outcome, 0) + value
    return found


@EVERY
async def test_it_waits_for_a_rate_as_told_and_then_passes(sdk: str, sdks: Sdks) -> None:
    options = Options(api_key=f"fast-{sdk}", prefix=None, max_retries=2)
    for _ in range(3):
        outcome = await sdks.run(sdk, "completion", ASK, options)
        assert outcome["error"] is None
    seen = await outcomes(sdks.gateway, f"fast_{sdk}")
    # One second for each wait. A wait is never too short.
    assert seen["ok"] == 3
    assert seen.get("limited", 0) <= 2


@EVERY
@looped(("kind", "code"), [("slow", "rate_limit_exceeded"), ("poor", "insufficient_quota")])
async def test_what_is_over_for_the_month_is_not_tried_again(sdk: str, kind: str, code: str, sdks: Sdks) -> None:
    options = Options(api_key=f"{kind}-{sdk}", prefix=None, max_retries=2)
    first = await sdks.run(sdk, "completion", ASK, options)
    assert first["error"] is None
    raised = (await sdks.run(sdk, "completion", ASK, options))["error"]
    assert raised is not None
    assert (raised["kind"], raised["status_code"]) == ("RateLimitError", 429)
    assert code in str(raised["body"])
    assert await outcomes(sdks.gateway, f"{kind}_{sdk}") == {"ok": 1, "limited": 1}


async def by_anthropic(gateway: RunningGateway, key: str, count: int) -> list[str]:
    """Return the outcomes of requests by Anthropic's SDK."""
    place = await asyncio.to_thread(environment("agents").variables)
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ANTHROPIC, gateway.url, key, str(count)), env=place, stdout=asyncio.subprocess.PIPE
    )
    return (await process.communicate())[0].decode().split()


async def test_anthropic_s_waits_for_a_rate_and_passes(gateway: RunningGateway) -> None:
    assert await by_anthropic(gateway, "fast-anthropic", 3) == ["answered"] * 3
    assert (await outcomes(gateway, "fast_anthropic")).get("limited", 0) <= 2


@pytest.mark.parametrize("kind", ["slow", "poor"])
async def test_anthropic_s_does_not_sleep_to_the_end_of_the_month(kind: str, gateway: RunningGateway) -> None:
    assert await by_anthropic(gateway, f"{kind}-anthropic", 2) == ["answered", "rate_limit_error"]
    assert await outcomes(gateway, f"{kind}_anthropic") == {"ok": 1, "limited": 1}
