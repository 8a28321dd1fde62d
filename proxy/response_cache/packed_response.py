"""Encodes and decodes cached responses: a non-streaming one, or the events of a stream in their order. Pure.

A response is packed as JSON. Each record is an object with the fields that differ from their defaults. An event that is
only a text of the first choice is packed as that text. Any other event is a list of its kind and fields.

Each entry has the time at which it was made, and a seal: a keyed hash over the key, the time and the data. An entry
that was changed, moved to another key, cut off, or written without the secret does not open. So only entries of
gateways with the same FORM are decoded.
"""

import json
import math
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields
from hashlib import blake2b
from hmac import compare_digest
from typing import Any, Final, TypeVar, cast

import orjson

from providers.completion import (
    Choice,
    Chunk,
    Completion,
    ContentLogprobs,
    Extras,
    LegacyLogprobs,
    NativeEvent,
    StreamEvent,
    StreamPart,
    TextRun,
    TokenLogprob,
    ToolCall,
    ToolCallDelta,
    Usage,
)
from providers.frozen_record import frozen

_SEAL: Final = 16
_TIME: Final = struct.Struct(">d")
_DATA: Final = _SEAL + _TIME.size

AHEAD: Final = 5.0
"""The most seconds by which the clock that made an entry may be ahead of the clock that reads it."""


def seal(secret: bytes, key: str, made: float, data: bytes) -> bytes:
    """Return an entry that was made at `made`, in unix seconds."""
    rest = _TIME.pack(made) + data
    return _hash(secret, key, rest) + rest


def open_sealed(secret: bytes, key: str, entry: bytes, most: int) -> tuple[float, bytes] | None:
    """Return when an entry was made, and its data; `None` if its seal is invalid, or if its data exceed `most`
    bytes."""
    if not _DATA <= len(entry) <= _DATA + most:
        return None
    seal_of_entry, rest = entry[:_SEAL], entry[_SEAL:]
    if not compare_digest(seal_of_entry, _hash(secret, key, rest)):
        return None
    return _TIME.unpack_from(rest)[0], rest[_TIME.size :]


def age_at(made: float, now: float) -> float:
    """Return the age of an entry in seconds; infinite if it was made in the future, since a clock was set back."""
    age = now - made
    return math.inf if age < -AHEAD else max(age, 0.0)


def _hash(secret: bytes, key: str, rest: bytes) -> bytes:
    return blake2b(rest, digest_size=_SEAL, key=secret, person=b"answer", salt=bytes.fromhex(key[:32])).digest()


T = TypeVar("T")
Members = Mapping[str, Any]

_CHUNK, _USAGE, _FINGERPRINT = 0, 1, 2
"""The kinds of packed events that are not only a text of the first choice."""

_ODD: Final = b"\n"
"""Marks JSON that the standard library has to read: it has lone surrogates, or integers beyond 64 bits. No other JSON
has the mark."""

_PLAIN: Final = frozenset({"text", "system_fingerprint"})
_EVEN: Final = re.compile(r"[ !#-\[\]-~]*")
"""Texts in printable ASCII that need no escape in JSON."""


@frozen
class CachedResponse:
    """A response with the facts for its headers: the deployment that gave it, and which fields were emulated, dropped
    or changed. It has either `completion` or `events`. The events stay packed until they are sent."""

    deployment: str
    emulated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    max_tokens: int | None = None
    completion: Completion | None = None
    events: tuple[object, ...] | None = None


def pack_head(deployment: str, emulated: tuple[str, ...], dropped: tuple[str, ...], max_tokens: int | None) -> bytes:
    """Return the head of a packed response."""
    return _json((deployment, emulated, dropped, max_tokens))


def pack_completion(completion: Completion) -> bytes:
    """Return a non-streaming response as bytes."""
    return _json(completion)


class EventPacker:
    """Packs the events of one stream. Consecutive texts of the first choice are plain JSON strings. If their
    fingerprint changes, the new one is packed before them."""

    __slots__ = ("_fingerprint",)

    def __init__(self) -> None:
        self._fingerprint: str | None = None

    def pack(self, event: StreamEvent) -> list[bytes]:
        """Return one event as bytes."""
        if isinstance(event, Usage):
            return [_json((_USAGE, event))]
        members = _members(event)
        if members.keys() <= _PLAIN and event.text:
            return [*self._of(event.system_fingerprint), _json(event.text)]
        return [_json((_CHUNK, members))]

    def pack_run(self, run: TextRun) -> list[bytes]:
        """Return the chunks of a run as bytes."""
        if run.index or run.part != "text" or run.native is not None:
            return [packed for event in run.chunks() for packed in self.pack(event)]
        packed = self._of(run.system_fingerprint)
        packed += [b'"%b"' % literal for literal in run.literals]
        for place, text in run.odd.items():
            packed[place - len(run.literals)] = _json(text)
        return packed

    def _of(self, fingerprint: str | None) -> list[bytes]:
        if fingerprint == self._fingerprint:
            return []
        self._fingerprint = fingerprint
        return [_json((_FINGERPRINT, fingerprint))]


def join(head: bytes, packed: bytes | None, events: Iterable[bytes]) -> bytes:
    """Return the bytes of a cached response."""
    if packed is not None:
        return b"[" + head + b"," + packed + b"]"
    return b"[" + head + b",[" + b",".join(events) + b"]]"


