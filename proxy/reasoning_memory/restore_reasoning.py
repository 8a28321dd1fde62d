"""Stores the reasoning of turns that called tools and the signatures of texts, and restores both in requests of clients
that do not send them. A request gets the hook only if its plan has a deployment that wants reasoning back. Other
requests cost nothing.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, Protocol, TypeAlias, TypeVar

from providers.adaptation.unique_calls import may_call
from providers.completion import Choice, Completion, StreamEvent
from providers.json_types import JsonObject
from providers.models.reasoning_back import signs_texts, wants_reasoning_back
from providers.target import Target
from providers.unified_request import ChatPrompt, NativeApi, Operation, UnifiedRequest
from proxy.conversations.owner_memory import OwnerMemory, owner_of
from proxy.dispatch.exchange import Exchange
from proxy.hooks.request_hook import RequestHook
from proxy.hooks.team_hooks import TeamHooks
from proxy.off_loop.request_threads import RequestThreads
from proxy.reasoning_memory.reasoning_of_turns import (
    GatheredTurns,
    MissingTurn,
    TurnThinking,
    key_of_answer,
    missing_texts,
    missing_turns,
    pack_turn,
    thinking_of_text,
    thinking_to_keep,
    unpack_turn,
    with_thinking,
)
from proxy.reasoning_memory.signed_texts import GatheredSignatures, SignedText, key_of_text, marks_of, signed_text
from proxy.request_record import RequestRecord
from proxy.routing.request_plan import Plan
from proxy.upstream.gateway_streams import WrappedStream
from proxy.upstream.vendor_stream import Stream

T = TypeVar("T")

TURN_BYTES: Final = 64 * 1024 * 1024
"""The most bytes of all stored turns in one process."""

TURN_SECONDS: Final = 3600.0
"""Seconds for which a turn is stored after it was made or last used. They are many because a person may have to approve
a tool call."""

MOST_RESTORED: Final = 2 * 1024 * 1024
"""The most bytes of reasoning that are restored in one request, the latest turns first. Reading them takes a few ms."""

_HOLDER: Final = 16
"""The bytes that each object or list counts in addition to its text, because a million empty ones take 50 ms to
read."""


_SHORT: Final = 64 * 1024
"""The most characters of a text that is hashed on the event loop."""

_OF_MESSAGES: Final = frozenset({"anthropic", "anthropic_vertex", "bedrock_anthropic"})
"""The dialects whose vendors accept the body of a Messages API client."""


class Run(Protocol):
    """Runs work and returns its result. The work of a heavy request runs off the event loop."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]: ...


def _has_it(request: UnifiedRequest, target: Target) -> bool:
    """Return whether a target gets the client's own body, in which nothing can be restored: the items of the Responses
    API, which include reasoning, or the blocks of the Messages API."""
    native = request.native
    if native is None:
        return False
    if native.api is NativeApi.MESSAGES:
        return target.profile.dialect in _OF_MESSAGES
    wire = target.profile.responses
    return wire is not None and wire.takes_own


