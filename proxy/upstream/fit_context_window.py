"""Keeps requests within the context window: counts tokens before a call, lowers `max_tokens` after a refusal.

The context windows that engines named, in errors and through their tokenizers.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar, cast

import orjson

from providers.context_overflow import Overflow, fits, most_prompt_tokens, next_limit
from providers.dialect import UpstreamRequest, encode_again
from providers.dialects.vendor_token_counts import TOKENIZERS, Count, Tokenizer
from providers.emulation.merge_choices import MAX_CALLS, too_many_calls
from providers.emulation.plan_calls import PlannedCall
from providers.failure import Failure, FailureKind, Refusal, UpstreamError
from providers.json_types import JsonObject
from providers.request_fields import WINDOW
from providers.target import Target
from providers.unified_request import ChatPrompt, Params, Prompt, TextPrompt, TokenPrompt, UnifiedRequest
from proxy.bounded_dict import BoundedDict
from proxy.errors import field_refused
from proxy.off_loop.request_threads import RequestThreads
from proxy.request_record import RequestRecord
from proxy.surfaces.request.heavy_body import is_heavy
from proxy.upstream.transport import UpstreamResponse, fail, read_whole, unwatched

MOST = 4096
"""Engines remembered. Under an entry for any model clients choose the names, so that there is no natural limit."""


class Windows:
    """The latest window of each engine, the oldest forgotten first. An engine is an address and the model's name there,
    so that a window outlives the table and holds for all deployments of the engine."""

    __slots__ = ("_learned",)

    def __init__(self, most: int = MOST) -> None:
        self._learned: BoundedDict[tuple[str, str], int] = BoundedDict(most)

    def learn(self, target: Target, window: int) -> None:
        """Remember the tokens that prompt and answer may have together, at least 1."""
        self._learned[engine_of(target)] = window

    def known(self, target: Target) -> int | None:
        """Return the window to keep within: the engine's, or the operator's where that is smaller."""
        known = [
            window for window in (target.context_window, self._learned.get(engine_of(target))) if window is not None
        ]
        return min(known, default=None)


def named_by_vendor(sent: UpstreamRequest, overflow: Overflow) -> int | None:
    """Return the window that an error named, unless the call had that number in its body or headers: if a vendor
    repeats its input, one client could set the window of all."""
    window = overflow.window
    if not window:
        return None
    headers = " ".join(sent.headers.values()).encode()
    numbers = str(window).encode(), f"{window:,}".encode()
    return None if any(number in sent.body or number in headers for number in numbers) else window


def engine_of(target: Target) -> tuple[str, str]:
    """Return the identity of a target's engine."""
    return target.base_url, target.upstream_model


Ask = Callable[[PlannedCall, RequestRecord], Awaitable[UpstreamResponse]]

T = TypeVar("T")

COUNT_WAIT = 10.0
"""Seconds an engine may take to count one prompt."""

_NO_TOKENIZER = frozenset({401, 403, 404, 405, 501})
"""Statuses of engines without a tokenizer endpoint, or that forbid it. Others concern one prompt, or pass."""


