"""Answers the calls that generate text: parsed by their surface, planned, dispatched, and rendered."""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from aiohttp import web

from providers.unified_request import Operation, UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.dispatch.attempt_loop import PlannedRequest
from proxy.dispatch.prefer_honouring import honouring_first
from proxy.dispatch.shorten_conversation import MOST_TRIES, shortened
from proxy.dispatch.single_attempt import Dispatcher
from proxy.dispatch.text_answers import TextAnswers
from proxy.errors import GatewayError, responses_not_stored
from proxy.gateway.answer_request import Exchange, kept_alive, make_job, wait_for_limits
from proxy.gateway.client_call import ClientCall
from proxy.gateway.estimate_prompt import estimate_prompt, is_short_work, request_size
from proxy.hedging.hedged_requests import why_not_hedged
from proxy.hooks.request_hook import ContextSource, RecalledContext, RequestHook, with_admitted, with_hooks
from proxy.limits.limit import end_user
from proxy.overload.admission_limits import Admission
from proxy.relay.client_stream import ClientStream
from proxy.routing.request_plan import Plan
from proxy.surfaces.registry import STORING
from proxy.surfaces.request.heavy_body import is_heavy
from proxy.surfaces.surface import NotRecalledError, ReferredIds, RequestContext
from proxy.teams.client_keys import permit_extras
from proxy.teams.team_limiter import Later, RequestSize, TeamLimiter

TOO_LONG: Final = "context_length_exceeded"
"""The code of an error that says that a conversation does not fit."""


