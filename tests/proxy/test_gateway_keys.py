"""Keys at the gateway's door: wrong ones are counted by address, and what a key was is told nowhere."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.proxy.raw_client import exchange, request
from tests.proxy.rig import AUTH, CLIENT_KEY, Rig, ask, rig
from tests.support.openai_wire import completion
from tests.support.wire import json_answer

WRONG = {"Authorization": "Bearer not-a-key-of-anyone"}


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Rig]:
    """A gateway whose vendor answers everything."""
    async with rig() as made:
        made.vendor.default = json_answer(200, completion("hello", "m"))
        yield made


async def test_who_goes_on_with_wrong_keys_is_told_to_wait_and_a_good_key_still_counts(served: Rig) -> None:
    statuses = [(await served.get("/v1/models", WRONG)).status for _ in range(30)]
    assert statuses[:20] == [401] * 20
    assert statuses.count(429) >= 8
    late = await served.get("/v1/models", WRONG)
    assert (late.status, late.code, late.headers["retry-after"]) == (429, "rate_limit_exceeded", "1")
    assert late.headers["x-should-retry"] == "false"
    assert (await served.get("/v1/models")).status == 200
    assert (await served.post("/v1/completions", ask())).status == 200
    assert not [record for record in served.records if record.team == "unknown" and record.status == 200]


async def test_no_key_is_no_guess(served: Rig) -> None:
    for _ in range(25):
        assert (await served.get("/v1/models", {})).status == 401


@pytest.mark.parametrize("path", ["/v1/completions", "/v4/beta/completions", "/inference/v1/completions"])
async def test_one_header_with_two_keys_is_refused_without_a_word_of_either(
    served: Rig, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    twice = request("POST", path, ask(), AUTH).replace(b"Host:", b"Authorization: Bearer another-key\r\nHost:")
    refused = await exchange(served.port, twice)
    assert refused.status == 400
    for secret in (CLIENT_KEY.encode(), b"another-key"):
        assert secret not in refused.body
        assert secret.decode() not in repr(served.records) + caplog.text
    assert served.vendor.requests == []
