"""Selects the signatures of texts to store from a response, and restores them in a client's messages.

Gemini signs the last part of a text. In a stream, the signature follows the text. Gemini recommends to send it back,
and does not demand it. A chat client that keeps additional fields sends it back in `extra_content`, and a Responses
client sends it with the message. The Messages API has no field for it, and most clients of the other APIs send no
signature back. The text and the message before it identify the missing signature. White space is ignored, because
clients trim texts.

Source: "Thought signatures" page of the Gemini API, November 2026.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from providers.completion import NO_EXTRAS, Chunk, Extras, StreamEvent
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.response.text_signature import extra_content, is_of_text, without_signature

MOST_TEXT: Final = 128 * 1024
"""The most characters of a text whose signature is stored."""

MOST_SEARCHED: Final = 1024 * 1024
"""The most characters of all texts that are looked up for one request, the latest first. Hashing them takes 10 ms."""

MOST_LOOKED_UP: Final = 64
"""The most texts of a conversation that are looked up, the latest first."""

_LONG_TEXT: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class SignedText:
    """A text with the fields that its vendor wants back with it: a signature, or details of reasoning that contain a
    signature."""

    text: str
    signature: str | None
    details: tuple[JsonObject, ...] = ()


def marks_of(message: JsonValue) -> Iterator[str]:
    """Yield the texts that identify a message. A long text is replaced by its hash. Hashing 30 MB takes 20 ms."""
    for text in texts_of(message):
        if len(text) <= _LONG_TEXT:
            yield text
        else:
            yield hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def texts_of(message: JsonValue) -> Iterator[str]:
    """Yield the texts of a message's content."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        if isinstance(part, dict) and isinstance(text := part.get("text"), str):
            yield text


def key_of_text(text: str, marks: Iterable[str]) -> str:
    """Return the key of a text; `marks` are the marks of the preceding message."""
    digest = hashlib.sha256(b"text\0")
    for each in ("".join(text.split()), *marks):
        digest.update(b"\0" + each.encode(errors="surrogatepass"))
    return digest.hexdigest()


def signed_text(text: str, signature: str | None, extras: Extras | None) -> SignedText | None:
    """Return the signed text to store of a response without calls; `None` if the response has no signature of its
    text."""
    details = without_signature((extras or NO_EXTRAS).reasoning_details, signature)
    kept = tuple([each for each in details if is_of_text(each)])
    if not (signature or kept) or not text.strip() or len(text) > MOST_TEXT:
        return None
    return SignedText(text, signature, kept)


def unsigned_texts(messages: Sequence[JsonObject]) -> list[tuple[int, str]]:
    """Return the positions and keys of the latest texts of the model that have no signature, latest first."""
    found: list[tuple[int, str]] = []
    room = MOST_SEARCHED
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.get("role") != "assistant" or message.get("tool_calls") or _is_signed(message):
            continue
        text = "".join(texts_of(message))
        room -= len(text)
        if room < 0 or len(found) == MOST_LOOKED_UP:
            break
        if text and len(text) <= MOST_TEXT:
            before = messages[position - 1] if position else None
            found.append((position, key_of_text(text, marks_of(before))))
    return found


def with_signature(message: JsonObject, signature: str | None, details: Sequence[JsonObject]) -> JsonObject:
    """Return a message of the model with the signature of its text. Fields that the client sent stay unchanged."""
    signed = {**message}
    if signature is not None:
        signed["extra_content"] = extra_content(signature)
    if details:
        own = message.get("reasoning_details")
        signed["reasoning_details"] = [*(own if isinstance(own, list) else ()), *details]
    return signed


def _is_signed(message: JsonObject) -> bool:
    if message.get("extra_content"):
        return True
    details = message.get("reasoning_details")
    return isinstance(details, list) and any([isinstance(each, dict) and is_of_text(each) for each in details])


@dataclass(slots=True, eq=False)
class _GrowingText:
    """The text of one choice so far, and its signature or details. `called` means that the choice has calls of
    tools."""

    pieces: list[str] = field(default_factory=list)
    signature: str | None = None
    details: tuple[JsonObject, ...] = ()
    called: bool = False


class GatheredSignatures:
    """Gathers the texts of a stream, each one until its end. Above MOST_TEXT nothing is gathered."""

    __slots__ = ("_left", "_texts")

    def __init__(self) -> None:
        self._texts: dict[int, _GrowingText] = {}
        self._left = MOST_TEXT

    def add(self, event: StreamEvent) -> SignedText | None:
        """Add the next event. If it ends a signed text, return that text."""
        if self._left < 0 or not isinstance(event, Chunk):
            return None
        grown = self._texts.get(event.index)
        if grown is None:
            grown = self._texts[event.index] = _GrowingText()
        if event.text:
            self._left -= len(event.text)
            grown.pieces.append(event.text)
        if event.tool_calls:
            grown.called = True
        if event.signature is not None:
            grown.signature = event.signature
        if event.extras is not None:
            grown.details += tuple([each for each in event.extras.reasoning_details if is_of_text(each)])
        if event.finish_reason is None:
            return None
        del self._texts[event.index]
        if grown.called or self._left < 0:
            return None
        return signed_text("".join(grown.pieces), grown.signature, Extras(reasoning_details=grown.details))
