"""Builds the items of a response from its chunks, and the events that report the items as they grow.

Items never overlap, because clients support one open item at a time. Vendors may interleave the chunks of parallel
calls, and only the end of the response shows whether a call is complete. So while a call is open, everything else is
held back. After the call it is sent as one delta for each item.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from providers.completion import NO_EXTRAS, Chunk, Extras, Logprobs, TextRun, ToolCallDelta
from providers.emulation.join_extras import GrowingExtras, overlay, places_of
from providers.failure import Failure, FailureKind, UpstreamError
from providers.framing.text_frames import text_of_ascii
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest
from proxy.surfaces.response.cited_texts import CitedTexts
from proxy.surfaces.response.logprobs import chat_logprobs
from proxy.surfaces.response.text_signature import extra_content, is_of_text, needed_back, without_signature
from proxy.surfaces.responses.open_items import (
    CallItem,
    CustomCallItem,
    ImageItem,
    MessageItem,
    OpenItem,
    ReasoningItem,
    SearchItem,
    SummaryItem,
    TypedCallItem,
)
from proxy.surfaces.responses.request_draft import ResponseTerms
from proxy.surfaces.responses.write_events import EventWriter
from proxy.surfaces.surface import LiteralWriter
from proxy.surfaces.thinking_envelope import seal
from proxy.surfaces.tool_items.searches import WebSearch, results_in, searches_in, shows_searches
from proxy.surfaces.tool_items.typed_tools import TYPED

T = TypeVar("T", bound=OpenItem)

MAX_STREAMED_ITEMS: Final = 256
"""The most items that are streamed as they grow. If a model switches between reasoning and text more often, the rest is
held back, because an item costs a kilobyte of events."""

MAX_TEXT: Final = 32 * 1024 * 1024
"""The most characters of one response, as many as a vendor's non-streaming response may have bytes."""


@dataclass(slots=True)
class _HeldCall:
    """A call that waits for the end of the call before it."""

    first: ToolCallDelta
    chunks: list[str] = field(default_factory=list)
    extra: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(slots=True)
class _HeldBack:
    """The contents that wait for the end of the response."""

    reasoning: list[str] = field(default_factory=list)
    details: list[JsonObject] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    logprobs: list[JsonValue] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    calls: dict[int, _HeldCall] = field(default_factory=dict)


