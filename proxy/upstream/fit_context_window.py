"""Fits requests into the context window: it counts tokens before a call, and lowers `max_tokens` after a refusal.

It learns the context windows that engines report in errors and in the responses of their tokenizers.
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
"""The most engines whose windows are stored. Clients choose the model names under a `vendor/*` entry, so the number of
names has no natural limit."""


class Windows:
    """The latest reported window of each engine. Beyond `most` engines, the oldest entries are dropped. An engine is
    identified by its address and the model's name there, so that a window survives reloads of the configuration and
    applies to all deployments of the engine."""

    __slots__ = ("_learned",)

    def __init__(self, most: int = MOST) -> None:
        self._learned: BoundedDict[tuple[str, str], int] = BoundedDict(most)

    def learn(self, target: Target, window: int) -> None:
        """Store the window of an engine: the most tokens of prompt and completion together, at least 1."""
        self._learned[engine_of(target)] = window

    def known(self, target: Target) -> int | None:
        """Return the window that limits a request: the lower of the engine's and the operator's; `None` if both are
        unknown."""
        known = [
            window for window in (target.context_window, self._learned.get(engine_of(target))) if window is not None
        ]
        return min(known, default=None)


def named_by_vendor(sent: UpstreamRequest, overflow: Overflow) -> int | None:
    """Return the window that an error reports; `None` if the call has that number in its body or headers. Otherwise one
    client could set the window for all clients, if a vendor's error repeats its input."""
    window = overflow.window
    if not window:
        return None
    headers = " ".join(sent.headers.values()).encode()
    numbers = str(window).encode(), f"{window:,}".encode()
    return None if any(number in sent.body or number in headers for number in numbers) else window


def engine_of(target: Target) -> tuple[str, str]:
    """Return the identity of a target's engine: its address and the model's name there."""
    return target.base_url, target.upstream_model


Ask = Callable[[PlannedCall, RequestRecord], Awaitable[UpstreamResponse]]

T = TypeVar("T")

COUNT_WAIT = 10.0
"""The most seconds in which an engine must count one prompt."""

_NO_TOKENIZER = frozenset({401, 403, 404, 405, 501})
"""Statuses of engines that have no tokenizer endpoint or forbid it. Other errors concern a single prompt or are
temporary."""


class Fitting:
    """Keeps calls within the context windows of their engines. `ask` sends a call that generates nothing.

    The windows that engines report are stored, so that most requests are known to fit without counting. The prompts of
    heavy calls are processed in `threads`, if given.
    """

    def __init__(self, ask: Ask, threads: RequestThreads | None = None) -> None:
        self._ask = ask
        self._threads = threads
        self._windows = Windows()
        self._mute: BoundedDict[tuple[str, str], None] = BoundedDict(MOST)

    async def beforehand(self, call: PlannedCall, record: RequestRecord) -> PlannedCall:
        """Return the call in a form that fits the window. Raises UpstreamError if the prompt leaves no tokens for the
        completion, and GatewayError if the client requires a guarantee that cannot be given."""
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
        """Return the result of `work`, which reads the prompt of a call. For a heavy call, `work` runs in a thread."""
        if self._threads is None or not is_heavy(call.sent.body):
            return work()
        return await self._threads.run(record.owner, work)

    async def counted(self, call: PlannedCall, record: RequestRecord) -> int | None:
        """Return the engine's token count of a call's only prompt; `None` if the engine has no tokenizer. Raises
        UpstreamError and, if the client itself requested the behaviour, GatewayError."""
        return (await self._counts(call, record))[0].tokens

    async def _uncertain(self, call: PlannedCall, limit: int, window: int | None, record: RequestRecord) -> PlannedCall:
        """Return the call to send if its tokens cannot be counted; under `truncate` its limit is one that certainly
        fits. Raises GatewayError if the behaviour cannot be guaranteed and the client itself, not a default, requested
        it."""
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
        """Return the engine's token count of each prompt, by one call each. For more than MAX_CALLS prompts, it raises
        GatewayError if the client requested the behaviour; if a default set the behaviour, the tokens are not
        counted."""
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
        """Return the engine's token count of one prompt, and store the window that it reports."""
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
                    # This is processed like the prompt, because the response may list every token of a long prompt.
                    await self._done(call, record, partial(counting.answer, *answered))
        except (TimeoutError, UpstreamError) as error:
            if WINDOW in call.request.injected:
                # The failure is not reported here, because the call itself will report the engine's failure.
                return Count()
            if isinstance(error, UpstreamError):
                raise
            raise fail(FailureKind.TIMEOUT, f"The upstream counted no tokens within {COUNT_WAIT:g} s.") from None
        if counting.count.window is not None:
            self._windows.learn(sent.target, counting.count.window)
        return counting.count

    async def _answer(self, call: PlannedCall, record: RequestRecord) -> tuple[int, bytes]:
        """Return the status and body of a tokenizer call. Raises UpstreamError for a temporary failure of the
        engine."""
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
        """Return the call with a lower limit after a refusal because of the window; `None` if the client does not want
        this or no lower limit is possible. `calls` is the number of calls made so far."""
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
    """Return a number of tokens that no prompt of the request exceeds; `None` if unknown fields may add tokens."""
    if request.unknown or request.extra_params:
        return None
    return most_prompt_tokens(request.prompt, request.params)


def _bodies(body: JsonObject, prompt: Prompt) -> Iterator[JsonObject]:
    """Yield the body of a call for each of its prompts alone. A conversation is one prompt."""
    match prompt:
        case ChatPrompt():
            yield body
        case TextPrompt(singles) | TokenPrompt(singles):
            for single in singles:
                yield {**body, "prompt": single if isinstance(single, str) else [*single]} if "prompt" in body else body


def _with_limit(call: PlannedCall, limit: int, record: RequestRecord) -> PlannedCall | None:
    """Return the call with a lower limit, and note the limit in the record; `None` if the vendor does not take so low a
    limit."""
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
    """Return the error with OpenAI's message, by which clients recognise it."""
    message = f"This model's maximum context length is {window} tokens. However, you requested "
    if prompt is None:
        message += f"{limit} tokens for the completion alone."
    else:
        message += f"{prompt + limit} tokens ({prompt} in the prompt, {limit} in the completion)."
    return UpstreamError(Failure(FailureKind.CONTEXT_LENGTH, message))
