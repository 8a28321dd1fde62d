"""Gemini's answers, as one object or as a stream of objects that each hold what is new, to the common shape.

Sources: `google-genai` 3.4.0 types `GenerateContentResponse`, `Candidate`, `FinishReason`; "Thought signatures" page,
November 2026. The vendor leaves out members with their default value: an index of 0, an empty text, a count of 0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import orjson

from providers.completion import (
    Chunk,
    Completion,
    ContentLogprobs,
    FinishReason,
    StreamEvent,
    TokenLogprob,
    ToolCallDelta,
    Usage,
)
from providers.dialect import UpstreamRequest
from providers.dialects.gemini.partial_arguments import Pieces
from providers.dialects.platforms.google_errors import error_in, failure_of
from providers.dialects.shared.finish_reasons import read_finish_reason
from providers.dialects.shared.read_json import malformed, parse_answer
from providers.dialects.shared.thought_signatures import make_call_id, pack_call_id
from providers.emulation.collect_stream import Gatherer
from providers.emulation.logprobs import floor_logprob
from providers.failure import Failure, FailureKind, UpstreamError, vet
from providers.json_types import JsonObject, JsonValue

_PLAIN: Mapping[str, FinishReason] = {"STOP": "stop", "MAX_TOKENS": "length"}
_SHOWN: Mapping[str, FinishReason] = {
    "CONTINUATION": "length",
    **dict.fromkeys(
        (
            "SAFETY",
            "RECITATION",
            "LANGUAGE",
            "OTHER",
            "BLOCKLIST",
            "PROHIBITED_CONTENT",
            "SPII",
            "IMAGE_SAFETY",
            "IMAGE_PROHIBITED_CONTENT",
            "IMAGE_RECITATION",
            "IMAGE_OTHER",
            "MODEL_ARMOR",
            "ESCALATION",
            "PUP_LIMITED_DISABLED",
        ),
        "content_filter",
    ),
}
_BROKEN: Mapping[str, FailureKind] = {
    # The model wrote an invalid answer; a retry may give a valid one.
    "MALFORMED_FUNCTION_CALL": FailureKind.NONCONFORMING,
    "MALFORMED_RESPONSE": FailureKind.NONCONFORMING,
    "UNEXPECTED_TOOL_CALL": FailureKind.NONCONFORMING,
    "TOO_MANY_TOOL_CALLS": FailureKind.NONCONFORMING,
    "NO_IMAGE": FailureKind.NONCONFORMING,
    "MISSING_THOUGHT_SIGNATURE": FailureKind.INVALID_REQUEST,
}


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a whole 2xx body. Raises UpstreamError."""
    answer = GeminiAnswer(sent)
    events = [*answer.read(parse_answer(body, "is not JSON")), *answer.end()]
    gatherer = Gatherer(len({event.index for event in events if isinstance(event, Chunk)}))
    for event in events:
        gatherer.add(event)
    try:
        return gatherer.completion()
    except ValueError as problem:
        raise malformed(f"is not whole: {problem}") from None


@dataclass(slots=True)
class _Candidate:
    """One choice while it is read.

    `calls` counts its complete calls, `text_signature` is that of a text which no call carries yet, `open_call` an
    incomplete call.
    """

    has_text: bool = False
    calls: int = 0
    text_signature: str | None = None
    finish: str | None = None
    message: str | None = None
    open_call: "_OpenFunctionCall | None" = None


@dataclass(slots=True)
class _OpenFunctionCall:
    """An incomplete call, whose arguments come in pieces."""

    name: str
    call_id: JsonValue
    signature: str | None
    arguments: Pieces = field(default_factory=Pieces)


