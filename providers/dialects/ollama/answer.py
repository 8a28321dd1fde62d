"""Decodes the responses of Ollama's own endpoints, streamed in lines or not, into the common completion shape.

Sources: Ollama `api/types.go` (`GenerateResponse`, `ChatResponse`, `Metrics`, `Logprob`), `docs/api.md`; November 2026.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import orjson

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    Extras,
    FinishReason,
    StreamEvent,
    ToolCall,
    ToolCallDelta,
    Usage,
    count_of,
    reported_usage,
)
from providers.dialect import UpstreamRequest
from providers.dialects.shared.custom_tools import complete_call
from providers.dialects.shared.decode_stream import NOTHING, event_object
from providers.dialects.shared.errors import failure_in_body, is_error
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.dialects.shared.read_json import arguments_text, call_id, json_object, malformed, unwrap_answer
from providers.dialects.shared.read_logprobs import logprobs_of
from providers.failure import UpstreamError
from providers.json_types import JsonObject

_PLAIN: Mapping[str, FinishReason] = {"stop": "stop", "length": "length"}


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
    answer = json_object(body)
    check_error(sent, answer)
    if answer.get("done") is not True:
        raise malformed("is incomplete: its 'done' is not true")
    message = _message(answer)
    calls = _calls(sent, message, answer, 0)
    finish, native = _finish(answer, bool(calls))
    text = _text(message)
    logprobs = logprobs_of({"content": answer.get("logprobs")}, "")
    if text and logprobs is None and wants_logprobs(sent):
        raise _missing_logprobs()
    choice = Choice(
        index=0,
        text=unwrap_answer(text) if sent.unwrap_choice and finish == "stop" else text,
        finish_reason=finish,
        native_finish_reason=native,
        logprobs=logprobs,
        reasoning=_reasoning(message),
        tool_calls=calls,
        extras=_extras(answer, message),
    )
    return Completion((choice,), _usage(answer), extra=_vendor_fields(answer) or None)


class OllamaReader:
    """The `Reader` of Ollama's stream, each event of which is one line of JSON."""

    __slots__ = ("_calls", "_held", "_plain", "_scored", "_sent", "complete")

    def __init__(self, sent: UpstreamRequest) -> None:
        self.complete = False
        self._sent = sent
        self._calls = 0
        self._held: list[str] = []
        self._scored = wants_logprobs(sent)
        self._plain = not (self._scored or sent.unwrap_choice)

    def read(self, name: str, payload: bytes) -> Iterable[StreamEvent]:

        line = event_object(payload)
        if self._plain and (text := _text_of_plain_line(line)):
            return (Chunk(text=text),)
        check_error(self._sent, line)
        message = _message(line)
        text, done = _text(message), line.get("done") is True
        calls = _calls(self._sent, message, line, self._calls)
        logprobs = logprobs_of({"content": line.get("logprobs")}, "")
        if text and self._scored and logprobs is None:
            raise _missing_logprobs()
        deltas = [
            ToolCallDelta(self._calls + position, call.id, call.name, call.arguments, call.kind)
            for position, call in enumerate(calls)
        ]
        self._calls += len(calls)
        if self._sent.unwrap_choice:
            self._held.append(text)
            text = ""
        finish, native = _finish(line, self._calls > 0) if done else (None, None)
        if done and self._sent.unwrap_choice:
            text = "".join(self._held)
            text = unwrap_answer(text) if finish == "stop" else text
        reasoning_text = _reasoning(message)
        extras = _extras(line, message)
        if not (text or done or reasoning_text or deltas or logprobs or extras):
            return NOTHING
        if done and (own := _vendor_fields(line)):
            extras = replace(extras or Extras(), answer=own)
        self.complete = done
        chunk = Chunk(
            text=text,
            finish_reason=finish,
            native_finish_reason=native,
            logprobs=logprobs,
            reasoning=reasoning_text,
            tool_calls=tuple(deltas),
            extras=extras,
        )
        usage = _usage(line) if done else None
        return (chunk,) if usage is None else (chunk, usage)


_TEXT_LINE_FIELDS = frozenset({"model", "created_at", "message", "response", "done"})
_TEXT_MESSAGE_FIELDS = frozenset({"role", "content"})


def _text_of_plain_line(line: JsonObject) -> str:
    """Return the text of a line that holds nothing but text, as nearly all lines do; an empty text for other lines."""
    if not _TEXT_LINE_FIELDS.issuperset(line) or line.get("done") is True:
        return ""
    message = line.get("message")
    if type(message) is not dict:
        text = line.get("response")
    else:
        text = message.get("content") if _TEXT_MESSAGE_FIELDS.issuperset(message) else None
    return text if isinstance(text, str) else ""