class Fitting:
    """Keeps calls within the windows of their engines; `ask` sends a call that generates nothing.

    The windows that engines named are remembered, so that most requests are known to fit without counting. The prompts
    of heavy calls are read in `threads`, if there are any.
    """

    def __init__(self, ask: Ask, threads: RequestThreads | None = None) -> None:
        self._ask = ask
        self._threads = threads
        self._windows = Windows()
        self._mute: BoundedDict[tuple[str, str], None] = BoundedDict(MOST)

    async def beforehand(self, call: PlannedCall, record: RequestRecord) -> PlannedCall:
        """Return the call as it may be sent. Raises UpstreamError when the prompt leaves no room for the answer, and
        GatewayError when the client requires certainty and there is none."""
        target, limit = call.sent.target, call.request.params.get("max_tokens", 1)
        window = self._windows.known(target)
        if fits(await self._done(call, record, partial(_bound, call.request)), limit, window):
            return call
        counts = await self._counts(call, record)
        window = self._windows.known(target)
        if window is None or any(count.tokens is None for count in counts):
            return await self._uncertain(call, limit, window, record)
        prompt_tokens = max(count.tokens or 0 for count in counts)
        if prompt_tokens + limit <= window:
            return call
        room = window - prompt_tokens
        if room < 1 or call.request.params.get(WINDOW) != "truncate":
            raise _too_long(window, prompt_tokens, limit)
        smaller = await self._done(call, record, partial(_with_limit, call, room, record))
        if smaller is None:
            raise _too_long(window, prompt_tokens, limit)
        return smaller

    async def _done(self, call: PlannedCall, record: RequestRecord, work: Callable[[], T]) -> T:
        """Return what `work` returns, which reads the prompt of a call."""
        if self._threads is None or not is_heavy(call.sent.body):
            return work()
        return await self._threads.run(record.owner, work)

    async def counted(self, call: PlannedCall, record: RequestRecord) -> int | None:
        """Return the engine's count of a call's only prompt; None where it has no tokenizer. Raises UpstreamError and
        GatewayError where a default would not."""
        return (await self._counts(call, record))[0].tokens

    async def _uncertain(self, call: PlannedCall, limit: int, window: int | None, record: RequestRecord) -> PlannedCall:
        """Return the call where tokens cannot be counted, with the limit that is sure to fit under `truncate`. Raises
        GatewayError where the client, not a default, asks for the behaviour and it cannot be ensured."""
        bound = await self._done(call, record, partial(_bound, call.request))
        truncates = call.request.params.get(WINDOW) == "truncate"
        if truncates and window is not None and bound is not None and 1 <= window - bound < limit:
            smaller = await self._done(call, record, partial(_with_limit, call, window - bound, record))
            if smaller is None:
                raise _too_long(window, bound, limit)
            return smaller
        if window is not None and limit > window and not truncates:
            raise _too_long(window, None, limit)
        if WINDOW in call.request.injected:
            return call
        target = call.sent.target
        why = "its window is not known" if window is None else "its prompts cannot be counted"
        raise field_refused(Refusal(WINDOW, f"'{WINDOW}' cannot be held on {target.name}: {why}."))

    async def _counts(self, call: PlannedCall, record: RequestRecord) -> list[Count]:
        """Return the engine's count of each prompt, by one call each. Raises GatewayError for more than MAX_CALLS
        prompts where the client asks for the behaviour; where a default does, such a request is not counted."""
        sent = call.sent
        tokenizer, prompts = TOKENIZERS.get(sent.target.profile.tokenizer or ""), call.request.prompt.count
        if tokenizer is None or engine_of(sent.target) in self._mute:
            return [Count()]
        if prompts > MAX_CALLS:
            if WINDOW in call.request.injected:
                return [Count()]
            raise field_refused(too_many_calls("prompt", prompts, sent.target))
        body = cast(JsonObject, await self._done(call, record, partial(orjson.loads, sent.body)))
        return [await self._count(call, tokenizer, body, record) for body in _bodies(body, call.request.prompt)]

    async def _count(self, call: PlannedCall, tokenizer: Tokenizer, body: JsonObject, record: RequestRecord) -> Count:
        """Return the engine's count of one prompt, and learn its window."""
        sent = call.sent
        if engine_of(sent.target) in self._mute:
            return Count()
        begin = partial(tokenizer, body, sent.operation, sent.target.base_url, sent.target.upstream_model)
        counting = await self._done(call, record, begin)
        try:
            async with asyncio.timeout(COUNT_WAIT):
                while (question := await self._done(call, record, counting.next)) is not None:
                    asked = replace(sent, method=question.method, url=question.url, body=question.body, stream=False)
                    answered = await self._answer(replace(call, sent=asked), record)
                    # The response for a long prompt may hold as many tokens.
                    await self._done(call, record, partial(counting.answer, *answered))
        except (TimeoutError, UpstreamError) as error:
            if WINDOW in call.request.injected:
                # The call itself will show what is wrong with the engine.
                return Count()
            if isinstance(error, UpstreamError):
                raise
            raise fail(FailureKind.TIMEOUT, f"The upstream counted no tokens within {COUNT_WAIT:g} s.") from None
        if counting.count.window is not None:
            self._windows.learn(sent.target, counting.count.window)
        return counting.count

    async def _answer(self, call: PlannedCall, record: RequestRecord) -> tuple[int, bytes]:
        """Return the status and body of a tokenizer call. Raises UpstreamError when the engine cannot answer now."""
        asked = call.sent
        response = await self._ask(call, record)
        try:
            body = await read_whole(response, unwatched)
        finally:
            response.release()
        status = response.status
        if status in _NO_TOKENIZER:
            self._mute[engine_of(asked.target)] = None
        elif status == 429 or status >= 500:
            raise UpstreamError(asked.target.dialect.classify(asked, status, response.headers, body))
        return status, body

    async def smaller(
        self, call: PlannedCall, failure: Failure, calls: int, record: RequestRecord
    ) -> PlannedCall | None:
        """Return the call with the limit to use after a refusal that concerned the window, if the client wants that;
        else None. `calls` counts those made so far."""
        overflow, params = failure.overflow, call.request.params
        if overflow is None:
            return None
        window = await self._done(call, record, partial(named_by_vendor, call.sent, overflow))
        if window is not None:
            self._windows.learn(call.sent.target, window)
        if params.get(WINDOW) != "truncate" or "max_tokens" not in params:
            return None
        limit = next_limit(params["max_tokens"], overflow, calls)
        return None if limit is None else await self._done(call, record, partial(_with_limit, call, limit, record))


def _bound(request: UnifiedRequest) -> int | None:
    """Return a number of tokens that no prompt of the request exceeds; None where unknown members may add to them."""
    if request.unknown or request.extra_params:
        return None
    return most_prompt_tokens(request.prompt, request.params)


def _bodies(body: JsonObject, prompt: Prompt) -> Iterator[JsonObject]:
    """Yield the body of a call as it would be for each of its prompts alone; a conversation is one prompt."""
    match prompt:
        case ChatPrompt():
            yield body
        case TextPrompt(singles) | TokenPrompt(singles):
            for single in singles:
                yield {**body, "prompt": single if isinstance(single, str) else [*single]} if "prompt" in body else body


def _with_limit(call: PlannedCall, limit: int, record: RequestRecord) -> PlannedCall | None:
    """Return the call with a lower limit, and note it in the record; `None` if the vendor takes none so low."""
    params = cast(Params, {**call.request.params, "max_tokens": limit})
    request = replace(call.request, params=params)
    try:
        sent = encode_again(call.sent, request)
    except Refusal:
        return None
    record.max_tokens = limit if record.max_tokens is None else min(limit, record.max_tokens)
    if WINDOW not in record.emulated:
        record.emulated = (*record.emulated, WINDOW)
    return replace(call, request=request, sent=sent)


def _too_long(window: int, prompt: int | None, limit: int) -> UpstreamError:
    """Return the error in OpenAI's words, by which clients recognise it."""
    message = f"This model's maximum context length is {window} tokens. However, you requested "
    if prompt is None:
        message += f"{limit} tokens for the completion alone."
    else:
        message += f"{prompt + limit} tokens ({prompt} in the prompt, {limit} in the completion)."
    return UpstreamError(Failure(FailureKind.CONTEXT_LENGTH, message))
