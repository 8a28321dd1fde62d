"""The texts of a transcription, for guards of answers, and its body with other texts in their place. Pure.

Source: OpenAI OpenAPI 2.3.0, `CreateTranscriptionResponse*` (November 2026): JSON with a `text`, and with `segments` or
`words` that have it again in pieces; otherwise plain text, SRT or WebVTT, which are one text. What is split over
pieces is seen in none of them, so the pieces of a list, and the cues of SRT and WebVTT, are shown together as well.
"""

import re
from collections.abc import Callable, Mapping
from typing import Final

import orjson

from providers.dialects.shared.read_json import load_json
from providers.failure import FailureKind
from providers.json_types import JsonObject, JsonValue
from proxy.plugins.api import GuardedText
from proxy.plugins.request_strings.known_words import KNOWN_KEYS, words
from proxy.plugins.request_strings.places import is_id
from proxy.plugins.request_texts import TextCollector, TextReplacer
from proxy.upstream.transport import fail

_JSON: Final = "application/json"
_IN_PIECES: Final = ("text", "word")
"""Members of the items of a list that have a piece of the text."""

_TIMES: Final = "-->"
_BETWEEN_CUES: Final = ("", " ")
"""What cues are joined by to be shown: a number may be split at a digit, a sentence at a blank."""

_CODE: Final = re.compile(r"[a-z]{2,3}(?:-[A-Za-z]{2,4})?")
"""A language, as ISO 639 has it."""

_TASKS: Final = words("transcribe translate")
_TYPES: Final = words("duration tokens transcript.text.segment transcript.text.done word segment spacing audio_event")

_FORMS: Final[Mapping[str, Callable[[str], bool]]] = {
    "id": is_id,
    "language": lambda value: _CODE.fullmatch(value) is not None,
    "task": _TASKS.__contains__,
    "type": _TYPES.__contains__,
}
"""Whether a field is no text, by its key: any other value of it is shown."""

_KEYS: Final = KNOWN_KEYS | words(
    """
    avg_logprob bytes channel compression_ratio confidence cues duration end id input_token_details input_tokens
    language_code language_probability logprob logprobs no_speech_prob output_tokens probability seconds seek segments
    speaker speaker_id start task text_tokens token tokens total_tokens transient type usage audio_tokens word words
    """
)
"""Keys that transcriptions have; any other one is shown."""


def texts_of_transcript(kind: str, body: bytes) -> tuple[GuardedText, ...]:
    """Return every text of a transcription of a content type. Raises UpstreamError for a body that is none."""
    walk = TextCollector()
    walk.kind, walk.role = "content", "assistant"
    _walked(kind, body, walk)
    return tuple(walk.texts)


def with_transcript(kind: str, body: bytes, texts: list[str]) -> bytes:
    """Return the body with these texts in place of those of `texts_of_transcript`."""
    return _walked(kind, body, TextReplacer(texts))


def _walked(kind: str, body: bytes, walk: TextCollector | TextReplacer) -> bytes:
    try:
        if not kind.startswith(_JSON):
            return _captions(body.decode(), walk).encode()
        content = load_json(body)
        if isinstance(content, dict):
            return orjson.dumps(_members(content, walk))
    except ValueError:
        pass
    raise fail(FailureKind.MALFORMED, "The upstream's transcription is none that can be checked.")


def _captions(text: str, walk: TextCollector | TextReplacer) -> str:
    """Return a text with what guards put in its place. Raises UpstreamError if they changed words that are split over
    cues, which cannot be put back."""
    made = walk.take(text, "text", "text")
    for between in _BETWEEN_CUES:
        spoken = between.join(_cues(text))
        if spoken and walk.take(spoken, "text", "cues") not in (spoken, between.join(_cues(made))):
            raise fail(FailureKind.MALFORMED, "A plugin changed words of the transcription that are split over cues.")
    return made


def _cues(text: str) -> list[str]:
    """Return the spoken lines of SRT or WebVTT; none of a text without two cues."""
    lines = text.splitlines()
    times = [at for at, line in enumerate(lines) if _TIMES in line]
    if len(times) < 2:
        return []
    # SRT has a cue's number, WebVTT may have its name, on the line before its times.
    left_out = {*times, *(at - 1 for at in times)}
    return [line for at, line in enumerate(lines) if line and at > times[0] and at not in left_out]


def _members(content: JsonObject, walk: TextCollector | TextReplacer) -> JsonObject:
    made = _changed_object(content, "", walk)
    for name, value in content.items():
        before = _joined(value)
        if before is None or name not in made:
            continue
        if walk.take(before, name, name) not in (before, _joined(made[name])):
            del made[name]  # a guard changed what stands in no piece alone
    return made


def _changed(value: JsonValue, key: str, place: str, walk: TextCollector | TextReplacer) -> JsonValue:
    """Return a value with each string changed, except strings in the form that _FORMS has for their key."""
    if isinstance(value, str):
        form = _FORMS.get(key)
        return value if form is not None and form(value) else walk.take(value, key, place)
    if isinstance(value, dict):
        return _changed_object(value, f"{place}.", walk)
    if isinstance(value, list):
        return [_changed(each, key, f"{place}[{number}]", walk) for number, each in enumerate(value)]
    return value


def _changed_object(value: JsonObject, prefix: str, walk: TextCollector | TextReplacer) -> JsonObject:
    """Return an object with its keys and strings changed; `prefix` is the beginning of their places."""
    made: JsonObject = {}
    for name, each in value.items():
        place = f"{prefix}{name}"
        made[_named(name, place, walk, made)] = _changed(each, name, place, walk)
    return made


def _named(name: str, place: str, walk: TextCollector | TextReplacer, made: JsonObject) -> str:
    """Return the key that stands for one. Raises UpstreamError if a guard makes two alike."""
    named = name if name in _KEYS else walk.take_name(name, f"{place}, key")
    if named in made:
        raise fail(FailureKind.MALFORMED, "A plugin gave two members of the transcription one name.")
    return named


def _joined(value: JsonValue) -> str | None:
    """Return the pieces of a list as one text; None for a list without several, and for another value."""
    if not isinstance(value, list):
        return None
    items = [item for item in value if isinstance(item, dict)]
    pieces = [text for item in items for name in _IN_PIECES if isinstance(text := item.get(name), str)]
    return "".join(pieces) if len(pieces) > 1 else None
