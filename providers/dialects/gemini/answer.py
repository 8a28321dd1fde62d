"""Reads Gemini's responses. A response is one object, or a stream of objects that each hold the new parts.

The vendor leaves out fields with their default value: an index of 0, an empty text, a count of 0. Fields of the whole
response without a common form (`model_version`, `response_id`, `create_time`, `prompt_feedback`, `traffic_type` …) are
returned under the vendor's names with underscores.

Sources: `google-genai` 3.4.0 type `GenerateContentResponse`; "Thought signatures" page, November 2026.
"""

from collections.abc import Iterator
from dataclasses import replace

from providers.completion import Chunk, Completion, Extras, StreamEvent, Usage, as_estimate, count_of
from providers.dialect import UpstreamRequest
from providers.dialects.gemini.candidate import MAX_UNKNOWN_FIELDS, GeminiCandidate, with_underscores
from providers.dialects.gemini.finish_reasons import BLOCKED
from providers.dialects.gemini.usage import usage_of
from providers.dialects.platforms.google_errors import error_in, failure_of
from providers.dialects.shared.read_json import malformed, parse_answer
from providers.emulation.collect_stream import Gatherer
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue

_KNOWN_FIELDS = frozenset({"candidates", "usageMetadata", "error"})


def decode_answer(sent: UpstreamRequest, body: bytes) -> Completion:
    """Decode a complete 2xx body. Raises UpstreamError."""
    response = GeminiResponse(sent)
    events = [*response.read(parse_answer(body, "is not JSON")), *response.end()]
    gatherer = Gatherer(len({event.index for event in events if isinstance(event, Chunk)}))
    for event in events:
        gatherer.add(event)
    try:
        return gatherer.completion()
    except ValueError as problem:
        raise malformed(f"is not complete: {problem}") from None


