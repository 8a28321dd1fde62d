"""A caller before a scripted vendor, in virtual time: requests in, non-streaming responses or a client's frames out."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar, cast

import orjson
import pytest

from providers.completion import Completion
from providers.dialect import UpstreamRequest
from providers.emulation.plan_calls import plan_calls
from providers.failure import Failure, UpstreamError
from providers.json_types import JsonObject
from providers.target import Target
from providers.unified_request import Operation, Params, Prompt, TextPrompt, UnifiedRequest
from proxy.deadlines import Deadlines
from proxy.relay.relay_to_client import Relay
from proxy.request_record import Attempt, RequestRecord
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.surface import AnswerFacts
from proxy.upstream.call_vendor import UpstreamCaller
from proxy.upstream.send_call import CallSender
from proxy.upstream.transport import Repeats, UpstreamResponse
from tests.proxy.kit.in_process_checks import off_loop
from tests.proxy.kit.mark_streams import Body, Step
from tests.proxy.kit.tables import snapshot
from tests.proxy.kit.virtual_time import run

_T = TypeVar("_T")


def target(profile: str, window: int | None = None) -> Target:
    """Return a deployment of a packaged row."""
    table = snapshot(
        f"vendors: {{v: {{profile: {profile}, api_key: k, base_url: 'http://127.0.0.1:1/v1', allow_private: true}}}}\n"
        "models: {v/m: {}}"
    )
    return replace(table.models["v/m"].targets[0], context_window=window)


LLAMACPP = target("llamacpp")
"""Returns one choice for one prompt, and counts tokens on request."""


def ask(
    prompt: str | Prompt = "hi", params: Mapping[str, object] | None = None, *, stream: bool = False
) -> UnifiedRequest:
    """Return a text completion's request."""
    prompt = TextPrompt((prompt,)) if isinstance(prompt, str) else prompt
    return UnifiedRequest(Operation.COMPLETIONS, "v/m", prompt, cast(Params, dict(params or {})), stream)


def whole(value: object, *before: Step) -> Body:
    """Return a 200 with this JSON, after some steps."""
    return Body(*before, orjson.dumps(value), b"")


def refusal(status: int, message: str, *before: Step) -> Body:
    """Return an error in OpenAI's form."""
    return Body(*before, orjson.dumps({"error": {"message": message, "type": "x", "code": None}}), b"", status=status)


@dataclass(frozen=True, slots=True)
class Seen:
    """One call: its time, its path and its body."""

    time: float
    path: str
    body: JsonObject


@dataclass
class Vendor:
    """A transport with a response to each call by its body."""

    answer: Callable[[JsonObject], Body]
    """The response to calls that generate."""
    tokenizer: Callable[[str, JsonObject], Body] = lambda path, body: Body(b"", status=404)
    """The response at the engine's own endpoints, such as its token counter."""
    seen: list[Seen] = field(default_factory=list)
    given: list[Body] = field(default_factory=list)
    most: int = 0
    """The most calls that were in flight at once."""

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        body: JsonObject = orjson.loads(request.body or b"{}")
        path = request.url.removeprefix("http://127.0.0.1:1")
        self.seen.append(Seen(asyncio.get_running_loop().time(), path, body))
        generates = path.endswith("/completions")
        response = self.answer(body) if generates else self.tokenizer(path, body)
        self.given.append(response)
        self.most = max(self.most, len(self.under_way))
        return response

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""

    @property
    def under_way(self) -> list[Body]:
        """The responses that have not been closed or released."""
        return [body for body in self.given if not body.closed and not body.released]

    @property
    def generated(self) -> list[JsonObject]:
        """The bodies of the calls that generate."""
        return [seen.body for seen in self.seen if seen.path.endswith("/completions")]


@dataclass
class Exchange:
    """One request through a caller of its own."""

    vendor: Vendor
    target: Target = LLAMACPP
    total: float = 600.0
    answer: float | None = None
    record: RequestRecord = field(
        default_factory=lambda: RequestRecord("req-1", 0.0, "openai", "/", attempts=[Attempt("v/m", 0.0)])
    )
    frames: list[bytes] = field(default_factory=list)
    time: float = 0.0

    def whole(self, request: UnifiedRequest) -> Completion:
        return run(self._within(self._whole(request)))

    def streamed(self, request: UnifiedRequest) -> bytes:
        return run(self._within(self._streamed(request)))

    def fails(self, request: UnifiedRequest) -> Failure:
        """Return the upstream failure of a request."""
        with pytest.raises(UpstreamError) as caught:
            (self.streamed if request.stream else self.whole)(request)
        return caught.value.failure

    async def _within(self, work: Awaitable[_T]) -> _T:
        try:
            return await work
        finally:
            self.time = asyncio.get_running_loop().time()
            assert len(asyncio.all_tasks()) == 1
            assert self.vendor.under_way == []

    async def _whole(self, request: UnifiedRequest) -> Completion:
        prepared = plan_calls(request, self.target)
        with Deadlines(self.total) as clock:
            caller = UpstreamCaller(CallSender(self.vendor), off_loop())
            return await caller.whole(prepared, self.record, clock, self.answer)

    async def _streamed(self, request: UnifiedRequest) -> bytes:
        prepared = plan_calls(request, self.target)
        renderer = OPENAI.renderer(request, AnswerFacts("1", 1_795_000_000, "v/m"))
        with Deadlines(self.total) as clock:
            caller = UpstreamCaller(CallSender(self.vendor), off_loop())
            async with caller.streamed(prepared, self.record, clock) as stream:
                clock.commit(self.target.timeouts.idle, 600.0, 3600.0)
                relay = Relay(stream, renderer, self._write, clock, self.record, request)
                await relay.run()
                await stream.finish()
        self.frames.append(relay.held + renderer.end())
        return b"".join(self.frames)

    async def _write(self, data: bytes) -> None:
        self.frames.append(data)
        await asyncio.sleep(0)
