"""Responds to requests that are passed on unchanged, such as transcriptions and images: they are routed, retried and
relayed.

Neither the request's files nor the response are held in memory. The gateway reads only the model's name of them.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from aiohttp import web

from providers.dialects.usage_in_body import UsageWatch
from providers.failure import Failure, FailureKind, UpstreamError
from providers.target import Target
from providers.tasks.pass_on import PassedCall, PassedForm, PassedRequest, pass_on
from providers.tasks.passed_events import EventWatch, watch_events
from providers.unified_request import Task
from proxy.deadlines import DeadlinePassed, Deadlines, Phase
from proxy.dispatch.single_attempt import Dispatcher
from proxy.errors import (
    ErrorFacts,
    FieldProblem,
    OverloadReason,
    internal_error,
    invalid_request,
    upstream_failed,
)
from proxy.forms.spooled_form import FormUpload, SpooledForm, read_form, with_field
from proxy.gateway.answer_request import LAST_WRITE, abort_connection, wait_for_limits
from proxy.gateway.client_exchange import ClientExchange
from proxy.gateway.gateway_headers import answer_headers
from proxy.gateway.read_passed import form_boundary, model_of, read_passed, refuse_fields
from proxy.hooks.request_hook import MOST_CHECKED, BodyCheck, with_hooks
from proxy.limits.limit import end_user
from proxy.overload.admission_limits import FairCounts
from proxy.receipt.server_timing import stream_header
from proxy.request_record import RequestRecord
from proxy.surfaces.request.heavy_body import is_heavy
from proxy.teams.client_keys import permit_extras
from proxy.teams.team_limiter import RequestSize, TeamLimiter
from proxy.telemetry.request_outcomes import abort_labels, record_cancelled, record_client_gone, record_failure
from proxy.upstream.transport import UpstreamResponse, fail

SPOOLED_BYTES: Final = 2**30
"""The most bytes of all clients' forms on disk. Once they are used up, each owner has a fair share of them."""

_CONTENT_TYPE = re.compile(r"[\x20-\x7e]{1,200}")
_LENGTH = re.compile(r"[0-9]{1,15}")


PassedExchange = ClientExchange[PassedRequest]


@dataclass(slots=True, eq=False)
class _BegunAnswer:
    """A vendor's 2xx response whose first chunk has arrived. `first` is that chunk, empty for a response without a
    body."""

    response: "UpstreamResponse | _CheckedResponse"
    first: bytes


class PassThrough:
    """Passes requests for tasks on to the vendors that serve OpenAI's path for the task."""

    def __init__(self, dispatcher: Dispatcher, limits: TeamLimiter) -> None:
        self._dispatcher = dispatcher
        self._limits = limits
        self._threads = dispatcher.off_loop.threads
        self._spooled = FairCounts(SPOOLED_BYTES)

    async def answer_json(self, task: Task, exchange: PassedExchange) -> web.StreamResponse:
        """Respond to a request whose body is a JSON object. Raises GatewayError while nothing has been written."""
        body = await exchange.read_body()
        exchange.heavy = is_heavy(body)
        read = partial(read_passed, task, body, exchange.default_model(task))
        return await self._answer(exchange, await exchange.parsed(read))

    async def answer_form(self, task: Task, exchange: PassedExchange) -> web.StreamResponse:
        """Respond to a request whose body is a form. Raises GatewayError while nothing has been written."""
        http, record = exchange.http, exchange.record
        boundary = form_boundary(http)
        room = _Room(exchange, self._spooled)
        form: SpooledForm | None = None
        started = self._dispatcher.now()
        try:
            form = await read_form(http, boundary, "model", room.fill)
            record.client_waited = record.waits().upload = self._dispatcher.now() - started
            refuse_fields(form)
            for hook in exchange.hooks:
                hook.form_read(form.cut)
            if (reason := exchange.admitted.complete()) is not None:
                raise exchange.shared.overloaded(record, reason)
            passed = PassedForm(form.fields, form.content_type, partial(_with_model, form))
            stream = str(form.fields.get("stream", "")).lower() in _TRUE
            exchange.heavy = True
            model = model_of({**form.fields}, exchange.default_model(task))
            return await self._answer(exchange, PassedRequest(task, model, passed, stream))
        finally:
            room.leave()
            if form is not None:
                form.close()

    async def _answer(self, exchange: PassedExchange, request: PassedRequest) -> web.StreamResponse:
        record, team, request = exchange.record, exchange.team, exchange.for_path(request)
        record.asked, record.stream, record.user = request.model, request.stream, end_user(request.user)
        exchange.request = request = await with_hooks(record, request, exchange.hooks, heavy=exchange.heavy)
        checks = [check for hook in exchange.hooks if (check := hook.body_check(request.task)) is not None]
        if checks and may_stream(request):
            raise invalid_request((FieldProblem(("stream",), _UNCHECKED_STREAM, "unsupported_parameter"),))
        exchange.plan_task(request.model, self._dispatcher.load)
        permit_extras(team, request)
        # The number of tokens of a sound or an image is known only if the response reports it.
        if (later := self._limits.admit(exchange.key, exchange.plan, record, _unmeasured)) is not None:
            await wait_for_limits(exchange, later)
        exchange.set_deadlines()
        return await _PassedResponse(self._dispatcher, exchange, checks).run()


