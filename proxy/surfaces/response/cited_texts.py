"""Assigns the citations of a response to its parts of text. The offsets of a citation count from the beginning of its
part (OpenAI OpenAPI 2.3.0 `UrlCitationBody`).

A vendor may send citations before their text or after it (Gemini: with the last event). Citations of the open part are
sent as its events; citations of a part that has ended are in the final response.
"""

from collections.abc import Iterable

from providers.json_types import JsonObject


class CitedTexts:
    """The parts of text that have ended, and the citations that wait for a part. `length` is the number of characters
    in these parts, which is the offset of the next part."""

    __slots__ = ("_parts", "_waiting", "length")

    def __init__(self) -> None:
        self._parts: list[tuple[int, JsonObject]] = []
        self._waiting: list[JsonObject] = []
        self.length = 0

    def end(self, part: JsonObject, length: int) -> None:
        """Add a part that has ended."""
        self._parts.append((self.length, part))
        self.length += length

    def wait(self, annotations: Iterable[JsonObject]) -> None:
        """Add citations that wait for their part."""
        self._waiting += annotations

    def of_open_part(self, size: int) -> list[JsonObject]:
        """Return the waiting citations of the open part, which has `size` characters so far. Citations of a part that
        has ended are added to that part; citations of later text continue to wait."""
        if not self._waiting:
            return []
        waiting, self._waiting = self._waiting, []
        found: list[JsonObject] = []
        for annotation in waiting:
            start = _start(annotation)
            if start is not None and start > self.length + size:
                self._waiting.append(annotation)
            elif start is None or start >= self.length:
                found.append(_flat(annotation, self.length))
            else:
                self._put(annotation, start)
        return found

    def settle(self) -> list[JsonObject]:
        """Add the waiting citations to the parts that they cite. If the response has no text, return them."""
        waiting, self._waiting = self._waiting, []
        if not self._parts:
            return waiting
        for annotation in waiting:
            start = _start(annotation)
            self._put(annotation, self.length if start is None else start)
        return []

    def _put(self, annotation: JsonObject, start: int) -> None:
        base, part = next(each for each in reversed(self._parts) if each[0] <= start)
        listed = part["annotations"]
        if isinstance(listed, list):
            listed.append(_flat(annotation, base))


def _start(annotation: JsonObject) -> int | None:
    fields = _nested_fields(annotation)
    start = None if fields is None else fields.get("start_index")
    return start if isinstance(start, int) else None


def _nested_fields(annotation: JsonObject) -> JsonObject | None:
    """Return the object around the fields of an annotation; `None` if there is no such object."""
    kind = annotation.get("type")
    fields = annotation.get(kind) if isinstance(kind, str) else None
    return fields if isinstance(fields, dict) else None


def _flat(annotation: JsonObject, base: int) -> JsonObject:
    """Return an annotation in the form of this API: without the object around its fields, and with offsets within its
    part."""
    fields = _nested_fields(annotation)
    if fields is None:
        return annotation
    moved: JsonObject = {"type": annotation["type"], **fields}
    for name in ("start_index", "end_index"):
        at = moved.get(name)
        if isinstance(at, int):
            moved[name] = max(0, at - base)
    return moved
