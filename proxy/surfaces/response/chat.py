"""Renders chat completions: OpenAI's `chat.completion` object and its chunks.

Source: OpenAI OpenAPI 2.3.0 `CreateChatCompletionResponse`, `CreateChatCompletionStreamResponse`. Two names of the
field for reasoning are common, `reasoning_content` (DeepSeek, SGLang, llama.cpp, Fireworks) and `reasoning` (vLLM,
OpenRouter, Groq). openai-agents 0.24.0 shows the reasoning twice if it gets both. All clients that show reasoning read
`reasoning_content`: openai-agents, @ai-sdk/openai-compatible, pydantic-ai-slim 2.68.0 and litellm 1.109.1, November
2026.
"""

from collections.abc import Iterable, Mapping
from typing import ClassVar

from providers.completion import Choice, Chunk, Completion, TextRun, Usage
from providers.framing.text_frames import MARK
from providers.unified_request import UnifiedRequest
from proxy.surfaces.response.choices import AnswerRenderer, delta_json, finish_fields, tool_call_json
from proxy.surfaces.response.extras import choice_fields, delta_fields, is_late, message_fields, response_fields
from proxy.surfaces.response.logprobs import chat_logprobs
from proxy.surfaces.response.text_signature import extra_content
from proxy.surfaces.response.write_sse import AnswerStyle, RunRenderer, ascii_json, utf8_json
from proxy.surfaces.surface import AnswerFacts

COMPLETION_OBJECT, CHUNK_OBJECT = "chat.completion", "chat.completion.chunk"

_TEXT = b'{"index":%d,"delta":{"content":%b},"logprobs":null,"finish_reason":null}'
"""A choice with text alone. It is formatted by hand, because nearly every token is sent in this form."""

_BEFORE_TEXT, _, _AFTER_TEXT = _TEXT.replace(b"%b", b'"%b"').partition(b"%b")


_MARK = MARK.encode()
_USUAL_ENDS = ("stop", "length")


class ChatRenderer(AnswerRenderer, RunRenderer):
    """Renders one chat completion. `no_delta` are the fields of a delta without content."""

    __slots__ = ("_around", "_choices", "_entry_counts", "_reasoning", "_request", "_tool_finish")

    no_delta: ClassVar[Mapping[str, object]] = {}

    def __init__(self, request: UnifiedRequest, facts: AnswerFacts, style: AnswerStyle) -> None:
        super().__init__(request, facts, style, "chatcmpl-", CHUNK_OBJECT)
        self._request = request
        self._reasoning = facts.reasoning
        self._tool_finish = "function_call" if request.legacy_calls else "tool_calls"
        # The number of a choice, the suffix of events for which this tuple is valid, and the bytes before and after the
        # text of the choice in a run.
        self._around = (-1, b"", (b"", b""))
        # For each choice that has begun: whether it has ended.
        self._choices: dict[int, bool] = {}
        # For each choice: the number of entries that each list in its deltas has had.
        self._entry_counts: dict[int, dict[str, int]] = {}

    def completion(self, completion: Completion) -> bytes:
        choices, usage = completion.choices, completion.usage
        if len(choices) == 1 and usage is not None and completion.extra is None:
            choice = choices[0]
            details = usage.prompt_details or usage.completion_details or usage.estimated or usage.extra
            if not details and _is_text(choice):
                return self._single_text_body(choice, usage, completion)
        return self._completion_body(COMPLETION_OBJECT, completion, [self._choice(choice) for choice in choices])

    def _single_text_body(self, choice: Choice, usage: Usage, completion: Completion) -> bytes:
        """Return the body of a response with a single text, as most responses are. The result is the same as from
        `_completion_body`, but saves six calls, which are half of the time of rendering."""
        message = {"role": "assistant", "content": choice.text, "refusal": None}
        body: dict[str, object] = {
            "id": self._id,
            "object": COMPLETION_OBJECT,
            "created": self._created,
            "model": self._model,
        }
        if completion.system_fingerprint is not None:
            body["system_fingerprint"] = completion.system_fingerprint
        body["choices"] = (
            {"index": choice.index, "message": message, "logprobs": None, "finish_reason": choice.finish_reason},
        )
        prompt, generated = usage.prompt_tokens, usage.completion_tokens
        body["usage"] = {
            "prompt_tokens": prompt,
            "completion_tokens": generated,
            "total_tokens": prompt + generated,
        }
        if completion.service_tier is not None:
            body["service_tier"] = completion.service_tier
        return utf8_json(body)

    def _choice(self, choice: Choice) -> dict[str, object]:
        message = _message(choice, self._reasoning)
        if self._request.legacy_calls and choice.tool_calls:
            message["function_call"] = tool_call_json(choice.tool_calls[0])["function"]
        body: dict[str, object] = {
            "index": choice.index,
            "message": message,
            "logprobs": chat_logprobs(self._request, choice.logprobs),
            **finish_fields(choice, self._tool_finish),
        }
        return body if choice.extras is None else {**choice_fields(choice.extras), **body}

    def chunk(self, chunk: Chunk) -> bytes:
        """Return the events of one chunk. If the choice ended, the last event has an empty delta."""
        if chunk.system_fingerprint is not None:
            self._set_fingerprint(chunk.system_fingerprint)
        if _only_text(chunk) and chunk.index in self._choices:
            if not chunk.text:
                return b""
            return self._writer.event(_TEXT % (chunk.index, ascii_json(chunk.text)))
        if chunk.service_tier is not None:
            self._writer.set_service_tier(chunk.service_tier)
        if self._choices.get(chunk.index) and is_late(chunk):
            self._writer.add_late(response_fields(chunk.extras.answer if chunk.extras else None))
            return b""
        events = self._render_delta(chunk)
        if chunk.finish_reason is None:
            return events
        self._choices[chunk.index] = True
        body: dict[str, object] = {
            "index": chunk.index,
            "delta": self.no_delta,
            "logprobs": None,
            **finish_fields(chunk, self._tool_finish),
        }
        if chunk.extras is not None:
            body = {**choice_fields(chunk.extras), **body}
        return events + self._writer.finish(ascii_json(body))

    def around(self, run: TextRun) -> tuple[bytes, ...] | None:
        if run.index not in self._choices:
            return None
        if run.system_fingerprint is not None and run.system_fingerprint != self._fingerprint:
            self._set_fingerprint(run.system_fingerprint)
        if run.part != "text":
            return self._around_part(run)
        index, suffix, around = self._around
        writer = self._writer
        if index != run.index or suffix is not writer.suffix:
            around = writer.prefix + _BEFORE_TEXT % run.index, _AFTER_TEXT + writer.suffix
            self._around = run.index, writer.suffix, around
        return around

    def _around_part(self, run: TextRun) -> tuple[bytes, ...] | None:
        """Return the bytes around chunks of reasoning, which may be in two fields, or around chunks of a call's
        arguments."""
        writer = self._writer
        if _MARK in writer.prefix or _MARK in writer.suffix:
            return None
        return tuple(self._render_delta(run.chunk_of(MARK)).split(_MARK))

    def _render_delta(self, chunk: Chunk) -> bytes:
        delta = _delta(chunk, self._reasoning)
        if chunk.extras is not None:
            delta |= delta_fields(chunk.extras, self._entry_counts.setdefault(chunk.index, {}))
        if self._request.legacy_calls and chunk.tool_calls and chunk.tool_calls[0].index == 0:
            delta["function_call"] = delta_json(chunk.tool_calls[0])["function"]
        logprobs = chat_logprobs(self._request, chunk.logprobs)
        if chunk.index not in self._choices:
            if chunk.finish_reason is not None and not delta:
                delta = {"content": ""}
            if delta or logprobs:
                self._choices[chunk.index] = False
                delta = {"role": "assistant", **delta}
        extras = chunk.extras
        response_extras = None if extras is None else response_fields(extras.answer)
        body: dict[str, object] = {
            "index": chunk.index,
            "delta": {**self.no_delta, **delta},
            "logprobs": logprobs,
            "finish_reason": None,
        }
        if extras is not None and chunk.finish_reason is None:
            choice_extras = choice_fields(extras)
            body = {**choice_extras, **body}
            delta = delta or {**choice_extras}
        if not (delta or logprobs or response_extras):
            return b""
        return (
            self._writer.event_with(ascii_json(body), response_extras)
            if response_extras
            else self._writer.event(ascii_json(body))
        )


