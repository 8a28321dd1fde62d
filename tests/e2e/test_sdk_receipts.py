"""The vendors' SDKs skip the comment with a receipt at the end of a stream, and return the same result as without
it."""

import pytest

from providers.json_types import JsonObject, JsonValue
from tests.e2e.kit import CLIENTS, Sdks, gateway_of
from tests.support.looped import looped

pytestmark = CLIENTS

TABLE = """\
version: 1
server:
  port: ${PORT}
  admin:
    port: ${ADMIN_PORT}
  receipt: true
vendors: {mock: {}}
models: {mock/echo: {}}
"""

MESSAGES: list[JsonValue] = [{"role": "user", "content": "Say hi now"}]
SCENARIOS: dict[str, JsonObject] = {
    "completion_stream": {"prompt": "Say hi now"},
    "chat_stream": {"messages": MESSAGES},
    "response_stream": {"input": "Say hi now", "store": False},
}
WAYS = [
    *((sdk, scenario) for sdk in ("openai2", "openai3") for scenario in SCENARIOS),
    *((sdk, scenario) for sdk in ("scale_gp", "scale_gp_beta", "fireworks1") for scenario in [*SCENARIOS][:2]),
]

gateway = gateway_of(TABLE)


@looped(("sdk", "scenario"), [pytest.param(*way, id=" ".join(way)) for way in WAYS])
async def test_the_last_comment_changes_nothing(sdk: str, scenario: str, sdks: Sdks) -> None:
    fields: JsonObject = {"model": "mock/echo", **SCENARIOS[scenario]}
    asked: JsonObject = {**fields, "extra_headers": {"x-dragoman-receipt": "last"}}
    with_it = await sdks.run(sdk, scenario, asked)
    without = await sdks.run(sdk, scenario, fields)
    assert with_it["error"] is None
    for found in ("text", "finish_reason", "usage"):
        assert with_it[found] == without[found]
    assert len(with_it["chunks"]) == len(without["chunks"]) > 3
    refused = await sdks.run(sdk, scenario, {**fields, "extra_headers": {"x-dragoman-receipt": "first"}})
    assert refused["error"] is not None