class TextGeneration:
    """Answers calls that generate text."""

    def __init__(self, dispatcher: Dispatcher, admission: Admission, limits: TeamLimiter) -> None:
        self._dispatcher = dispatcher
        self._admission = admission
        self._limits = limits

    def answer(self, call: ClientCall, operation: Operation) -> Awaitable[web.StreamResponse]:
        """Return what answers a call, whole or as a stream. Raises GatewayError, here or in it, while nothing has been
        written.

        Nearly every request has come whole and waits for nothing before its vendor: each step is a plain function that
        returns what follows, and only one that has to wait is a coroutine, which costs 1 us more.
        """
        surface = call.match.surface
        body = None if surface.reads_context else call.whole_body()
        if body is None:
            return self._answer_read(call, self.read(call, operation))
        if is_heavy(body):
            return self._answer_read(call, self._parsed(call, operation, body))
        call.size = len(body)
        request = call.for_path(surface.parse(operation, body, call.default_model()))
        return self._answer_parsed(call, request, heavy=False)

    async def _answer_read(
        self, call: ClientCall, reading: Awaitable[tuple[UnifiedRequest, bool]]
    ) -> web.StreamResponse:
        request, heavy = await reading
        return await self._answer_parsed(call, request, heavy=heavy)

    def _answer_parsed(
        self, call: ClientCall, request: UnifiedRequest, *, heavy: bool
    ) -> Awaitable[web.StreamResponse]:
        """Admit a parsed request and answer it. Raises GatewayError for a stream above the limit of streams."""
        record = call.record
        record.asked, record.stream = request.model, request.stream
        if (user := request.user) is not None:
            record.user = end_user(user)
        for hook in call.hooks:
            hook.parsed(record, request)
        if request.stream and (reason := self._admission.refuses_streams()) is not None:
            raise call.shared.overloaded(record, reason)
        hooks = iter(call.hooks)
        for hook in hooks:
            changing = hook.asked(record, request, heavy=heavy)
            if changing is not None:
                return self._answer_changed(call, request, changing, hooks, heavy=heavy)
        return self._answer_asked(call, request, heavy=heavy)

    async def _answer_changed(
        self,
        call: ClientCall,
        request: UnifiedRequest,
        changing: Awaitable[UnifiedRequest],
        following: Iterator[RequestHook],
        *,
        heavy: bool,
    ) -> web.StreamResponse:
        """Answer a request that a hook may change, and the hooks `following` it."""
        changed = await with_hooks(call.record, await changing, following, heavy=heavy)
        if changed is not request:
            call.prompt_tokens = None
        return await self._answer_asked(call, changed, heavy=heavy)

    def _answer_asked(self, call: ClientCall, request: UnifiedRequest, *, heavy: bool) -> Awaitable[web.StreamResponse]:
        """Answer a request as its hooks left it."""
        planned = call.plan_text(self._limits, request, self._dispatcher.load)
        team = call.team
        if not (team.extra_params and team.extra_headers):
            permit_extras(team, request)
        every = keep_alive_of(planned, request.stream)
        if every is None and not request.stream:
            return self._answer_permitted(call, planned, request, None, heavy=heavy)
        waiting = call.client_stream(every, streams=request.stream)
        answering = self._answer_permitted(call, planned, request, waiting, heavy=heavy)
        return answering if every is None else kept_alive(call, waiting, request, answering)

    def _answer_permitted(
        self, call: ClientCall, planned: Plan, request: UnifiedRequest, waiting: ClientStream | None, *, heavy: bool
    ) -> Awaitable[web.StreamResponse]:
        """Admit a planned request by the limits of its team, and respond to it."""
        later = None
        if self._limits.limits_anything:
            measure = partial(_size, request, planned, call.prompt_tokens)
            if heavy and not (call.prompt_tokens and is_short_work(request)):
                return self._answer_heavy(call, planned, request, measure, waiting)
            later = self._limits.admit(call.key, planned, call.record, measure)
        if planned.features:
            call.add_hooks_of(planned, request)
        if later is not None or call.hooks:
            return self._answer_later(call, planned, request, later, waiting, heavy=heavy)
        return self._answer_planned(call, planned, request, waiting, heavy=heavy)

    async def _answer_heavy(
        self,
        call: ClientCall,
        planned: Plan,
        request: UnifiedRequest,
        measure: Callable[[], RequestSize],
        waiting: ClientStream | None,
    ) -> web.StreamResponse:
        """Answer a large request, whose size is measured off the event loop."""
        record = call.record
        size = await self._dispatcher.off_loop.threads.run(record.owner, measure)
        later = self._limits.admit(call.key, planned, record, lambda: size)
        call.add_hooks_of(planned, request)
        return await self._answer_later(call, planned, request, later, waiting, heavy=True)

    async def _answer_later(
        self,
        call: ClientCall,
        planned: Plan,
        request: UnifiedRequest,
        later: Later | None,
        waiting: ClientStream | None,
        *,
        heavy: bool,
    ) -> web.StreamResponse:
        """Answer a request that waits for a limit, or that hooks may change."""
        if later is not None:
            await wait_for_limits(call, planned, request.timeout, later)
        request = await with_admitted(call.record, request, call.hooks, heavy=heavy)
        return await self._answer_planned(call, planned, request, waiting, heavy=heavy)

    def _answer_planned(
        self,
        call: ClientCall,
        planned: Plan,
        request: UnifiedRequest,
        waiting: ClientStream | None,
        *,
        heavy: bool,
    ) -> Awaitable[web.StreamResponse]:
        """Answer an admitted request."""
        storing = call.match.surface.name in STORING
        if len(planned.targets) > 1 or planned.fallbacks:
            planned = honouring_first(planned, request, call.team)
        if planned.hedge is not None and why_not_hedged(request, storing=storing) is not None:
            planned = replace(planned, hedge=None)
        job = make_job(call, planned, request, heavy=heavy)
        answers: TextAnswers = self._dispatcher
        for hook in call.hooks:
            answers = hook.answers(answers)
        exchange = Exchange(answers, call, job, self._dispatcher.off_loop.threads, storing, waiting)
        if request.shortens:
            return self._answer_shortening(call, exchange)
        return exchange.streamed() if request.stream else exchange.whole()

    async def _answer_shortening(self, call: ClientCall, exchange: Exchange) -> web.StreamResponse:
        """Answer with as much of a conversation as fits."""
        for _ in range(MOST_TRIES):
            try:
                return await exchange.answer()
            except GatewayError as error:
                exchange = replace(exchange, job=await self._shorter(call, exchange.job, error))
        return await exchange.answer()

    async def read(self, call: ClientCall, operation: Operation) -> tuple[UnifiedRequest, bool]:
        """Return the request that a call's body holds, with what it continues, and whether it is a large one. Raises
        GatewayError for an invalid one."""
        return await self._parsed(call, operation, await call.read_body())

    async def _parsed(self, call: ClientCall, operation: Operation, body: bytes) -> tuple[UnifiedRequest, bool]:
        surface = call.surface
        heavy, call.size = is_heavy(body), len(body)
        parse = partial(surface.parse, operation, body, call.default_model())
        source = call.context_source()
        context = RequestContext(call.http.headers, stores=source is not None and source.stores, recalled=False)
        try:
            request = await self._run_parse(call, partial(parse, context), heavy=heavy)
        except NotRecalledError as error:
            if source is None:
                raise responses_not_stored() from None
            continued = await _continued(call, source, error.referred)
            heavy = heavy or continued.heavy
            request = await self._run_parse(call, partial(_parse_in_context, parse, context, continued), heavy=heavy)
        return call.for_path(request), heavy

    async def _run_parse(self, call: ClientCall, parse: Callable[[], UnifiedRequest], *, heavy: bool) -> UnifiedRequest:
        if heavy and self._limits.limits_anything:
            parse = partial(_parsed_and_measured, parse, call)
        return await call.parsed(self._dispatcher.off_loop.threads, parse, heavy=heavy)

    async def _shorter(
        self, call: ClientCall, job: PlannedRequest[UnifiedRequest], error: GatewayError
    ) -> PlannedRequest[UnifiedRequest]:
        """Return the job without the oldest turns of its conversation. Raises the error where it is another one, or
        there are none to leave out."""
        if error.facts.code != TOO_LONG:
            raise error
        shorten = partial(shortened, job.request, error.facts.message)
        record = job.record
        shorter = await self._dispatcher.off_loop.threads.run(record.owner, shorten) if job.heavy else shorten()
        if shorter is None:
            raise error
        record.outcome = "ok"
        left, shared = job.deadlines.remaining, call.shared
        return replace(job, request=shorter, deadlines=Deadlines(left, shared.alarms, shared.deadlines), total=left)


