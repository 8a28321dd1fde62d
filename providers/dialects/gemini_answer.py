"""Gemini's answers to the common completion shape: one object, or a stream of them, each with what was gained.

Never a request, a framing, or an error's meaning.

Sources: `google-genai` 3.4.0 types `GenerateContentResponse`, `Candidate`, `FinishReason`; "Thought signatures" page,
November 2026. The vendor leaves out what has its default value: an index of 0, an empty text, a count of 0.
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
from providers.dialects.gemini_calls import made_id, packed
from providers.dialects.gemini_errors import error_in, failure_of
from providers.dialects.gemini_partial import Pieces
from providers.dialects.openai_read import malformed, parsed
from providers.failure import Failure, FailureKind, UpstreamError, vet
from providers.finish import own_word
from providers.gather import Gatherer
from providers.logprobs import floored
from providers.unified import JsonObject, JsonValue

_PLAIN: Mapping[str, FinishReason] = {"STOP": "stop", "MAX_TOKENS": "length"}
_TELLING: Mapping[str, FinishReason] = {
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
    # The model wrote what is no answer; asked again it may write another.
    "MALFORMED_FUNCTION_CALL": FailureKind.NONCONFORMING,
    "MALFORMED_RESPONSE": FailureKind.NONCONFORMING,
    "UNEXPECTED_TOOL_CALL": FailureKind.NONCONFORMING,
    "TOO_MANY_TOOL_CALLS": FailureKind.NONCONFORMING,
    "NO_IMAGE": FailureKind.NONCONFORMING,
    "MISSING_THOUGHT_SIGNATURE": FailureKind.INVALID_REQUEST,
}


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """A whole 2xx body. Raises UpstreamError."""
    answer = Answer(sent)
    events = [*answer.read(_parsed(body)), *answer.end()]
    gatherer = Gatherer(len({event.index for event in events if isinstance(event, Chunk)}))
    for event in events:
        gatherer.add(event)
    try:
        return gatherer.completion()
    except ValueError as problem:
        raise malformed(f"is not whole: {problem}") from None


def _parsed(body: bytes) -> JsonValue:
    try:
        return parsed(body)
    except orjson.JSONDecodeError:
        raise malformed("is not JSON") from None


@dataclass(slots=True)
class _Candidate:
    """One choice in work: whether it has text, its calls so far, the signature of a text that no call has taken along
    yet, and a call that goes on."""

    spoke: bool = False
    calls: int = 0
    said: str | None = None
    finish: str | None = None
    message: str | None = None
    begun: "_Begun | None" = None


@dataclass(slots=True)
class _Begun:
    """A call whose arguments come in pieces."""

    name: str
    call_id: JsonValue
    signature: str | None
    given: Pieces = field(default_factory=Pieces)


class Answer:
    """What the objects of one answer say together."""

    __slots__ = ("_blocked", "_candidates", "_id", "_names", "_usage")

    def __init__(self, sent: UpstreamRequest) -> None:
        self._names = sent.tool_names
        self._candidates: dict[int, _Candidate] = {}
        self._usage: JsonObject = {}
        self._blocked: JsonObject | None = None
        self._id = ""

    def read(self, value: JsonValue) -> Iterator[Chunk]:
        """The next object, or several in a list. Raises UpstreamError for an error, after what came before it."""
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, dict):
                yield from self._object(one)

    def _object(self, value: JsonObject) -> Iterator[Chunk]:
        self._note(value)
        candidates = value.get("candidates")
        for candidate in candidates if isinstance(candidates, list) else ():
            if isinstance(candidate, dict):
                chunk = self._candidate(candidate)
                if chunk is not None:
                    yield chunk
                if "finishReason" in candidate:
                    self._finished(candidate)

    def _note(self, value: JsonObject) -> None:
        """What an object says besides candidates. Raises UpstreamError for an error."""
        if "error" in value and (error := error_in(value)) is not None:
            raise UpstreamError(failure_of(error))
        usage, answer_id = value.get("usageMetadata"), value.get("responseId")
        if isinstance(usage, dict):
            # Counts are cumulative, and the last ones hold.
            self._usage.update(usage)
        if isinstance(answer_id, str):
            self._id = answer_id
        feedback = value.get("promptFeedback")
        if isinstance(feedback, dict) and isinstance(feedback.get("blockReason"), str):
            self._blocked = feedback

    def end(self) -> Iterator[StreamEvent]:
        """How each choice ended, and the usage. Raises UpstreamError when one did not."""
        if not self._candidates and self._blocked is not None:
            self._candidates[0] = _blocked(self._blocked)
        if not self._candidates:
            raise malformed("has no candidate")
        unfinished = next((index for index, one in self._candidates.items() if one.finish is None), None)
        if unfinished is not None:
            raise malformed(f"has no finish reason for candidate {unfinished}")
        for index, candidate in self._candidates.items():
            yield self._ending(index, candidate)
        usage = usage_of(self._usage)
        if usage is not None:
            yield usage

    @property
    def ended(self) -> bool:
        """Whether every choice said how it ended, or the prompt was blocked."""
        if not self._candidates:
            return self._blocked is not None
        return all(candidate.finish is not None for candidate in self._candidates.values())

    def _candidate(self, raw: JsonObject) -> Chunk | None:
        """What a candidate gained; None for nothing."""
        index = _number(raw)
        candidate = self._candidates.get(index)
        if candidate is None:
            candidate = self._candidates[index] = _Candidate()
        content = raw.get("content")
        parts = content.get("parts") if isinstance(content, dict) else None
        if "logprobsResult" not in raw and (text := _only_text(parts)):
            candidate.spoke = True
            return Chunk(index, text)
        return self._gained(index, candidate, parts if isinstance(parts, list) else [], raw.get("logprobsResult"))

    def _finished(self, raw: JsonObject) -> None:
        """Take note of how a candidate ended. Raises UpstreamError where that is no answer."""
        finish, message = raw["finishReason"], raw.get("finishMessage")
        if isinstance(finish, str) and finish != "FINISH_REASON_UNSPECIFIED":
            candidate = self._candidates[_number(raw)]
            candidate.finish = finish
            candidate.message = message if isinstance(message, str) and message else None
            if finish in _BROKEN:
                raise _broken(finish, candidate.message)

    def _gained(self, index: int, candidate: _Candidate, parts: list[JsonValue], logprobs: JsonValue) -> Chunk | None:
        """One chunk of all that the parts add; None for nothing."""
        texts: list[str] = []
        thoughts: list[str] = []
        calls: list[ToolCallDelta] = []
        for part in parts:
            if not isinstance(part, dict):
                continue
            words, call = part.get("text"), part.get("functionCall")
            if isinstance(words, str):
                (thoughts if part.get("thought") is True else texts).append(words)
            if isinstance(call, dict):
                calls += self._called(index, candidate, call, _signature(part))
            elif signature := _signature(part):
                candidate.said = signature
            # Other kinds of part are about tools that run at the vendor's; the text is whole without them.
        text, thought, scores = "".join(texts), "".join(thoughts), logprobs_of(logprobs)
        candidate.spoke = candidate.spoke or bool(text)
        if not (text or thought or calls or scores):
            return None
        return Chunk(index=index, text=text, logprobs=scores, reasoning=thought or None, tool_calls=tuple(calls))

    def _called(
        self, index: int, candidate: _Candidate, call: JsonObject, signature: str | None
    ) -> Iterator[ToolCallDelta]:
        """A call, once it is whole."""
        name, given, begun = call.get("name"), call.get("args"), candidate.begun
        if isinstance(name, str) and name:
            begun = candidate.begun = _Begun(name, call.get("id"), signature)
        if begun is None:
            raise malformed("has a call without a name")
        if isinstance(given, dict):
            begun.given.update(given)
        begun.given.put(call.get("partialArgs"))
        if call.get("willContinue") is True:
            return
        candidate.begun = None
        yield self._whole(index, candidate, begun)

    def _whole(self, index: int, candidate: _Candidate, call: _Begun) -> ToolCallDelta:
        arguments, number = orjson.dumps(call.given.whole()), candidate.calls
        candidate.calls += 1
        name = self._names.get(call.name, call.name)
        own = call.call_id if isinstance(call.call_id, str) and call.call_id else None
        said, candidate.said = candidate.said, None
        call_id = packed(own or made_id(self._id, index, number, name, arguments), call.signature, said)
        return ToolCallDelta(number, call_id, name, arguments.decode())

    def _ending(self, index: int, candidate: _Candidate) -> Chunk:
        if candidate.begun is not None:
            raise malformed("ended within a call")
        reason, native = finish_reason(candidate.finish or "", candidate.calls > 0)
        refusal = candidate.message if reason == "content_filter" else None
        text = refusal if refusal is not None and not candidate.spoke else ""
        # Of a text that no call took along; where a call did, it is in the call's id.
        return Chunk(index, text, reason, native, refusal=refusal, signature=candidate.said)


def _number(candidate: JsonObject) -> int:
    index = candidate.get("index", 0)
    if not isinstance(index, int):
        raise malformed("has a candidate without a number")
    return index


def _only_text(parts: JsonValue) -> str:
    """The text of a single part that says nothing else, as nearly every one; empty for the others."""
    if not isinstance(parts, list) or len(parts) != 1:
        return ""
    (part,) = parts
    text = part.get("text") if isinstance(part, dict) and len(part) == 1 else None
    return text if isinstance(text, str) else ""


def _signature(part: JsonObject) -> str | None:
    signature = part.get("thoughtSignature")
    return signature if isinstance(signature, str) and signature else None


def _blocked(feedback: JsonObject) -> _Candidate:
    """The choice that stands for an answer to a prompt that was not let through."""
    reason, message = feedback.get("blockReason"), feedback.get("blockReasonMessage")
    said = message if isinstance(message, str) and message else None
    return _Candidate(finish=_BLOCKED + str(reason), message=said)


_BLOCKED = "PROMPT_BLOCKED_"
"""Before the reason for which a prompt was blocked, which is from another list than those for which an answer ends."""


def _broken(finish: str, message: str | None) -> UpstreamError:
    told = f": {vet(message)}" if message else "."
    return UpstreamError(Failure(_BROKEN[finish], f"The upstream broke its answer off with {finish}{told}"))


def finish_reason(reason: str, called: bool) -> tuple[str, str | None]:
    """The common reason, and the vendor's word where it says more. A word nobody knows yet stays what it is. Raises
    UpstreamError for one that means failure."""
    if reason.startswith(_BLOCKED):
        return "content_filter", reason.removeprefix(_BLOCKED)
    plain = _PLAIN.get(reason)
    if plain is None:
        return _TELLING.get(reason) or own_word(reason), reason
    return ("tool_calls" if plain == "stop" and called else plain), None


def usage_of(raw: JsonObject) -> Usage | None:
    """The counts in OpenAI's meaning, where an answer's tokens include the thoughts; None when there are none.

    Older models count the thoughts with the candidates, which the total tells.
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
    """Each token with the alternatives at its place; a log probability of 0 is left out by the vendor."""
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
    return TokenLogprob(str(token), floored(number), None, top)
