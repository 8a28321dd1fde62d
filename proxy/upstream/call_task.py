"""Makes the calls of a task on one target, side by side, and joins their answers into one."""

import asyncio
from functools import partial
from typing import TypeVar

from providers.dialect import TaskCalls, UpstreamRequest
from providers.failure import UpstreamError
from proxy.deadlines import Deadlines, Phase
from proxy.off_loop.request_threads import OffLoop
from proxy.request_record import RequestRecord
from proxy.upstream.call_vendor import LONG, SPARE, map_calls, note_piece, refuse_page, with_status
from proxy.upstream.send_call import CallSender
from proxy.upstream.transport import read_whole

A = TypeVar("A")

MOST_BYTES = 64 * 2**20
"""Bytes of one call's answer: 2,048 vectors of 3,072 single floats take 34 MB in base64."""


class TaskCaller:
    """Calls targets through the transports, and adds the time spent waiting to the request's record."""

    def __init__(self, calls: CallSender, off_loop: OffLoop) -> None:
        self._calls = calls
        self._off_loop = off_loop
        self._now = asyncio.get_running_loop().time

    async def answer(
        self, prepared: TaskCalls[A], record: RequestRecord, deadlines: Deadlines, answer: float | None
    ) -> A:
        """Return the answer of all calls; the first that fails ends the others. Each must begin to be answered within
        `answer` seconds (None: at any time). Raises UpstreamError, DeadlinePassed."""
        started = self._now()
        try:
            if len(prepared.calls) == 1:
                parts = [await self._read(prepared, record, deadlines, answer, prepared.calls[0])]
            else:
                parts = await map_calls(
                    prepared.calls, partial(self._one_of_several, prepared, record, deadlines, answer)
                )
        finally:
            record.waited += self._now() - started
        return prepared.join(parts)

    async def _one_of_several(
        self,
        prepared: TaskCalls[A],
        record: RequestRecord,
        deadlines: Deadlines,
        answer: float | None,
        sent: UpstreamRequest,
    ) -> A:
        """Read one call's answer, with limits of its own: one may be silent while another is read."""
        # The request's own deadline ends the whole.
        with Deadlines(deadlines.remaining + SPARE) as own:
            return await self._read(prepared, record, own, answer, sent)

    async def _read(
        self,
        prepared: TaskCalls[A],
        record: RequestRecord,
        deadlines: Deadlines,
        answer: float | None,
        sent: UpstreamRequest,
    ) -> A:
        timeouts = sent.target.timeouts
        deadlines.expect(Phase.ANSWER, answer)
        response = await self._calls.send(sent, record)
        try:
            if "idle" in timeouts.written:
                deadlines.enter(Phase.IDLE, timeouts.idle)
            body = await read_whole(response, partial(note_piece, deadlines, timeouts.idle), MOST_BYTES)
        finally:
            response.release()
        refuse_page(body)
        decode = partial(prepared.decode, sent, response.headers, body)
        try:
            return decode() if len(body) <= LONG else await self._off_loop.threads.run(record.owner, decode)
        except UpstreamError as error:
            raise with_status(error, response) from None
