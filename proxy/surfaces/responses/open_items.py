"""The items of a response while they are written: their events, and the final items.

An item stores its chunks until it is closed, because the last events of a response repeat the whole item.

Sources: OpenAI OpenAPI 2.3.0 `OutputItem`, `ResponseStreamEvent`; openai 3.54.0 `types/responses` and its accumulator,
which needs an `added` event for each item and part; Codex CLI 0.169.0, which reads only `output_item.done`; November
2026.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from providers.completion import TextRun
from providers.framing.text_frames import MARK
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.response.cited_texts import CitedTexts
from proxy.surfaces.responses.gather_details import GatheredDetails
from proxy.surfaces.responses.write_events import EventForm, EventWriter
from proxy.surfaces.tool_items.searches import WebSearch
from proxy.surfaces.tool_items.typed_tools import TypedTool

IN_PROGRESS: Final = "in_progress"


Growth = tuple[EventForm, Callable[[str], None]]
"""The form of the events that only add text to an item, and a function that adds a text to the item."""


class OpenItem:
    """An item that is being written. `kind` is its type, `output_index` its index in the output."""

    __slots__ = ("_writer", "id", "item", "output_index")

    def __init__(self, writer: EventWriter, name: str, output_index: int) -> None:
        self._writer = writer
        self.id = name
        self.output_index = output_index
        self.item: JsonObject = {}

    def open(self) -> bytes:
        """Return the event that begins the item."""
        return self._item_event("output_item.added", self._build_item(IN_PROGRESS))

    def close(self, status: str) -> bytes:
        """Return the events that end the item, and set `item` to the final item."""
        events = self._end()
        self.item = self._build_item(status)
        return events + self._item_event("output_item.done", self.item)

    def growth(self, run: TextRun) -> Growth | None:
        """Return the form of the events for a run and the function that adds its texts to the item; `None` if the item
        does not grow by texts of this kind."""
        return None

    def _end(self) -> bytes:
        """Return the events that end the parts of the item."""
        return b""

    def _build_item(self, status: str) -> JsonObject:
        """Return the item with its contents so far."""
        raise NotImplementedError

    def _item_event(self, kind: str, item: JsonObject) -> bytes:
        return self._writer.event(f"response.{kind}", {"output_index": self.output_index, "item": item})

    def _event(self, kind: str, **fields: object) -> bytes:
        position = {"item_id": self.id, "output_index": self.output_index}
        return self._writer.event(f"response.{kind}", {**position, **fields})

    def _form(self, kind: str, **fields: object) -> EventForm:
        """Return the form of the events that `_event` writes. In this form, MARK stands for the text."""
        position = {"item_id": self.id, "output_index": self.output_index}
        return self._writer.form(f"response.{kind}", {**position, **fields})


class MessageItem(OpenItem):
    """A message. `chunks` are the chunks of its open part. `head` are the fields of an event that only adds text to
    this part; it is empty while no text part is open. `extra` are further fields of the item. Parts of text are added
    to `texts` as they end."""

    __slots__ = ("_annotations", "_content", "_kind", "_logprobs", "_size", "_texts", "chunks", "extra", "head")

    def __init__(self, writer: EventWriter, name: str, output_index: int, texts: CitedTexts) -> None:
        super().__init__(writer, name, output_index)
        self._texts = texts
        self._content: list[JsonValue] = []
        self._kind: str | None = None
        self._annotations: list[JsonValue] = []
        self._logprobs: list[JsonValue] = []
        self._size = (0, 0)
        self.extra: JsonObject = {}
        self.head = b""
        self.chunks: list[str] = []

    def text(self, text: str, logprobs: list[JsonValue]) -> bytes:
        """Return the events of a further text."""
        events = self._begin("output_text")
        self.chunks.append(text)
        self._logprobs += logprobs
        return events + self._in_part("output_text.delta", delta=text, logprobs=logprobs)

    def growth(self, run: TextRun) -> Growth | None:
        if run.part != "text" or not self.head:
            return None
        position: dict[str, object] = {"content_index": len(self._content)}
        return self._form("output_text.delta", **position, delta=MARK, logprobs=[]), self.chunks.append

    def refusal(self, text: str) -> bytes:
        """Return the events of a further delta of a refusal."""
        events = self._begin("refusal")
        self.chunks.append(text)
        return events + self._in_part("refusal.delta", delta=text)

    def annotate(self, annotations: Iterable[JsonObject]) -> bytes:
        """Return the events of annotations of the open part of text."""
        events: list[bytes] = []
        for annotation in annotations:
            number = len(self._annotations)
            self._annotations.append(annotation)
            events.append(self._in_part("output_text.annotation.added", annotation_index=number, annotation=annotation))
        return b"".join(events)

    def size(self) -> int:
        """Return the number of characters in the open part. Each chunk is counted only once."""
        counted, size = self._size
        size += sum([len(chunk) for chunk in self.chunks[counted:]])
        self._size = len(self.chunks), size
        return size

    def _begin(self, kind: str) -> bytes:
        """Open a part of this kind, unless it is open."""
        if self._kind == kind:
            return b""
        events = self._end()
        self._kind = kind
        empty = self._part("")
        if kind == "output_text":
            position = (self.id.encode(), self.output_index, len(self._content))
            self.head = b'"item_id":"%b","output_index":%d,"content_index":%d' % position
        return events + self._in_part("content_part.added", part=empty)

    def _end(self) -> bytes:
        if self._kind is None:
            return b""
        full_text = "".join(self.chunks)
        part = self._part(full_text)
        if self._kind == "refusal":
            events = self._in_part("refusal.done", refusal=full_text)
        else:
            self._texts.end(part, len(full_text))
            events = self._in_part("output_text.done", text=full_text, logprobs=self._logprobs)
        events += self._in_part("content_part.done", part=part)
        self._content.append(part)
        self._kind, self.head, self.chunks, self._annotations, self._logprobs = None, b"", [], [], []
        self._size = (0, 0)
        return events

    def _part(self, full_text: str) -> JsonObject:
        if self._kind == "refusal":
            return {"type": "refusal", "refusal": full_text}
        return {"type": "output_text", "text": full_text, "annotations": self._annotations, "logprobs": self._logprobs}

    def _in_part(self, kind: str, **fields: object) -> bytes:
        return self._event(kind, content_index=len(self._content), **fields)

    def _build_item(self, status: str) -> JsonObject:
        body: JsonObject = {"id": self.id, "type": "message", "status": status, "role": "assistant"}
        return {**self.extra, **body, "content": [*self._content]}


class ReasoningItem(OpenItem):
    """The reasoning of a model: a text, and the data that its vendor needs back in the next turn, sealed in
    `encrypted_content`."""

    __slots__ = ("_begun", "_chunks", "details")

    added = "content_part"
    delta = "reasoning_text"
    index = "content_index"

    def __init__(self, writer: EventWriter, name: str, output_index: int) -> None:
        super().__init__(writer, name, output_index)
        self._chunks: list[str] = []
        self._begun = False
        self.details = GatheredDetails()

    def text(self, text: str) -> bytes:
        """Return the events of further reasoning."""
        events = b""
        if not self._begun:
            self._begun = True
            events = self._event(f"{self.added}.added", **{self.index: 0}, part=self._part(""))
        self._chunks.append(text)
        return events + self._event(f"{self.delta}.delta", **{self.index: 0}, delta=text)

    def growth(self, run: TextRun) -> Growth | None:
        if run.part != "reasoning" or not self._begun:
            return None
        form = self._form(f"{self.delta}.delta", **{self.index: 0}, delta=MARK)
        detail, chunks, details = run.detail, self._chunks, self.details
        if detail is None:
            return form, chunks.append

        def add(text: str) -> None:
            chunks.append(text)
            details.add(({**detail, "text": text},))

        return form, add

    def _end(self) -> bytes:
        if not self._begun:
            return b""
        full_text = "".join(self._chunks)
        events = self._event(f"{self.delta}.done", **{self.index: 0}, text=full_text)
        return events + self._event(f"{self.added}.done", **{self.index: 0}, part=self._part(full_text))

    def _part(self, full_text: str) -> JsonObject:
        return {"type": "reasoning_text", "text": full_text}

    def _shown(self, parts: list[JsonValue]) -> JsonObject:
        return {"summary": [], "content": parts}

    def _build_item(self, status: str) -> JsonObject:
        done = status != IN_PROGRESS
        parts: list[JsonValue] = [self._part("".join(self._chunks))] if done and self._begun else []
        body: JsonObject = {"id": self.id, "type": "reasoning", "status": status, **self._shown(parts)}
        sealed = self.details.sealed() if done else None
        return body if sealed is None else {**body, "encrypted_content": sealed}


class SummaryItem(ReasoningItem):
    """The reasoning of a model, for clients that request it as a summary."""

    __slots__ = ()

    added = "reasoning_summary_part"
    delta = "reasoning_summary_text"
    index = "summary_index"

    def _part(self, full_text: str) -> JsonObject:
        return {"type": "summary_text", "text": full_text}

    def _shown(self, parts: list[JsonValue]) -> JsonObject:
        return {"summary": parts}


class CallItem(OpenItem):
    """A call of a function. `number` is the call's index in the choice, `call_fields` are its fields besides its
    arguments."""

    __slots__ = ("_chunks", "call_fields", "number")

    kind = "function_call"
    arguments_field = "arguments"
    delta = "function_call_arguments"
    empty_arguments = "{}"

    def __init__(self, writer: EventWriter, name: str, output_index: int, number: int, call_fields: JsonObject) -> None:
        super().__init__(writer, name, output_index)
        self.number = number
        self.call_fields = call_fields
        self._chunks: list[str] = []

    def add(self, chunk: str, extra: Mapping[str, JsonValue] | None) -> bytes:
        """Return the events of a further delta."""
        if extra:
            self.call_fields = {**extra, **self.call_fields}
        if not chunk:
            return b""
        self._chunks.append(chunk)
        return self._event(f"{self.delta}.delta", delta=chunk)

    def growth(self, run: TextRun) -> Growth | None:
        if run.part != "arguments" or run.call != self.number:
            return None
        return self._form(f"{self.delta}.delta", delta=MARK), self._chunks.append

    def _end(self) -> bytes:
        events = b""
        if not self._chunks and self.empty_arguments:
            # Clients parse the arguments, so an empty text must become an empty object.
            events = self.add(self.empty_arguments, None)
        named: dict[str, object] = {"name": self.call_fields["name"]} if self.kind == "function_call" else {}
        return events + self._event(f"{self.delta}.done", **{self.arguments_field: "".join(self._chunks)}, **named)

    def _build_item(self, status: str) -> JsonObject:
        full_text = "" if status == IN_PROGRESS else "".join(self._chunks)
        return {**self.call_fields, "id": self.id, "type": self.kind, "status": status, self.arguments_field: full_text}


class CustomCallItem(CallItem):
    """A call of a custom tool, whose input is a text."""

    __slots__ = ()

    kind = "custom_tool_call"
    arguments_field = "input"
    delta = "custom_tool_call_input"
    empty_arguments = ""


class TypedCallItem(CallItem):
    """A call of a tool with its own type. It is sent when it is complete."""

    __slots__ = ("_tool",)

    def __init__(
        self, writer: EventWriter, name: str, output_index: int, number: int, call_fields: JsonObject, tool: TypedTool
    ) -> None:
        super().__init__(writer, name, output_index, number, call_fields)
        self._tool = tool

    def add(self, chunk: str, extra: Mapping[str, JsonValue] | None) -> bytes:
        """Add a further delta. Return no events, because the call is sent when it is complete."""
        if extra:
            self.call_fields = {**extra, **self.call_fields}
        if chunk:
            self._chunks.append(chunk)
        return b""

    def growth(self, run: TextRun) -> None:
        """Return `None`: the item is sent as a whole."""

    def _end(self) -> bytes:
        return b""

    def _build_item(self, status: str) -> JsonObject:
        fields = self._tool.item_body("" if status == IN_PROGRESS else "".join(self._chunks))
        rest = {name: value for name, value in self.call_fields.items() if name != "name"}
        return {**rest, "id": self.id, "type": self._tool.item, "status": status, **fields}


class SearchItem(OpenItem):
    """A search that a vendor made. As at OpenAI, only a client that requested the `sources` gets them."""

    __slots__ = ("_shows_sources", "_sources", "search")

    def __init__(
        self, writer: EventWriter, name: str, output_index: int, search: WebSearch, shows_sources: bool
    ) -> None:
        super().__init__(writer, name, output_index)
        self.search = search
        self._sources = search.sources
        self._shows_sources = shows_sources

    def add_sources(self, sources: Iterable[tuple[str, str]]) -> None:
        """Add sources that the vendor reported after the search."""
        self._sources = (*self._sources, *sources)

    def _build_item(self, status: str) -> JsonObject:
        queries: list[JsonValue] = [*self.search.queries]
        action: JsonObject = {"type": "search", "query": queries[0] if queries else "", "queries": queries}
        if self._shows_sources:
            listed: list[JsonValue] = [{"type": "url", "url": url, "title": title} for url, title in self._sources]
            action["sources"] = listed
        done = IN_PROGRESS if status == IN_PROGRESS else "completed"
        return {"type": "web_search_call", "id": self.id, "status": done, "action": action}


class ImageItem(OpenItem):
    """An image in the response, in the form that OpenAI uses for images of its own tool."""

    __slots__ = ("_data",)

    def __init__(self, writer: EventWriter, name: str, output_index: int, data: str) -> None:
        super().__init__(writer, name, output_index)
        self._data = data

    def _build_item(self, status: str) -> JsonObject:
        body: JsonObject = {"id": self.id, "type": "image_generation_call", "status": status}
        return {**body, "result": None if status == IN_PROGRESS else self._data}