def keep_alive_of(planned: Plan, streams: bool) -> float | None:
    """Return the longest silence in seconds towards the client of a planned request, until a deployment responds;
    `None` if there is no limit. It is the shortest of its deployments': any of them may be called."""
    targets = planned.every_target if planned.fallbacks else planned.targets
    set_for = [each.timeouts for each in targets if streams or each.timeouts.keep_alive_json]
    return min([each.keep_alive for each in set_for if each.keep_alive is not None], default=None)


def _size(request: UnifiedRequest, planned: Plan, prompt_tokens: int | None) -> RequestSize:
    return request_size(request, [*planned.every_target], prompt_tokens)


def _parsed_and_measured(parse: Callable[[], UnifiedRequest], call: ClientCall) -> UnifiedRequest:
    request = parse()
    call.prompt_tokens = estimate_prompt(request)
    return request


def _parse_in_context(
    parse: Callable[[RequestContext], UnifiedRequest], context: RequestContext, continued: RecalledContext
) -> UnifiedRequest:
    return parse(continued.completed(context))


async def _continued(call: ClientCall, source: ContextSource, referred: ReferredIds) -> RecalledContext:
    """Return the stored responses that a body continues. Raises GatewayError if they are not there."""
    continued = await source.recall(call.record, referred)
    call.hold_more(continued.size)
    call.size += continued.size
    call.continued = continued.session
    return continued