def unpack(data: bytes) -> CachedResponse | None:
    """Return a cached response; `None` if the bytes are no response."""
    try:
        (deployment, emulated, dropped, max_tokens), body = (json if _ODD in data else orjson).loads(data)
        head = (str(deployment), tuple(emulated), tuple(dropped), max_tokens)
        if isinstance(body, dict):
            return CachedResponse(*head, completion=_read(Completion, body))
        return CachedResponse(*head, events=tuple(body))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


class EventReader:
    """Reads the events of a cached stream. Consecutive texts are read as a run. The first text is a separate chunk,
    because it begins the choice, and a run can only continue a choice."""

    __slots__ = ("_begun", "_fingerprint")

    def __init__(self) -> None:
        self._begun = False
        self._fingerprint: str | None = None

    def read(self, packed: Iterable[object]) -> Iterator[StreamPart]:
        """Yield the parts of the next packed events."""
        texts: list[str] = []
        for each in packed:
            if isinstance(each, str):
                if self._begun:
                    texts.append(each)
                else:
                    self._begun = True
                    yield Chunk(0, each, system_fingerprint=self._fingerprint)
                continue
            if texts:
                yield run_of(texts, self._fingerprint)
                texts = []
            kind, members = cast(tuple[int, Any], each)
            if kind == _FINGERPRINT:
                self._fingerprint = members
            else:
                yield _read(Usage, members) if kind == _USAGE else _read(Chunk, members)
        if texts:
            yield run_of(texts, self._fingerprint)


def run_of(texts: list[str], fingerprint: str | None) -> TextRun:
    """Return texts of the first choice as a run."""
    whole = "".join(texts)
    if _EVEN.fullmatch(whole):
        return TextRun(0, "\n".join(texts).encode().split(b"\n"), {}, len(whole), len(whole), fingerprint)
    odd = {place: text for place, text in enumerate(texts) if not _EVEN.fullmatch(text)}
    literals = [b"" if place in odd else text.encode() for place, text in enumerate(texts)]
    return TextRun(0, literals, odd, len(whole), len(whole.encode("utf-8", "surrogatepass")), fingerprint)


def _plain(value: object) -> object:
    if type(value) in _DEFAULTS:
        return _members(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    raise TypeError(f"{type(value).__name__} in an answer")


_ESCAPING: Final = json.JSONEncoder(separators=(",", ":"), default=_plain, check_circular=False)


def _json(value: object) -> bytes:
    """Return JSON. It ends with a line break if it has a value that orjson cannot write."""
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATACLASS)
    except orjson.JSONEncodeError:
        return _ESCAPING.encode(value).encode() + _ODD


def _members(value: object) -> dict[str, object]:
    """Return the fields of a frozen dataclass that differ from their defaults."""
    found = {}
    for name, default in _DEFAULTS[type(value)]:
        member = getattr(value, name)
        if member is not default and member != default:
            found[name] = member
    return found


Reader = Callable[[Any], object]


def _of(kind: type[object]) -> Reader:
    return lambda members: None if members is None else _read(kind, members)


def _each(kind: type[object]) -> Reader:
    return lambda several: tuple(_read(kind, members) for members in several)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _listed(several: Iterable[object] | None) -> object:
    return None if several is None else tuple(several)


def _logprobs(members: Members) -> ContentLogprobs | LegacyLogprobs:
    return _read(ContentLogprobs, members) if "content" in members else _read(LegacyLogprobs, members)


_READERS: Final[Mapping[type[object], Mapping[str, Reader]]] = {
    Usage: {},
    TokenLogprob: {"bytes": _listed, "top": _each(TokenLogprob)},
    ContentLogprobs: {"content": _each(TokenLogprob), "refusal": _each(TokenLogprob)},
    LegacyLogprobs: dict.fromkeys(("tokens", "token_logprobs", "top_logprobs", "text_offset"), _listed),
    ToolCall: {},
    ToolCallDelta: {},
    Extras: dict.fromkeys(("reasoning_details", "annotations", "images", "image_places"), _listed),
    NativeEvent: {"data": _bytes},
    Choice: {"logprobs": _logprobs, "tool_calls": _each(ToolCall), "extras": _of(Extras)},
    Chunk: {
        "logprobs": _logprobs,
        "tool_calls": _each(ToolCallDelta),
        "extras": _of(Extras),
        "native": _of(NativeEvent),
    },
    Completion: {"choices": _each(Choice), "usage": _of(Usage), "native": _bytes},
}
"""The readers of the fields of each frozen dataclass that JSON has no form for."""


def _read(kind: type[T], members: Members) -> T:
    """Return a frozen dataclass from its fields."""
    readers = _READERS[kind]
    return kind(**{name: readers[name](each) if name in readers else each for name, each in members.items()})


_DEFAULTS: Final[Mapping[type[object], tuple[tuple[str, object], ...]]] = {
    kind: tuple((each.name, each.default) for each in fields(cast(Any, kind))) for kind in _READERS
}


def _form() -> str:
    shapes = [(kind.__name__, [(each.name, repr(each.type)) for each in fields(cast(Any, kind))]) for kind in _READERS]
    return blake2b(repr(shapes).encode(), digest_size=8).hexdigest()


FORM: Final = f"1:{_form()}"
"""The form of cached responses. An entry in another form is not read. The form changes with every change of the frozen
dataclasses."""
