"""Renders text completions: OpenAI's `text_completion` object, non-streaming and streamed.

Source: OpenAI OpenAPI 2.3.0 `CreateCompletionResponse`. `logprobs` is always present, null if it was not requested. All
current SDKs accept additional fields such as `refusal` and `tool_calls`. Reasoning is left out; the usage counts its
tokens.
"""

from providers.completion import Choice, Chunk, Completion, TextRun
from providers.unified_request import UnifiedRequest
from proxy.surfaces.response.choices import AnswerRenderer, PendingCalls, finish_fields, tool_call_json
from proxy.surfaces.response.extras import is_late, response_fields, text_fields
from proxy.surfaces.response.logprobs import TextLogprobs
from proxy.surfaces.response.write_sse import AnswerStyle, RunRenderer, ascii_json
from proxy.surfaces.surface import AnswerFacts

OBJECT = "text_completion"

_TEXT = b'{"index":%d,"text":%b,"logprobs":null,"finish_reason":null}'
"""A choice with text alone. It is formatted by hand, because nearly every token is sent in this form."""

_BEFORE_TEXT, _, _AFTER_TEXT = _TEXT.replace(b"%b", b'"%b"').partition(b"%b")


class TextRenderer(AnswerRenderer, RunRenderer):
    """Renders one text completion."""

    __slots__ = ("_calls", "_ended", "_logprobs", "_texts")

    def __init__(self, request: UnifiedRequest, facts: AnswerFacts, style: AnswerStyle) -> None:
        super().__init__(request, facts, style, "cmpl-", OBJECT)
        self._logprobs = TextLogprobs(request)
        self._calls: dict[int, PendingCalls] = {}
        self._ended: set[int] = set()
        # The indexes of choices that have had a text other than a refusal.
        self._texts: set[int] = set()

    def completion(self, completion: Completion) -> bytes:
        return self._completion_body(OBJECT, completion, [self._choice(choice) for choice in completion.choices])

    def _choice(self, choice: Choice) -> dict[str, object]:
        body: dict[str, object] = {
            "index": choice.index,
            "text": choice.text or choice.refusal or "",
            "logprobs": self._logprobs.render(choice.index, choice.logprobs),
            **finish_fields(choice, self._style.tool_finish),
        }
        if choice.refusal is not None:
            body["refusal"] = choice.refusal
        if choice.tool_calls:
            body["tool_calls"] = [tool_call_json(call) for call in choice.tool_calls]
        return body if choice.extras is None else {**text_fields(choice.extras), **body}

    def chunk(self, chunk: Chunk) -> bytes:
        """Return the events of one chunk; empty if the chunk changes no field of a text completion."""
        if chunk.system_fingerprint is not None:
            self._set_fingerprint(chunk.system_fingerprint)
        if (
            chunk.finish_reason is None
            and chunk.logprobs is None
            and chunk.refusal is None
            and chunk.extras is None
            and not chunk.tool_calls
        ):
            if not chunk.text:
                return b""
            self._texts.add(chunk.index)
            return self._writer.event(_TEXT % (chunk.index, ascii_json(chunk.text)))
        return self._full(chunk)

    def around(self, run: TextRun) -> tuple[bytes, bytes] | None:
        if run.part != "text":
            return None
        if run.system_fingerprint is not None and run.system_fingerprint != self._fingerprint:
            self._set_fingerprint(run.system_fingerprint)
        self._texts.add(run.index)
        writer = self._writer
        return writer.prefix + _BEFORE_TEXT % run.index, _AFTER_TEXT + writer.suffix

    def _full(self, chunk: Chunk) -> bytes:
        index = chunk.index
        if chunk.service_tier is not None:
            self._writer.set_service_tier(chunk.service_tier)
        if chunk.tool_calls:
            self._calls.setdefault(index, PendingCalls()).add(chunk.tool_calls)
        # A refusal becomes the text of a choice that has no other text.
        text = chunk.text or ("" if index in self._texts else chunk.refusal or "")
        if chunk.text and chunk.text != chunk.refusal:
            self._texts.add(index)
        logprobs = self._logprobs.render(index, chunk.logprobs)
        ended = chunk.finish_reason is not None
        choice_extras, response_extras = (
            text_fields(chunk.extras),
            response_fields(chunk.extras.answer if chunk.extras else None),
        )
        if index in self._ended and is_late(chunk):
            self._writer.add_late(response_extras)
            return b""
        if not (text or logprobs or ended or choice_extras or response_extras):
            return b""
        body: dict[str, object] = {
            **choice_extras,
            "index": index,
            "text": text,
            "logprobs": logprobs,
            **finish_fields(chunk, self._style.tool_finish),
        }
        if chunk.refusal is not None:
            body["refusal"] = chunk.refusal
        if not ended:
            return (
                self._writer.event_with(ascii_json(body), response_extras)
                if response_extras
                else self._writer.event(ascii_json(body))
            )
        self._ended.add(index)
        if index in self._calls:
            body["tool_calls"] = [tool_call_json(call) for call in self._calls.pop(index).whole()]
        extra_event = b""
        if response_extras:
            # Text and calls are in only one of the two events, because a client joins the texts and calls of all
            # events.
            extra_event = self._writer.event_with(
                b'{"index":%d,"text":"","logprobs":null,"finish_reason":null}' % index, response_extras
            )
        return extra_event + self._writer.finish(ascii_json(body))
