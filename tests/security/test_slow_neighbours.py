"""A team with slow responses beside a team with fast ones, at one deployment."""

import asyncio

from tests.proxy.kit.gateway_rig import Rig, ask, rig
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import json_answer
from tests.support.openai_wire import completion
from tests.support.vendor_script import Delay, Received, Script

TABLE = f"""
vendors:
  v: {{profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
models:
  v/m: {{completions: true}}
teams:
  greedy: {{keys: ["{digest_of("greedy")}"], models: ["*"]}}
  light: {{keys: ["{digest_of("light")}"], models: ["*"]}}
"""
SLOW = 3.0


def vendor(received: Received) -> Script:
    """Respond slowly to one team, at once to the other."""
    sent = received.json()
    assert isinstance(sent, dict)
    answer = json_answer(200, completion("ok"))
    return (Delay(SLOW), *answer) if sent["prompt"] == "slow" else answer


async def status(made: Rig, team: str, prompt: str) -> int:
    body = ask(model="v/m") | {"prompt": prompt}
    headers = {"Authorization": f"Bearer {team}"}
    return (await exchange(made.port, request("POST", "/v1/completions", body, headers))).status


async def test_threat_09_long_answers_of_one_team_leave_room_for_another() -> None:
    async with rig(TABLE) as made:
        made.vendor.default = vendor
        slow = [asyncio.ensure_future(status(made, "greedy", "slow")) for _ in range(100)]
        await asyncio.sleep(0.5)
        assert [await status(made, "light", "quick") for _ in range(40)] == [200] * 40
        await asyncio.gather(*slow)
