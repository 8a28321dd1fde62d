"""A fault in a metric during a request does not change its response: the client reads the same bytes as without it."""

import re
from typing import Final, NoReturn

import pytest

from proxy.telemetry.instruments import Instrument
from tests.proxy.kit.gateway_rig import TABLE, Rig, ask, rig
from tests.support.http_scripts import cut, json_answer, sse_answer
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Script

RETRYING: Final = TABLE.replace("attempts: 1", "attempts: 3")
CHANGING: Final = re.compile(rb'"(id|created|request_id)": ?("[^"]*"|[0-9]+)|[0-9a-f-]{20,}')
"""Ids and times."""

GOOD: Final = json_answer(200, completion("hello", "m"))
STREAM: Final = sse_answer(completion_frames(["he", "l", "l", "o"], "m"))
BAD: Final = json_answer(500, {"error": {"message": "out of order"}})
CASES: Final[dict[str, tuple[tuple[Script, ...], bool, dict[str, str], int]]] = {
    "whole": ((GOOD,), False, {}, 200),
    "streamed": ((STREAM,), True, {}, 200),
    "tried elsewhere": ((BAD, GOOD), False, {}, 200),
    "streamed from elsewhere": ((BAD, STREAM), True, {}, 200),
    "failed everywhere": ((BAD,) * 3, False, {}, 502),
    "a stream that breaks": ((cut(STREAM, 500),), True, {}, 200),
    "a wrong key": ((), False, {"Authorization": "Bearer dk-wrong"}, 401),
}
"""The vendor's responses, whether the client streams, its headers, and the status that it reads."""


def fails(*given: object) -> NoReturn:
    raise TypeError("a metric's own fault")


async def client_response(served: Rig, name: str) -> tuple[int, bool, bytes]:
    """Return the response that a client reads, without ids and times."""
    scripts, stream, headers, _ = CASES[name]
    served.vendor.answer(*scripts)
    answer = await served.post("/v1/completions", ask("fast", stream=stream), headers)
    return answer.status, answer.whole, CHANGING.sub(b"", answer.body)


@pytest.mark.parametrize("name", CASES)
async def test_a_fault_in_every_metric_changes_no_response(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with rig(RETRYING) as counted:
        right = await client_response(counted, name)
    assert right[0] == CASES[name][3]
    async with rig(RETRYING) as served:
        # The rig counts finished requests without the program's guard.
        monkeypatch.setattr(served.metrics, "observe", lambda record, cost: None)
        with monkeypatch.context() as patch:
            patch.setattr(Instrument, "series", fails)
            assert await client_response(served, name) == right
            assert await client_response(served, name) == right
            await served.gateway.idle.wait()
        outcomes = {record.outcome for record in served.records}
    assert outcomes == {record.outcome for record in counted.records}