@dataclass(slots=True, eq=False)
class ReasoningMemory:
    """The stored turns of this process, and of others if it shares them. While it is `off` nothing is stored."""

    entries: OwnerMemory
    off: bool = False

    def concerns(self, plan: Plan, request: UnifiedRequest) -> bool:
        """Return whether a request is a chat for which a deployment may want reasoning back."""
        if self.off or request.operation is not Operation.CHAT:
            return False
        return any(wants_reasoning_back(target) and not _has_it(request, target) for target in _targets(plan))

    async def recall(
        self, plan: Plan, request: UnifiedRequest, owner: str, run: Run | None = None
    ) -> tuple[UnifiedRequest, "ReasoningKeeper | None"]:
        """Return the request with the reasoning that its client left out, as far as it is stored, and the keeper of the
        response's reasoning. If `run` is given, it runs the reading of the conversation."""
        if not isinstance(request.prompt, ChatPrompt) or not self.concerns(plan, request):
            return request, None
        messages = request.prompt.messages
        run = _at_once if run is None else run
        # With a response cache signatures are not restored: a cached response is the same for every client, and its key
        # must not depend on them.
        signed = plan.cache is None and any(map(signs_texts, _targets(plan)))
        readers: list[Reader] = []
        if self.entries.may_know_any(owner):
            readers = [missing_turns, missing_texts] if signed else [missing_turns]
        read = partial(_read, messages, readers)
        missing, marks = await run(read) if readers or not all(map(_is_short, messages[-1:])) else read()
        called = may_call(request)
        keeper = ReasoningKeeper(self, owner, marks, called) if signed or called else None
        if not missing:
            return request, keeper
        keys = list(dict.fromkeys([turn.key for turn in missing]))
        found = await self.entries.find(owner, keys)
        if not found:
            return request, keeper
        restored = await run(lambda: with_thinking(messages, missing, _known(keys, found)))
        return (request if restored is None else replace(request, prompt=ChatPrompt(restored))), keeper


@dataclass(slots=True, eq=False)
class ReasoningKeeper:
    """Stores the reasoning of the response to one request; `marks` are the marks of the client's last message, `called`
    is set if the response may call tools."""

    _memory: ReasoningMemory
    _owner: str
    _marks: Sequence[str]
    _called: bool

    def packed(self, target: Target, choices: Iterable[Choice]) -> dict[str, bytes]:
        """Return the packed reasoning of each choice with tool calls in a response of `target`, by key."""
        packed: dict[str, bytes] = {}
        for choice in choices:
            if not choice.tool_calls and signs_texts(target):
                packed |= self._packed_text(signed_text(choice.text, choice.signature, choice.extras))
                continue
            thinking = thinking_to_keep(choice, target)
            if thinking is not None and (data := pack_turn(thinking)) is not None:
                packed[key_of_answer(choice, self._marks)] = data
        return packed

    def _packed_text(self, signed: SignedText | None) -> dict[str, bytes]:
        data = None if signed is None else pack_turn(thinking_of_text(signed))
        return {} if signed is None or data is None else {key_of_text(signed.text, self._marks): data}

    def put(self, packed: Mapping[str, bytes]) -> None:
        """Store the result of `packed`."""
        if packed:
            self._memory.entries.put(self._owner, packed)

    def keep(self, target: Target, choices: Iterable[Choice]) -> None:
        """Store the reasoning of the choices of a response of `target`."""
        self.put(self.packed(target, choices))

    def keep_text(self, signed: SignedText) -> None:
        """Store the signature of a text."""
        self.put(self._packed_text(signed))

    def watched(self, target: Target, stream: Stream) -> Stream:
        """Return a stream that stores the reasoning of each choice when the choice ends, before the client gets that
        end."""
        if signs_texts(target):
            stream = SignedStream(stream, self)
        return WatchedStream(stream, target, self) if self._called and wants_reasoning_back(target) else stream


