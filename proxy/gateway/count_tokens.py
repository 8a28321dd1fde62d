"""Counts the tokens of a prompt for clients of Anthropic's Messages API: `POST /v1/messages/count_tokens`.

A valid body for a known model is always answered: by the vendor's own count where it speaks the API, by the engine's
tokenizer, or by an estimate that is named. Claude Code makes up for a missing count with calls that are paid for. A
call of a vendor counts towards the team's limits of requests; at a limit the answer is the estimate.

Source: `anthropic` 2.12.0 `MessageCountTokensParams`, `MessageTokensCount`; Claude Code 2.1.197, November 2026.
"""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

import orjson
from aiohttp import web

from providers.failure import Refusal, UpstreamError
from providers.target import Target
from providers.unified_request import NativeApi, UnifiedRequest
from proxy.dispatch.next_deployment import prepared_for
from proxy.dispatch.single_attempt import Dispatcher
from proxy.errors import GatewayError
from proxy.gateway.client_call import ClientCall
from proxy.gateway.estimate_prompt import estimate_prompt
from proxy.hooks.request_hook import with_hooks
from proxy.request_record import RequestRecord
from proxy.routing.request_plan import Plan
from proxy.routing.resolve_model import plan
from proxy.routing.snapshot import Team
from proxy.surfaces.anthropic.parse_body import parse_count
from proxy.surfaces.request.heavy_body import is_heavy
from proxy.teams.client_keys import permit_extras
from proxy.teams.held_limits import Held
from proxy.teams.team_limiter import RequestSize, TeamLimiter
from proxy.upstream.transport import read_whole, unwatched

COUNT_WAIT: Final = 5.0
"""Seconds that a vendor may take to count; then the estimate is the answer."""

MAX_COUNT_BODY: Final = 64 * 1024
"""Bytes of a vendor's answer with a count."""


class TokenCounting:
    """Answers calls that count the tokens of a prompt."""

    def __init__(self, dispatcher: Dispatcher, limits: TeamLimiter) -> None:
        self._dispatcher = dispatcher
        self._limits = limits

    async def answer(self, call: ClientCall) -> web.StreamResponse:
        """Answer a call. Raises GatewayError for an invalid body, and for a model that the team may not use."""
        snapshot, surface = call.snapshot, call.surface
        body = await call.read_body()
        parse = partial(parse_count, body, snapshot.default_models.get(surface.name), call.http.headers)
        heavy = is_heavy(body)
        request = await call.parsed(self._dispatcher.off_loop.threads, parse, heavy=heavy)
        tokens, headers = await self.count(call, request, heavy=heavy)
        return await call.respond(orjson.dumps({"input_tokens": tokens}), headers)

    async def count(self, call: ClientCall, request: UnifiedRequest, *, heavy: bool) -> tuple[int, Mapping[str, str]]:
        """Return the number of tokens of a request's prompt, and the headers of the answer: they tell an estimate.
        Raises GatewayError for a model that the team may not use."""
        record, snapshot, team, surface = call.record, call.snapshot, call.team, call.surface
        threads = self._dispatcher.off_loop.threads
        record.asked = request.model
        request = await with_hooks(record, request, call.hooks, heavy=heavy)
        planned = plan(snapshot, team, request.model, surface.name, self._dispatcher.load)
        record.model = planned.label
        permit_extras(team, request)
        tokens = await self._counted(planned, request, call, heavy=heavy)
        headers: dict[str, str] = {}
        if tokens is None:
            estimate = partial(estimate_prompt, request)
            tokens = await threads.run(record.owner, estimate) if heavy else estimate()
            record.emulated = ("input_tokens",)
            headers["x-dragoman-emulated"] = "input_tokens"
        return tokens, headers

    async def _counted(self, planned: Plan, request: UnifiedRequest, call: ClientCall, *, heavy: bool) -> int | None:
        """Return the count of the first healthy target's vendor. `None` if it has none, if it does not answer in time,
        or if the team is at a limit."""
        dispatcher, record, team = self._dispatcher, call.record, call.team
        order = dispatcher.deployments.breakers.arrange(planned.targets, dispatcher.now(), team.tenant)
        if not order.ready or not self._is_admitted(planned, call):
            return None
        target = order.ready[0]
        started = dispatcher.now()
        called = True
        try:
            async with asyncio.timeout(COUNT_WAIT):
                tokens = await self._asked(target, request, team, record, heavy=heavy)
                called = tokens is not None
                return tokens
        except (TimeoutError, UpstreamError, GatewayError, Refusal):
            # Whatever is wrong there, the answer itself will show it.
            return None
        finally:
            record.waited += dispatcher.now() - started
            if isinstance(held := record.held, Held):
                give_back = partial(held.settle, 0, 0) if called else held.release
                dispatcher.guard.call("limits", record.request_id, give_back)

    def _is_admitted(self, planned: Plan, call: ClientCall) -> bool:
        """Return whether the team's limits let a vendor be called now; the call is held until it has ended."""
        try:
            return self._limits.admit(call.key, planned, call.record, _count_alone) is None
        except GatewayError:
            call.record.outcome = "ok"
            return False

    async def _asked(
        self, target: Target, request: UnifiedRequest, team: Team, record: RequestRecord, *, heavy: bool
    ) -> int | None:
        # Claude's dialects come with it: a start without them is shorter.
        from providers.dialects.native_token_counts import count_question, read_count

        threads, calls = self._dispatcher.off_loop.threads, self._dispatcher.calls
        native = request.native
        question = (
            None
            if native is None or native.api is not NativeApi.MESSAGES
            else partial(count_question, target, native.body, native.headers)
        )
        sent = None if question is None else await threads.run(record.owner, question) if heavy else question()
        if sent is None:
            prepare = partial(prepared_for, request, target, team)
            prepared = await threads.run(record.owner, prepare) if heavy else prepare()
            return await calls.fitting.counted(prepared.calls[0], record) if prepared.calls else None
        response = await calls.send(sent, record)
        try:
            return read_count(await read_whole(response, unwatched, MAX_COUNT_BODY))
        finally:
            response.release()


def _count_alone() -> RequestSize:
    """Return the size of a call that counts: it generates nothing, and no vendor charges for it."""
    return 0, 0, 1