class GeminiAnswer:
    """Reads the objects of one answer, whole or streamed."""

    __slots__ = ("_blocked", "_candidates", "_id", "_names", "_usage")

    def __init__(self, sent: UpstreamRequest) -> None:
        self._names = sent.tool_names
        self._candidates: dict[int, _Candidate] = {}
        self._usage: JsonObject = {}
        self._blocked: JsonObject | None = None
        self._id = ""

    def read(self, value: JsonValue) -> Iterator[Chunk]:
        """Read the next object, or several in a list. Raises UpstreamError for an error, after the chunks before it."""
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, dict):
                yield from self._object(one)

    def _object(self, value: JsonObject) -> Iterator[Chunk]:
        self._keep_metadata(value)
        candidates = value.get("candidates")
        for candidate in candidates if isinstance(candidates, list) else ():
            if isinstance(candidate, dict):
                chunk = self._candidate(candidate)
                if chunk is not None:
                    yield chunk
                if "finishReason" in candidate:
                    self._keep_finish(candidate)

    def _keep_metadata(self, value: JsonObject) -> None:
        """Keep usage, id and prompt feedback of an object. Raises UpstreamError for an error."""
        if "error" in value and (error := error_in(value)) is not None:
            raise UpstreamError(failure_of(error))
        usage, answer_id = value.get("usageMetadata"), value.get("responseId")
        if isinstance(usage, dict):
            # Counts are cumulative.
            self._usage.update(usage)
        if isinstance(answer_id, str):
            self._id = answer_id
        feedback = value.get("promptFeedback")
        if isinstance(feedback, dict) and isinstance(feedback.get("blockReason"), str):
            self._blocked = feedback

    def end(self) -> Iterator[StreamEvent]:
        """Yield the finish of each choice, and the usage. Raises UpstreamError for a choice without a finish."""
        if not self._candidates and self._blocked is not None:
            self._candidates[0] = _blocked(self._blocked)
        if not self._candidates:
            raise malformed("has no candidate")
        unfinished = next((index for index, one in self._candidates.items() if one.finish is None), None)
        if unfinished is not None:
            raise malformed(f"has no finish reason for candidate {unfinished}")
        for index, candidate in self._candidates.items():
            yield self._last_chunk(index, candidate)
        usage = usage_of(self._usage)
        if usage is not None:
            yield usage

    @property
    def ended(self) -> bool:
        """Return whether every choice has a finish reason, or the prompt was blocked."""
        if not self._candidates:
            return self._blocked is not None
        return all(candidate.finish is not None for candidate in self._candidates.values())

    def _candidate(self, raw: JsonObject) -> Chunk | None:
        """Return what is new in a candidate, None for nothing."""
        index = _index_of(raw)
        candidate = self._candidates.get(index)
        if candidate is None:
            candidate = self._candidates[index] = _Candidate()
        content = raw.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        if "logprobsResult" not in raw and (text := _only_text(parts)):
            candidate.has_text = True
            return Chunk(index, text)
        return self._delta(index, candidate, parts if isinstance(parts, list) else [], raw.get("logprobsResult"))

    def _keep_finish(self, raw: JsonObject) -> None:
        """Keep the finish reason of a candidate. Raises UpstreamError for one that means failure."""
        finish, message = raw["finishReason"], raw.get("finishMessage")
        if isinstance(finish, str) and finish != "FINISH_REASON_UNSPECIFIED":
            candidate = self._candidates[_index_of(raw)]
            candidate.finish = finish
            candidate.message = message if isinstance(message, str) and message else None
            if finish in _BROKEN:
                raise _broken(finish, candidate.message)

    def _delta(self, index: int, candidate: _Candidate, parts: list[JsonValue], logprobs: JsonValue) -> Chunk | None:
        """Return one chunk of all that the parts add, None for nothing."""
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[ToolCallDelta] = []
        for part in parts:
            if not isinstance(part, dict):
                continue
            piece, call = part.get("text"), part.get("functionCall")
            if isinstance(piece, str):
                (thoughts if part.get("thought") is True else texts).append(piece)
            if isinstance(call, dict):
                calls += self._read_call(index, candidate, call, _signature(part))
            elif signature := _signature(part):
                candidate.text_signature = signature
            # Other parts belong to tools that the vendor runs; the text is complete without them.
        text, thought, scores = "".join(texts), "".join(thoughts), logprobs_of(logprobs)
        candidate.has_text = candidate.has_text or bool(text)
        if not (text or thought or calls or scores):
            return None
        return Chunk(index=index, text=text, logprobs=scores, reasoning=thought or None, tool_calls=tuple(calls))

    def _read_call(
        self, index: int, candidate: _Candidate, call: JsonObject, signature: str | None
    ) -> Iterator[ToolCallDelta]:
        """Yield a call once it is complete."""
        name, arguments, open_call = call.get("name"), call.get("args"), candidate.open_call
        if isinstance(name, str) and name:
            open_call = candidate.open_call = _OpenFunctionCall(name, call.get("id"), signature)
        if open_call is None:
            raise malformed("has a call without a name")
        if isinstance(arguments, dict):
            open_call.arguments.update(arguments)
        open_call.arguments.put(call.get("partialArgs"))
        if call.get("willContinue") is True:
            return
        candidate.open_call = None
        yield self._complete_call(index, candidate, open_call)

    def _complete_call(self, index: int, candidate: _Candidate, call: _OpenFunctionCall) -> ToolCallDelta:
        arguments, number = orjson.dumps(call.arguments.whole()), candidate.calls
        candidate.calls += 1
        name = self._names.get(call.name, call.name)
        own = call.call_id if isinstance(call.call_id, str) and call.call_id else None
        text_signature, candidate.text_signature = candidate.text_signature, None
        call_id = pack_call_id(
            own or make_call_id(self._id, index, number, name, arguments), call.signature, text_signature
        )
        return ToolCallDelta(number, call_id, name, arguments.decode())

    def _last_chunk(self, index: int, candidate: _Candidate) -> Chunk:
        if candidate.open_call is not None:
            raise malformed("ended within a call")
        reason, native = finish_reason(candidate.finish or "", candidate.calls > 0)
        refusal = candidate.message if reason == "content_filter" else None
        text = refusal if refusal is not None and not candidate.has_text else ""
        # The signature of a text before a call is in the call's id instead.
        return Chunk(index, text, reason, native, refusal=refusal, signature=candidate.text_signature)


