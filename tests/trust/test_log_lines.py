"""R32: a request is one line of at most 4 KiB in the log, and a thousand broken streams are a thousand lines.

Requests that are refused before they are parsed share one line a second.
"""

import asyncio
import logging
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Final
from unittest.mock import patch

import orjson
import pytest

from providers.json_types import JsonObject
from proxy.overload.admission_limits import AdmissionLimits
from proxy.telemetry.log_writer import MAX_LINE
from tests.faults.fault_rig import AUTH, Rig, rig
from tests.proxy.kit.raw_client import connected, request
from tests.support.http_scripts import chunk, head
from tests.support.openai_wire import completion_frames
from tests.support.vendor_script import Fin, Hang, Rst, Script, Send
from tests.trust.unlimited_rig import unlimited_rig

STREAMS: Final = 1_000
AT_ONCE: Final = 20
MORE: Final = STREAMS // 100
"""The most lines of the process itself for this number of requests."""

FRAMES: Final = completion_frames(["one", "two"])
START: Final = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))
CONTENT: Final = Send(chunk(FRAMES[0]))
LONG: Final = "a model's name that goes on\r\n{}\u2028" * 200

BREAKS: Final[Mapping[str, Script]] = {
    "end": (START, CONTENT, Fin()),
    "reset": (START, CONTENT, Rst()),
    "no chunk": (START, CONTENT, Send(b"zz\r\n"), Hang()),
    "no event": (START, CONTENT, Send(chunk(b'data: {"cho\n\n')), Hang()),
    "an error": (
        START,
        CONTENT,
        Send(chunk(b'data: {"error":{"message":"%s","type":"x","code":null}}\n\n' % (b"e\\n" * 3000))),
        Hang(),
    ),
    "before content": (START, Fin()),
    "no HTTP": (Send(b"\x00\xff\r\n\r\n"), Fin()),
}


async def broken(made: Rig, number: int, slots: asyncio.Semaphore) -> None:
    draw = Random(number)
    body: JsonObject = {"model": "one/m", "prompt": LONG, "stream": True, "user": LONG}
    headers = {**AUTH, "User-Agent": "x" * 2000, "x-request-id": f"r{number}"}
    async with slots, connected(made.port) as client:
        made.one.answer(draw.choice(list(BREAKS.values())))
        await client.send(request("POST", f"/v1/completions?{'q' * 1000}", body, headers))
        answer = await client.answer()
    assert (answer.status, answer.whole) in ((200, False), (502, True))


async def test_a_thousand_broken_streams_are_a_thousand_lines(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    async with unlimited_rig(tmp_path) as made:
        slots = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(broken(made, number, slots) for number in range(STREAMS)))
        made.asked = STREAMS
        lines = await made.logged()
        raw = made.log.getvalue().splitlines()
    assert {line["request_id"] for line in lines} == {f"r{number}" for number in range(STREAMS)}
    assert len(lines) == len(raw) == STREAMS
    assert max(map(len, raw)) <= MAX_LINE == 4096
    assert {line["outcome"] for line in lines} == {"truncated", "upstream_error"}
    assert len(caplog.records) <= MORE, caplog.text[:2000]


async def test_a_name_of_any_length_is_one_short_line(tmp_path: Path) -> None:
    names = (LONG, "\u2028" * 5000, "\U0001f600" * 5000, '"' * 60_000, "one/m" + "\\" * 60_000)
    async with rig(tmp_path) as made:
        for name in names:
            answer = await made.post({"model": name, "prompt": "hi"}, f"/v1/completions?{'%22' * 600}")
            assert answer.status in (400, 404)
        assert len(await made.logged()) == len(names)
        assert all(len(line) <= MAX_LINE for line in made.log.getvalue().splitlines())


async def test_a_thousand_refusals_at_the_door_are_a_line_a_second_that_counts_them(tmp_path: Path) -> None:
    body: JsonObject = {"model": "one/m", "prompt": LONG}
    started = asyncio.get_running_loop().time()
    async with rig(tmp_path) as made:
        with patch.object(made.app.front.admission, "limits", AdmissionLimits(requests=0)):
            async with connected(made.port) as client:
                for _ in range(STREAMS):
                    await client.send(request("POST", "/v1/completions", body, AUTH))
                    assert (await client.answer()).status == 503
        # The first request is refused after parsing. From then on, requests are refused before parsing.
        while sum(lines := early_refusal_counts(made)) < STREAMS - 1:  # noqa: ASYNC110 - a log has no event
            await asyncio.sleep(0.05)
        took = asyncio.get_running_loop().time() - started
        assert sum(lines) == STREAMS - 1
        assert len(lines) <= took + 1
        assert max(map(len, made.log.getvalue().splitlines())) <= MAX_LINE


def early_refusal_counts(made: Rig) -> list[int]:
    """Return the counts in the log lines about requests that were refused before parsing."""
    lines = [orjson.loads(line) for line in made.log.getvalue().splitlines()]
    return [line["count"] for line in lines if line["message"] == "refused at the door"]
