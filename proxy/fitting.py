"""Keeping a request within the context window: counting before it is sent, asking again for less after a refusal.

Never decides what an answer means, and never cuts a prompt.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import cast

import orjson

from providers.context import fits, most_prompt_tokens, next_limit
from providers.dialect import Target, UpstreamRequest
from providers.failure import Failure, FailureKind, Refusal, UpstreamError
from providers.shape import MAX_CALLS, WINDOW, Call, too_many_calls
from providers.tokenizers import TOKENIZERS, Count, Tokenizer
from providers.unified import ChatPrompt, JsonObject, Params, Prompt, TextPrompt, TokenPrompt, UnifiedRequest
from proxy.errors import refused
from proxy.record import RequestRecord
from proxy.upstream import UpstreamResponse, fail, read_whole, unwatched
from proxy.windows import MOST, Windows, engine_of

Ask = Callable[[UpstreamRequest, RequestRecord], Awaitable[UpstreamResponse]]

COUNT_WAIT = 10.0
"""Seconds an engine may take to count one prompt."""

_NO_TOKENIZER = frozenset({401, 403, 404, 405, 501})
"""Statuses of engines that have no such path, or keep it from us. Others are about one prompt, or pass."""


class Fitting:
    """What keeps calls within the windows of their engines; `ask` makes a call of an engine's own.

    The windows that engines named are remembered, so that most requests are known to fit without a question.
    """

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._windows = Windows()
        self._mute: dict[tuple[str, str], None] = {}

    async def beforehand(self, call: Call, record: RequestRecord) -> Call:
        """The call as it may be sent. Raises UpstreamError when the prompt leaves no room for what is asked, and
        GatewayError when the client wants that known and nobody can tell."""
        target, limit = call.sent.target, call.request.params.get("max_tokens", 1)
        window = self._windows.known(target)
        if fits(_bound(call.request), limit, window):
            return call
        counts = await self._counts(call, record)
        window = self._windows.known(target)
        if window is None or any(count.tokens is None for count in counts):
            return self._uncertain(call, limit, window, record)
        prompt_tokens = max(count.tokens or 0 for count in counts)
        if prompt_tokens + limit <= window:
            return call
        room = window - prompt_tokens
        if room < 1 or call.request.params.get(WINDOW) != "truncate":
            raise _too_long(window, prompt_tokens, limit)
        return _with_limit(call, room, record)

    def _uncertain(self, call: Call, limit: int, window: int | None, record: RequestRecord) -> Call:
        """Nobody can count. What is sure to fit is still known under `truncate`; beyond that a client that asked for
        the behaviour is told so, and a default is left at that."""
        bound, truncates = _bound(call.request), call.request.params.get(WINDOW) == "truncate"
        if truncates and window is not None and bound is not None and 1 <= window - bound < limit:
            return _with_limit(call, window - bound, record)
        if window is not None and limit > window and not truncates:
            raise _too_long(window, None, limit)
        if WINDOW in call.request.injected:
            return call
        target = call.sent.target
        why = "its window is not known" if window is None else "its prompts cannot be counted"
        raise refused(Refusal(WINDOW, f"'{WINDOW}' cannot be held on {target.name}: {why}."))

    async def _counts(self, call: Call, record: RequestRecord) -> list[Count]:
        """What the engine says of each prompt, which takes a call for each. Raises GatewayError for more than MAX_CALLS
        where the client asked for it; what a default asks for remains the engine's own concern then."""
        sent = call.sent
        tokenizer, prompts = TOKENIZERS.get(sent.target.profile.tokenizer or ""), call.request.prompts
        if tokenizer is None or engine_of(sent.target) in self._mute:
            return [Count()]
        if prompts > MAX_CALLS:
            if WINDOW in call.request.injected:
                return [Count()]
            raise refused(too_many_calls("prompt", prompts, sent.target))
        body = cast(JsonObject, orjson.loads(sent.body))
        return [await self._count(call, tokenizer, body, record) for body in _bodies(body, call.request.prompt)]

    async def _count(self, call: Call, tokenizer: Tokenizer, body: JsonObject, record: RequestRecord) -> Count:
        """What the engine's tokenizer says of the body of one prompt, and of its window."""
        sent = call.sent
        if engine_of(sent.target) in self._mute:
            return Count()
        counting = tokenizer(body, sent.operation, sent.target.base_url, sent.target.upstream_model)
        try:
            async with asyncio.timeout(COUNT_WAIT):
                while (question := counting.next()) is not None:
                    asked = replace(sent, method=question.method, url=question.url, body=question.body, stream=False)
                    counting.answer(*await self._answer(asked, record))
        except (TimeoutError, UpstreamError) as error:
            if WINDOW in call.request.injected:
                # The call itself will tell what is wrong with the engine.
                return Count()
            if isinstance(error, UpstreamError):
                raise
            raise fail(FailureKind.TIMEOUT, f"The upstream counted no tokens within {COUNT_WAIT:g} s.") from None
        if counting.count.window is not None:
            self._windows.learn(sent.target, counting.count.window)
        return counting.count

    async def _answer(self, asked: UpstreamRequest, record: RequestRecord) -> tuple[int, bytes]:
        """Status and body. Raises UpstreamError when the engine cannot answer now."""
        response = await self._ask(asked, record)
        try:
            body = await read_whole(response, unwatched)
        finally:
            response.release()
        status = response.status
        if status in _NO_TOKENIZER:
            self._silence(asked.target)
        elif status == 429 or status >= 500:
            raise UpstreamError(asked.target.dialect.classify(asked, status, response.headers, body))
        return status, body

    def _silence(self, target: Target) -> None:
        """What an engine does not tell, it is not asked again with every request."""
        self._mute[engine_of(target)] = None
        if len(self._mute) > MOST:
            del self._mute[next(iter(self._mute))]

    def smaller(self, call: Call, failure: Failure, tries: int, record: RequestRecord) -> Call | None:
        """The call to make after a refusal that was about the window, if the client wants what fits; None for no other.
        The `tries` made so far count."""
        overflow, params = failure.overflow, call.request.params
        if overflow is None:
            return None
        self._windows.learn_from_error(call.sent, overflow)
        if params.get(WINDOW) != "truncate" or "max_tokens" not in params:
            return None
        limit = next_limit(params["max_tokens"], overflow, tries)
        return None if limit is None else _with_limit(call, limit, record)


