"""Runs of events that hold text of one choice alone, or its reasoning, or arguments of one tool call, in streams of the
OpenAI family: read at once, without parsing.

Nearly all events of a stream are such, and each is the one before but for its text. OpenAI pads each with `obfuscation`
(openai 3.54.0, `stream_options.include_obfuscation`); gateways put a new `id` or `created` into each (November 2026).
"""

from collections.abc import Mapping

from providers.completion import RunPart, TextRun
from providers.dialects.openai.read import held_alone
from providers.dialects.openai.read_extras import NOT_PASSED
from providers.dialects.openai.streamed_calls import StreamedChoice
from providers.framing.parse_sse import DataLines, SSEParser
from providers.framing.text_frames import MAX_LEARNED_BYTES, FrameLearner, TextFrames, part_run
from providers.frozen_record import record
from providers.json_types import JsonObject, JsonValue

_ALWAYS_CHANGING = frozenset({"obfuscation"})

MOST_LED = 1024 * 1024
"""Bytes at most of a piece that is read so, and hence of an event: far below any limit of an event that is parsed."""

_MOST_BEGUN = 8 * 1024
"""Bytes at most of an event's begin that the next piece is put behind: they are copied with each piece."""


@record
class SameMembers:
    """What is the same in the events of a run."""

    form: TextFrames
    choice: StreamedChoice
    tier: JsonValue
    fingerprint: str | None
    part: RunPart
    call: int
    native: int | None

    @property
    def lasting(self) -> bool:
        """Whether such events still mean what they did: a vendor may give the place of a call to another one."""
        return self.native is None or self.choice.calls.passing(self.native) == self.call

    def run(self, literals: list[bytes]) -> TextRun | None:
        """Return a run of these; None if one of them is not the inside of a JSON string."""
        return part_run(self.choice.index, literals, self.fingerprint, self.part, self.call)


class TextRuns:
    """Reads the runs of one stream, whose events `frames` splits and whose choices are these. `ready` says whether a
    form is known, or may be learned."""

    __slots__ = ("_choices", "_frames", "_learner", "_recent", "_same", "ready")

    def __init__(self, frames: SSEParser | DataLines, choices: Mapping[int, StreamedChoice]) -> None:
        self._frames = frames if isinstance(frames, SSEParser) else None
        self._choices = choices
        self._learner = FrameLearner(NOT_PASSED, _ALWAYS_CHANGING)
        self._recent: tuple[bytes, JsonObject] | None = None
        self._same: SameMembers | None = None
        self.ready = False

    def stop(self) -> None:
        """Read no more runs: what the events hold depends on those before."""
        self._frames = self._recent = self._same = None
        self.ready = False

    def forget(self) -> None:
        """Forget the form: its events mean something else by now, such as what the vendor has of its own in them."""
        self._recent = self._same = None

    def note(self, data: bytes, event: JsonObject) -> None:
        """Note the data of an event that was parsed, and the event: its form may be learned. It is when another such
        event seems to come, so that an answer of one event pays nothing for it."""
        if "error" in event or event.get("usage") is not None:
            return
        if self._frames is not None and self._learner.forms_left and len(data) <= MAX_LEARNED_BYTES:
            self._recent = data, event
            self.ready = True

    def lead(self, data: bytes) -> tuple[TextRun, bytes, SameMembers] | None:
        """Return what a piece begins with, the rest of it, and what the events of the run have in common; None where it
        does not begin with text alone. The parser of events sees nothing of a run."""
        frames = self._frames
        if frames is None or len(data) > MOST_LED:
            return None
        begun = frames.begun(_MOST_BEGUN)
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

    def _learn(self, data: bytes, event: JsonObject, piece: bytes) -> None:
        """Learn the form of an event and its data. `piece` begins with the next one. Data that had to be mended has no
        form: it is no JSON, with a mark in it neither."""
        choices = event.get("choices")
        raw = choices[0] if isinstance(choices, list) and len(choices) == 1 else None
        held = held_alone(raw) if isinstance(raw, dict) else None
        choice = None if held is None else self._choices.get(held.index)
        if held is None or choice is None:
            return
        call = 0 if held.call is None else choice.calls.passing(held.call)
        if call is None:
            return
        self._learner.learn(data, held.member, {**event, "choices": [held.marked]}, piece)
        form, fingerprint = self._learner.frames, event.get("system_fingerprint")
        fingerprint = fingerprint if isinstance(fingerprint, str) else None
        same = choice, event.get("service_tier"), fingerprint, held.part, call, held.call
        self._same = None if form is None else SameMembers(form, *same)
