"""F01 to F04 and F07 to F12: connections that fail, responses that do not begin."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

from providers.json_types import JsonObject
from proxy.http_client.address_guard import Found
from tests.faults.check_answers import good, refusal
from tests.faults.fault_rig import TABLE, Rig
from tests.faults.registry import fault, single_fault
from tests.faults.request_outcomes import (
    ExpectedEnd,
    assert_accounted,
    assert_answered_elsewhere,
    assert_fails_alone,
    assert_not_sent_elsewhere,
    consecutive_failures,
    maybe_executed,
    unspent_retries,
)
from tests.support.http_scripts import chunk, head
from tests.support.openai_wire import chat_frames
from tests.support.slow_connect import connections_handed_out_closed
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Delay, Fin, Hang, Loop, Rst, Script, Send

FULL: Final = 10
"""Retries that an unused budget allows."""

HASTY: Final = TABLE.replace("connect: 500ms", "connect: 200ms")
NAMED: Final = TABLE.replace("127.0.0.1:${ONE}", "vendor.test:${ONE}")
STRANGER: Final = TABLE.replace('"http://127.0.0.1:${ONE}/v1"', '"https://vendor.test:${ONE}/v1", allow_private: false')
STRICT: Final = TABLE.replace("  timeouts:", "  retries: {safety: strict}\n  timeouts:")
OFF: Final = TABLE.replace("  timeouts:", "  retries: {safety: off}\n  timeouts:")
BRIEF: Final = TABLE.replace("first_event: 500ms", "first_event: 300ms").replace("total: 4s", "total: 1500ms")


async def gone(vendor: FakeVendor) -> None:
    """Stop listening at a vendor's port."""
    assert vendor._server is not None
    vendor._server.close()
    await vendor._server.wait_closed()


# F01 to F04: no listener ---------------------------------------------------------------------------------------------

UNREACHED: Final = ExpectedEnd(502, "upstream_error", "connect", heard=0)
LATE: Final = ExpectedEnd(504, "upstream_timeout", "timeout", retry="false", heard=0)


@fault(1)
async def connect_refused(rig: Rig) -> None:
    await gone(rig.one)
    await assert_fails_alone(rig, UNREACHED)
    await assert_answered_elsewhere(rig, UNREACHED)
    assert maybe_executed(await rig.logged()) == [False, False]
    assert unspent_retries(rig) == FULL
    assert consecutive_failures(rig) == 2


@contextmanager
def hole(port: int) -> Iterator[None]:
    """Listen with a full backlog and accept nothing."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(0)
        waiting = [socket.socket() for _ in range(3)]
        try:
            for each in waiting:
                each.setblocking(False)
                each.connect_ex(("127.0.0.1", port))
            yield
        finally:
            for each in waiting:
                each.close()


@fault(2, HASTY)
async def connect_black_hole(rig: Rig) -> None:
    await gone(rig.one)
    with hole(rig.one.port):
        await assert_fails_alone(rig, LATE)
        await assert_answered_elsewhere(rig, LATE)
    lines = await rig.logged()
    assert all(line["duration_ms"] >= 200 for line in lines)  # type: ignore[operator]  # a number of milliseconds
    assert maybe_executed(lines) == [False, False]
    assert unspent_retries(rig) == FULL
    assert consecutive_failures(rig) == 2


class Names:
    """A resolver of the loop under the control of a test: it returns an address, an error, or nothing before `gate` is
    open."""

    def __init__(self, answer: str | OSError) -> None:
        self.answer = answer
        self.asked = 0
        self.gate = asyncio.Event()
        self.gate.set()

    def put_into(self, rig: Rig) -> None:
        """Make the gateway's connections use this resolver."""
        for resolver in rig.app.front.transport.dialer.resolvers.values():
            resolver._look_up = self._look_up  # type: ignore[method-assign]

    def _look_up(self, host: str, port: int) -> asyncio.Future[list[Found]]:
        return asyncio.ensure_future(self.getaddrinfo(host, port))

    async def getaddrinfo(self, host: str, port: int) -> list[Found]:
        """Return the result of the system's function of this name."""
        self.asked += 1
        await self.gate.wait()
        if isinstance(self.answer, OSError):
            raise self.answer
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (self.answer, port))]


