"""The endpoints of stored responses: return one response, delete it, list its input items, count a prompt's tokens, and
refuse the other actions.

Sources: OpenAI OpenAPI 2.3.0 (`getResponse`, `deleteResponse`, `listInputItems`), openai-python 3.54.0 and openai-node
6.49.0, November 2026. Input items are all items of the conversation before the response, earlier responses included, as
Alibaba documents it for the same API (Model Studio, "List input items", November 2026).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import orjson
from aiohttp import web

from providers.json_types import JsonObject
from providers.unified_request import Operation, UnifiedRequest
from proxy.conversations.owner_memory import owner_of
from proxy.conversations.response_entries import StoredData, answer_in, items_of, read_chain
from proxy.conversations.stored_responses import StoredResponses
from proxy.dispatch.single_attempt import Dispatcher
from proxy.errors import FieldProblem, GatewayError, invalid_request, operation_not_served, response_not_found
from proxy.gateway.answer_generation import TextGeneration
from proxy.gateway.client_exchange import ClientExchange
from proxy.gateway.count_tokens import TokenCounting
from proxy.surfaces.request.heavy_body import is_heavy
from proxy.surfaces.surface import Action, ReferredIds, StoredAction

MOST_LISTED: Final = 100
LISTED: Final = 20
"""The largest and the default `limit` of a list."""

_TRUE: Final = ("true", "1")

T = TypeVar("T")

Answer = Callable[[ClientExchange[UnifiedRequest]], Awaitable[web.StreamResponse]]


class ResponseEndpoints:
    """Responds to requests about stored responses."""

    def __init__(
        self, responses: StoredResponses, generation: TextGeneration, counting: TokenCounting, dispatcher: Dispatcher
    ) -> None:
        self._responses = responses
        self._generation = generation
        self._counting = counting
        self._threads = dispatcher.off_loop.threads

    def actions(self) -> Mapping[Action, Answer]:
        """Return the function that responds to each action."""
        return {
            StoredAction.RETRIEVE: self._retrieve,
            StoredAction.DELETE: self._delete,
            StoredAction.INPUT_ITEMS: self._input_items,
            StoredAction.CANCEL: partial(
                _refuse,
                "Only responses made in the background can be cancelled, and 'background' is not supported here.",
            ),
            StoredAction.COMPACT: partial(
                _refuse, "Conversations cannot be compacted here; send the items that matter."
            ),
            StoredAction.INPUT_TOKENS: self._input_tokens,
        }

    async def _retrieve(self, exchange: ClientExchange[UnifiedRequest]) -> web.StreamResponse:
        query = exchange.http.query
        if query.get("stream", "").lower() in _TRUE:
            raise _unsupported("stream", "A stored response is not streamed again; retrieve it without 'stream'.")
        name = exchange.match.tail or ""
        data = await self._responses.get(owner_of(exchange.record), name)
        exchange.hold_more(len(data))
        body = await self._run(exchange, partial(answer_in, name, data), heavy=is_heavy(data))
        if body is None:
            raise response_not_found(name)
        return await exchange.respond(body, _leaving_include_out(exchange))

    async def _delete(self, exchange: ClientExchange[UnifiedRequest]) -> web.StreamResponse:
        name = exchange.match.tail or ""
        await self._responses.delete(owner_of(exchange.record), name)
        return await exchange.respond(orjson.dumps({"id": name, "object": "response", "deleted": True}), {})

    async def _input_items(self, exchange: ClientExchange[UnifiedRequest]) -> web.StreamResponse:
        query, owner, name = exchange.http.query, owner_of(exchange.record), exchange.match.tail or ""
        if "before" in query:
            raise _unsupported("before", "A list has no 'before'; use 'after' and 'order'.")
        await self._responses.get(owner, name)
        chain = await self._responses.recall(owner, ReferredIds(previous=name))
        exchange.hold_more(chain.size)
        listed = partial(_page, chain, query.get("after"), _limit(query.get("limit")), _descends(query.get("order")))
        return await exchange.respond(
            await self._run(exchange, listed, heavy=chain.heavy), _leaving_include_out(exchange)
        )

    async def _input_tokens(self, exchange: ClientExchange[UnifiedRequest]) -> web.StreamResponse:
        request = await self._generation.read(exchange, Operation.CHAT)
        tokens, headers = await self._counting.count(exchange, request)
        return await exchange.respond(
            orjson.dumps({"object": "response.input_tokens", "input_tokens": tokens}), headers
        )

    async def _run(self, exchange: ClientExchange[UnifiedRequest], work: Callable[[], T], *, heavy: bool) -> T:
        return await self._threads.run(exchange.record.owner, work) if heavy else work()


async def _refuse(why: str, exchange: ClientExchange[UnifiedRequest]) -> web.StreamResponse:
    raise operation_not_served(why)


def _page(chain: StoredData, after: str | None, limit: int, sign: int) -> bytes:
    """Return one page of the input items of the last response of a chain; `sign` is -1 for the latest first."""
    *before, last = read_chain(chain)
    items: Sequence[JsonObject] = [*(item for each in before for item in items_of(each)), *last.input][::sign]
    if after is not None:
        at = next((position for position, item in enumerate(items) if item.get("id") == after), None)
        if at is None:
            raise _invalid("after", "'after' names no item of this list.")
        items = items[at + 1 :]
    page = items[:limit]
    ids = [item.get("id") for item in page] or [None]
    return orjson.dumps(
        {"object": "list", "data": page, "first_id": ids[0], "last_id": ids[-1], "has_more": len(items) > limit}
    )


def _limit(text: str | None) -> int:
    if text is None:
        return LISTED
    if text.isascii() and text.isdigit() and len(text) <= len(str(MOST_LISTED)) and 1 <= int(text) <= MOST_LISTED:
        return int(text)
    raise _invalid("limit", f"'limit' must be a number from 1 to {MOST_LISTED}.")


def _descends(order: str | None) -> int:
    if order not in (None, "asc", "desc"):
        raise _invalid("order", "'order' must be 'asc' or 'desc'.")
    return 1 if order == "asc" else -1


def _leaving_include_out(exchange: ClientExchange[UnifiedRequest]) -> Mapping[str, str]:
    """Return the headers of a response: `include` is ignored, because the response is stored in the form in which the
    client got it."""
    if not any(name in exchange.http.query for name in ("include", "include[]")):
        return {}
    exchange.record.dropped = ("include",)
    return {"x-dragoman-dropped": "include"}


def _invalid(param: str, message: str) -> GatewayError:
    return invalid_request((FieldProblem((param,), message),))


def _unsupported(param: str, message: str) -> GatewayError:
    return invalid_request((FieldProblem((param,), message, "unsupported_parameter"),))
