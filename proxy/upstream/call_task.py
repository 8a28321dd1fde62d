"""Makes the calls of a task on one target concurrently, and joins their responses into one."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Generic, TypeVar

from providers.completion import Usage
from providers.dialect import TaskCalls, UpstreamRequest
from providers.dialects.usage_in_body import usage_in_body
from providers.failure import UpstreamError
from providers.target import Target
from proxy.deadlines import Deadlines, Phase
from proxy.loop_clock import loop_clock
from proxy.off_loop.request_threads import OffLoop
from proxy.request_record import RequestRecord
from proxy.upstream.call_vendor import EXTRA_SECONDS, map_calls
from proxy.upstream.read_answer import LONG, read_arriving, with_status
from proxy.upstream.send_call import CallSender
from proxy.upstream.transport import MAX_BODY, refuse_page
from proxy.upstream.unanswered_usage import is_billed, usage_of_body

A = TypeVar("A")

MOST_BYTES = 64 * 2**20
"""The most bytes of the response to a task's only call: 2,048 vectors of 3,072 single floats take 34 MB in base64. If
there are several concurrent calls, each may take MAX_BODY."""


class AnsweredParts(Generic[A]):
    """The responses of one target to calls of one request, by the call's index, so that a repeat on that target makes
    only the missing calls. The responses are dropped if another target is called. That target gets all calls, because
    its calls may be split differently."""

    def __init__(self, usage_of: Callable[[A], Usage | None] = lambda part: None) -> None:
        self._usage_of = usage_of
        self._target: Target | None = None
        self._calls: Sequence[UpstreamRequest] = ()
        self._parts: dict[int, A] = {}

    def of(self, prepared: TaskCalls[A], record: RequestRecord) -> dict[int, A]:
        """Return the responses of the target of these calls. The caller adds to them."""
        if prepared.target is not self._target:
            self.drop(record)
            self._target, self._parts = prepared.target, {}
        self._calls = prepared.calls
        return self._parts

    def drop(self, record: RequestRecord) -> None:
        """Count the usage of responses that the client does not get, as the vendor reported it or estimated by the
        call's length, and drop them."""
        price = None if self._target is None else self._target.price
        for place, part in self._parts.items():
            usage = self._usage_of(part) or usage_of_body(len(self._calls[place].body))
            record.unanswered = (*record.unanswered, (usage, price))
        self._parts.clear()


class TaskCaller:
    """Calls targets through the transports, and adds the time spent waiting to the request's record."""

    def __init__(self, calls: CallSender, off_loop: OffLoop) -> None:
        self._calls = calls
        self._off_loop = off_loop
        self._now = loop_clock()

    async def answer(
        self,
        prepared: TaskCalls[A],
        record: RequestRecord,
        deadlines: Deadlines,
        answer: float | None,
        kept: AnsweredParts[A],
    ) -> A:
        """Return the joined response of all calls. The first failure ends the other calls. Each response must begin
        within `answer` seconds (`None` = no limit). Calls whose responses are in `kept` are not repeated. Raises
        UpstreamError, DeadlinePassed.
        """
        started = self._now()
        parts = kept.of(prepared, record)
        missing = [place for place in range(len(prepared.calls)) if place not in parts]
        try:
            if len(prepared.calls) == 1:
                parts[0] = await self._read(prepared, record, deadlines, answer, prepared.calls[0])
                missing = []
            await map_calls(missing, partial(self._one_of_several, prepared, record, deadlines, answer, parts))
        finally:
            record.waited += self._now() - started
        try:
            return prepared.join([parts[place] for place in range(len(prepared.calls))])
        except UpstreamError:
            # It is unknown which of the responses is wrong.
            kept.drop(record)
            raise

    async def _one_of_several(
        self,
        prepared: TaskCalls[A],
        record: RequestRecord,
        deadlines: Deadlines,
        answer: float | None,
        parts: dict[int, A],
        place: int,
    ) -> None:
        """Add one call's response to the parts. The call has its own limits, because one call may be silent while
        another is read."""
        # The request's own deadline ends all calls.
        with Deadlines(deadlines.remaining + EXTRA_SECONDS) as own:
            parts[place] = await self._read(prepared, record, own, answer, prepared.calls[place])

    async def _read(
        self,
        prepared: TaskCalls[A],
        record: RequestRecord,
        deadlines: Deadlines,
        answer: float | None,
        sent: UpstreamRequest,
    ) -> A:
        timeouts = sent.target.timeouts
        limit = min(prepared.most_bytes, MOST_BYTES if len(prepared.calls) == 1 else MAX_BODY)
        deadlines.expect(Phase.ANSWER, answer)
        try:
            response = await self._calls.send(sent, record)
            body = await read_arriving(response, timeouts, deadlines, limit)
            refuse_page(body)
        except BaseException as error:
            if is_billed(error, sent):
                record.note_unanswered(usage_of_body(len(sent.body)))
            raise
        decode = partial(prepared.decode, sent, response.headers, body)
        try:
            return decode() if len(body) <= LONG else await self._off_loop.threads.run(record.owner, decode)
        except UpstreamError as error:
            record.note_unanswered(usage_in_body(body) or usage_of_body(len(sent.body)))
            raise with_status(error, response) from None