@dataclass(slots=True, eq=False)
class WatchedStream(WrappedStream):
    """A stream that stores the reasoning of each turn when it ends."""

    _target: Target
    _keeper: ReasoningKeeper
    _gathered: GatheredTurns = field(default_factory=GatheredTurns)

    def _seen(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        for event in events:
            choice = self._gathered.add(event)
            if choice is not None:
                self._keeper.keep(self._target, (choice,))
            yield event


@dataclass(slots=True, eq=False)
class SignedStream(WrappedStream):
    """A stream that stores the signature of each text when the text ends."""

    _keeper: ReasoningKeeper
    _texts: GatheredSignatures = field(default_factory=GatheredSignatures)

    def _seen(self, events: Iterator[StreamEvent]) -> Iterator[StreamEvent]:
        for event in events:
            signed = self._texts.add(event)
            if signed is not None:
                self._keeper.keep_text(signed)
            yield event


class ReasoningHook(RequestHook):
    """The hook in one request. It restores the reasoning of the request, and stores the reasoning of the response."""

    __slots__ = ("_keeper", "_memory", "_plan", "_threads")

    def __init__(self, memory: ReasoningMemory, threads: RequestThreads, plan: Plan) -> None:
        self._memory = memory
        self._threads = threads
        self._plan = plan
        self._keeper: ReasoningKeeper | None = None

    def admitted(self, record: RequestRecord, request: UnifiedRequest, *, heavy: bool) -> Awaitable[UnifiedRequest]:
        """Restore the reasoning that the client left out, as far as it is stored."""
        return self._restored(record, request, heavy=heavy)

    async def _restored(self, record: RequestRecord, request: UnifiedRequest, *, heavy: bool) -> UnifiedRequest:
        run = partial(self._threads.run, record.owner) if heavy else None
        request, self._keeper = await self._memory.recall(self._plan, request, owner_of(record), run)
        record.private = record.private or self._keeper is not None
        return request

    def answered(
        self, record: RequestRecord, completion: Completion, target: Target, *, long: bool
    ) -> Awaitable[None] | None:
        """Store the reasoning of a response. The reasoning of a long response is packed in a thread."""
        keeper = self._keeper
        if keeper is None:
            return None
        if long:
            return self._stored(keeper, record.owner, partial(keeper.packed, target, completion.choices))
        keeper.keep(target, completion.choices)
        return None

    async def _stored(self, keeper: ReasoningKeeper, owner: str, pack: Callable[[], dict[str, bytes]]) -> None:
        keeper.put(await self._threads.run(owner, pack))

    def streamed(self, record: RequestRecord, stream: Stream, target: Target) -> Stream:
        """Store the reasoning of each choice of a stream when it ends."""
        return stream if self._keeper is None else self._keeper.watched(target, stream)


def attach_reasoning(hooks: TeamHooks, memory: ReasoningMemory, threads: RequestThreads) -> None:
    """Let `memory` restore and store reasoning for requests whose plan has a deployment that wants reasoning back."""

    def hook_of(exchange: Exchange[UnifiedRequest], headers: Mapping[str, str]) -> ReasoningHook | None:
        plan = exchange.plan
        return ReasoningHook(memory, threads, plan) if memory.concerns(plan, exchange.request) else None

    hooks.attach_to_plans("reasoning", hook_of)


async def _at_once(work: Callable[[], T]) -> T:
    return work()


Reader: TypeAlias = Callable[[Sequence[JsonObject]], list[MissingTurn]]


def _targets(plan: Plan) -> Iterator[Target]:
    """Yield the deployments that may respond to a request."""
    yield from plan.targets
    for others in (plan.fallbacks or {}).values():
        yield from others


def _read(messages: Sequence[JsonObject], readers: Iterable[Reader]) -> tuple[list[MissingTurn], tuple[str, ...]]:
    """Return the turns that lack their reasoning, and the marks of the last message."""
    missing = [turn for read in readers for turn in read(messages)]
    return missing, tuple(marks_of(messages[-1])) if messages else ()


def _is_short(message: JsonObject) -> bool:
    """Return whether a message is a short text."""
    content = message.get("content")
    return isinstance(content, str) and len(content) <= _SHORT


def _known(keys: Iterable[str], found: Mapping[str, bytes]) -> dict[str, TurnThinking]:
    """Return the turns that were found, up to MOST_RESTORED bytes."""
    known: dict[str, TurnThinking] = {}
    left = MOST_RESTORED
    for key in keys:
        data = found.get(key, b"")
        left -= len(data) + _HOLDER * (data.count(b"{") + data.count(b"["))
        if left < 0:
            break
        if data and (thinking := unpack_turn(data)) is not None:
            known[key] = thinking
    return known
