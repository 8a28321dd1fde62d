"""Reads one candidate of a Gemini response: its parts become chunks of the common shape, and its metadata follows in
the last chunk.

Thoughts become `reasoning_details` of the format `unknown`, because clients leave out unsigned details of a vendor's
own format when they send them back. The signature of a text is returned as a detail in Google's format and in
`Chunk.signature`. The signature of a call is in the call's id and in its `extra_content`. Parts without a common form
(code that the vendor ran, its results, calls of Google's own tools) are listed unchanged in the message's
`google_parts`. If the client sends that list back, the gateway sends the parts back to the vendor. Fields of a
candidate without a common form become fields of the choice, under the vendor's names with underscores:
`grounding_metadata`, `citation_metadata`, `url_context_metadata`, `safety_ratings`, `finish_message`, `avg_logprobs`
and the like.

Sources: `google-genai` 3.4.0 types `Candidate`, `Part`; @openrouter/ai-sdk-provider 2.10.0 for the details that clients
leave out, November 2026.
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
from providers.dialects.gemini.grounding import MAX_ANNOTATED_TEXT, annotations_of
from providers.dialects.gemini.media import GOOGLE_PARTS
from providers.dialects.gemini.model_path import service_of
from providers.dialects.gemini.partial_arguments import ArgumentAssembler
from providers.dialects.gemini.usage import logprobs_of
from providers.dialects.shared.custom_tools import input_text
from providers.dialects.shared.read_json import malformed
from providers.dialects.shared.thought_signatures import make_call_id, mark_service, pack_call_id
from providers.emulation.join_extras import known_places
from providers.json_types import JsonObject, JsonValue

MAX_UNKNOWN_FIELDS = 64
"""The maximum number of fields without a common form in one object of a response."""

_KNOWN_CANDIDATE_FIELDS = frozenset({"content", "index", "finishReason", "finishMessage", "logprobsResult"})
_KNOWN_PART_FIELDS = frozenset({"text", "thought", "thoughtSignature", "functionCall"})
_CAPITAL = re.compile(r"(?<=[a-z0-9])[A-Z]")
_NO_EXTRAS = Extras()


@dataclass(slots=True)
class _OpenFunctionCall:
    """A call that is not complete yet, because its arguments arrive in several parts."""

    name: str
    call_id: JsonValue
    signature: str | None
    arguments: ArgumentAssembler = field(default_factory=ArgumentAssembler)


@dataclass(slots=True)
class _NewParts:
    """The contents of the parts of one object, sorted by kind."""

    texts: list[str] = field(default_factory=list)
    reasoning_texts: list[str] = field(default_factory=list)
    calls: list[ToolCallDelta] = field(default_factory=list)
    details: list[JsonObject] = field(default_factory=list)
    images: list[JsonObject] = field(default_factory=list)
    image_positions: list[int] = field(default_factory=list)
    audio: JsonObject | None = None
    others: list[JsonValue] = field(default_factory=list)

    def extras(self) -> Extras | None:
        """Return the contents that are neither text nor calls."""
        message: JsonObject | None = {GOOGLE_PARTS: self.others} if self.others else None
        image_positions = known_places(self.image_positions, sum(map(len, self.texts)))
        extras = Extras(tuple(self.details), (), tuple(self.images), self.audio, message, image_places=image_positions)
        return None if extras == _NO_EXTRAS else extras


class AudioJoiner:
    """Divides one audio file into new chunks, each a multiple of three bytes long, because clients concatenate the
    base64 text of the chunks."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def add(self, data: str) -> str:
        """Return the base64 of the audio that is ready. Raises ValueError for text that is not base64."""
        pending = self._rest + binascii.a2b_base64(data)
        ready = len(pending) - len(pending) % 3
        self._rest = pending[ready:]
        return binascii.b2a_base64(pending[:ready], newline=False).decode()

    def end(self) -> str:
        """Return the base64 of the remaining bytes."""
        rest, self._rest = self._rest, b""
        return binascii.b2a_base64(rest, newline=False).decode()


