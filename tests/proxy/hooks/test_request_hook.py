"""The default hook changes nothing, and several hooks change a request one after the other."""

from collections.abc import Awaitable
from dataclasses import replace
from typing import cast

import pytest
from aiohttp import web

from providers.completion import Completion
from providers.unified_request import Operation, Task, TextPrompt, UnifiedRequest
from proxy.dispatch.text_answers import TextAnswers
from proxy.hooks.request_hook import Q, RequestHook, with_hooks
from proxy.request_record import RequestRecord
from proxy.surfaces.surface import Renderer
from proxy.upstream.vendor_stream import Stream

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
    hook.parsed(RECORD, REQUEST)
    assert hook.asked(RECORD, REQUEST, heavy=False) is None
    assert hook.body_check(Task.TRANSCRIPTIONS) is None
    answers = cast(TextAnswers, object())
    assert hook.answers(answers) is answers
    hook.answered(RECORD, Completion((), None))
    stream, renderer = cast(Stream, object()), cast(Renderer, object())
    assert hook.streamed(RECORD, stream) is stream
    assert hook.rendered(RECORD, renderer) is renderer
    hook.ended(RECORD, "stop")
    hook.shown(RECORD, b"{}")
    assert repr(RECORD) == before


async def test_each_hook_gets_the_request_as_the_one_before_left_it() -> None:
    changed = await with_hooks(RECORD, REQUEST, (Renamed(), RequestHook(), Renamed()), heavy=False)
    assert changed.model == "m!!"
    assert await with_hooks(RECORD, REQUEST, (RequestHook(),), heavy=False) is REQUEST
