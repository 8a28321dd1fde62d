"""A non-streaming response is read at once if all of it has arrived, and otherwise while it arrives: the same
response, or the same failure."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import orjson
import pytest

from providers.completion import Completion
from providers.emulation.plan_calls import PlannedCall
from providers.failure import FailureKind, UpstreamError
from providers.unified_request import Operation
from proxy.deadlines import Deadlines
from proxy.dispatch.next_deployment import prepared_for
from proxy.off_loop.answer_check_pool import AnswerChecks
from proxy.off_loop.request_threads import OffLoop
from proxy.request_record import RequestRecord
from proxy.routing.snapshot import ANYONE
from proxy.surfaces.openai import OPENAI
from proxy.upstream import read_answer as module
from proxy.upstream.read_answer import content_limit, read_answer
from proxy.upstream.transport import Take, read_each
from tests.proxy.kit.tables import snapshot
from tests.support.looped import looped
from tests.support.openai_wire import chat

ANSWER = orjson.dumps(chat("hello"))
TWO = ANSWER.replace(b'"choices":[', b'"choices":[{"index":1,"message":{"content":"b"},"finish_reason":"stop"},')
TABLE = snapshot(
    """
vendors:
  v: {profile: openai_compatible, base_url: "http://127.0.0.1:9/v1", allow_private: true, api_key: sk-up}
models:
  v/m: {}
"""
)
ASKED = OPENAI.parse(Operation.CHAT, b'{"model":"v/m","messages":[{"role":"user","content":"hi"}]}', None)


@dataclass
class Response:
    """A response of which these chunks have arrived, or are still to arrive."""

    pieces: list[bytes]
    arrived: bool = True
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    head: bytes = b""

    def take_all(self) -> bytes | None:
        if not self.arrived:
            return None
        body = b"".join(self.pieces)
        self.pieces.clear()
        return body

    async def read(self) -> bytes:
        await asyncio.sleep(0)
        return self.pieces.pop(0) if self.pieces else b""

    async def each(self, take: Take) -> None:
        await read_each(self, take)

    def release(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def planned() -> PlannedCall:
    return prepared_for(ASKED, TABLE.models["v/m"].targets[0], ANYONE).calls[0]


async def read_response(response: Response) -> tuple[bool, Completion]:
    """Return whether a response was read at once, and the response."""
    record = RequestRecord("id", 0.0, "openai", "/")
    with Deadlines(60.0) as deadlines:
        found = read_answer(response, record, deadlines, planned(), OffLoop(AnswerChecks()))
        return (True, found) if isinstance(found, Completion) else (False, await found)


async def test_an_answer_is_the_same_whether_it_has_come_or_comes() -> None:
    whole = await read_response(Response([ANSWER]))
    assert whole[0]
    assert whole[1].choices[0].text == "hello"
    assert await read_response(Response([ANSWER[:9], ANSWER[9:]], arrived=False)) == (False, whole[1])
    assert await read_response(Response([ANSWER], status=201)) == (False, whole[1])


async def test_a_long_answer_is_decoded_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONG", len(ANSWER) - 1)
    found = await read_response(Response([ANSWER]))
    assert not found[0]
    assert found[1].choices[0].text == "hello"


@looped("arrived", [True, False])
@looped(
    ("status", "body", "kind"),
    [
        (200, b"<html>", FailureKind.MALFORMED),
        (200, b" \n<html>", FailureKind.MALFORMED),
        (200, b'{"choices":[]}', FailureKind.MALFORMED),
        (200, TWO, FailureKind.MALFORMED),
        (500, b"{}", FailureKind.SERVER),
    ],
)
async def test_what_is_no_answer_fails_either_way(status: int, body: bytes, kind: FailureKind, arrived: bool) -> None:
    with pytest.raises(UpstreamError) as caught:
        await read_response(Response([body], arrived, status))
    assert caught.value.failure.kind is kind


@looped(
    ("whole", "limits", "seconds"),
    [
        (False, {"first_event": 5.0, "answer": 90.0}, 5.0),
        (True, {"first_event": 5.0, "answer": 90.0}, 90.0),
        (True, {"first_event": 5.0, "total": 300.0}, 300.0),
        (True, {"first_event": 5.0, "answer": 90.0, "written": frozenset({"first_event"})}, 5.0),
    ],
)
def test_a_stream_made_of_a_whole_response_has_its_time(whole: bool, limits: dict[str, object], seconds: float) -> None:
    sent = prepared_for(ASKED, TABLE.models["v/m"].targets[0], ANYONE).calls[0].sent
    timeouts = replace(sent.target.timeouts, **limits)  # type: ignore[arg-type]  # names known at run time
    assert content_limit(replace(sent, target=replace(sent.target, timeouts=timeouts), whole=whole)) == seconds
