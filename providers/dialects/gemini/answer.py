"""Gemini's answers, as one object or as a stream of objects that each hold what is new, to the common shape.

The vendor leaves out members with their default value: an index of 0, an empty text, a count of 0. Members of the whole
answer that have no common form (`model_version`, `response_id`, `create_time`, `prompt_feedback`, `traffic_type` …) are
passed on under the vendor's names with underscores.

Sources: `google-genai` 3.4.0 type `GenerateContentResponse`; "Thought signatures" page, November 2026.
"""

from collections.abc import Iterator
from dataclasses import replace

from providers.completion import Chunk, Completion, Extras, StreamEvent, Usage, as_estimate, count_of
from providers.dialect import UpstreamRequest
from providers.dialects.gemini.candidate import MOST_MEMBERS, GeminiCandidate, with_underscores
from providers.dialects.gemini.finish_reasons import BLOCKED
from providers.dialects.gemini.usage import usage_of
from providers.dialects.platforms.google_errors import error_in, failure_of
from providers.dialects.shared.read_json import malformed, parse_answer
from providers.emulation.collect_stream import Gatherer
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue

_READ = frozenset({"candidates", "usageMetadata", "error"})


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


class GeminiAnswer:
    """Reads the objects of one answer, whole or streamed."""

    __slots__ = ("_blocked", "_candidates", "_counted", "_id", "_members", "_sent", "_usage")

    def __init__(self, sent: UpstreamRequest) -> None:
        self._sent = sent
        self._candidates: dict[int, GeminiCandidate] = {}
        self._usage: JsonObject = {}
        # Whether the counts hold all chunks so far.
        self._counted = False
        self._members: JsonObject = {}
        self._blocked: JsonObject | None = None
        self._id = ""

    def read(self, value: JsonValue) -> Iterator[Chunk]:
        """Read the next object, or several in a list. Raises UpstreamError for an error, after the chunks before it."""
        if isinstance(value, dict):
            return self._object(value)
        return self._objects(value if isinstance(value, list) else [])

    def _objects(self, values: list[JsonValue]) -> Iterator[Chunk]:
        for one in values:
            if isinstance(one, dict):
                yield from self._object(one)

    def _object(self, value: JsonObject) -> Iterator[Chunk]:
        self._keep_metadata(value)
        candidates = value.get("candidates")
        listed = candidates if isinstance(candidates, list) else []
        if len(listed) != 1 or not isinstance(raw := listed[0], dict) or "finishReason" in raw:
            return self._each(listed)
        # Nearly every object: one candidate, which goes on.
        candidate = self._candidate(raw)
        chunk = None if candidate is None else candidate.read(raw, self._id)
        return iter(()) if chunk is None else iter((chunk,))

    def _each(self, candidates: list[JsonValue]) -> Iterator[Chunk]:
        known = [raw for raw in candidates if isinstance(raw, dict)]
        speaking = [_index_of(raw) for raw in known if _parts_of(raw)] if len(known) > 1 else []
        if len(set(speaking)) < len(speaking):
            raise malformed("has two candidates with one number")
        for raw in known:
            candidate = self._candidate(raw)
            if candidate is not None:
                chunk = candidate.read(raw, self._id)
                if chunk is not None:
                    yield chunk
                if "finishReason" in raw:
                    candidate.keep_finish(raw)

    def _candidate(self, raw: JsonObject) -> GeminiCandidate | None:
        """Return the reader of a candidate; None where nobody asked for it and nothing is said for it. Raises
        UpstreamError where something is."""
        index = _index_of(raw)
        candidate = self._candidates.get(index)
        if candidate is None:
            if not 0 <= index < self._sent.choices:
                if _parts_of(raw):
                    raise malformed("has a candidate that was not asked for")
                return None
            candidate = self._candidates[index] = GeminiCandidate(self._sent, index)
        return candidate

    def _keep_metadata(self, value: JsonObject) -> None:
        """Keep usage, id, prompt feedback and what else an object says. Raises UpstreamError for an error."""
        if "error" in value and (error := error_in(value)) is not None:
            raise UpstreamError(failure_of(error))
        usage = value.get("usageMetadata")
        self._counted = isinstance(usage, dict) and count_of(usage.get("candidatesTokenCount")) is not None
        if isinstance(usage, dict):
            # Counts are cumulative; what is no count replaces none.
            for name, member in usage.items():
                if not (name.endswith("TokenCount") and count_of(member) is None):
                    self._usage[name] = member
        members = self._members
        for name in value:
            if name not in _READ and (name in members or len(members) < MOST_MEMBERS):
                members[name] = value[name] or members.get(name)
        answer_id = value.get("responseId")
        if isinstance(answer_id, str):
            self._id = answer_id
        feedback = value.get("promptFeedback")
        if isinstance(feedback, dict) and isinstance(feedback.get("blockReason"), str):
            self._blocked = feedback

    def end(self) -> Iterator[StreamEvent]:
        """Yield the finish of each choice, and the usage. Raises UpstreamError for a choice without a finish."""
        if not self._candidates and self._blocked is not None:
            self._candidates[0] = self._blocked_prompt(self._blocked)
        if not self._candidates:
            raise malformed("has no candidate")
        unfinished = next((index for index, one in self._candidates.items() if one.finish is None), None)
        if unfinished is not None:
            raise malformed(f"has no finish reason for candidate {unfinished}")
        members = self._answer_members()
        for candidate in self._candidates.values():
            chunk = candidate.last_chunk()
            if members:
                chunk = replace(chunk, extras=replace(chunk.extras or Extras(), answer=members))
                members = {}
            yield chunk
        usage = usage_of(self._usage, sum([candidate.searches for candidate in self._candidates.values()]))
        if usage is not None:
            yield usage

    def usage_so_far(self) -> Usage | None:
        """See UsageReporter. Every object may have the counts up to its own text."""
        usage = usage_of(self._usage)
        return usage if self._counted else as_estimate(usage)

    @property
    def ended(self) -> bool:
        """Return whether every choice has a finish reason, or the prompt was blocked."""
        if not self._candidates:
            return self._blocked is not None
        return all(candidate.finish is not None for candidate in self._candidates.values())

    def _answer_members(self) -> JsonObject:
        # Sorted, since a stream brings them in another order than a whole answer.
        members: JsonObject = {with_underscores(name): value for name, value in sorted(self._members.items()) if value}
        traffic = self._usage.get("trafficType")
        return members if traffic is None else {**members, "traffic_type": traffic}

    def _blocked_prompt(self, feedback: JsonObject) -> GeminiCandidate:
        """Return the choice that answers a blocked prompt."""
        reason, message = feedback.get("blockReason"), feedback.get("blockReasonMessage")
        text = message if isinstance(message, str) and message else None
        return GeminiCandidate(self._sent, 0, BLOCKED + str(reason), text)


def _parts_of(candidate: JsonObject) -> JsonValue:
    content = candidate.get("content")
    return content.get("parts") if isinstance(content, dict) else None


def _index_of(candidate: JsonObject) -> int:
    index = candidate.get("index", 0)
    if type(index) is not int:
        raise malformed("has a candidate without a number")
    return index
