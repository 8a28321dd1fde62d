"""One entry of the payload log between the gateway and the process that writes it: its frames, and its line. Pure."""

import struct
from dataclasses import dataclass
from typing import Final

import orjson

from providers.json_types import JsonObject, JsonValue
from proxy.payload_log.redact_content import Patterns, dumped, fitted, redacted, redacted_json, without_credentials

SLACK: Final = 4096
"""The number of characters of a stream's text that are gathered beyond the written length. They are removed if the text
continues after them, because they may be a part of something that would have been redacted."""

_HEAD: Final = struct.Struct("!III?")
HEAD: Final = _HEAD.size
_NOTHING: Final = 2**32 - 1

_RESPONSE: Final = struct.Struct("!i")
RESPONSE: Final = _RESPONSE.size


@dataclass(frozen=True, slots=True)
class PayloadEntry:
    """One request: `facts` is a JSON object without content; `request` and `answer` are the bodies of the request and
    the response, `None` if there is no body. With `streamed`, `answer` is the list of a stream's choices."""

    facts: bytes
    request: bytes | None
    answer: bytes | None
    streamed: bool = False

    @property
    def size(self) -> int:
        """The bytes of its content."""
        return len(self.request or b"") + len(self.answer or b"")

    def frames(self) -> tuple[bytes, ...]:
        """Return the frames for the process."""
        sizes = [_NOTHING if part is None else len(part) for part in (self.request, self.answer)]
        head = _HEAD.pack(len(self.facts), *sizes, self.streamed)
        return head, self.facts, self.request or b"", self.answer or b""

    def withheld(self, reason: str) -> "PayloadEntry":
        """Return the entry without its content, and with the reason why the content is missing."""
        facts = orjson.dumps({**orjson.loads(self.facts), "withheld": reason})
        return PayloadEntry(facts, None, None)


@dataclass(frozen=True, slots=True)
class EntryHead:
    """The lengths of the parts of an entry that follow its head; `None` for an absent part."""

    facts: int
    request: int | None
    answer: int | None
    streamed: bool


def read_head(data: bytes) -> EntryHead:
    """Return the lengths in the head of an entry."""
    facts, request, answer, streamed = _HEAD.unpack(data)
    return EntryHead(facts, _or_none(request), _or_none(answer), streamed)


def _or_none(size: int) -> int | None:
    return None if size == _NOTHING else size


def response(error: int) -> bytes:
    """Return the response of the process: 0, or the number of an operating system's error."""
    return _RESPONSE.pack(error)


def read_response(data: bytes) -> int:
    """Return the error number in a response."""
    error: int = _RESPONSE.unpack(data)[0]
    return error


def entry_line(entry: PayloadEntry, patterns: Patterns, most: int) -> bytes:
    """Return the line of an entry, with its newline: redacted, and each content with at most `most` bytes."""
    parts, cut = [_redacted_facts(entry.facts, patterns)[:-1]], []
    for name, content in (("request", entry.request), ("streamed" if entry.streamed else "answer", entry.answer)):
        if content is None:
            continue
        value = redacted_json(content, patterns)
        if name == "request":
            value = without_credentials(value)
        clipped = name == "streamed" and _without_slack(value)
        data, shortened = fitted(value, most)
        parts.append(b'"%b":%b' % (name.encode(), data))
        if clipped or shortened:
            cut.append(name)
    if cut:
        parts.append(b'"cut":' + dumped(list(cut)))
    return b",".join(parts) + b"}\n"


def _redacted_facts(facts: bytes, patterns: Patterns) -> bytes:
    """Return the facts with redacted names. If a wildcard entry serves the model, these names are texts of the
    client."""
    if not patterns:
        return facts
    values = orjson.loads(facts)
    names = {name: redacted(values[name], patterns) for name in ("model", "deployment") if values.get(name)}
    return dumped({**values, **names})


def _without_slack(choices: JsonValue) -> bool:
    """Remove the slack from the texts that continue after it, and return whether there were such texts."""
    found = False
    for choice in choices if isinstance(choices, list) else ():
        clipped = choice.pop("clipped", None) if isinstance(choice, dict) else None
        for holder, name in _clipped_texts(choice, clipped):
            holder[name] = str(holder[name])[:-SLACK]
            found = True
    return found


def _clipped_texts(choice: JsonValue, clipped: JsonValue) -> list[tuple[JsonObject, str]]:
    if not isinstance(choice, dict) or not isinstance(clipped, list):
        return []
    texts: list[tuple[JsonObject, str]] = [(choice, name) for name in clipped if isinstance(name, str)]
    calls = choice.get("tool_calls")
    for place in clipped:
        if isinstance(place, int) and isinstance(calls, list) and isinstance(call := calls[place], dict):
            texts.append((call, "arguments"))
    return texts