class GeminiResponse:
    """The reader of the objects of one response, streaming or not."""

    __slots__ = ("_blocked", "_candidates", "_has_counts", "_other_fields", "_response_id", "_sent", "_usage")

    def __init__(self, sent: UpstreamRequest) -> None:
        self._sent = sent
        self._candidates: dict[int, GeminiCandidate] = {}
        self._usage: JsonObject = {}
        # Whether the last object had token counts. Such counts include all objects so far.
        self._has_counts = False
        self._other_fields: JsonObject = {}
        self._blocked: JsonObject | None = None
        self._response_id = ""

    def read(self, value: JsonValue) -> Iterator[Chunk]:
        """Read the next object, or a list of several objects. If an object is an error, raises UpstreamError after
        yielding the chunks of the objects before it."""
        if isinstance(value, dict):
            return self._object(value)
        return self._objects(value if isinstance(value, list) else [])

    def _objects(self, values: list[JsonValue]) -> Iterator[Chunk]:
        for one in values:
            if isinstance(one, dict):
                yield from self._object(one)

    def _object(self, value: JsonObject) -> Iterator[Chunk]:
        self._store_metadata(value)
        candidates = value.get("candidates")
        candidate_list = candidates if isinstance(candidates, list) else []
        if len(candidate_list) != 1 or not isinstance(raw := candidate_list[0], dict) or "finishReason" in raw:
            return self._each(candidate_list)
        # Nearly every object has one candidate that has not ended.
        candidate = self._candidate(raw)
        chunk = None if candidate is None else candidate.read(raw, self._response_id)
        return iter(()) if chunk is None else iter((chunk,))

    def _each(self, candidates: list[JsonValue]) -> Iterator[Chunk]:
        candidates_with_fields = [raw for raw in candidates if isinstance(raw, dict)]
        with_parts = (
            [_index_of(raw) for raw in candidates_with_fields if _parts_of(raw)]
            if len(candidates_with_fields) > 1
            else []
        )
        if len(set(with_parts)) < len(with_parts):
            raise malformed("has two candidates with the same index")
        for raw in candidates_with_fields:
            candidate = self._candidate(raw)
            if candidate is not None:
                chunk = candidate.read(raw, self._response_id)
                if chunk is not None:
                    yield chunk
                if "finishReason" in raw:
                    candidate.store_finish(raw)

    def _candidate(self, raw: JsonObject) -> GeminiCandidate | None:
        """Return the reader of a candidate.

        For a candidate that was not requested, return `None` if it has no parts, and raise UpstreamError if it has
        parts.
        """
        index = _index_of(raw)
        candidate = self._candidates.get(index)
        if candidate is None:
            if not 0 <= index < self._sent.choices:
                if _parts_of(raw):
                    raise malformed("has a candidate that was not requested")
                return None
            candidate = self._candidates[index] = GeminiCandidate(self._sent, index)
        return candidate

    def _store_metadata(self, value: JsonObject) -> None:
        """Store the usage, the id, the prompt feedback and the other fields of an object. Raises UpstreamError for an
        error."""
        if "error" in value and (error := error_in(value)) is not None:
            raise UpstreamError(failure_of(error))
        usage = value.get("usageMetadata")
        self._has_counts = isinstance(usage, dict) and count_of(usage.get("candidatesTokenCount")) is not None
        if isinstance(usage, dict):
            # Counts are cumulative. A value that is not a count is ignored.
            for name, field_value in usage.items():
                if not (name.endswith("TokenCount") and count_of(field_value) is None):
                    self._usage[name] = field_value
        fields = self._other_fields
        for name in value:
            if name not in _KNOWN_FIELDS and (name in fields or len(fields) < MAX_UNKNOWN_FIELDS):
                fields[name] = value[name] or fields.get(name)
        response_id = value.get("responseId")
        if isinstance(response_id, str):
            self._response_id = response_id
        feedback = value.get("promptFeedback")
        if isinstance(feedback, dict) and isinstance(feedback.get("blockReason"), str):
            self._blocked = feedback

    def end(self) -> Iterator[StreamEvent]:
        """Yield the finish reason of each choice, and the usage. Raises UpstreamError for a choice without a finish
        reason."""
        if not self._candidates and self._blocked is not None:
            self._candidates[0] = self._blocked_prompt(self._blocked)
        if not self._candidates:
            raise malformed("has no candidate")
        unfinished = next((index for index, one in self._candidates.items() if one.finish is None), None)
        if unfinished is not None:
            raise malformed(f"has no finish reason for candidate {unfinished}")
        response_fields = self._response_fields()
        for candidate in self._candidates.values():
            chunk = candidate.last_chunk()
            if response_fields:
                chunk = replace(chunk, extras=replace(chunk.extras or Extras(), answer=response_fields))
                response_fields = {}
            yield chunk
        usage = usage_of(self._usage, sum([candidate.searches for candidate in self._candidates.values()]))
        if usage is not None:
            yield usage

    def usage_so_far(self) -> Usage | None:
        """Return the usage that the vendor has reported so far. Every object may have the counts up to and including
        its own text."""
        usage = usage_of(self._usage)
        return usage if self._has_counts else as_estimate(usage)

    @property
    def ended(self) -> bool:
        """Whether every choice has a finish reason, or the prompt was blocked."""
        if not self._candidates:
            return self._blocked is not None
        return all(candidate.finish is not None for candidate in self._candidates.values())

    def _response_fields(self) -> JsonObject:
        # Sorted, because a stream has them in another order than a non-streaming response.
        fields: JsonObject = {
            with_underscores(name): value for name, value in sorted(self._other_fields.items()) if value
        }
        traffic = self._usage.get("trafficType")
        return fields if traffic is None else {**fields, "traffic_type": traffic}

    def _blocked_prompt(self, feedback: JsonObject) -> GeminiCandidate:
        """Return the choice for a blocked prompt."""
        reason, message = feedback.get("blockReason"), feedback.get("blockReasonMessage")
        text = message if isinstance(message, str) and message else None
        return GeminiCandidate(self._sent, 0, BLOCKED + str(reason), text)


def _parts_of(candidate: JsonObject) -> JsonValue:
    content = candidate.get("content")
    return content.get("parts") if isinstance(content, dict) else None


def _index_of(candidate: JsonObject) -> int:
    index = candidate.get("index", 0)
    if type(index) is not int:
        raise malformed("has a candidate whose index is not a number")
    return index