def _is_text(choice: Choice) -> bool:
    """Return whether a choice ended normally and has only a text, as most choices do."""
    return (
        choice.finish_reason in _USUAL_ENDS
        and choice.extras is None
        and choice.logprobs is None
        and choice.reasoning is None
        and choice.refusal is None
        and not choice.tool_calls
        and choice.signature is None
        and choice.matched_stop is None
        and choice.native_finish_reason is None
    )


def _only_text(chunk: Chunk) -> bool:
    return (
        chunk.finish_reason is None
        and chunk.logprobs is None
        and chunk.reasoning is None
        and chunk.refusal is None
        and not chunk.tool_calls
        and chunk.signature is None
        and chunk.extras is None
    )


def _delta(chunk: Chunk, reasoning: Iterable[str]) -> dict[str, object]:
    delta: dict[str, object] = {}
    if chunk.text and chunk.text != chunk.refusal:
        delta["content"] = chunk.text
    if chunk.reasoning:
        delta |= dict.fromkeys(reasoning, chunk.reasoning)
    if chunk.refusal is not None:
        delta["refusal"] = chunk.refusal
    if chunk.tool_calls:
        delta["tool_calls"] = [delta_json(call) for call in chunk.tool_calls]
    if chunk.signature is not None:
        delta["extra_content"] = extra_content(chunk.signature)
    return delta


def _message(choice: Choice, reasoning: Iterable[str]) -> dict[str, object]:
    """Return the message. Its content is null if the message has a refusal or a tool call instead of a text."""
    instead = choice.refusal is not None or choice.tool_calls
    text = "" if choice.text == choice.refusal else choice.text
    message: dict[str, object] = {
        "role": "assistant",
        "content": text or (None if instead else ""),
        "refusal": choice.refusal,
    }
    if choice.reasoning is not None:
        message |= dict.fromkeys(reasoning, choice.reasoning)
    if choice.tool_calls:
        message["tool_calls"] = [tool_call_json(call) for call in choice.tool_calls]
    if choice.signature is not None:
        message["extra_content"] = extra_content(choice.signature)
    if choice.extras is not None:
        message |= message_fields(choice.extras)
    return message