def check_error(sent: UpstreamRequest, line: JsonObject) -> None:
    """Raise UpstreamError if the line is an error. Errors within a stream come with status 200."""
    if is_error(line):
        raise UpstreamError(failure_in_body(sent.target.profile, line))


def wants_logprobs(sent: UpstreamRequest) -> bool:
    """Return whether the call requests log probabilities. Servers before late 2025 silently ignore such a request."""
    if b'"logprobs":true' not in sent.body:
        return False
    body = orjson.loads(sent.body)
    return isinstance(body, dict) and body.get("logprobs") is True


def _missing_logprobs() -> UpstreamError:
    return malformed("lacks the requested log probabilities; the server may be too old to return them")


def _message(line: JsonObject) -> JsonObject:
    """Return the object with the text and the tool calls: the message of a chat, otherwise the line itself."""
    message = line.get("message")
    return message if isinstance(message, dict) else line


def _text(message: JsonObject) -> str:
    text = message.get("content", message.get("response"))
    if text and not isinstance(text, str):
        raise malformed("has a text that is not a string")
    return str(text or "")


def _reasoning(message: JsonObject) -> str | None:
    reasoning_text = message.get("thinking")
    return reasoning_text if isinstance(reasoning_text, str) and reasoning_text else None


def _finish(line: JsonObject, called: bool) -> tuple[str, str | None]:
    """Return the common finish reason, and the engine's own reason if that is more specific.

    Older builds give no reason, which is read as `stop`. Raises UpstreamError if the reason means failure.
    """
    reason = line.get("done_reason") or "stop"
    if not isinstance(reason, str):
        raise malformed("has a finish reason that is not a word")
    finish, native = read_finish_reason(reason, _PLAIN)
    return "tool_calls" if called and finish == "stop" and native is None else finish, native


def _calls(sent: UpstreamRequest, message: JsonObject, line: JsonObject, first: int) -> tuple[ToolCall, ...]:
    """Return the tool calls of a message. Calls are never split across lines. Only newer builds give them ids."""
    raw = message.get("tool_calls")
    calls: list[ToolCall] = []
    for number, call in enumerate(raw if isinstance(raw, list) else [], first):
        function = call.get("function") if isinstance(call, dict) else None
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(call, dict) or not isinstance(function, dict) or not isinstance(name, str):
            raise malformed("has a tool call without a function's name")
        identity = call.get("id")
        own = identity if isinstance(identity, str) and identity else call_id(line.get("created_at"), 0, number)
        made = ToolCall(own, sent.tool_names.get(name, name), arguments_text(function.get("arguments")))
        calls.append(complete_call(made, sent.custom_tools))
    return tuple(calls)


_KNOWN_IN_LINE = frozenset(
    {"model", "created_at", "message", "response", "thinking", "tool_calls", "done", "done_reason", "logprobs"}
    | {"prompt_eval_count", "eval_count", "image", "images", "error"}
)
_KNOWN_IN_MESSAGE = frozenset({"role", "content", "thinking", "tool_calls", "images", "tool_name", "tool_call_id"})
_IMAGE_SIGNATURES = (("iVBOR", "png"), ("/9j/", "jpeg"), ("UklGR", "webp"), ("R0lGOD", "gif"))
"""The first characters of images in base64, by their format."""


def _vendor_fields(line: JsonObject) -> JsonObject:
    """Return the fields of the last line that have no common form, such as its durations in nanoseconds."""
    return {name: value for name, value in line.items() if name not in _KNOWN_IN_LINE and value is not None}


def _extras(line: JsonObject, message: JsonObject) -> Extras | None:
    """Return the images of a line, and the fields of its message that have no common form."""
    pictures = message.get("images")
    data = [each for each in (*(pictures if isinstance(pictures, list) else ()), line.get("image")) if each]
    own: JsonObject = {}
    if message is not line:
        own = {name: value for name, value in message.items() if name not in _KNOWN_IN_MESSAGE and value is not None}
    if not data and not own:
        return None
    return Extras(images=tuple([_picture(each) for each in data if isinstance(each, str)]), choice=own or None)


def _picture(data: str) -> JsonObject:
    form = next((form for begin, form in _IMAGE_SIGNATURES if data.startswith(begin)), "png")
    return {"type": "image_url", "image_url": {"url": f"data:image/{form};base64,{data}"}}


def _usage(line: JsonObject) -> Usage | None:
    """Return the token counts of the last line, which leaves out a count of 0. `None` if the prompt's count is absent:
    older builds do not count a cached prompt."""
    return reported_usage(count_of(line.get("prompt_eval_count")), count_of(line.get("eval_count", 0)))
