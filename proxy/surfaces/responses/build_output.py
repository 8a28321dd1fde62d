"""Builds the items of an answer from its chunks, with the events that show them as they grow.

Items never overlap: clients know one open item at a time. Vendors may send the pieces of parallel calls in turns, and
whether a call is complete shows at the end only. So while a call is open, everything that is not of it is held back,
and follows in one piece each.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from providers.completion import Chunk, Extras, Logprobs, ToolCallDelta
from providers.failure import Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest
from proxy.surfaces.response.logprobs import chat_logprobs
from proxy.surfaces.responses.open_items import (
    CallItem,
    CustomCallItem,
    ImageItem,
    MessageItem,
    OpenItem,
    ReasoningItem,
    SummaryItem,
)
from proxy.surfaces.responses.request_draft import ResponseTerms
from proxy.surfaces.responses.write_events import EventWriter

T = TypeVar("T", bound=OpenItem)

MAX_LIVE: Final = 256
"""Items that are shown as they grow; a model that turns between thinking and text more often gets the rest held back,
since an item costs a kilobyte of events."""

MAX_TEXT: Final = 32 * 1024 * 1024
"""Characters of one answer, as many as a vendor's whole answer may have bytes."""


@dataclass(slots=True)
class _HeldCall:
    """A call that waits for the one before it."""

    first: ToolCallDelta
    pieces: list[str] = field(default_factory=list)
    extra: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(slots=True)
class _HeldBack:
    """What waits for the end of the answer."""

    reasoning: list[str] = field(default_factory=list)
    details: list[JsonObject] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    logprobs: list[JsonValue] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    annotations: list[JsonObject] = field(default_factory=list)
    calls: dict[int, _HeldCall] = field(default_factory=dict)


