"""Joins and divides the extras of a stream's chunks. Extras are all content of a chunk other than text and calls."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import orjson

from providers.completion import Choice, Completion, Extras
from providers.json_types import JsonObject, JsonValue

_CONCATENATED = ("text", "summary", "data")
"""Fields of a reasoning detail whose deltas are concatenated."""

_CONCATENATED_OF_AUDIO = ("data", "transcript")
"""Fields of an audio output whose deltas are concatenated."""


def texts_of_details(details: Iterable[JsonValue]) -> Iterator[str]:
    """Yield the texts and summaries of reasoning details."""
    for detail in details:
        if isinstance(detail, dict):
            yield from (text for name in ("text", "summary") if isinstance(text := detail.get(name), str))


class GrowingExtras:
    """Collects the extras of one choice's chunks."""

    __slots__ = ("_annotations", "_audio", "_choice", "_details", "_images", "_message", "_open", "_places")

    def __init__(self) -> None:
        self._places: list[int] = []
        self._details: list[_GrowingDetail] = []
        self._open: dict[tuple[str, int], _GrowingDetail] = {}
        self._annotations: list[JsonObject] = []
        self._images: list[JsonObject] = []
        self._audio: _GrowingDetail | None = None
        self._message: JsonObject = {}
        self._choice: JsonObject = {}

    def add(self, extras: Extras, before: int = 0, text: int = 0) -> None:
        """Add the extras of a chunk. The chunk's text has `text` characters and follows `before` characters of the
        choice's text."""
        for detail in extras.reasoning_details:
            self._add_detail(detail)
        self._annotations += extras.annotations
        self._images += extras.images
        self._places += [before + place for place in places_of(extras, text)]
        if extras.audio is not None:
            if self._audio is None:
                self._audio = _GrowingDetail(_CONCATENATED_OF_AUDIO)
            self._audio.add(extras.audio)
        overlay(self._message, extras.message)
        overlay(self._choice, extras.choice)

    def whole(self, length: int = 0) -> Extras | None:
        """Return the extras of the whole choice, whose text has `length` characters; `None` if there are no extras."""
        joined = Extras(
            tuple([detail.whole() for detail in self._details]),
            tuple(self._annotations),
            tuple(self._images),
            None if self._audio is None else self._audio.whole(),
            self._message or None,
            self._choice or None,
            image_places=known_places(self._places, length),
        )
        return None if joined == Extras() else joined

    def _add_detail(self, detail: JsonObject) -> None:
        index = detail.get("index")
        if isinstance(index, int):
            key = (str(detail.get("type")), index)
            growing = self._open.get(key)
            if growing is not None and not growing.ends_before(detail):
                growing.add(detail)
                return
            self._open[key] = growing = _GrowingDetail(_CONCATENATED)
        else:
            growing = _GrowingDetail(_CONCATENATED)  # a detail without an index is complete
        growing.add(detail)
        self._details.append(growing)


class _GrowingDetail:
    __slots__ = ("_deltas", "_fields", "_joined")

    def __init__(self, joined: tuple[str, ...]) -> None:
        self._joined = joined
        self._fields: JsonObject = {}
        self._deltas: dict[str, list[str]] = {}

    def add(self, delta: JsonObject) -> None:
        for name, value in delta.items():
            if name in self._joined and isinstance(value, str):
                self._deltas.setdefault(name, []).append(value)
                self._fields.setdefault(name, "")
            elif value is not None or name not in self._fields:
                self._fields[name] = value

    def ends_before(self, delta: JsonObject) -> bool:
        """Return whether a delta with the same index and type begins another block. A block has one id, and its
        signature ends it."""
        own, other = self._fields.get("id"), delta.get("id")
        if own is not None and other is not None and own != other:
            return True
        return bool(self._fields.get("signature")) and any(delta.get(name) for name in self._joined)

    def whole(self) -> JsonObject:
        return {**self._fields, **{name: "".join(deltas) for name, deltas in self._deltas.items()}}


def places_of(extras: Extras, length: int) -> list[int]:
    """Return the position of each image in a text of `length` characters, in order. Images without a position follow
    the text."""
    given = extras.image_places[: len(extras.images)]
    places = [*given, *[length] * (len(extras.images) - len(given))]
    return [min(place, length) for place in places]


def known_places(places: Iterable[int], length: int) -> tuple[int, ...]:
    """Return the positions that are before the end of the text, as `Extras.image_places` holds them."""
    return tuple([place for place in places if place < length])


def size_of_extras(extras: Extras) -> int:
    """Return the size of extras as JSON, in bytes."""
    parts = (extras.reasoning_details, extras.annotations, extras.images, extras.audio)
    return len(orjson.dumps((parts, extras.message, extras.choice, extras.answer)))


def overlay(holder: JsonObject, members: Mapping[str, JsonValue] | None) -> None:
    """Add fields to an object: lists are extended, other values are replaced."""
    for name, value in (members or {}).items():
        held = holder.get(name)
        if isinstance(value, list):
            if isinstance(held, list):
                held += value
            else:
                holder[name] = [*value]  # a copy, since the list may grow
        else:
            holder[name] = value


def extras_of(completion: Completion, choice: Choice) -> Extras | None:
    """Return the extras of the only chunk of a choice. The extras of the whole response are in the chunk of its first
    choice."""
    if completion.extra is None or choice is not completion.choices[0]:
        return choice.extras
    return replace(choice.extras or Extras(), answer=completion.extra)


def shifted_annotations(extras: Extras, by: int) -> Extras:
    """Return the extras with the offsets of their annotations increased by `by`, the number of characters that are put
    before the text."""
    return replace(extras, annotations=tuple([_shifted(each, by) for each in extras.annotations]))


def _shifted(annotation: JsonObject, by: int) -> JsonObject:
    cited = annotation.get("url_citation")
    if not isinstance(cited, dict):
        return annotation
    moved: JsonObject = {
        name: place + by for name in ("start_index", "end_index") if isinstance(place := cited.get(name), int)
    }
    return {**annotation, "url_citation": {**cited, **moved}}