class GeminiCandidate:
    """The reader of one candidate. `calls` counts its complete calls; `finish` is the vendor's reason, once it is
    known."""

    __slots__ = (
        "_audio",
        "_detail_count",
        "_in_thought",
        "_index",
        "_message",
        "_open_call",
        "_other_fields",
        "_part_starts",
        "_sent",
        "_text_length",
        "_text_signature",
        "_texts",
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
        self._text_length = 0
        # The text offsets of the parts of the first object, by part number.
        self._part_starts: dict[int, int] = {}
        self._other_fields: JsonObject = {}
        # The signature of the last text, until the id of a following call contains it.
        self._text_signature: str | None = None
        self._open_call: _OpenFunctionCall | None = None
        self._audio: AudioJoiner | None = None
        # The number of reasoning details so far, and whether the last of them is a thought that may continue.
        self._detail_count = 0
        self._in_thought = False

    def read(self, raw: JsonObject, answer_id: str) -> Chunk | None:
        """Return the new parts, or `None` if there are none. Raises UpstreamError for malformed parts."""
        content = raw.get("content")
        parts = content.get("parts") if isinstance(content, dict) else content if isinstance(content, str) else None
        if not _KNOWN_CANDIDATE_FIELDS.issuperset(raw):
            for name in raw:
                if name not in _KNOWN_CANDIDATE_FIELDS:
                    self._store_field(name, raw[name])
        if "logprobsResult" not in raw and (text := _only_text(parts)):
            self._note_text(text)
            return Chunk(self._index, text)
        if isinstance(parts, str | dict) and parts:
            raise malformed("has content that is not a list of parts")
        return self._read_parts(parts if isinstance(parts, list) else [], raw.get("logprobsResult"), answer_id)

    def store_finish(self, raw: JsonObject) -> None:
        """Store the finish reason. Raises UpstreamError for a reason that means failure."""
        finish, message = raw["finishReason"], raw.get("finishMessage")
        if isinstance(finish, str) and finish != "FINISH_REASON_UNSPECIFIED":
            self.finish = finish
            self._message = message if isinstance(message, str) and message else None
            check_finish(finish, self._message)

    @property
    def searches(self) -> int:
        """The number of queries of the vendor's search so far."""
        grounding = self._other_fields.get("groundingMetadata")
        queries = grounding.get("webSearchQueries") if isinstance(grounding, dict) else None
        return len(queries) if isinstance(queries, list) else 0

    def last_chunk(self) -> Chunk:
        """Return the last chunk. Raises UpstreamError if a call is incomplete."""
        if self._open_call is not None:
            raise malformed("ended within a call")
        reason, native = finish_reason(self.finish or "", self.calls > 0)
        refusal = self._message if reason == "content_filter" else None
        text = refusal if refusal is not None and not self._text_length else ""
        if self._message is not None and refusal is None:
            self._other_fields["finishMessage"] = self._message
        signature = self._text_signature and mark_service(self._text_signature, service_of(self._sent.target))
        extras = self._last_extras(signature)
        # If a call follows the text, the call's id contains the signature instead.
        return Chunk(self._index, text, reason, native, refusal=refusal, signature=signature, extras=extras)

    def _last_extras(self, signature: str | None) -> Extras | None:
        extras = _NO_EXTRAS
        if signature:
            detail: JsonObject = {"type": "reasoning.encrypted", "data": signature, "format": GEMINI_FORMAT}
            extras = replace(extras, reasoning_details=({**detail, "index": self._detail_count},))
        if self._audio is not None and (rest := self._audio.end()):
            extras = replace(extras, audio={"data": rest})
        grounding, citations = self._other_fields.get("groundingMetadata"), self._other_fields.get("citationMetadata")
        if (grounding or citations) and self._text_length <= MAX_ANNOTATED_TEXT:
            annotations = annotations_of("".join(self._texts), self._part_starts, grounding, citations)
            extras = replace(extras, annotations=annotations)
        if self._other_fields:
            extras = replace(
                extras, choice={with_underscores(name): value for name, value in sorted(self._other_fields.items())}
            )
        return None if extras is _NO_EXTRAS else extras

    def _note_text(self, text: str) -> None:
        self._in_thought = False
        self._text_length += len(text)
        if self._text_length <= MAX_ANNOTATED_TEXT:
            self._texts.append(text)
        else:
            self._texts.clear()

    def _store_field(self, name: str, value: JsonValue) -> None:
        """Store a field of the candidate for the last chunk. A later value of the field completes or replaces an
        earlier value."""
        earlier = self._other_fields.get(name)
        if isinstance(earlier, dict) and isinstance(value, dict) and len(earlier) < MAX_UNKNOWN_FIELDS:
            self._other_fields[name] = {**earlier, **value}
        elif name in self._other_fields or len(self._other_fields) < MAX_UNKNOWN_FIELDS:
            self._other_fields[name] = value

    # Parts ------------------------------------------------------------------------------------------------------------

    def _read_parts(self, parts: list[JsonValue], logprobs: JsonValue, answer_id: str) -> Chunk | None:
        """Return one chunk with the contents of all parts, or `None` if they are empty."""
        new = _NewParts()
        first = not self._text_length
        for number, part in enumerate(parts):
            if isinstance(part, dict):
                if first:
                    self._part_starts[number] = self._text_length
                self._read_part(part, new, answer_id)
            elif isinstance(part, str):
                raise malformed("has a part that is a bare text")
        text, reasoning, token_logprobs = "".join(new.texts), "".join(new.reasoning_texts), logprobs_of(logprobs)
        extras = new.extras()
        if not (text or reasoning or new.calls or token_logprobs or extras):
            return None
        return Chunk(
            self._index,
            text,
            logprobs=token_logprobs,
            reasoning=reasoning or None,
            tool_calls=tuple(new.calls),
            extras=extras,
        )

    def _read_part(self, part: JsonObject, new: _NewParts, answer_id: str) -> None:
        text, call, signature = part.get("text"), part.get("functionCall"), _signature(part)
        if isinstance(call, dict):
            self._in_thought = False
            new.calls += self._read_call(call, signature, answer_id)
        elif isinstance(text, str) or part.keys() == {"thoughtSignature"}:
            self._text_signature = signature or self._text_signature
        if text and not isinstance(text, str):
            raise malformed("has a part whose text is not a string")
        if isinstance(text, str) and text:
            if part.get("thought") is True:
                new.reasoning_texts.append(text)
                new.details.append(self._thought(text))
            else:
                self._note_text(text)
                new.texts.append(text)
        if part.keys() <= _KNOWN_PART_FIELDS:
            return
        if isinstance(text, str) or isinstance(call, dict):
            new.others.append({name: value for name, value in part.items() if name not in _KNOWN_PART_FIELDS})
        elif not self._read_media(part, signature, new):
            self._in_thought = False
            new.others.append(part)

    def _thought(self, text: str) -> JsonObject:
        if not self._in_thought:
            self._detail_count += 1
            self._in_thought = True
        return {"type": "reasoning.text", "text": text, "format": UNKNOWN_FORMAT, "index": self._detail_count - 1}

    def _read_media(self, part: JsonObject, signature: str | None, new: _NewParts) -> bool:
        """Add an image or audio, and return whether the part was an image or audio. Images of thoughts are not part of
        the response."""
        inline = part.get("inlineData")
        kind, data = (inline.get("mimeType"), inline.get("data")) if isinstance(inline, dict) else (None, None)
        if not isinstance(kind, str) or not isinstance(data, str) or part.get("thought") is True:
            return False
        if kind.startswith("image/"):
            image: JsonObject = {"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}}
            new.images.append(image if signature is None else {**image, **_extra_content(signature)})
            new.image_positions.append(sum(map(len, new.texts)))
            return True
        if not kind.startswith("audio/"):
            return False
        if self._audio is None:
            self._audio = AudioJoiner()
        try:
            ready = self._audio.add(data)
        except ValueError:
            return False
        before = "" if new.audio is None else str(new.audio["data"])
        new.audio = {"data": before + ready, "mime_type": kind}
        return True

    # Calls ------------------------------------------------------------------------------------------------------------

    def _read_call(self, call: JsonObject, signature: str | None, answer_id: str) -> Iterator[ToolCallDelta]:
        """Yield a call once it is complete."""
        name, arguments, open_call = call.get("name"), call.get("args"), self._open_call
        if isinstance(name, str) and name:
            open_call = self._open_call = _OpenFunctionCall(name, call.get("id"), signature)
        if open_call is None:
            if self.calls and not call:
                return  # an empty event after a call that has ended
            raise malformed("has a call without a name")
        if isinstance(arguments, dict):
            open_call.arguments.update(arguments)
        elif arguments:
            raise malformed("has a call whose arguments are not an object")
        open_call.arguments.add_partial(call.get("partialArgs"))
        if call.get("willContinue") is True:
            return
        self._open_call = None
        yield self._complete_call(open_call, answer_id)

    def _complete_call(self, call: _OpenFunctionCall, answer_id: str) -> ToolCallDelta:
        arguments, number = orjson.dumps(call.arguments.complete()), self.calls
        self.calls += 1
        name = self._sent.tool_names.get(call.name, call.name)
        vendor_id = call.call_id if isinstance(call.call_id, str) and call.call_id else None
        text_signature, self._text_signature = self._text_signature, None
        call_id = pack_call_id(
            vendor_id or make_call_id(answer_id, self._index, number, name, arguments),
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
    """Return a field's name in the spelling of the vendor's protocol buffers."""
    return _CAPITAL.sub(lambda found: f"_{found[0]}", name).lower()


def _extra_content(signature: str) -> JsonObject:
    """Return a signature in the form of Google's own OpenAI-compatible endpoint."""
    return {"extra_content": {"google": {"thought_signature": signature}}}


def _only_text(parts: JsonValue) -> str:
    """Return the text if there is a single part and it has only text, as in nearly every chunk; otherwise return an
    empty text."""
    if not isinstance(parts, list) or len(parts) != 1:
        return ""
    (part,) = parts
    text = part.get("text") if isinstance(part, dict) and len(part) == 1 else None
    return text if isinstance(text, str) else ""


def _signature(part: JsonObject) -> str | None:
    signature = part.get("thoughtSignature")
    return signature if isinstance(signature, str) and signature else None