@fault(3, NAMED)
async def name_that_nobody_knows(rig: Rig) -> None:
    names = Names(socket.gaierror(socket.EAI_NONAME, "nobody knows"))
    names.put_into(rig)
    await assert_fails_alone(rig, UNREACHED)
    await assert_answered_elsewhere(rig, UNREACHED)
    assert unspent_retries(rig) == FULL
    assert consecutive_failures(rig) == 2
    assert names.asked == 2, "a negative answer is not kept"


@single_fault(3, NAMED)
async def resolver_that_takes_its_time(rig: Rig) -> None:
    names = Names("127.0.0.1")
    names.put_into(rig)
    names.gate.clear()
    waiting = asyncio.create_task(rig.ask("one/m"))
    while not names.asked:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0)
    assert good(await rig.ask("two/m"), stream=False) == "two"
    assert not waiting.done()
    names.gate.set()
    assert good(await waiting, stream=False) == "one"


@fault(4, NAMED)
async def name_of_a_metadata_service(rig: Rig) -> None:
    Names("169.254.169.254").put_into(rig)
    with patch("aiohappyeyeballs.start_connection") as dialled:
        answer = await rig.ask("one/m")
    assert (answer.status, answer.code) == (502, "upstream_error")
    dialled.assert_not_called()
    assert "169.254" not in answer.message
    await assert_answered_elsewhere(rig, UNREACHED)


@fault(4, STRANGER)
async def public_name_that_leads_inside(rig: Rig) -> None:
    Names("127.0.0.1").put_into(rig)
    await assert_fails_alone(rig, UNREACHED)
    await assert_answered_elsewhere(rig, UNREACHED)
    assert rig.one.connections == 0


# F07 to F10: closed without a response -------------------------------------------------------------------------------

UNHEARD: Final = ExpectedEnd(502, "upstream_error", "server", heard=0)
UNANSWERED: Final = ExpectedEnd(502, "upstream_error", "server")
ENDINGS: Final[tuple[Script, ...]] = ((Fin(),), (Rst(),))


@fault(7)
async def closed_right_after_accept_before_anything_was_sent(rig: Rig) -> None:
    for ending in ENDINGS:
        rig.one.at_accept(ending, ending)
        with connections_handed_out_closed(rig.one):
            await assert_fails_alone(rig, UNHEARD)
            await assert_answered_elsewhere(rig, UNHEARD)
        assert consecutive_failures(rig) == 2
        rig.forget()
    assert maybe_executed(await rig.logged()) == [False] * 4
    assert unspent_retries(rig) == FULL


@fault(7)
async def closed_right_after_accept(rig: Rig) -> None:
    for ending in ENDINGS:
        rig.one.at_accept(ending, ending)
        await assert_fails_alone(rig, UNHEARD)
        await assert_answered_elsewhere(rig, UNHEARD)
        assert consecutive_failures(rig) == 2
        rig.forget()


@fault(8)
async def idle_connection_closed_as_it_is_used_again(rig: Rig) -> None:
    for ending in ENDINGS:
        rig.one.requests.clear()
        assert (await rig.ask()).status == 200
        used = rig.one.requests[0].connection
        rig.one.answer(ending)
        answer = await rig.ask()
        assert good(answer, rig.stream) == "one"
        assert answer.headers["x-dragoman-attempts"] == "1"
        assert [request.connection for request in rig.one.requests] == [used, used, used + 1]
    await assert_accounted(rig)
    assert unspent_retries(rig, "one/m") == FULL
    assert consecutive_failures(rig) == 0


@fault(8, STRICT)
async def idle_connection_closed_where_nothing_may_run_twice(rig: Rig) -> None:
    await strictly_once(rig)


