"""Collect the texts of a transcription for response guards, and replace them in its body. Pure.

Source: OpenAI OpenAPI 2.3.0, `CreateTranscriptionResponse*` (November 2026). A transcription is JSON with a `text`,
which `segments` or `words` may repeat in segments. Otherwise it is plain text, SRT or WebVTT, which is one text. Words
that are split over segments are not visible in any single one. So the segments of a list, and the cues of SRT and
WebVTT, are also checked together.
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
_SEGMENT_TEXTS: Final = ("text", "word")
"""Fields of a list's items that contain a part of the text."""

_TIMES: Final = "-->"
_BETWEEN_CUES: Final = ("", " ")
"""The separators with which cues are joined for a check: a number may be split between digits, a sentence at a space.
"""

_CODE: Final = re.compile(r"[a-z]{2,3}(?:-[A-Za-z]{2,4})?")
"""A language code of ISO 639."""

_TASKS: Final = words("transcribe translate")
_TYPES: Final = words("duration tokens transcript.text.segment transcript.text.done word segment spacing audio_event")

_FORMS: Final[Mapping[str, Callable[[str], bool]]] = {
    "id": is_id,
    "language": lambda value: _CODE.fullmatch(value) is not None,
    "task": _TASKS.__contains__,
    "type": _TYPES.__contains__,
}
"""Tests by key. A value that passes the test is not a text; any other value is checked."""

_KEYS: Final = KNOWN_KEYS | words(
    """
    avg_logprob bytes channel compression_ratio confidence cues duration end id input_token_details input_tokens
    language_code language_probability logprob logprobs no_speech_prob output_tokens probability seconds seek segments
    speaker speaker_id start task text_tokens token tokens total_tokens transient type usage audio_tokens word words
    """
)
"""The known keys of transcriptions. Any other key is checked."""


def texts_of_transcript(kind: str, body: bytes) -> tuple[GuardedText, ...]:
    """Return every text of a transcription; `kind` is its content type. Raises UpstreamError if the body is not a
    transcription."""
    walk = TextCollector()
    walk.kind, walk.role = "content", "assistant"
    _walked(kind, body, walk)
    return tuple(walk.texts)


def with_transcript(kind: str, body: bytes, texts: list[str]) -> bytes:
    """Return the body with these texts in place of the texts of `texts_of_transcript`."""
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
    raise fail(FailureKind.MALFORMED, "The upstream's transcription has a format that cannot be checked.")


def _captions(text: str, walk: TextCollector | TextReplacer) -> str:
    """Return a text with the changes that the guards make. Raises UpstreamError if they changed words that are split
    over cues, because such changes cannot be mapped back."""
    made = walk.take(text, "text", "text")
    for between in _BETWEEN_CUES:
        spoken = between.join(_cues(text))
        if spoken and walk.take(spoken, "text", "cues") not in (spoken, between.join(_cues(made))):
            raise fail(FailureKind.MALFORMED, "A plugin changed words of the transcription that are split over cues.")
    return made


def _cues(text: str) -> list[str]:
    """Return the spoken lines of SRT or WebVTT. The list is empty if the text has fewer than two cues."""
    lines = text.splitlines()
    times = [at for at, line in enumerate(lines) if _TIMES in line]
    if len(times) < 2:
        return []
    # The line before a cue's times is its number in SRT, and may be its name in WebVTT.
    left_out = {*times, *(at - 1 for at in times)}
    return [line for at, line in enumerate(lines) if line and at > times[0] and at not in left_out]


def _members(content: JsonObject, walk: TextCollector | TextReplacer) -> JsonObject:
    made = _changed_object(content, "", walk)
    for name, value in content.items():
        before = _joined(value)
        if before is None or name not in made:
            continue
        if walk.take(before, name, name) not in (before, _joined(made[name])):
            del made[name]  # a guard changed words that are in no single segment
    return made


def _changed(value: JsonValue, key: str, place: str, walk: TextCollector | TextReplacer) -> JsonValue:
    """Return a value with each string changed, except strings that pass the test of their key in _FORMS."""
    if isinstance(value, str):
        form = _FORMS.get(key)
        return value if form is not None and form(value) else walk.take(value, key, place)
    if isinstance(value, dict):
        return _changed_object(value, f"{place}.", walk)
    if isinstance(value, list):
        return [_changed(each, key, f"{place}[{number}]", walk) for number, each in enumerate(value)]
    return value


def _changed_object(value: JsonObject, prefix: str, walk: TextCollector | TextReplacer) -> JsonObject:
    """Return an object with its keys and strings changed. `prefix` is the beginning of their places."""
    made: JsonObject = {}
    for name, each in value.items():
        place = f"{prefix}{name}"
        made[_named(name, place, walk, made)] = _changed(each, name, place, walk)
    return made


def _named(name: str, place: str, walk: TextCollector | TextReplacer, made: JsonObject) -> str:
    """Return the key that replaces `name`. Raises UpstreamError if a guard makes two keys equal."""
    named = name if name in _KEYS else walk.take_name(name, f"{place}, key")
    if named in made:
        raise fail(FailureKind.MALFORMED, "A plugin gave two fields of the transcription the same name.")
    return named


def _joined(value: JsonValue) -> str | None:
    """Return the segments of a list as one text; `None` if the value is not a list with at least two segments."""
    if not isinstance(value, list):
        return None
    items = [item for item in value if isinstance(item, dict)]
    pieces = [text for item in items for name in _SEGMENT_TEXTS if isinstance(text := item.get(name), str)]
    return "".join(pieces) if len(pieces) > 1 else None