_UNCHECKED_STREAM: Final = (
    "'stream' must be false: the plugins that check your team's answers need a transcription whole."
)
_STREAMED: Final = "The upstream streamed a transcription that has to be checked whole."
_EVENTS: Final = ("text/event-stream", "application/x-ndjson", "application/jsonl")
"""The content types of streamed responses, whose chunks may split a text anywhere."""

_TRUE: Final = frozenset({"true", "1", "on", "yes", "t", "y"})
"""The texts that engines with pydantic 2 read as true in a form, in lower or upper case."""


def may_stream(request: PassedRequest) -> bool:
    """Return whether a vendor may respond to a request with a stream. In a form, every value except `false` means that
    it may, because engines differ in the texts that they read as true."""
    if not isinstance(request.content, PassedForm):
        return request.stream
    fields = request.content.fields.items()
    return any(name.strip().casefold() == "stream" and str(value).casefold() != "false" for name, value in fields)


@dataclass(frozen=True, slots=True, eq=False)
class _CheckedResponse:
    """A vendor's response whose body has been read, checked and perhaps changed."""

    headers: Mapping[str, str]

    async def read(self) -> bytes:
        """Return the empty end of the body: all of it has been read."""
        return b""


def _unmeasured() -> RequestSize:
    return None, 0, 1


def _with_model(form: SpooledForm, model: str) -> FormUpload:
    return with_field(form, "model", model)


@dataclass(slots=True, eq=False)
class _Room:
    """The memory and disk that one client's form takes."""

    exchange: PassedExchange
    spooled: FairCounts
    _held: int = 0

    def fill(self, received: int, in_memory: int) -> None:
        """Count the received bytes, and the number of them that are in memory. Raises GatewayError if they are too many
        beside the bytes of other clients."""
        owner = self.exchange.record.owner
        self.spooled.add(owner, received - self._held)
        self._held = received
        if not self.spooled.fits(owner) or not self.exchange.admitted.hold_body(in_memory):
            raise self.exchange.shared.overloaded(self.exchange.record, OverloadReason.BODY_BYTES)

    def leave(self) -> None:
        """Stop counting the bytes of the form."""
        self.spooled.add(self.exchange.record.owner, -self._held)