def _bound(request: UnifiedRequest) -> int | None:
    """Tokens that no prompt of the request exceeds, None where members that nobody here knows may add to them."""
    if request.unknown or request.extra_params:
        return None
    return most_prompt_tokens(request.prompt, request.params)


def _bodies(body: JsonObject, prompt: Prompt) -> Iterator[JsonObject]:
    """The body of a call as it would be for each of its prompts by itself; a conversation is one."""
    match prompt:
        case ChatPrompt():
            yield body
        case TextPrompt(singles) | TokenPrompt(singles):
            for single in singles:
                yield {**body, "prompt": single if isinstance(single, str) else [*single]} if "prompt" in body else body


def _with_limit(call: Call, limit: int, record: RequestRecord) -> Call:
    """The same call with a lower limit, which the record notes."""
    params = cast(Params, {**call.request.params, "max_tokens": limit})
    request = replace(call.request, params=params)
    record.max_tokens = limit if record.max_tokens is None else min(limit, record.max_tokens)
    if WINDOW not in record.emulated:
        record.emulated = (*record.emulated, WINDOW)
    target = call.sent.target
    return replace(call, request=request, sent=target.dialect.encode(request, target))


def _too_long(window: int, prompt: int | None, limit: int) -> UpstreamError:
    """OpenAI's words, by which clients recognise this."""
    message = f"This model's maximum context length is {window} tokens. However, you requested "
    if prompt is None:
        message += f"{limit} tokens for the completion alone."
    else:
        message += f"{prompt + limit} tokens ({prompt} in the prompt, {limit} in the completion)."
    return UpstreamError(Failure(FailureKind.CONTEXT_LENGTH, message))
