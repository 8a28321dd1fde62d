"""Counts the tokens of a prompt for clients of Anthropic's Messages API: `POST /v1/messages/count_tokens`.

A valid body for a known model always gets a count: the vendor's own if it speaks the API, the count of the engine's
tokenizer, or an estimate, which a header reports. Claude Code replaces a missing count by calls that cost money. A call
to a vendor counts towards the team's limits of requests. If the team is at a limit, the response is the estimate.

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
from proxy.gateway.client_exchange import ClientExchange
from proxy.gateway.estimate_prompt import estimate_prompt
from proxy.hooks.request_hook import with_hooks
from proxy.surfaces.anthropic.parse_body import parse_count
from proxy.surfaces.request.heavy_body import is_heavy
from proxy.teams.client_keys import permit_extras
from proxy.teams.held_limits import Held
from proxy.teams.team_limiter import RequestSize, TeamLimiter
from proxy.upstream.transport import read_whole, unwatched

COUNT_WAIT: Final = 5.0
"""The most seconds that a vendor may take to count. After them the estimate is returned."""

MAX_COUNT_BODY: Final = 64 * 1024
"""The most bytes of a vendor's response with a count."""


class TokenCounting:
    """Responds to requests that count the tokens of a prompt."""

    def __init__(self, dispatcher: Dispatcher, limits: TeamLimiter) -> None:
        self._dispatcher = dispatcher
        self._limits = limits

    async def answer(self, exchange: ClientExchange[UnifiedRequest]) -> web.StreamResponse:
        """Respond to a request. Raises GatewayError for an invalid body, and for a model that the team may not use."""
        body = await exchange.read_body()
        default = exchange.snapshot.default_models.get(exchange.surface.name)
        parse = partial(parse_count, body, default, exchange.http.headers)
        exchange.heavy = is_heavy(body)
        tokens, headers = await self.count(exchange, await exchange.parsed(parse))
        return await exchange.respond(orjson.dumps({"input_tokens": tokens}), headers)

    async def count(
        self, exchange: ClientExchange[UnifiedRequest], request: UnifiedRequest
    ) -> tuple[int, Mapping[str, str]]:
        """Return the number of tokens of a request's prompt, and the headers of the response, which report an estimate
        as such. Raises GatewayError for a model that the team may not use."""
        record, heavy = exchange.record, exchange.heavy
        record.asked = request.model
        exchange.request = request = await with_hooks(record, request, exchange.hooks, heavy=heavy)
        exchange.plan_task(request.model, self._dispatcher.load)
        permit_extras(exchange.team, request)
        tokens = await self._counted(exchange)
        headers: dict[str, str] = {}
        if tokens is None:
            estimate = partial(estimate_prompt, request)
            tokens = await exchange.shared.threads.run(record.owner, estimate) if heavy else estimate()
            record.emulated = ("input_tokens",)
            headers["x-dragoman-emulated"] = "input_tokens"
        return tokens, headers

    async def _counted(self, exchange: ClientExchange[UnifiedRequest]) -> int | None:
        """Return the count of the first healthy target's vendor; `None` if the vendor returns no count, if it does not
        respond in time, or if the team is at a limit."""
        dispatcher, record, team = self._dispatcher, exchange.record, exchange.team
        order = dispatcher.deployments.breakers.arrange(exchange.plan.targets, dispatcher.now(), team.tenant)
        if not order.ready or not self._is_admitted(exchange):
            return None
        target = order.ready[0]
        started = dispatcher.now()
        called = True
        try:
            async with asyncio.timeout(COUNT_WAIT):
                tokens = await self._asked(target, exchange)
                called = tokens is not None
                return tokens
        except (TimeoutError, UpstreamError, GatewayError, Refusal):
            # If the vendor has a problem, the response to the prompt itself will report it.
            return None
        finally:
            record.waited += dispatcher.now() - started
            if isinstance(held := record.held, Held):
                give_back = partial(held.settle, 0, 0) if called else held.release
                dispatcher.guard.call("limits", record.request_id, give_back)

    def _is_admitted(self, exchange: ClientExchange[UnifiedRequest]) -> bool:
        """Return whether the team's limits permit a call to a vendor now. The call is reserved in the limits until it
        has ended."""
        try:
            return self._limits.admit(exchange.key, exchange.plan, exchange.record, _count_alone) is None
        except GatewayError:
            exchange.record.outcome = "ok"
            return False

    async def _asked(self, target: Target, exchange: ClientExchange[UnifiedRequest]) -> int | None:
        """Return the count of a target's vendor; `None` if it does not count."""
        # This import also loads Claude's dialects; the gateway starts faster without them.
        from providers.dialects.native_token_counts import count_request, read_count

        threads, calls = self._dispatcher.off_loop.threads, self._dispatcher.calls
        request, record, heavy = exchange.request, exchange.record, exchange.heavy
        native = request.native
        question = (
            None
            if native is None or native.api is not NativeApi.MESSAGES
            else partial(count_request, target, native.body, native.headers)
        )
        sent = None if question is None else await threads.run(record.owner, question) if heavy else question()
        if sent is None:
            prepare = partial(prepared_for, request, target, exchange.team)
            prepared = await threads.run(record.owner, prepare) if heavy else prepare()
            return await calls.fitting.counted(prepared.calls[0], record) if prepared.calls else None
        response = await calls.send(sent, record)
        try:
            return read_count(await read_whole(response, unwatched, MAX_COUNT_BODY))
        finally:
            response.release()


def _count_alone() -> RequestSize:
    """Return the size of a call that counts tokens: it generates nothing, and no vendor charges for it."""
    return 0, 0, 1