class OutputBuilder:
    """The output of one answer. `items` are those that are complete, `beside` what has no place in an item.

    `message` is the open message while it is text without log probabilities that comes.
    """

    __slots__ = ("_base", "_held", "_open", "_request", "_terms", "_unique", "_writer", "beside", "items", "room")

    def __init__(self, request: UnifiedRequest, terms: ResponseTerms, writer: EventWriter, unique: str) -> None:
        self._request = request
        self._terms = terms
        self._writer = writer
        self._unique = unique
        self._open: OpenItem | None = None
        self._held = _HeldBack()
        self._base = 0  # code points of text in closed messages
        self.room = MAX_TEXT
        """Characters that the answer may still have."""
        self.items: list[JsonObject] = []
        self.beside: dict[str, JsonValue] = {}

    @property
    def message(self) -> MessageItem | None:
        """The message whose text part is open; None otherwise."""
        item = self._open
        return item if isinstance(item, MessageItem) and item.head else None

    def grow(self, size: int) -> None:
        """Count further characters. Raises UpstreamError where they are too many to be repeated at the end."""
        self.room -= size
        if self.room < 0:
            message = f"The upstream's answer is longer than {MAX_TEXT} characters."
            raise UpstreamError(Failure(FailureKind.MALFORMED, message, ours=True))

    def add(self, chunk: Chunk) -> bytes:
        """Return the events of a chunk."""
        events: list[bytes] = []
        extras = chunk.extras
        if chunk.reasoning or (extras is not None and extras.reasoning_details):
            events.append(self._think(chunk.reasoning or "", () if extras is None else extras.reasoning_details))
        if chunk.text and chunk.text != chunk.refusal:
            events.append(self._say(chunk.text, self._logprobs(chunk.logprobs)))
        if chunk.refusal:
            events.append(self._refuse(chunk.refusal))
        if extras is not None:
            events.append(self._add_extras(extras))
        if chunk.signature is not None and isinstance(self._open, MessageItem):
            self._open.extra = {"extra_content": {"google": {"thought_signature": chunk.signature}}}
        for delta in chunk.tool_calls:
            events.append(self._call(delta))
        return b"".join(events)

    def finish(self, status: str) -> bytes:
        """Return the events that end all items; `status` is that of the last one."""
        held, self._held = self._held, _HeldBack()
        flushed = bool(held.reasoning or held.details or held.text or held.refusal or held.annotations or held.calls)
        events = [self._close("completed" if flushed else status)]
        if held.reasoning or held.details:
            item = self._begin_thought()
            events += [item.open(), item.text("".join(held.reasoning)) if held.reasoning else b""]
            item.details.add(held.details)
            events.append(self._close("completed" if held.text or held.refusal or held.calls else status))
        if held.text or held.refusal or held.annotations:
            events.append(self._flush_message(held))
            events.append(self._close("completed" if held.calls else status))
        for place, call in enumerate(held.calls.values(), 1):
            opened = self._begin_call(call.first)
            events += [opened.open(), opened.add("".join(call.pieces), call.extra)]
            events.append(self._close(status if place == len(held.calls) else "completed"))
        return b"".join(events)

    def _flush_message(self, held: _HeldBack) -> bytes:
        item = MessageItem(self._writer, self._name("msg"), len(self.items))
        self._open = item
        events = [item.open()]
        if held.text:
            events.append(item.text("".join(held.text), held.logprobs))
        if held.annotations:
            events.append(item.annotate(self._moved(held.annotations)))
        if held.refusal:
            events.append(item.refusal("".join(held.refusal)))
        return b"".join(events)

    # Pieces --------------------------------------------------------------------------------------------------------

    def _think(self, text: str, details: Sequence[JsonObject]) -> bytes:
        self.grow(len(text))
        item, events = self._open, b""
        if not isinstance(item, ReasoningItem):
            if not self._may_open():
                self._held.details += details
                if text:
                    self._held.reasoning.append(text)
                return b""
            events = self._close("completed")
            item = self._begin_thought()
            events += item.open()
        item.details.add(details)
        return events + item.text(text) if text else events

    def _say(self, text: str, logprobs: list[JsonValue]) -> bytes:
        self.grow(len(text))
        item, events = self._open_message()
        if item is None:
            self._held.text.append(text)
            self._held.logprobs += logprobs
            return b""
        return events + item.text(text, logprobs)

    def _refuse(self, text: str) -> bytes:
        self.grow(len(text))
        item, events = self._open_message()
        if item is None:
            self._held.refusal.append(text)
            return b""
        return events + item.refusal(text)

    def _add_extras(self, extras: Extras) -> bytes:
        events = b"".join([self._picture(image) for image in extras.images])
        if extras.annotations:
            item, opened = self._open_message()
            if item is None:
                self._held.annotations += extras.annotations
            else:
                events += opened + item.annotate(self._moved(extras.annotations))
        for members in (extras.message, extras.choice, extras.answer):
            self.beside |= members or {}
        if extras.audio is not None:
            self.beside["audio"] = extras.audio
        return events

    def _picture(self, image: JsonObject) -> bytes:
        held = image.get("image_url")
        url = held.get("url") if isinstance(held, dict) else None
        head, found, data = url.partition(";base64,") if isinstance(url, str) else ("", "", "")
        if not found or not head.startswith("data:") or not self._may_open():
            listed = self.beside.get("images")
            self.beside["images"] = [*(listed if isinstance(listed, list) else []), image]
            return b""
        self.grow(len(data))
        events = self._close("completed")
        self._open = item = ImageItem(self._writer, self._name("ig"), len(self.items), data)
        return events + item.open() + self._close("completed")

    def _call(self, delta: ToolCallDelta) -> bytes:
        self.grow(len(delta.arguments))
        item = self._open
        if isinstance(item, CallItem) and item.number == delta.index:
            return item.add(delta.arguments, delta.extra)
        waiting = self._held.calls.get(delta.index)
        if waiting is None and self._may_open():
            events = self._close("completed")
            opened = self._begin_call(delta)
            return events + opened.open() + opened.add(delta.arguments, None)
        if waiting is None:
            waiting = self._held.calls[delta.index] = _HeldCall(delta)
        waiting.pieces.append(delta.arguments)
        waiting.extra |= delta.extra or {}
        return b""

    # Items ---------------------------------------------------------------------------------------------------------

    def _may_open(self) -> bool:
        return not isinstance(self._open, CallItem) and len(self.items) < MAX_LIVE

    def _open_message(self) -> tuple[MessageItem | None, bytes]:
        """Return the open message, with the events that opened it; None where it has to wait."""
        item = self._open
        if isinstance(item, MessageItem):
            return item, b""
        if not self._may_open():
            return None, b""
        events = self._close("completed")
        self._open = opened = MessageItem(self._writer, self._name("msg"), len(self.items))
        return opened, events + opened.open()

    def _begin_thought(self) -> ReasoningItem:
        kind = SummaryItem if self._terms.summary else ReasoningItem
        self._open = item = kind(self._writer, self._name("rs"), len(self.items))
        return item

    def _begin_call(self, first: ToolCallDelta) -> CallItem:
        origin = self._terms.origins.get(first.name or "")
        called: JsonObject = {**(first.extra or {}), "call_id": first.id or "", "name": first.name or ""}
        if origin is not None:
            called |= {"name": origin.name, "namespace": origin.namespace}
        kind, prefix = (CustomCallItem, "ctc") if first.kind == "custom" else (CallItem, "fc")
        self._open = item = kind(self._writer, self._name(prefix), len(self.items), first.index, called)
        return item

    def _close(self, status: str) -> bytes:
        item, self._open = self._open, None
        if item is None:
            return b""
        events = item.close(status)
        self.items.append(item.item)
        if isinstance(item, MessageItem):
            self._base += item.length
        return events

    def _name(self, prefix: str) -> str:
        return f"{prefix}_{self._unique}_{len(self.items)}"

    def _logprobs(self, logprobs: Logprobs | None) -> list[JsonValue]:
        shown = chat_logprobs(self._request, logprobs)
        content = None if shown is None else shown["content"]
        return content if isinstance(content, list) else []

    def _moved(self, annotations: Sequence[JsonObject]) -> list[JsonObject]:
        """Return annotations as this API has them: flat, with offsets in the text of their own message."""
        return [_flat(annotation, self._base) for annotation in annotations]


def _flat(annotation: JsonObject, base: int) -> JsonObject:
    kind = annotation.get("type")
    held = annotation.get(kind) if isinstance(kind, str) else None
    if not isinstance(held, dict):
        return annotation
    moved: JsonObject = {"type": kind, **held}
    for name in ("start_index", "end_index"):
        at = moved.get(name)
        if isinstance(at, int):
            moved[name] = max(0, at - base)
    return moved
