"""The path of one request through the packages: the number of function calls, and of changes between packages."""

from types import FrameType
from typing import Final

import pytest

from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, Rig, gateway_fixture
from tests.proxy.kit.raw_client import connected, request
from tests.proxy.kit.tables import digest_of
from tests.support.followed_calls import FollowedCalls, package_of_code
from tests.support.http_scripts import sse_answer
from tests.support.openai_wire import chat_frames

MOST_CALLS: Final = 119
MOST_CHANGES: Final = 34
"""A ratchet: these numbers only fall. The goals for a request are 120 calls and 40 changes of package."""

WARMING: Final = 3
FOLLOWED: Final = 3
"""The number of requests that are followed. The one with the fewest calls counts, because some must arm a timer of the
process."""

served = gateway_fixture(f"""
vendors:
  v: {{profile: openai_compatible, api_key: sk-up, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}
models: {{v/m: {{}}}}
teams: {{search: {{keys: ["{digest_of(CLIENT_KEY)}"], models: [v/m]}}}}
""")

CHAT: Final = request(
    "POST",
    "/v1/chat/completions",
    {"model": "v/m", "stream": True, "messages": [{"role": "user", "content": "hi"}]},
    {**AUTH, "Content-Type": "application/json"},
)


def writes_to_vendor(frame: FrameType) -> bool:
    """Return whether a frame writes to an asyncio transport on behalf of the HTTP client."""
    caller = frame.f_back
    return (
        frame.f_code.co_name == "write"
        and caller is not None
        and package_of_code(caller.f_code.co_filename) == "proxy/http_client"
    )


@pytest.mark.smoke
async def test_a_warm_streamed_chat_takes_few_functions_and_changes_of_package_before_the_vendor_has_it(
    served: Rig,
) -> None:
    followed = []
    served.vendor.default = sse_answer(chat_frames(["one", "two"]))
    async with connected(served.port) as client:
        for _ in range(WARMING):
            await client.send(CHAT)
            assert (await client.answer()).status == 200
        for _ in range(FOLLOWED):
            calls = FollowedCalls(writes_to_vendor)
            client.writer.write(CHAT)
            calls.begin()
            try:
                assert (await client.answer()).status == 200
            finally:
                calls.end()
            followed.append(calls)
    least = min(followed, key=lambda calls: len(calls.calls))
    assert least.calls[0].package in ("proxy/listener", "proxy/overload")
    assert least.calls[-1].package == "proxy/http_client"
    assert len(least.calls) <= MOST_CALLS, str(least)
    assert least.changes <= MOST_CHANGES, str(least)
