"""Streamed answers of the OpenAI family, completions and chat, to chunks.

Never a whole body's parsing, except where a vendor answers a streamed request with one.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import orjson

from providers.completion import Chunk, FinishReason, StreamEvent, ToolCallDelta, Usage
from providers.dialect import UpstreamRequest
from providers.dialects.openai_answer import decode_object
from providers.dialects.openai_errors import failure_in_body
from providers.dialects.openai_read import (
    finish_reason,
    index_of,
    json_object,
    logprobs_of,
    malformed,
    matched_stop,
    reasoning_of,
    text_of,
    usage_of,
)
from providers.failure import Failure, FailureKind, UpstreamError
from providers.guided import unwrap_choice
from providers.sse import EventTooLarge, SSEParser
from providers.unified import JsonObject, JsonValue

MAX_BODY = 32 * 1024 * 1024
"""Bytes of a body that is JSON although a stream was asked for."""


@dataclass(slots=True)
class _ChoiceState:
    """What is known of one choice: whether it has finished, its tool calls by the vendor's index, held text."""

    finished: bool = False
    calls: dict[int, int] = field(default_factory=dict)
    held: list[str] = field(default_factory=list)


class OpenAIStream:
    """See providers.dialect.StreamDecoder.

    The stream has ended well at `[DONE]`, or at the end of the body when every choice has given its finish reason: the
    terminator is left out by Perplexity, TGI and others.
    """

    __slots__ = ("_body", "_choices", "_done", "_sent", "_sse", "_started")

    def __init__(self, sent: UpstreamRequest) -> None:
        self._sent = sent
        self._sse = SSEParser()
        self._choices: dict[int, _ChoiceState] = {}
        self._body: bytearray | None = None
        self._started = False
        self._done = False

    @property
    def complete(self) -> bool:
        """See StreamDecoder."""
        return self._done

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        if not self._started:
            data = data.lstrip()
            if not data:
                return
            self._started = True
            if data[:1] in (b"{", b"["):
                self._body = bytearray()
        if self._body is not None:
            self._body += data
            if len(self._body) > MAX_BODY:
                raise malformed("is too large")
            return
        try:
            for _, frame in self._sse.feed(data):
                if self._done:
                    return
                yield from self._frame(frame)
        except EventTooLarge:
            raise malformed("has an event that is too large") from None

    def finish(self) -> Iterator[StreamEvent]:
        """See StreamDecoder."""
        if self._body is not None:
            yield from self._whole(bytes(self._body))
            return
        for _, frame in self._sse.finish():
            if not self._done:
                yield from self._last_frame(frame)
        if not self._done and not self._all_finished():
            raise _cut()
        self._done = True

    def _all_finished(self) -> bool:
        return bool(self._choices) and all(state.finished for state in self._choices.values())

    def _last_frame(self, frame: bytes) -> Iterator[StreamEvent]:
        """A frame whose blank line never came: whole when it parses, else where the body was cut."""
        if frame != b"[DONE]":
            try:
                orjson.loads(frame)
            except orjson.JSONDecodeError:
                raise _cut() from None
        yield from self._frame(frame)

    def _frame(self, frame: bytes) -> Iterator[StreamEvent]:
        if frame.startswith(b"[DONE]"):
            if not self._all_finished():
                raise _cut()
            self._done = True
            return
        try:
            body = orjson.loads(frame)
        except orjson.JSONDecodeError:
            raise malformed("has an event that is not valid JSON") from None
        if not isinstance(body, dict):
            raise malformed("has an event that is not a JSON object")
        if body.get("error"):
            raise UpstreamError(failure_in_body(self._sent.target.profile, body))
        choices = body.get("choices")
        if choices:
            fingerprint = body.get("system_fingerprint")
            for raw in choices:
                chunk = self._chunk(raw, fingerprint if isinstance(fingerprint, str) else None)
                if chunk is not None:
                    yield chunk
        if "usage" in body or "x_groq" in body:
            usage = usage_of(body)
            if usage is not None:
                yield usage

    def _chunk(self, raw: JsonObject, fingerprint: str | None) -> Chunk | None:
        """The gain of one choice, None for a frame that carries none (a role, a filter's note, what follows the end)."""
        index = index_of(raw)
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _ChoiceState()
        if state.finished:
            return None
        delta = raw.get("delta")
        holder: JsonObject = delta if isinstance(delta, dict) else {}
        text = text_of(holder.get("content") if "delta" in raw else raw.get("text"))
        calls = self._calls(state, holder.get("tool_calls"))
        reason, native = finish_reason(raw.get("finish_reason"), bool(state.calls))
        refusal = holder.get("refusal")
        reasoning = reasoning_of(holder) if holder else None
        logprobs = logprobs_of(raw["logprobs"]) if raw.get("logprobs") else None
        if not (text or calls or reason or refusal or reasoning or logprobs):
            return None
        if self._sent.unwrap_choice:
            text = self._held(state, text, reason)
            if not (text or reason):
                return None
        if isinstance(refusal, str):
            text = text or refusal
        state.finished = reason is not None
        return Chunk(
            index=index,
            text=text,
            finish_reason=reason,
            native_finish_reason=native,
            logprobs=logprobs,
            refusal=refusal if isinstance(refusal, str) else None,
            reasoning=reasoning,
            tool_calls=calls,
            matched_stop=matched_stop(raw) if reason else None,
            system_fingerprint=fingerprint,
        )

    def _held(self, state: _ChoiceState, text: str, reason: FinishReason | None) -> str:
        """A choice inside an object: nothing until its end, then the bare choice."""
        state.held.append(text)
        if reason is None:
            return ""
        whole = "".join(state.held)
        if reason != "stop":
            return whole
        try:
            return unwrap_choice(whole)
        except ValueError:
            raise malformed("does not hold the choice that was asked for") from None

    def _calls(self, state: _ChoiceState, raw: JsonValue) -> tuple[ToolCallDelta, ...]:
        if not isinstance(raw, list):
            return ()
        deltas: list[ToolCallDelta] = []
        for entry in raw:
            function = entry.get("function") if isinstance(entry, dict) else None
            if isinstance(entry, dict) and isinstance(function, dict):
                deltas.append(self._call(state, entry, function))
        return tuple(deltas)

    def _call(self, state: _ChoiceState, entry: JsonObject, function: JsonObject) -> ToolCallDelta:
        """One piece. A vendor's indices may be missing or all 0: a fresh id then begins a new call."""
        given, identity = entry.get("index"), entry.get("id")
        name, arguments = function.get("name"), function.get("arguments")
        native = given if isinstance(given, int) else 0
        fresh = isinstance(identity, str) and bool(identity) and isinstance(name, str) and bool(name)
        if native not in state.calls or (fresh and arguments and state.calls and native == 0):
            state.calls[native] = len(set(state.calls.values())) if native not in state.calls else self._next(state)
        names = self._sent.tool_names
        return ToolCallDelta(
            index=state.calls[native],
            id=identity if isinstance(identity, str) and identity else None,
            name=names.get(name, name) if isinstance(name, str) and name else None,
            arguments=arguments
            if isinstance(arguments, str)
            else ""
            if arguments is None
            else orjson.dumps(arguments).decode(),
        )

    def _next(self, state: _ChoiceState) -> int:
        return max(state.calls.values()) + 1

    def _whole(self, data: bytes) -> Iterator[StreamEvent]:
        """The vendor answered with a whole body: one chunk a choice."""
        completion = decode_object(self._sent, json_object(data))
        for choice in completion.choices:
            yield Chunk(
                index=choice.index,
                text=choice.text,
                finish_reason=choice.finish_reason,
                native_finish_reason=choice.native_finish_reason,
                logprobs=choice.logprobs,
                refusal=choice.refusal,
                reasoning=choice.reasoning,
                tool_calls=tuple(
                    ToolCallDelta(position, call.id, call.name, call.arguments)
                    for position, call in enumerate(choice.tool_calls)
                ),
                matched_stop=choice.matched_stop,
                system_fingerprint=completion.system_fingerprint,
            )
        if isinstance(completion.usage, Usage):
            yield completion.usage
        self._done = True


def _cut() -> UpstreamError:
    return UpstreamError(Failure(FailureKind.TRUNCATED, "The upstream's stream ended before its answer did."))
