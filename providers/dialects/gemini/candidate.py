"""One candidate of a Gemini answer: its parts as chunks of the common shape, and what it says of itself at its end.

Thoughts become `reasoning_details` of the format `unknown`, since clients leave out unsigned details of a vendor's own
format when they send them back. The signature of a text is a detail of Google's format beside `Chunk.signature`; that
of a call is in the call's id and in its `extra_content`. Kinds of parts that have no common form (code that the vendor
ran, its results, calls of Google's own tools) are listed in the message's `google_parts` as the vendor wrote them, and
go back to it from there. Members of a candidate that have no common form are members of the choice under the vendor's
names with underscores: `grounding_metadata`, `citation_metadata`, `url_context_metadata`, `safety_ratings`,
`finish_message`, `avg_logprobs` and the like.

Sources: `google-genai` 3.4.0 types `Candidate`, `Part`; @openrouter/ai-sdk-provider 2.10.0 on details that are left
out, November 2026.
"""

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache

import orjson

from providers.completion import Chunk, Extras, ToolCallDelta
from providers.conversation import GEMINI_FORMAT, UNKNOWN_FORMAT
from providers.dialect import UpstreamRequest
from providers.dialects.gemini.finish_reasons import check_finish, finish_reason
from providers.dialects.gemini.grounding import MOST_TEXT, annotations_of
from providers.dialects.gemini.media import GOOGLE_PARTS
from providers.dialects.gemini.model_path import service_of
from providers.dialects.gemini.partial_arguments import Pieces
from providers.dialects.gemini.usage import logprobs_of
from providers.dialects.shared.custom_tools import input_text
from providers.dialects.shared.read_json import malformed
from providers.dialects.shared.thought_signatures import make_call_id, mark_service, pack_call_id
from providers.emulation.join_extras import known_places
from providers.json_types import JsonObject, JsonValue

MOST_MEMBERS = 64
"""Members without a common form that one object of an answer may have."""

_READ = frozenset({"content", "index", "finishReason", "finishMessage", "logprobsResult"})
_OF_PARTS = frozenset({"text", "thought", "thoughtSignature", "functionCall"})
_CAPITAL = re.compile(r"(?<=[a-z0-9])[A-Z]")
_NO_EXTRAS = Extras()


@dataclass(slots=True)
class _OpenFunctionCall:
    """An incomplete call, whose arguments come in pieces."""

    name: str
    call_id: JsonValue
    signature: str | None
    arguments: Pieces = field(default_factory=Pieces)


@dataclass(slots=True)
class _Delta:
    """What the parts of one object add."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCallDelta] = field(default_factory=list)
    details: list[JsonObject] = field(default_factory=list)
    images: list[JsonObject] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    audio: JsonObject | None = None
    others: list[JsonValue] = field(default_factory=list)

    def extras(self) -> Extras | None:
        """Return what is neither text nor call."""
        message: JsonObject | None = {GOOGLE_PARTS: self.others} if self.others else None
        places = known_places(self.places, sum(map(len, self.texts)))
        made = Extras(tuple(self.details), (), tuple(self.images), self.audio, message, image_places=places)
        return None if made == _NO_EXTRAS else made


class SoundPieces:
    """Cuts the pieces of one sound anew: clients join them as base64 text, so each holds a multiple of three bytes."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def add(self, data: str) -> str:
        """Return what can be given of the sound. Raises ValueError for text that is not base64."""
        held = self._rest + binascii.a2b_base64(data)
        ready = len(held) - len(held) % 3
        self._rest = held[ready:]
        return binascii.b2a_base64(held[:ready], newline=False).decode()

    def end(self) -> str:
        """Return what is left."""
        rest, self._rest = self._rest, b""
        return binascii.b2a_base64(rest, newline=False).decode()


