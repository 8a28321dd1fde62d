"""Counts the tokens of a prompt for clients of Anthropic's Messages API: `POST /v1/messages/count_tokens`.

A valid body for a known model is always answered: by the vendor's own count where it speaks the API, by the engine's
tokenizer, or by an estimate that is named. Claude Code makes up for a missing count with calls that are paid for.

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
from proxy.request_record import RequestRecord
from proxy.routing.resolve_model import Plan, plan
from proxy.routing.snapshot import Team
from proxy.surfaces.anthropic.parse_body import parse_count
from proxy.surfaces.request.parse_json import is_heavy
from proxy.teams.client_keys import permit_extras
from proxy.upstream.transport import read_whole, unwatched

COUNT_WAIT: Final = 5.0
"""Seconds that a vendor may take to count; then the estimate is the answer."""

MAX_COUNT_BODY: Final = 64 * 1024
"""Bytes of a vendor's answer with a count."""


class TokenCounting:
    """Answers calls that count the tokens of a prompt."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    async def answer(self, call: ClientCall) -> web.StreamResponse:
        """Answer a call. Raises GatewayError for an invalid body, and for a model that the team may not use."""
        record, snapshot, surface = call.record, call.snapshot, call.surface
        body = await call.read_body()
        parse = partial(parse_count, body, snapshot.default_models.get(surface.name), call.http.headers)
        threads = self._dispatcher.off_loop.threads
        heavy = is_heavy(body)
        request = await threads.run(record.owner, parse) if heavy else parse()
        tokens, headers = await self.count(call, request, heavy=heavy)
        return await call.respond(orjson.dumps({"input_tokens": tokens}), headers)

    async def count(self, call: ClientCall, request: UnifiedRequest, *, heavy: bool) -> tuple[int, Mapping[str, str]]:
        """Return the number of tokens of a request's prompt, and the headers of the answer: they tell an estimate.
        Raises GatewayError for a model that the team may not use."""
        record, snapshot, team, surface = call.record, call.snapshot, call.team, call.surface
        threads = self._dispatcher.off_loop.threads
        record.asked = request.model
        if call.guards is not None:
            request = await call.guards.request_passed(request, record, heavy=heavy)
        planned = plan(snapshot, team, request.model, surface.name, self._dispatcher.load)
        record.model = planned.label
        permit_extras(team, request)
        tokens = await self._counted(planned, request, team, record, heavy=heavy)
        headers: dict[str, str] = {}
        if tokens is None:
            estimate = partial(estimate_prompt, request)
            tokens = await threads.run(record.owner, estimate) if heavy else estimate()
            record.emulated = ("input_tokens",)
            headers["x-dragoman-emulated"] = "input_tokens"
        return tokens, headers

    async def _counted(
        self, planned: Plan, request: UnifiedRequest, team: Team, record: RequestRecord, *, heavy: bool
    ) -> int | None:
        """Return the count of the first healthy target's vendor; None where it has none or does not answer in time."""
        dispatcher = self._dispatcher
        order = dispatcher.deployments.breakers.arrange(planned.targets, dispatcher.now(), team.tenant)
        if not order.ready:
            return None
        target = order.ready[0]
        started = dispatcher.now()
        try:
            async with asyncio.timeout(COUNT_WAIT):
                return await self._asked(target, request, team, record, heavy=heavy)
        except (TimeoutError, UpstreamError, GatewayError, Refusal):
            # Whatever is wrong there, the answer itself will show it.
            return None
        finally:
            record.waited += dispatcher.now() - started

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
