"""Responds to requests that generate text: parses them by their surface, plans and dispatches them."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from aiohttp import web

from providers.unified_request import Operation, UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.dispatch.prefer_honouring import honouring_first
from proxy.dispatch.shorten_conversation import MOST_TRIES, shortened
from proxy.dispatch.single_attempt import Dispatcher
from proxy.dispatch.text_answers import TextAnswers
from proxy.errors import GatewayError, responses_not_stored
from proxy.gateway.answer_request import TextExchange, kept_alive, responded, streamed, wait_for_limits, whole
from proxy.gateway.estimate_prompt import estimate_prompt, is_short_work, request_size
from proxy.hedging.hedged_requests import why_not_hedged
from proxy.hooks.request_hook import RecalledContext, RequestHook, with_admitted, with_hooks
from proxy.limits.limit import end_user
from proxy.overload.admission_limits import Admission
from proxy.relay.client_stream import ClientStream
from proxy.surfaces.registry import STORING
from proxy.surfaces.request.heavy_body import is_heavy
from proxy.surfaces.surface import NotRecalledError, RequestContext
from proxy.teams.client_keys import permit_extras
from proxy.teams.team_limiter import Later, RequestSize, TeamLimiter

TOO_LONG: Final = "context_length_exceeded"
"""The error code if a conversation does not fit into the context window."""


class TextGeneration:
    """Responds to requests that generate text."""

    def __init__(self, dispatcher: Dispatcher, admission: Admission, limits: TeamLimiter) -> None:
        self._dispatcher = dispatcher
        self._admission = admission
        self._limits = limits

    def answer(self, exchange: TextExchange, operation: Operation) -> Awaitable[web.StreamResponse]:
        """Return the response to a request, as a stream or not. Raises GatewayError, here or in it, while nothing has
        been written.

        Nearly every request has been received completely, and waits for nothing before its vendor is called. So each
        step is a plain function that returns the next step's awaitable. Only a step that has to wait is a coroutine,
        which costs 1 us more.
        """
        match, surface = exchange.match, exchange.surface
        body = None if surface.reads_context else exchange.whole_body()
        if body is None:
            return self._answer_read(exchange, self.read(exchange, operation))
        if is_heavy(body):
            return self._answer_read(exchange, self._parsed(exchange, operation, body))
        exchange.size = len(body)
        if match.tail is None:
            default = exchange.snapshot.default_models.get(surface.name)
            return self._answer_parsed(exchange, surface.parse(operation, body, default))
        request = exchange.for_path(surface.parse(operation, body, exchange.default_model()))
        return self._answer_parsed(exchange, request)

    async def _answer_read(self, exchange: TextExchange, reading: Awaitable[UnifiedRequest]) -> web.StreamResponse:
        return await self._answer_parsed(exchange, await reading)

    def _answer_parsed(self, exchange: TextExchange, request: UnifiedRequest) -> Awaitable[web.StreamResponse]:
        """Respond to a parsed request. Raises GatewayError for a stream above the limit of streams."""
        exchange.request, record = request, exchange.record
        record.asked, record.stream = request.model, request.stream
        if (user := request.user) is not None:
            record.user = end_user(user)
        for hook in exchange.hooks:
            hook.parsed(record, request)
        if request.stream and (reason := self._admission.refuses_streams()) is not None:
            raise exchange.shared.overloaded(record, reason)
        hooks = iter(exchange.hooks)
        for hook in hooks:
            changing = hook.asked(record, request, heavy=exchange.heavy)
            if changing is not None:
                return self._answer_changed(exchange, changing, hooks)
        return self._answer_asked(exchange)

    async def _answer_changed(
        self, exchange: TextExchange, changing: Awaitable[UnifiedRequest], following: Iterator[RequestHook]
    ) -> web.StreamResponse:
        """Respond to a request once a hook, and then the hooks `following` it, may have changed it."""
        request = await with_hooks(exchange.record, await changing, following, heavy=exchange.heavy)
        if request is not exchange.request:
            exchange.prompt_tokens = None
        exchange.request = request
        return await self._answer_asked(exchange)

    def _answer_asked(self, exchange: TextExchange) -> Awaitable[web.StreamResponse]:
        """Plan a request after its hooks may have changed it, admit it by the limits of its team, and respond to it."""
        team, request = exchange.team, exchange.request
        exchange.plan_text(self._limits, self._dispatcher.load)
        plan = exchange.plan
        if not (team.extra_params and team.extra_headers):
            permit_extras(team, request)
        if plan.features:
            exchange.add_hooks()
        every = plan.keep_alive if request.stream else plan.keep_alive_json
        waiting = None if every is None and not request.stream else exchange.client_stream(every)
        if self._limits.limits_anything or exchange.hooks:
            answering = self._answer_limited(exchange, waiting)
        else:
            answering = self._answer_admitted(exchange, waiting)
        return answering if waiting is None or every is None else kept_alive(exchange, waiting, answering)

    def _answer_limited(self, exchange: TextExchange, waiting: ClientStream | None) -> Awaitable[web.StreamResponse]:
        """Admit a request by the limits of its team, let its hooks change it, and respond to it."""
        record, request, later = exchange.record, exchange.request, None
        if self._limits.limits_anything:
            measure = partial(_size, exchange)
            if exchange.heavy and not (exchange.prompt_tokens and is_short_work(request)):
                return self._answer_measured(exchange, measure, waiting)
            later = self._limits.admit(exchange.key, exchange.plan, record, measure)
        if later is not None:
            return self._answer_later(exchange, later, waiting)
        hooks = iter(exchange.hooks)
        for hook in hooks:
            changing = hook.admitted(record, request, heavy=exchange.heavy)
            if changing is not None:
                return self._answer_restored(exchange, changing, hooks, waiting)
        return self._answer_admitted(exchange, waiting)

    async def _answer_measured(
        self, exchange: TextExchange, measure: Callable[[], RequestSize], waiting: ClientStream | None
    ) -> web.StreamResponse:
        """Respond to a large request, whose size is measured off the event loop."""
        record = exchange.record
        size = await self._dispatcher.off_loop.threads.run(record.owner, measure)
        later = self._limits.admit(exchange.key, exchange.plan, record, lambda: size)
        return await self._answer_later(exchange, later, waiting)

    async def _answer_later(
        self, exchange: TextExchange, later: Later | None, waiting: ClientStream | None
    ) -> web.StreamResponse:
        """Respond to a request once its limits have admitted it."""
        if later is not None:
            await wait_for_limits(exchange, later)
        record, request = exchange.record, exchange.request
        exchange.request = await with_admitted(record, request, exchange.hooks, heavy=exchange.heavy)
        return await self._answer_admitted(exchange, waiting)

    async def _answer_restored(
        self,
        exchange: TextExchange,
        changing: Awaitable[UnifiedRequest],
        following: Iterable[RequestHook],
        waiting: ClientStream | None,
    ) -> web.StreamResponse:
        """Respond to an admitted request once a hook, and then the hooks `following` it, have changed it."""
        request = await changing
        exchange.request = await with_admitted(exchange.record, request, following, heavy=exchange.heavy)
        return await self._answer_admitted(exchange, waiting)

    def _answer_admitted(self, exchange: TextExchange, waiting: ClientStream | None) -> Awaitable[web.StreamResponse]:
        """Dispatch an admitted request, and respond to it."""
        plan, request = exchange.plan, exchange.request
        if len(plan.targets) > 1 or plan.fallbacks:
            plan = exchange.plan = honouring_first(plan, request, exchange.team)
        if plan.hedge is not None:
            storing = exchange.surface.name in STORING
            if why_not_hedged(request, storing=storing) is not None:
                exchange.plan = replace(plan, hedge=None)
        exchange.set_deadlines()
        answers: TextAnswers = self._dispatcher
        for hook in exchange.hooks:
            answers = hook.answers(answers)
        if request.shortens:
            return self._answer_shortening(exchange, answers, waiting)
        if waiting is not None and request.stream:
            return streamed(exchange, answers, waiting)
        return whole(exchange, answers, waiting)

    async def _answer_shortening(
        self, exchange: TextExchange, answers: TextAnswers, waiting: ClientStream | None
    ) -> web.StreamResponse:
        """Respond to as much of a conversation as fits into the context window."""
        for _ in range(MOST_TRIES):
            try:
                return await responded(exchange, answers, waiting)
            except GatewayError as error:
                await self._shorten(exchange, error)
        return await responded(exchange, answers, waiting)

    async def read(self, exchange: TextExchange, operation: Operation) -> UnifiedRequest:
        """Return the request in a client's body, with the stored responses that it continues. Raises GatewayError for
        an invalid request."""
        return await self._parsed(exchange, operation, await exchange.read_body())

    async def _parsed(self, exchange: TextExchange, operation: Operation, body: bytes) -> UnifiedRequest:
        exchange.heavy, exchange.size = is_heavy(body), len(body)
        parse = partial(exchange.surface.parse, operation, body, exchange.default_model())
        source = exchange.context_source()
        stores = source is not None and source.stores
        context = RequestContext(exchange.http.headers, stores=stores, recalled=False)
        try:
            request = await self._run_parse(exchange, partial(parse, context))
        except NotRecalledError as error:
            if source is None:
                raise responses_not_stored() from None
            continued = await source.recall(exchange.record, error.referred)
            exchange.hold_more(continued.size)
            exchange.size += continued.size
            exchange.continued = continued.session
            exchange.heavy = exchange.heavy or continued.heavy
            request = await self._run_parse(exchange, partial(_parse_in_context, parse, context, continued))
        return exchange.for_path(request)

    async def _run_parse(self, exchange: TextExchange, parse: Callable[[], UnifiedRequest]) -> UnifiedRequest:
        if exchange.heavy and self._limits.limits_anything:
            parse = partial(_parsed_and_measured, parse, exchange)
        return await exchange.parsed(parse)

    async def _shorten(self, exchange: TextExchange, error: GatewayError) -> None:
        """Leave the oldest turns of the conversation out. Raises `error` again if its code is not TOO_LONG, or if no
        turn can be left out."""
        if error.facts.code != TOO_LONG:
            raise error
        shorten = partial(shortened, exchange.request, error.facts.message)
        record = exchange.record
        threads = self._dispatcher.off_loop.threads
        shorter = await threads.run(record.owner, shorten) if exchange.heavy else shorten()
        if shorter is None:
            raise error
        record.outcome = "ok"
        exchange.request, exchange.total, shared = shorter, exchange.deadlines.remaining, exchange.shared
        exchange.deadlines = Deadlines(exchange.total, shared.alarms, shared.deadlines)


def _size(exchange: TextExchange) -> RequestSize:
    return request_size(exchange.request, [*exchange.plan.every_target], exchange.prompt_tokens)


def _parsed_and_measured(parse: Callable[[], UnifiedRequest], exchange: TextExchange) -> UnifiedRequest:
    request = parse()
    exchange.prompt_tokens = estimate_prompt(request)
    return request


def _parse_in_context(
    parse: Callable[[RequestContext], UnifiedRequest], context: RequestContext, continued: RecalledContext
) -> UnifiedRequest:
    return parse(continued.completed(context))