class GeminiCandidate:
    """Reads one candidate. `calls` counts its complete calls; `finish` is the vendor's reason, once it is known."""

    __slots__ = (
        "_details",
        "_index",
        "_length",
        "_members",
        "_message",
        "_open_call",
        "_parts",
        "_sent",
        "_sound",
        "_text_signature",
        "_texts",
        "_thinking",
        "calls",
        "finish",
    )

    def __init__(
        self, sent: UpstreamRequest, index: int, finish: str | None = None, message: str | None = None
    ) -> None:
        self._sent = sent
        self._index = index
        self.calls = 0
        self.finish = finish
        self._message = message
        self._texts: list[str] = []
        self._length = 0
        # Where the parts of the first object begin, if it has several.
        self._parts: dict[int, int] = {}
        self._members: JsonObject = {}
        # A signature of a text that no call carries yet.
        self._text_signature: str | None = None
        self._open_call: _OpenFunctionCall | None = None
        self._sound: SoundPieces | None = None
        # The number of reasoning details, and whether the last is a thought that may go on.
        self._details = 0
        self._thinking = False

    def read(self, raw: JsonObject, answer_id: str) -> Chunk | None:
        """Return what is new, None for nothing. Raises UpstreamError for parts that make no sense."""
        content = raw.get("content")
        parts = content.get("parts") if isinstance(content, dict) else content if isinstance(content, str) else None
        if not _READ.issuperset(raw):
            for name in raw:
                if name not in _READ:
                    self._keep(name, raw[name])
        if "logprobsResult" not in raw and (text := _only_text(parts)):
            self._say(text)
            return Chunk(self._index, text)
        if isinstance(parts, str | dict) and parts:
            raise malformed("has a content that is no list of parts")
        return self._read_parts(parts if isinstance(parts, list) else [], raw.get("logprobsResult"), answer_id)

    def keep_finish(self, raw: JsonObject) -> None:
        """Keep the finish reason. Raises UpstreamError for one that means failure."""
        finish, message = raw["finishReason"], raw.get("finishMessage")
        if isinstance(finish, str) and finish != "FINISH_REASON_UNSPECIFIED":
            self.finish = finish
            self._message = message if isinstance(message, str) and message else None
            check_finish(finish, self._message)

    @property
    def searches(self) -> int:
        """Return the number of queries of the vendor's search so far."""
        grounding = self._members.get("groundingMetadata")
        queries = grounding.get("webSearchQueries") if isinstance(grounding, dict) else None
        return len(queries) if isinstance(queries, list) else 0

    def last_chunk(self) -> Chunk:
        """Return the end. Raises UpstreamError within a call."""
        if self._open_call is not None:
            raise malformed("ended within a call")
        reason, native = finish_reason(self.finish or "", self.calls > 0)
        refusal = self._message if reason == "content_filter" else None
        text = refusal if refusal is not None and not self._length else ""
        if self._message is not None and refusal is None:
            self._members["finishMessage"] = self._message
        signature = self._text_signature and mark_service(self._text_signature, service_of(self._sent.target))
        extras = self._last_extras(signature)
        # The signature of a text before a call is in the call's id instead.
        return Chunk(self._index, text, reason, native, refusal=refusal, signature=signature, extras=extras)

    def _last_extras(self, signature: str | None) -> Extras | None:
        extras = _NO_EXTRAS
        if signature:
            detail: JsonObject = {"type": "reasoning.encrypted", "data": signature, "format": GEMINI_FORMAT}
            extras = replace(extras, reasoning_details=({**detail, "index": self._details},))
        if self._sound is not None and (rest := self._sound.end()):
            extras = replace(extras, audio={"data": rest})
        grounding, citations = self._members.get("groundingMetadata"), self._members.get("citationMetadata")
        if (grounding or citations) and self._length <= MOST_TEXT:
            found = annotations_of("".join(self._texts), self._parts, grounding, citations)
            extras = replace(extras, annotations=found)
        if self._members:
            extras = replace(
                extras, choice={with_underscores(name): value for name, value in sorted(self._members.items())}
            )
        return None if extras is _NO_EXTRAS else extras

    def _say(self, text: str) -> None:
        self._thinking = False
        self._length += len(text)
        if self._length <= MOST_TEXT:
            self._texts.append(text)
        else:
            self._texts.clear()

    def _keep(self, name: str, value: JsonValue) -> None:
        """Keep a member until the end; a later one completes or replaces an earlier one."""
        held = self._members.get(name)
        if isinstance(held, dict) and isinstance(value, dict) and len(held) < MOST_MEMBERS:
            self._members[name] = {**held, **value}
        elif name in self._members or len(self._members) < MOST_MEMBERS:
            self._members[name] = value

    # Parts ------------------------------------------------------------------------------------------------------------

    def _read_parts(self, parts: list[JsonValue], logprobs: JsonValue, answer_id: str) -> Chunk | None:
        """Return one chunk of all that the parts add, None for nothing."""
        delta = _Delta()
        first = not self._length
        for number, part in enumerate(parts):
            if isinstance(part, dict):
                if first:
                    self._parts[number] = self._length
                self._read_part(part, delta, answer_id)
            elif isinstance(part, str):
                raise malformed("has a part that is a bare text")
        text, thought, scores = "".join(delta.texts), "".join(delta.thoughts), logprobs_of(logprobs)
        extras = delta.extras()
        if not (text or thought or delta.calls or scores or extras):
            return None
        return Chunk(
            self._index,
            text,
            logprobs=scores,
            reasoning=thought or None,
            tool_calls=tuple(delta.calls),
            extras=extras,
        )

    def _read_part(self, part: JsonObject, delta: _Delta, answer_id: str) -> None:
        piece, call, signature = part.get("text"), part.get("functionCall"), _signature(part)
        if isinstance(call, dict):
            self._thinking = False
            delta.calls += self._read_call(call, signature, answer_id)
        elif isinstance(piece, str) or part.keys() == {"thoughtSignature"}:
            self._text_signature = signature or self._text_signature
        if piece and not isinstance(piece, str):
            raise malformed("has a part whose text is none")
        if isinstance(piece, str) and piece:
            if part.get("thought") is True:
                delta.thoughts.append(piece)
                delta.details.append(self._thought(piece))
            else:
                self._say(piece)
                delta.texts.append(piece)
        if part.keys() <= _OF_PARTS:
            return
        if isinstance(piece, str) or isinstance(call, dict):
            delta.others.append({name: value for name, value in part.items() if name not in _OF_PARTS})
        elif not self._read_media(part, signature, delta):
            self._thinking = False
            delta.others.append(part)

    def _thought(self, piece: str) -> JsonObject:
        if not self._thinking:
            self._details += 1
            self._thinking = True
        return {"type": "reasoning.text", "text": piece, "format": UNKNOWN_FORMAT, "index": self._details - 1}

    def _read_media(self, part: JsonObject, signature: str | None, delta: _Delta) -> bool:
        """Add an image or a sound; return whether the part was one. Images of thoughts are no part of the answer."""
        held = part.get("inlineData")
        kind, data = (held.get("mimeType"), held.get("data")) if isinstance(held, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(data, str) or part.get("thought") is True:
            return False
        if kind.startswith("image/"):
            image: JsonObject = {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
            delta.images.append(image if signature is None else {**image, **_extra_content(signature)})
            delta.places.append(sum(map(len, delta.texts)))
            return True
        if not kind.startswith("audio/"):
            return False
        if self._sound is None:
            self._sound = SoundPieces()
        try:
            ready = self._sound.add(data)
        except ValueError:
            return False
        before = "" if delta.audio is None else str(delta.audio["data"])
        delta.audio = {"data": before + ready, "mime_type": kind}
        return True

    # Calls ------------------------------------------------------------------------------------------------------------

    def _read_call(self, call: JsonObject, signature: str | None, answer_id: str) -> Iterator[ToolCallDelta]:
        """Yield a call once it is complete."""
        name, arguments, open_call = call.get("name"), call.get("args"), self._open_call
        if isinstance(name, str) and name:
            open_call = self._open_call = _OpenFunctionCall(name, call.get("id"), signature)
        if open_call is None:
            if self.calls and not call:
                return  # the end of a call that ended before
            raise malformed("has a call without a name")
        if isinstance(arguments, dict):
            open_call.arguments.update(arguments)
        elif arguments:
            raise malformed("has a call whose arguments are no object")
        open_call.arguments.put(call.get("partialArgs"))
        if call.get("willContinue") is True:
            return
        self._open_call = None
        yield self._complete_call(open_call, answer_id)

    def _complete_call(self, call: _OpenFunctionCall, answer_id: str) -> ToolCallDelta:
        arguments, number = orjson.dumps(call.arguments.whole()), self.calls
        self.calls += 1
        name = self._sent.tool_names.get(call.name, call.name)
        own = call.call_id if isinstance(call.call_id, str) and call.call_id else None
        text_signature, self._text_signature = self._text_signature, None
        call_id = pack_call_id(
            own or make_call_id(answer_id, self._index, number, name, arguments),
            call.signature,
            text_signature,
            service_of(self._sent.target),
        )
        extra = _extra_content(call.signature) if call.signature else None
        if name in self._sent.custom_tools:
            return ToolCallDelta(number, call_id, name, input_text(arguments.decode()), "custom", extra)
        return ToolCallDelta(number, call_id, name, arguments.decode(), extra=extra)


@lru_cache(maxsize=256)
def with_underscores(name: str) -> str:
    """Return a member's name as the vendor's protocol buffers spell it."""
    return _CAPITAL.sub(lambda found: f"_{found[0]}", name).lower()


def _extra_content(signature: str) -> JsonObject:
    """Return a signature where Google's own OpenAI-compatible endpoint puts it."""
    return {"extra_content": {"google": {"thought_signature": signature}}}


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
