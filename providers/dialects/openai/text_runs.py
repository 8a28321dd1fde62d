"""Reads runs of similar events in streams of the OpenAI family at once, without parsing each event.

The events of a run hold only text of one choice, only reasoning of one choice, or only arguments of one tool call.
Nearly all events of a stream are like this, and each differs from the previous event only by its text. OpenAI pads each
event with `obfuscation` (openai 3.54.0, `stream_options.include_obfuscation`). Gateways put a new `id` or `created`
into each event (November 2026).
"""

from collections.abc import Mapping

from providers.completion import RunPart, TextRun
from providers.dialects.openai.read import only_part_of
from providers.dialects.openai.read_extras import NOT_PASSED
from providers.dialects.openai.streamed_calls import StreamedChoice
from providers.framing.parse_sse import DataLines, SSEParser
from providers.framing.text_frames import MAX_LEARNED_BYTES, FrameLearner, TextFrames, part_run
from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue

_ALWAYS_CHANGING = frozenset({"obfuscation"})

MAX_RUN_BYTES = 1024 * 1024
"""The most bytes of a chunk that is read as a run, and therefore the most bytes of an event in a run. This is far below
every limit on parsed events."""

_MOST_INCOMPLETE = 8 * 1024
"""The most bytes of an incomplete event that are joined with the next chunk. They are copied with each chunk."""


@frozen
class SharedFields:
    """The fields that are the same in all events of a run."""

    form: TextFrames
    choice: StreamedChoice
    tier: JsonValue
    fingerprint: str | None
    part: RunPart
    call: int
    native: int | None

    @property
    def lasting(self) -> bool:
        """Whether events of this run still belong to the same call. A vendor may reuse the index of a call for another
        call."""
        return self.native is None or self.choice.calls.passing(self.native) == self.call

    def run(self, literals: list[bytes]) -> TextRun | None:
        """Return a run of these texts; `None` if one of them is not the inside of a JSON string."""
        return part_run(self.choice.index, literals, self.fingerprint, self.part, self.call)


class TextRuns:
    """The reader of the runs of one stream.

    `frames` splits the stream into events, `choices` are the states of its choices. `ready` says whether the form of a
    run is known, or may be learned.
    """

    __slots__ = ("_choices", "_frames", "_learner", "_recent", "_same", "ready")

    def __init__(self, frames: SSEParser | DataLines, choices: Mapping[int, StreamedChoice]) -> None:
        self._frames = frames if isinstance(frames, SSEParser) else None
        self._choices = choices
        self._learner = FrameLearner(NOT_PASSED, _ALWAYS_CHANGING)
        self._recent: tuple[bytes, JsonObject] | None = None
        self._same: SharedFields | None = None
        self.ready = False

    def stop(self) -> None:
        """Stop reading runs, because the meaning of an event now depends on the events before it."""
        self._frames = self._recent = self._same = None
        self.ready = False

    def forget(self) -> None:
        """Discard the known form, because the constant part of such events has a new meaning, such as other vendor
        fields."""
        self._recent = self._same = None

    def note(self, data: bytes, event: JsonObject) -> None:
        """Store the data of a parsed event, and the event, so that its form may be learned. The form is learned only
        when a similar event seems to follow, so that a response of one event does not have the cost of learning."""
        if "error" in event or event.get("usage") is not None:
            return
        if self._frames is not None and self._learner.forms_left and len(data) <= MAX_LEARNED_BYTES:
            self._recent = data, event
            self.ready = True

    def read_run(self, data: bytes) -> tuple[TextRun, bytes, SharedFields] | None:
        """Return the run that a chunk begins with, the rest of the chunk, and the shared fields of the run's events;
        `None` if the chunk does not begin with such a run. The run is not passed to the parser of events."""
        frames = self._frames
        if frames is None or len(data) > MAX_RUN_BYTES:
            return None
        begun = frames.begun(_MOST_INCOMPLETE)
        if begun is None:
            return None
        if begun:
            data = begun + data
        same = self._same
        if same is not None and same.native is not None and not same.lasting:
            same = self._same = None
        literals, end = ([], 0) if same is None else same.form.read(data)
        if not end and self._recent is not None:
            recent, self._recent = self._recent, None
            self._learn(*recent, data)
            same = self._same
            literals, end = ([], 0) if same is None else same.form.read(data)
        if not end or same is None or same.choice.finished:
            return None
        run = same.run(literals)
        if run is None:
            return None
        if begun:
            frames.forget()
        return run, data[end:], same

    def _learn(self, data: bytes, event: JsonObject, chunk: bytes) -> None:
        """Learn the form of an event from its data. `chunk` begins with the next event. Data that could only be parsed
        leniently has no form, because it is not JSON with a mark in it either."""
        choices = event.get("choices")
        raw = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
        held = only_part_of(raw) if isinstance(raw, dict) else None
        choice = None if held is None else self._choices.get(held.index)
        if held is None or choice is None:
            return
        call = 0 if held.call is None else choice.calls.passing(held.call)
        if call is None:
            return
        self._learner.learn(data, held.value_key, {**event, "choices": [held.marked]}, chunk)
        form, fingerprint = self._learner.frames, event.get("system_fingerprint")
        fingerprint = fingerprint if isinstance(fingerprint, str) else None
        same = choice, event.get("service_tier"), fingerprint, held.part, call, held.call
        self._same = None if form is None else SharedFields(form, *same)
