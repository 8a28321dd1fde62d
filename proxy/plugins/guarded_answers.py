"""Guards as a request hook. Requests pass through the guards. The responses to requests for text pass through them too,
if the team has response guards.

A response cache passes responses through guards itself, so that it stores no refused response.
"""

from collections.abc import AsyncIterator, Awaitable, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from providers.completion import Completion, Usage
from providers.emulation.estimate_missing_usage import BYTES_PER_TOKEN, estimate_usage, with_usage
from providers.emulation.plan_calls import CallPlan
from providers.unified_request import Task, UnifiedRequest
from proxy.dispatch.exchange import Exchange
from proxy.dispatch.text_answers import GuardingAnswers, TextAnswers
from proxy.errors import FieldProblem, GatewayError, invalid_request
from proxy.hooks.request_hook import BodyCheck, Q, RequestHook
from proxy.hooks.team_hooks import TeamHooks
from proxy.plugins.answer_texts import with_choices, without_beside
from proxy.plugins.guarded_stream import GuardedStream
from proxy.plugins.team_guards import GuardChain, TeamGuards
from proxy.request_record import RequestRecord
from proxy.upstream.vendor_stream import Stream

_SOUNDS: Final = frozenset({"known_speaker_references[]"})
"""Form fields with audio as data URIs, which plugins do not check."""


class GuardHook(RequestHook):
    """Passes the requests and responses of one team through the guards of `chain`."""

    __slots__ = ("_chain",)

    def __init__(self, chain: GuardChain) -> None:
        self._chain = chain

    def asked(self, record: RequestRecord, request: Q, *, heavy: bool) -> Awaitable[Q]:
        return self._chain.request_passed(request, record, heavy=heavy)

    def form_read(self, cut: Collection[str]) -> None:
        """Refuse a form with a field that is longer than guards can check. Request guards check all fields of a form
        except its audio."""
        unread = sorted({*cut} - _SOUNDS)
        if self._chain.request and unread:
            message = f"'{unread[0]}' is longer than what your team's plugins can check of a form."
            raise invalid_request((FieldProblem((unread[0],), message, "unsupported_parameter"),))

    def body_check(self, task: Task) -> BodyCheck | None:
        """Return the check of a transcription. It is the only text among the responses that are passed on."""
        return self._chain.transcript_passed if self._chain.answer and task is Task.TRANSCRIPTIONS else None

    def answers(self, answers: TextAnswers) -> TextAnswers:
        return GuardedAnswers(answers, self._chain) if self._chain.answer else answers


@dataclass(frozen=True, slots=True, eq=False)
class GuardedAnswers(GuardingAnswers):
    """Passes responses through the guards of `chain`. Its methods also raise GatewayError if a guard refuses a
    response, or if a guard fails and does not fail open."""

    inner: TextAnswers
    chain: GuardChain

    async def whole(self, exchange: Exchange[UnifiedRequest]) -> tuple[CallPlan, Completion]:
        return await self.passed(exchange, *await self.inner.whole(exchange))

    async def passed(
        self, exchange: Exchange[UnifiedRequest], prepared: CallPlan, completion: Completion
    ) -> tuple[CallPlan, Completion]:
        """Return a response with the changes that the guards make. Raises GatewayError."""
        record = exchange.record
        try:
            choices = [await self.chain.choice_passed(choice, record) for choice in completion.choices]
            if any(new is not old for new, old in zip(choices, completion.choices, strict=True)):
                completion = with_choices(completion, choices)
            native = exchange.request.native
            if not await self.chain.beside_passed(completion, None if native is None else native.body, record):
                completion = without_beside(completion)
        except GatewayError:
            # The vendor has generated the refused response and charges for it.
            record.usage = with_usage(prepared.request, completion).usage
            raise
        return prepared, completion

    async def streamed(
        self, exchange: Exchange[UnifiedRequest]
    ) -> AbstractAsyncContextManager[tuple[CallPlan, Stream]]:
        """Return a stream that is held back until a guard lets content pass, or until its end if a guard needs the
        complete response."""
        return self.passing(exchange, await self.inner.streamed(exchange))

    @asynccontextmanager
    async def passing(
        self,
        exchange: Exchange[UnifiedRequest],
        opened: AbstractAsyncContextManager[tuple[CallPlan, Stream]],
    ) -> AsyncIterator[tuple[CallPlan, Stream]]:
        """Yield the opened stream behind the guards. The stream raises a refusal while it is read."""
        record = exchange.record
        async with opened as (prepared, stream):
            guarded = GuardedStream(stream, self.chain, exchange, prepared)
            try:
                await guarded.begin()
            except BaseException:
                # Even if an error ends it, the vendor has generated this much.
                record.usage = guarded.usage or estimate_usage(prepared.request, guarded.size)
                raise
            try:
                yield prepared, guarded
            except GatewayError:
                # The client received less than the vendor has generated.
                record.usage = _with_refused(record.usage, guarded)
                raise


def _with_refused(usage: Usage | None, guarded: GuardedStream) -> Usage | None:
    """Return the usage of a stream that a guard has refused. If it is an estimate, the refused text is counted too."""
    if usage is None or not usage.estimated or guarded.usage is not None:
        return usage
    return replace(usage, completion_tokens=max(usage.completion_tokens, -(-guarded.size // BYTES_PER_TOKEN)))


def attach_guards(hooks: TeamHooks, registry: TeamGuards | None) -> None:
    """Pass requests that begin from now on through the guards of `registry`; `None`: no guards."""

    def hook_of(team: str, surface: str) -> GuardHook | None:
        chain = None if registry is None else registry.of(team)
        return None if chain is None else GuardHook(chain)

    hooks.attach("plugins", None if registry is None else hook_of)