def _index_of(candidate: JsonObject) -> int:
    index = candidate.get("index", 0)
    if not isinstance(index, int):
        raise malformed("has a candidate without a number")
    return index


def _only_text(parts: JsonValue) -> str:
    """Return the text of a single part that has only text, as nearly every chunk; empty for other parts."""
    if not isinstance(parts, list) or len(parts) != 1:
        return ""
    (part,) = parts
    text = part.get("text") if isinstance(part, dict) and len(part) == 1 else None
    return text if isinstance(text, str) else ""


def _signature(part: JsonObject) -> str | None:
    signature = part.get("thoughtSignature")
    return signature if isinstance(signature, str) and signature else None


def _blocked(feedback: JsonObject) -> _Candidate:
    """Return the choice that answers a blocked prompt."""
    reason, message = feedback.get("blockReason"), feedback.get("blockReasonMessage")
    text = message if isinstance(message, str) and message else None
    return _Candidate(finish=_BLOCKED + str(reason), message=text)


_BLOCKED = "PROMPT_BLOCKED_"
"""Prefix of the reason why a prompt was blocked; those reasons are of another enum than finish reasons."""


def _broken(finish: str, message: str | None) -> UpstreamError:
    detail = f": {vet(message)}" if message else "."
    return UpstreamError(Failure(_BROKEN[finish], f"The upstream broke its answer off with {finish}{detail}"))


def finish_reason(reason: str, called: bool) -> tuple[str, str | None]:
    """Return the finish reason as `read_finish_reason` does."""
    if reason.startswith(_BLOCKED):
        return "content_filter", reason.removeprefix(_BLOCKED)
    finish, native = read_finish_reason(reason, _PLAIN, _SHOWN)
    return "tool_calls" if called and finish == "stop" and native is None else finish, native


def usage_of(raw: JsonObject) -> Usage | None:
    """Return the counts in OpenAI's meaning, where an answer's tokens include the thoughts; None without counts.

    Older models count the thoughts as part of the candidates, which the total shows.
    """
    prompt, total = _count(raw, "promptTokenCount"), _count(raw, "totalTokenCount")
    if prompt is None:
        return None
    prompt += _count(raw, "toolUsePromptTokenCount") or 0
    answer, thoughts = _count(raw, "candidatesTokenCount") or 0, _count(raw, "thoughtsTokenCount")
    if thoughts and prompt + answer != total:
        answer += thoughts
    cached = _count(raw, "cachedContentTokenCount")
    return Usage(
        prompt,
        answer,
        None if cached is None else {"cached_tokens": cached},
        None if thoughts is None else {"reasoning_tokens": thoughts},
    )


def _count(raw: JsonObject, name: str) -> int | None:
    value = raw.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def logprobs_of(raw: JsonValue) -> ContentLogprobs | None:
    """Return each token with its alternatives; the vendor leaves out a log probability of 0."""
    if not isinstance(raw, dict):
        return None
    chosen, tops = raw.get("chosenCandidates"), raw.get("topCandidates")
    if not isinstance(chosen, list):
        return None
    listed = tops if isinstance(tops, list) else []
    tokens: list[TokenLogprob] = []
    for position, one in enumerate(chosen):
        above = listed[position] if position < len(listed) else None
        others = above.get("candidates") if isinstance(above, dict) else None
        top = tuple([_token(other, ()) for other in others]) if isinstance(others, list) else ()
        tokens.append(_token(one, top))
    return ContentLogprobs(tuple(tokens)) if tokens else None


def _token(raw: JsonValue, top: tuple[TokenLogprob, ...]) -> TokenLogprob:
    one = raw if isinstance(raw, dict) else {}
    token, logprob = one.get("token", ""), one.get("logProbability", 0.0)
    number = float(logprob) if isinstance(logprob, int | float) else 0.0
    return TokenLogprob(str(token), floor_logprob(number), None, top)
