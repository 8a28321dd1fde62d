"""Responds to requests for tasks that are translated: parsed, planned, dispatched and rendered by the `TaskApi`."""

import time
from collections.abc import Awaitable
from dataclasses import replace
from functools import partial

from aiohttp import web

from providers.dialect import TaskCalls
from providers.failure import UpstreamError
from providers.target import Target
from providers.unified_request import Task
from proxy.deadlines import DeadlinePassed, Deadlines
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.single_attempt import Dispatcher
from proxy.errors import upstream_failed
from proxy.gateway.answer_request import wait_for_limits
from proxy.gateway.client_exchange import ClientExchange
from proxy.gateway.gateway_headers import answer_headers
from proxy.gateway.task_apis import A, Q, TaskApi
from proxy.hooks.request_hook import with_hooks
from proxy.limits.limit import end_user
from proxy.request_record import RequestRecord, fresh_id
from proxy.surfaces.request.heavy_body import is_heavy
from proxy.surfaces.surface import AnswerFacts
from proxy.teams.client_keys import permit_extras
from proxy.teams.team_limiter import TeamLimiter
from proxy.telemetry.request_outcomes import record_failure
from proxy.upstream.call_task import AnsweredParts, TaskCaller

MANY_NUMBERS = 16_384
"""The most numbers of a response that is rendered on the event loop, which takes 2 ms."""


class TaskAnswers:
    """Responds to requests for tasks."""

    def __init__(self, dispatcher: Dispatcher, limits: TeamLimiter) -> None:
        self._dispatcher = dispatcher
        self._limits = limits
        self._threads = dispatcher.off_loop.threads
        self._caller = TaskCaller(dispatcher.calls, dispatcher.off_loop)

    async def answer(self, task: Task, api: TaskApi[Q, A], exchange: ClientExchange[Q]) -> web.StreamResponse:
        """Respond to a request. Raises GatewayError."""
        record, team = exchange.record, exchange.team
        body = await exchange.read_body()
        exchange.heavy = is_heavy(body)
        parse = partial(api.parse, body, exchange.default_model(task))
        request = exchange.for_path(await exchange.parsed(parse))
        record.asked, record.user = request.model, end_user(request.user)
        exchange.request = request = await with_hooks(record, request, exchange.hooks, heavy=exchange.heavy)
        exchange.plan_task(request.model, self._dispatcher.load)
        plan = exchange.plan
        api.check(plan)
        permit_extras(team, request)
        later = self._limits.admit(exchange.key, plan, record, lambda: (len(body) + api.repeats(request), 0, 1))
        if later is not None:
            await wait_for_limits(exchange, later)
        exchange.set_deadlines()
        prepared, answer = await self._dispatched(api, exchange)
        record.usage = answer.usage
        if answer.usage is not None and answer.usage.estimated:
            record.emulated = (*record.emulated, "usage")
        facts = AnswerFacts(fresh_id(), int(time.time()), plan.served_name(prepared.target))
        rendered = await self._rendered(api, request, answer, facts, record)
        return await exchange.respond(rendered, answer_headers(record))

    async def _dispatched(self, api: TaskApi[Q, A], exchange: Exchange[Q]) -> tuple[TaskCalls[A], A]:
        """Return the prepared calls of the first target that responds, and its response. Raises GatewayError."""
        record, request, team = exchange.record, exchange.request, exchange.team
        kept: AnsweredParts[A] = AnsweredParts(lambda part: part.usage)

        async def prepare(target: Target) -> TaskCalls[A]:
            work = partial(api.calls, request, target, team.on_unsupported or target.on_unsupported)
            return await self._threads.run(record.owner, work) if exchange.heavy else work()

        def read(prepared: TaskCalls[A], record: RequestRecord, own: Deadlines, answer: float | None) -> Awaitable[A]:
            return self._caller.answer(prepared, record, own, answer, kept)

        try:
            with exchange.deadlines:
                try:
                    return await self._dispatcher.answer(exchange, prepare, read)
                except BaseException:
                    kept.drop(record)
                    raise
        except (UpstreamError, DeadlinePassed) as error:
            failed = upstream_failed(record_failure(record, error), len(record.attempts))
            if failed.facts.code == "context_length_exceeded":
                failed.facts = replace(failed.facts, param=api.inputs)
            raise failed from None

    async def _rendered(
        self, api: TaskApi[Q, A], request: Q, answer: A, facts: AnswerFacts, record: RequestRecord
    ) -> bytes:
        work = partial(api.render, request, answer, facts)
        if api.size(answer) <= MANY_NUMBERS:
            return work()
        record.heavy.append(answer)
        return await self._threads.run(record.owner, work)