@dataclass(slots=True, eq=False)
class _PassedResponse:
    """The response to one planned request. It is relayed as it arrives or, if there are `checks`, once it has passed
    them."""

    dispatcher: Dispatcher
    exchange: PassedExchange
    checks: Sequence[BodyCheck] = ()
    _response: web.StreamResponse | None = None
    _events: bool = False
    _between_events: bool = True
    _usage: UsageWatch | None = None

    async def run(self) -> web.StreamResponse:
        exchange = self.exchange
        record, deadlines = exchange.record, exchange.deadlines
        try:
            with deadlines:
                opening = self.dispatcher.opened(exchange, self._prepare, self._open)
                async with await opening as (prepared, answer):
                    timeouts = prepared.target.timeouts
                    deadlines.commit(timeouts.idle, timeouts.progress, timeouts.stream)
                    if self.checks:
                        answer = await self._checked(answer)
                    record.first_content = self.dispatcher.now()
                    record.status = 200
                    deadlines.pause()
                    response = self._response = await self._begin(answer.response)
                    await self._relay(answer, response)
                    await response.write_eof()
                    record.finished = self.dispatcher.now()
                    deadlines.stop()
        except (UpstreamError, DeadlinePassed) as error:
            await self._end_failed(error)
        except ConnectionError:
            record_client_gone(record, self.exchange.shared.metrics)
        except asyncio.CancelledError:
            record_cancelled(record, self.exchange.shared.metrics, self.exchange.http)
            raise
        finally:
            record.usage = None if self._usage is None else self._usage.usage()
            if self._response is not None and not record.finished and record.outcome == "ok":
                self.exchange.shared.metrics.abort("gateway", "internal_error", record.model)
                await self._break(internal_error().facts)
        # If there is no response, the client left before the head could be written. The returned response is not sent.
        return self._response or web.Response(status=499)

    async def _prepare(self, target: Target) -> PassedCall:
        exchange = self.exchange
        work = partial(pass_on, exchange.request, target)
        threads = self.dispatcher.off_loop.threads
        return await threads.run(exchange.record.owner, work) if exchange.heavy else work()

    @asynccontextmanager
    async def _open(
        self, prepared: PassedCall, record: RequestRecord, deadlines: Deadlines
    ) -> AsyncIterator[_BegunAnswer]:
        """Send the call, and yield its response with the first chunk of the body. Leaving the context closes the
        response."""
        before = self.dispatcher.now()
        try:
            response = await self.dispatcher.calls.send(prepared.sent, record)
        finally:
            record.waited += self.dispatcher.now() - before
        self._usage = UsageWatch(response.headers.get("content-type", ""))
        try:
            yield _BegunAnswer(response, await self._read(response))
        except BaseException:
            response.close()
            raise
        response.release()

    async def _read(self, response: "UpstreamResponse | _CheckedResponse") -> bytes:
        before = self.dispatcher.now()
        try:
            chunk = await response.read()
        finally:
            self.exchange.record.note_waited(self.dispatcher.now() - before)
        if self._usage is not None:
            self._usage.see(chunk)
        return chunk

    async def _checked(self, answer: _BegunAnswer) -> _BegunAnswer:
        """Return a response as changed by the checks, once it has arrived completely. Raises UpstreamError and
        GatewayError."""
        kind = answer.response.headers.get("content-type", "")
        if kind.strip().lower().startswith(_EVENTS):
            # This does not count as the deployment's failure, because the client's form may have requested the stream.
            self.exchange.record.outcome = "upstream_error"
            raise upstream_failed(Failure(FailureKind.MALFORMED, _STREAMED))
        body, piece = bytearray(), answer.first
        while piece:
            body += piece
            if len(body) > MOST_CHECKED:
                raise fail(FailureKind.MALFORMED, "The transcription is longer than what may be held back of it.")
            self._renew(piece, None)
            piece = await self._read(answer.response)
        checked = bytes(body)
        for check in self.checks:
            checked = await check(kind, checked, self.exchange.record)
        return _BegunAnswer(_CheckedResponse({"content-type": kind, "content-length": str(len(checked))}), checked)

    async def _begin(self, answer: "UpstreamResponse | _CheckedResponse") -> web.StreamResponse:
        """Write the head of the response: the type and length of the vendor's response, and the gateway's own
        headers."""
        kind = answer.headers.get("content-type", "")
        self._events = kind.startswith("text/event-stream")
        headers = {"Content-Type": kind if _CONTENT_TYPE.fullmatch(kind) else "application/octet-stream"}
        length = answer.headers.get("content-length", "")
        if _LENGTH.fullmatch(length):
            headers["Content-Length"] = length
        record = self.exchange.record
        return await self.exchange.begin_stream({**headers, **answer_headers(record), **stream_header(record)})

    async def _relay(self, answer: _BegunAnswer, response: web.StreamResponse) -> None:
        """Relay the body. Raises UpstreamError if it breaks off, or ends before its last event."""
        deadlines, record, now = self.exchange.deadlines, self.exchange.record, self.dispatcher.now
        watch = watch_events(self.exchange.request.task) if self._events else None
        piece = answer.first
        while piece:
            if watch is not None:
                watch.see(piece)
                self._between_events = watch.between
            deadlines.pause()
            before = now()
            await response.write(piece)
            record.client_waited += now() - before
            record.chunks += 1
            self._renew(piece, watch)
            piece = await self._read(answer.response)
        if watch is not None and watch.unfinished:
            raise fail(FailureKind.TRUNCATED, "The upstream ended the stream before its last event.")

    def _renew(self, piece: bytes, watch: EventWatch | None) -> None:
        """Renew the time limits after bytes from the vendor, but the limit for content only if the bytes contain
        content: some vendors send pings or white space while they generate nothing."""
        if watch.content if watch is not None else not piece.isspace():
            self.exchange.deadlines.advance()
        else:
            self.exchange.deadlines.touch()

    async def _end_failed(self, error: UpstreamError | DeadlinePassed) -> None:
        """Report a failure: as an error response if nothing has been written, else by visibly breaking the response
        off. Raises GatewayError."""
        record, metrics = self.exchange.record, self.exchange.shared.metrics
        if isinstance(error, DeadlinePassed) and error.phase is Phase.CLIENT:
            record_client_gone(record, metrics)
            abort_connection(self.exchange.http)
            return
        failed = upstream_failed(record_failure(record, error), len(record.attempts))
        if self._response is None:
            raise failed from None
        metrics.abort(*abort_labels(error), record.model)
        await self._break(failed.facts)

    async def _break(self, facts: ErrorFacts) -> None:
        """End a committed response so that the client sees that it is broken: the last event holds the error, and the
        end of the body is never sent."""
        self.exchange.record.code = facts.code
        try:
            # The error event cannot be written in the middle of another event.
            if self._response is not None and self._events and self._between_events:
                async with asyncio.timeout(LAST_WRITE):
                    await self._response.write(b"data: %b\n\n" % self.exchange.surface.error(facts)[1])
        except (ConnectionError, TimeoutError):
            self.exchange.record.outcome = "client_gone"
        finally:
            abort_connection(self.exchange.http)
