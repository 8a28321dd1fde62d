"""The default hook changes nothing, and several hooks change a request one after the other."""

from collections.abc import Awaitable
from dataclasses import replace
from typing import cast

import pytest
from aiohttp import web

from providers.completion import Completion
from providers.unified_request import Operation, Task, TextPrompt, UnifiedRequest
from proxy.dispatch.text_answers import TextAnswers
from proxy.hooks.request_hook import Q, RequestHook, with_admitted, with_hooks, with_written
from proxy.request_record import RequestRecord
from proxy.surfaces.surface import Renderer
from proxy.upstream.vendor_stream import Stream
from tests.providers.dialects.openai.kit import target

pytestmark = pytest.mark.smoke

RECORD = RequestRecord("r1", 0.0, "openai", "/v1/completions")
REQUEST = UnifiedRequest(Operation.COMPLETIONS, "m", TextPrompt(("hi",)), {})


class Renamed(RequestHook):
    """Replaces the model."""

    def asked(self, record: RequestRecord, request: Q, *, heavy: bool) -> Awaitable[Q] | None:
        async def renamed() -> Q:
            return cast(Q, replace(cast(UnifiedRequest, request), model=f"{request.model}!"))

        return renamed()


async def test_a_hook_that_overrides_nothing_changes_nothing() -> None:
    hook, before = RequestHook(), repr(RECORD)
    hook.begun(cast(web.BaseRequest, None), RECORD)
    hook.received(RECORD, b"{}")
    hook.form_read(["file"])
    assert hook.context() is None
    hook.parsed(RECORD, REQUEST)
    assert hook.asked(RECORD, REQUEST, heavy=False) is None
    assert hook.admitted(RECORD, REQUEST, heavy=False) is None
    assert hook.body_check(Task.TRANSCRIPTIONS) is None
    answers = cast(TextAnswers, object())
    assert hook.answers(answers) is answers
    assert hook.answered(RECORD, Completion((), None), target("openai"), long=False) is None
    stream, renderer = cast(Stream, object()), cast(Renderer, object())
    assert hook.streamed(RECORD, stream, target("openai")) is stream
    assert hook.rendered(RECORD, renderer) is renderer
    hook.ended(RECORD, "stop")
    assert hook.written(RECORD, renderer, b"{}", heavy=False) is None
    hook.shown(RECORD, b"{}")
    assert repr(RECORD) == before


async def test_each_hook_gets_the_request_as_the_one_before_left_it() -> None:
    changed = await with_hooks(RECORD, REQUEST, (Renamed(), RequestHook(), Renamed()), heavy=False)
    assert changed.model == "m!!"
    assert await with_hooks(RECORD, REQUEST, (RequestHook(),), heavy=False) is REQUEST


class Finished(RequestHook):
    """Adds a mark to an admitted request and to its response."""

    def admitted(
        self, record: RequestRecord, request: UnifiedRequest, *, heavy: bool
    ) -> Awaitable[UnifiedRequest] | None:
        async def marked() -> UnifiedRequest:
            return replace(request, model=f"{request.model}?")

        return marked()

    def written(
        self, record: RequestRecord, renderer: Renderer, body: bytes, *, heavy: bool
    ) -> Awaitable[bytes] | None:
        async def marked() -> bytes:
            return body + b"?"

        return marked()


async def test_each_hook_gets_an_admitted_request_and_a_body_as_the_one_before_left_it() -> None:
    hooks, renderer = (Finished(), RequestHook(), Finished()), cast(Renderer, object())
    assert (await with_admitted(RECORD, REQUEST, hooks, heavy=False)).model == "m??"
    assert await with_written(RECORD, renderer, b"{}", hooks, heavy=False) == b"{}??"