class OutputBuilder:
    """The output of one response. `items` are the completed items, `extra_fields` the fields that belong to no item.

    `message` is the open message while it only gets text without log probabilities. `_late_details` are details of
    reasoning that came after a text. Only items of calls and of searches follow the last text, because agents take the
    last message for the result. These details are sent before the next call, or else with the message. Searches that
    the vendor reports after the text, as Gemini does, are items after the message.
    """

    __slots__ = (
        *("_audio", "_calls", "_held", "_late_details", "_open", "_request", "_searches", "_shows_searches", "_terms"),
        *("_texts", "_unique", "_writer", "extra_fields", "items", "chars_left"),
    )

    def __init__(self, request: UnifiedRequest, terms: ResponseTerms, writer: EventWriter, unique: str) -> None:
        self._request = request
        self._terms = terms
        self._writer = writer
        self._unique = unique
        self._shows_searches = shows_searches(request)
        self._searches: list[WebSearch] = []
        self._open: OpenItem | None = None
        self._held = _HeldBack()
        self._texts = CitedTexts()
        self._late_details: list[JsonObject] = []
        self._calls = False
        self._audio: GrowingExtras | None = None
        self.chars_left = MAX_TEXT
        """The number of characters that the response may still get."""
        self.items: list[JsonObject] = []
        self.extra_fields: dict[str, JsonValue] = {}

    @property
    def message(self) -> MessageItem | None:
        """The message whose text part is open; `None` if there is none."""
        item = self._open
        return item if isinstance(item, MessageItem) and item.head else None

    def grow(self, size: int) -> None:
        """Count further characters. Raises UpstreamError beyond MAX_TEXT, because the end of the response repeats all
        of them."""
        self.chars_left -= size
        if self.chars_left < 0:
            message = f"The upstream's response is longer than {MAX_TEXT} characters."
            raise UpstreamError(Failure(FailureKind.MALFORMED, message, ours=True))

    def literal_writer(self, run: TextRun) -> LiteralWriter | None:
        """Return the function that writes the events of a run. The function returns empty bytes for a text beyond
        `chars_left`; `chunk` then raises the error."""
        item = self._open
        growth = None if item is None or run.size > self.chars_left else item.growth(run)
        if growth is None:
            return None
        (before, middle, after), add = growth
        numbers = self._writer

        def write(literal: bytes) -> bytes:
            text = text_of_ascii(literal)
            if len(text) > self.chars_left:
                return b""
            self.chars_left -= len(text)
            add(text)
            number = numbers.number
            numbers.number = number + 1
            return b"%b%d%b%b%b" % (before, number, middle, literal, after)

        return write

    def add(self, chunk: Chunk) -> bytes:
        """Return the events of a chunk."""
        events: list[bytes] = []
        extras = chunk.extras
        details = () if extras is None else without_signature(extras.reasoning_details, chunk.signature)
        if chunk.reasoning or details:
            events.append(self._add_reasoning(chunk.reasoning or "", details))
        searched = extras is not None and self._shows_searches
        late = searched and not chunk.text and self._has_message()
        if extras is not None and searched and not late:
            events.append(self._add_searches(extras))
        if extras is not None and extras.annotations:
            self._texts.wait(extras.annotations)
        text = "" if chunk.text == chunk.refusal else chunk.text
        if text or (extras is not None and extras.images):
            events.append(self._add_content(text, self._logprobs(chunk.logprobs), extras or NO_EXTRAS))
        if chunk.refusal:
            events.append(self._add_refusal(chunk.refusal))
        if extras is not None:
            events.append(self._add_extras(extras))
        if chunk.signature is not None:
            self._put_with_text("extra_content", extra_content(chunk.signature))
        if extras is not None and late:
            events.append(self._add_searches(extras))
        for delta in chunk.tool_calls:
            events.append(self._add_call(delta))
        return b"".join(events)

    def finish(self, status: str) -> bytes:
        """Return the events that end all items; `status` is the status of the last one."""
        held, self._held = self._held, _HeldBack()
        flushed = bool(held.reasoning or held.details or held.text or held.refusal or held.calls)
        late, self._late_details = self._late_details, []
        if needed_back(late) and not self._calls and self._has_message():
            self._put_with_text("encrypted_content", seal(late))
            late = []
        events = [self._close("completed" if flushed else status)]
        if held.reasoning or held.details:
            item = self._begin_reasoning()
            events += [item.open(), item.text("".join(held.reasoning)) if held.reasoning else b""]
            item.details.add(held.details)
            events.append(self._close("completed" if held.text or held.refusal or held.calls else status))
        if held.text or held.refusal:
            events.append(self._flush_message(held))
            events.append(self._close("completed" if held.calls else status))
        events.append(self._seal_late(late))
        for offset, call in enumerate(held.calls.values(), 1):
            opened = self._begin_call(call.first)
            events += [opened.open(), opened.add("".join(call.chunks), call.extra)]
            events.append(self._close(status if offset == len(held.calls) else "completed"))
        if unplaced := self._texts.settle():
            overlay(self.extra_fields, {"annotations": [*unplaced]})
        if self._audio is not None and (whole := self._audio.whole()) is not None and whole.audio is not None:
            self.extra_fields["audio"] = whole.audio
        return b"".join(events)

    def _flush_message(self, held: _HeldBack) -> bytes:
        item = self._open = MessageItem(self._writer, self._item_id("msg"), len(self.items), self._texts)
        events = [item.open()]
        if held.text:
            events.append(item.text("".join(held.text), held.logprobs))
        if held.refusal:
            events.append(item.refusal("".join(held.refusal)))
        return b"".join(events)

    # Chunks --------------------------------------------------------------------------------------------------------

    def _add_reasoning(self, text: str, details: Sequence[JsonObject]) -> bytes:
        self.grow(len(text))
        item, events = self._open, b""
        if not text and not isinstance(item, ReasoningItem):
            behind = self._has_message() or self._calls
            late = [each for each in details if behind or is_of_text(each)]
            self._late_details += late
            details = [each for each in details if each not in late]
            if not details:
                return b""
        if not isinstance(item, ReasoningItem):
            if not self._may_open():
                self._held.details += details
                if text:
                    self._held.reasoning.append(text)
                return b""
            events = self._close("completed")
            item = self._begin_reasoning()
            events += item.open()
        item.details.add(details)
        return events + item.text(text) if text else events

    def _seal_late(self, late: Sequence[JsonObject]) -> bytes:
        """Return the events of an item with details that came after a text, if the vendor needs any of them back."""
        if not needed_back(late):
            return b""
        events = self._close("completed")
        item = self._begin_reasoning()
        item.details.add(late)
        return events + item.open() + self._close("completed")

    def _put_with_text(self, name: str, value: JsonValue) -> None:
        """Put a field of the response's text into its last message, or beside the output if there is no message."""
        item = self._open
        if isinstance(item, MessageItem):
            item.extra[name] = value
            return
        last = next((each for each in reversed(self.items) if each["type"] == "message"), self.extra_fields)
        last[name] = value

    def _has_message(self) -> bool:
        return isinstance(self._open, MessageItem) or any([item["type"] == "message" for item in self.items])

    def _add_content(self, text: str, logprobs: list[JsonValue], extras: Extras) -> bytes:
        """Return the events of a text and of the images in it."""
        events: list[bytes] = []
        written = 0
        for image, offset in zip(extras.images, places_of(extras, len(text)), strict=True):
            if offset > written:
                events.append(self._add_text(text[written:offset], logprobs))
                written, logprobs = offset, []
            events.append(self._add_image(image))
        if written < len(text):
            events.append(self._add_text(text[written:], logprobs))
        return b"".join(events)

    def _add_text(self, text: str, logprobs: list[JsonValue]) -> bytes:
        self.grow(len(text))
        item, events = self._open_message()
        if item is None:
            self._held.text.append(text)
            self._held.logprobs += logprobs
            return b""
        return events + item.text(text, logprobs)

    def _add_refusal(self, text: str) -> bytes:
        self.grow(len(text))
        item, events = self._open_message()
        if item is None:
            self._held.refusal.append(text)
            return b""
        return events + self._cite() + item.refusal(text)

    def _add_extras(self, extras: Extras) -> bytes:
        events = b""
        if extras.annotations and self.message is not None:
            events = self._cite()
        for fields in (extras.message, extras.choice, extras.answer):
            overlay(self.extra_fields, fields)
        if extras.audio is not None:
            self._audio = self._audio or GrowingExtras()
            self._audio.add(Extras(audio=extras.audio))
        return events

    def _cite(self) -> bytes:
        """Return the events of the citations for the open part of a text, if there is one."""
        message = self.message
        return b"" if message is None else message.annotate(self._texts.of_open_part(message.size()))

    def _add_searches(self, extras: Extras) -> bytes:
        """Return the events of searches, each an item; empty while a call is open. An item stays open for its
        result."""
        item, events = self._open, b""
        if isinstance(item, SearchItem) and item.search.name:
            item.add_sources(results_in(extras).get(item.search.name, ()))
        for search in searches_in(extras):
            if search in self._searches or not self._may_open():
                continue
            self._searches.append(search)
            self.grow(sum(map(len, search.queries)) + sum([len(url) for url, _ in search.sources]))
            events += self._close("completed")
            self._open = item = SearchItem(
                self._writer, self._item_id("ws"), len(self.items), search, self._terms.sources
            )
            events += item.open()
        return events

    def _add_image(self, image: JsonObject) -> bytes:
        held = image.get("image_url")
        url = held.get("url") if isinstance(held, dict) else None
        head, found, data = url.partition(";base64,") if isinstance(url, str) else ("", "", "")
        if not found or not head.startswith("data:") or not self._may_open():
            listed = self.extra_fields.get("images")
            self.extra_fields["images"] = [*(listed if isinstance(listed, list) else []), image]
            return b""
        self.grow(len(data))
        events = self._close("completed")
        self._open = item = ImageItem(self._writer, self._item_id("ig"), len(self.items), data)
        return events + item.open() + self._close("completed")

    def _add_call(self, delta: ToolCallDelta) -> bytes:
        self.grow(len(delta.arguments))
        item = self._open
        if isinstance(item, CallItem) and item.number == delta.index:
            return item.add(delta.arguments, delta.extra)
        waiting = self._held.calls.get(delta.index)
        if waiting is None and self._may_open():
            late, self._late_details = self._late_details, []
            events = self._seal_late(late) + self._close("completed")
            opened = self._begin_call(delta)
            return events + opened.open() + opened.add(delta.arguments, None)
        if waiting is None:
            waiting = self._held.calls[delta.index] = _HeldCall(delta)
        waiting.chunks.append(delta.arguments)
        waiting.extra |= delta.extra or {}
        return b""

    # Items ---------------------------------------------------------------------------------------------------------

    def _may_open(self) -> bool:
        return not isinstance(self._open, CallItem) and len(self.items) < MAX_STREAMED_ITEMS

    def _open_message(self) -> tuple[MessageItem | None, bytes]:
        """Return the open message, with the events that opened it; `None` if it has to wait."""
        item = self._open
        if isinstance(item, MessageItem):
            return item, b""
        if not self._may_open():
            return None, b""
        events = self._close("completed")
        self._open = opened = MessageItem(self._writer, self._item_id("msg"), len(self.items), self._texts)
        return opened, events + opened.open()

    def _begin_reasoning(self) -> ReasoningItem:
        kind = SummaryItem if self._terms.summary else ReasoningItem
        self._open = item = kind(self._writer, self._item_id("rs"), len(self.items))
        return item

    def _begin_call(self, first: ToolCallDelta) -> CallItem:
        self._calls = True
        origin = self._terms.origins.get(first.name or "")
        called: JsonObject = {**(first.extra or {}), "call_id": first.id or "", "name": first.name or ""}
        if origin is not None:
            called |= {"name": origin.name, "namespace": origin.namespace}
        if (tool := TYPED.get(self._terms.typed.get(first.name or "", ""))) is not None:
            name = self._item_id(tool.kind[:2])
            self._open = typed = TypedCallItem(self._writer, name, len(self.items), first.index, called, tool)
            return typed
        kind, prefix = (CustomCallItem, "ctc") if first.kind == "custom" else (CallItem, "fc")
        self._open = item = kind(self._writer, self._item_id(prefix), len(self.items), first.index, called)
        return item

    def _close(self, status: str) -> bytes:
        if self._open is None:
            return b""
        events = self._cite()
        item, self._open = self._open, None
        events += item.close(status)
        self.items.append(item.item)
        return events

    def _item_id(self, prefix: str) -> str:
        return f"{prefix}_{self._unique}_{len(self.items)}"

    def _logprobs(self, logprobs: Logprobs | None) -> list[JsonValue]:
        shown = chat_logprobs(self._request, logprobs)
        content = None if shown is None else shown["content"]
        return content if isinstance(content, list) else []
