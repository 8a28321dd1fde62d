"""Authentication at the gateway: wrong keys are counted by address, and no key is ever logged."""

import pytest

from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, TABLE, Rig, ask, rig
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.tables import digest_of
from tests.support.looped import looped

WRONG = {"Authorization": "Bearer not-a-key-of-anyone"}


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


async def test_who_is_told_to_wait_for_wrong_keys_is_denied(served: Rig) -> None:
    for _ in range(25):
        await served.get("/v1/models", WRONG)
    assert {(record.status, record.outcome) for record in served.records} == {(401, "denied"), (429, "denied")}


NAMED = TABLE.replace(
    f'"{digest_of(CLIENT_KEY)}"', f'{{key: "{digest_of(CLIENT_KEY)}", name: ci, not_after: 2026-12-31}}'
)
ENDS = 1_798_761_600.0


@looped("method", ["GET", "POST"])
@looped("path", ["/v1/nowhere", "/v1/completions/x", "/"])
async def test_a_path_that_does_not_exist_is_told_of_the_team_that_asks_for_it(path: str, method: str) -> None:
    async with rig(NAMED) as made:
        for headers in (AUTH, WRONG, {}):
            answer = await exchange(made.port, request(method, path, None, headers))
            assert (answer.status, answer.code) == (404, "not_found")
        told = [(record.team, record.key) for record in await made.finished(3)]
        assert told == [("search", "ci"), ("unknown", ""), ("unknown", "")]
        counted = made.series("requests_total")
        assert sum(value for name, value in counted.items() if name.endswith("team=search")) == 1


async def test_so_is_a_method_that_a_path_does_not_have(served: Rig) -> None:
    assert (await served.get("/v1/completions")).status == 405
    assert [record.team for record in await served.finished(1)] == ["search"]


async def test_a_key_is_named_in_the_log_and_one_that_has_ended_is_told_so_and_is_no_guess() -> None:
    now = [ENDS - 1]
    async with rig(NAMED, wall=lambda: now[0]) as made:
        assert (await made.get("/v1/models")).status == 200
        now[0] = ENDS
        ended = [await made.get("/v1/models") for _ in range(25)]
        wrong = await made.get("/v1/models", WRONG)
        first, second, *_, last = await made.finished(27)
        assert {(answer.status, answer.code) for answer in ended} == {(401, "invalid_api_key")}
        assert {answer.message for answer in ended} == {"This API key expired on 2027-01-01 00:00:00 UTC."}
        assert (wrong.status, "expired" in wrong.message) == (401, False)
        refused = made.series("keys_refused_total")
        assert refused == {"keys_refused_total reason=expired": len(ended), "keys_refused_total reason=wrong": 1}
    assert (first.team, first.key, first.outcome) == ("search", "ci", "ok")
    assert (second.team, second.key, second.outcome, second.code) == ("search", "ci", "denied", "expired_api_key")
    assert (last.team, last.key, last.code) == ("unknown", "", "invalid_api_key")


async def test_no_key_is_no_guess(served: Rig) -> None:
    for _ in range(25):
        assert (await served.get("/v1/models", {})).status == 401


@pytest.mark.parametrize("path", ["/v1/completions", "/v4/beta/completions", "/inference/v1/completions"])
async def test_two_keys_in_one_header_are_refused(served: Rig, path: str, caplog: pytest.LogCaptureFixture) -> None:
    twice = request("POST", path, ask(), AUTH).replace(b"Host:", b"Authorization: Bearer another-key\r\nHost:")
    refused = await exchange(served.port, twice)
    assert refused.status == 400
    for secret in (CLIENT_KEY.encode(), b"another-key"):
        assert secret not in refused.body
        assert secret.decode() not in repr(served.records) + caplog.text
    assert served.vendor.requests == []