@fault(8, OFF)
async def idle_connection_closed_where_nothing_is_repeated(rig: Rig) -> None:
    await strictly_once(rig)


async def strictly_once(rig: Rig) -> None:
    """A request that the vendor may have read is not sent again, not even on a fresh connection. Such a failure does
    not affect the deployment's health."""
    assert (await rig.ask()).status == 200
    rig.one.answer((Fin(),))
    await assert_fails_alone(rig, ExpectedEnd(502, "upstream_error", "stale"))
    assert [request.connection for request in rig.one.requests] == [0, 0]
    assert consecutive_failures(rig) == 0


@fault(9)
async def reset_after_the_request_was_read(rig: Rig) -> None:
    await hangs_up(rig, (Rst(),))


@fault(10)
async def closed_after_the_request_was_read(rig: Rig) -> None:
    await hangs_up(rig, (Fin(),))


async def hangs_up(rig: Rig, ending: Script) -> None:
    """The vendor may have processed the request. That does not prevent the first attempt elsewhere."""
    rig.one.default = ending
    await assert_fails_alone(rig, UNANSWERED)
    await assert_answered_elsewhere(rig, UNANSWERED)
    assert maybe_executed(await rig.logged()) == [True, True]
    assert unspent_retries(rig) == FULL
    assert consecutive_failures(rig) == 2


@fault(9, STRICT)
async def reset_where_nothing_may_run_twice(rig: Rig) -> None:
    rig.one.default = (Rst(),)
    await assert_not_sent_elsewhere(rig, UNANSWERED)


@fault(10, STRICT)
async def closed_where_nothing_may_run_twice(rig: Rig) -> None:
    rig.one.default = (Fin(),)
    await assert_not_sent_elsewhere(rig, UNANSWERED)


# F11 and F12: silence and resets before there is content -------------------------------------------------------------

SILENT: Final = ExpectedEnd(504, "upstream_timeout", "timeout", retry="false")
CUT: Final = ExpectedEnd(502, "upstream_error", "truncated")


@fault(11, BRIEF)
async def stall_before_the_head(rig: Rig) -> None:
    await stalls(rig, (Hang(),))


@fault(11, BRIEF)
async def stall_after_the_head(rig: Rig) -> None:
    await stalls(rig, (Send(beginning(rig)), Hang()))


async def stalls(rig: Rig, script: Script) -> None:
    """The gateway leaves, and the vendor notices it. The vendor may have processed the request."""
    rig.one.default = script
    await assert_fails_alone(rig, SILENT)
    await assert_answered_elsewhere(rig, SILENT)
    for request in rig.one.requests:
        await request.gone.wait()
    assert maybe_executed(await rig.logged()) == [True, True]
    assert unspent_retries(rig) == FULL
    assert consecutive_failures(rig) == 2


def beginning(rig: Rig) -> bytes:
    """Return the part of a response before its first content."""
    if not rig.stream:
        return head(200, [("content-type", "application/json"), ("content-length", "100")])
    return head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]) + chunk(b": ping\n\n")


@single_fault(11, BRIEF)
async def comments_and_roles_are_no_content(rig: Rig) -> None:
    rig.stream = True
    role = chat_frames(["never"])[0]
    rig.one.default = (Send(beginning(rig)), Loop((Send(chunk(role)), Send(chunk(b": ping\n\n")), Delay(0.02))))
    body: JsonObject = {"model": "one/m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    answer = await rig.post(body, "/v1/chat/completions")
    assert refusal(answer) == (504, "upstream_timeout")
    await rig.one.connected(0)


@fault(12)
async def reset_after_the_head(rig: Rig) -> None:
    rig.one.default = (Send(beginning(rig)), Rst())
    await assert_fails_alone(rig, CUT)
    await assert_answered_elsewhere(rig, CUT)
    assert unspent_retries(rig) == FULL
    assert consecutive_failures(rig) == 2
