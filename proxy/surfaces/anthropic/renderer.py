"""Renders responses of the Messages API, non-streaming and streamed.

If the vendor speaks the API, its own body and events are sent, with the gateway's name of the model. Otherwise the
blocks of a stream are written one after the other: the index counts all of them, none is empty, and each ends before
the next begins. The stop reason and the usage are sent last, when they are known.

Sources: `anthropic` 2.12.0 types `Message` and `RawMessageStreamEvent`, and the behaviour of its accumulator and of
Claude Code 2.1.197, November 2026.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from providers.completion import Chunk, Completion, Extras, NativeEvent, TextRun, Usage
from providers.emulation.join_extras import GrowingExtras, overlay
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest
from proxy.errors import ErrorFacts
from proxy.surfaces.anthropic.answer_members import (
    IN_DELTA,
    citations_of,
    holds_more,
    needs_block,
    only_text,
    other_fields,
    own_blocks,
    stop_fields,
    usage_counts,
    with_ending,
)
from proxy.surfaces.anthropic.calls import MessageCalls
from proxy.surfaces.anthropic.error_body import error_body
from proxy.surfaces.anthropic.events import (
    END,
    MESSAGE_STOP,
    TEXT,
    THINKING,
    around_vendors,
    block_delta,
    block_start,
    block_stop,
    event,
    vendors_event,
    vendors_start,
)
from proxy.surfaces.anthropic.search_blocks import SearchBlocks
from proxy.surfaces.anthropic.thinking_blocks import is_claude_detail, redacted_block, signature_for
from proxy.surfaces.anthropic.whole_message import blocks_of, signatures_of_text, with_model_name
from proxy.surfaces.response.text_signature import extra_content, is_of_text, needed_back, without_signature
from proxy.surfaces.response.write_sse import RunRenderer, ascii_json, utf8_json
from proxy.surfaces.surface import AnswerFacts, LiteralWriter

_AFTER_TEXT = b'"' + END

_EMPTY_BLOCK: Final[JsonObject] = {"type": "thinking", "thinking": "", "signature": ""}


class MessagesRenderer(RunRenderer):
    """Renders one response, as `proxy.surfaces.surface.Renderer` describes.

    `_index` is the index of the next block. `_open` is the type of the open block; it is empty if no block is open or
    if the open block is a call. `_text` is the beginning of an event of the open text, `_thinking_index` the vendor's
    index of Claude's open thinking block. `_details` are the reasoning details that other vendors need back,
    `_late_details` the details that came after the text. Only blocks of calls follow the last text, because agents take
    the last block for the result. `_late_chunks` are chunks that wait for the end of a call; `_extras` and `_members`
    wait for the end of the response.
    """

    __slots__ = (
        *("_body", "_calls", "_details", "_extras", "_has_text", "_index", "_last_chunk", "_late_chunks"),
        *("_late_details", "_members", "_model", "_native", "_open", "_refusal", "_searches", "_started", "_text"),
        *("_thinking_index", "_usage"),
    )

    def __init__(self, request: UnifiedRequest, facts: AnswerFacts) -> None:
        self._model = facts.model
        self._body: JsonObject = {
            "id": f"msg_{facts.unique}",
            "type": "message",
            "role": "assistant",
            "model": facts.model,
        }
        self._native = self._started = self._has_text = False
        self._index = 0
        self._open = ""
        self._text: bytes | None = None
        self._thinking_index: JsonValue = None
        # Extras are created only when needed: nearly every stream lacks them and may last for minutes.
        self._details: GrowingExtras | None = None
        self._late_details: list[JsonObject] = []
        self._calls = MessageCalls()
        self._searches = SearchBlocks(request)
        self._late_chunks: list[Chunk] = []
        self._extras: GrowingExtras | None = None
        self._refusal: list[str] = []
        self._last_chunk: Chunk | None = None
        self._members: JsonObject = {}
        self._usage: Usage | None = None

    # Non-streaming responses ------------------------------------------------------------------------------------------

    def completion(self, completion: Completion) -> bytes:
        if completion.native is not None:
            return with_model_name(completion.native, self._model)
        choice = completion.choices[0]
        stop = stop_fields(
            choice.finish_reason,
            choice.native_finish_reason,
            choice.matched_stop,
            choice.tool_calls,
            choice.refusal,
        )
        others = {**signatures_of_text(choice), **other_fields(choice.extras, completion.extra)}
        if completion.system_fingerprint is not None:
            others["system_fingerprint"] = completion.system_fingerprint
        searches = self._searches.whole(choice, Extras(answer=completion.extra))
        content: list[JsonValue] = [*blocks_of(choice, searches)]
        usage = usage_counts(completion.usage, completion.service_tier)
        return utf8_json({**others, **self._body, "content": content, **with_ending(stop, others), "usage": usage})

    # Streams ----------------------------------------------------------------------------------------------------------

    def chunk(self, chunk: Chunk) -> bytes:
        """Return the events of one chunk. Raises UpstreamError for a call that continues after its end."""
        if chunk.native is not None:
            return self._vendors(chunk.native)
        if chunk.system_fingerprint is not None:
            self._members["system_fingerprint"] = chunk.system_fingerprint
        if self._text is not None and only_text(chunk):
            # The event is formatted by hand, because nearly every token is sent in this form.
            return self._text + ascii_json(chunk.text) + END if chunk.text else b""
        if self._native:
            return b""
        return self._render(chunk)

    def around(self, run: TextRun) -> tuple[bytes, bytes] | None:
        if self._native or run.native is not None:
            self._native = True
            return None if run.native is None else around_vendors(run.native)
        begin = self._text
        if run.part == "reasoning":
            begin = THINKING % (self._index - 1) if self._continues_block(run.detail) else None
        elif run.part != "text":
            return None
        if begin is None:
            return None
        if run.system_fingerprint is not None:
            self._members["system_fingerprint"] = run.system_fingerprint
        return begin + b'"', _AFTER_TEXT

    def literal_writer(self, run: TextRun) -> LiteralWriter | None:
        """Return the function that writes events with further arguments of a call. The arguments are parsed as a whole
        when the call ends."""
        write = None if self._native or run.part != "arguments" else self._calls.literal_writer(run.call)
        if write is not None and run.system_fingerprint is not None:
            self._members["system_fingerprint"] = run.system_fingerprint
        return write

    def literal(self, text: str, written: bytes) -> bytes:
        return written if self._native else super().literal(text, written)

    def usage(self, usage: Usage) -> bytes:
        """Store the usage, which is sent last."""
        self._usage = usage
        return b""

    def end(self) -> bytes:
        if self._native:
            return b""
        frames = [b"" if self._started else self._start(), self._close()]
        if not self._has_text:
            frames.append(self._show_searches())
        if self._calls.begun or not self._has_text:
            frames.append(self._seal_rest())
        elif left := needed_back(self._take_leftover_details()):
            self._members["reasoning_details"] = left
        ended = self._last_chunk or Chunk(finish_reason="stop")
        stop = stop_fields(
            ended.finish_reason or "stop",
            ended.native_finish_reason,
            ended.matched_stop,
            self._calls.begun,
            "".join(self._refusal) or None,
        )
        others = {**other_fields(None if self._extras is None else self._extras.whole()), **self._members}
        delta = with_ending(stop, others)
        rest = {name: value for name, value in others.items() if name not in IN_DELTA}
        usage = usage_counts(self._usage, ended.service_tier)
        frames.append(event("message_delta", {**rest, "delta": delta, "usage": usage}))
        return b"".join([*frames, MESSAGE_STOP])

    def error(self, facts: ErrorFacts) -> bytes:
        """Return the error event; no `message_stop` follows."""
        return b"event: error\ndata: %b\n\n" % ascii_json(error_body(facts))

    def _continues_block(self, detail: JsonObject | None) -> bool:
        """Return whether reasoning with this detail continues the open block."""
        if self._open != "thinking" or self._calls.is_open:
            return False
        return detail is None or (is_claude_detail(detail) and self._thinking_index == detail.get("index"))

    def _vendors(self, native: NativeEvent) -> bytes:
        self._native = True
        if native.name == "message_start":
            return vendors_start(native.data, self._model)
        return vendors_event(native.name, native.data)

    def _start(self) -> bytes:
        self._started = True
        usage: JsonObject = {"input_tokens": 0, "output_tokens": 0}
        message: JsonObject = {**self._body, "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
        return event("message_start", {"message": message})

    def _render(self, chunk: Chunk) -> bytes:
        frames = [] if self._started else [self._start()]
        frames.append(self._content(chunk))
        if chunk.finish_reason is not None:
            self._last_chunk = chunk
            frames.append(self._finish_calls(chunk.finish_reason))
            late, self._late_chunks = self._late_chunks, []
            frames += [self._content(each) for each in late]
        return b"".join(frames)

    def _content(self, chunk: Chunk) -> bytes:
        """Return the events for the contents of a chunk, in the order of blocks."""
        frames: list[bytes] = []
        if self._calls.is_open and needs_block(chunk):
            frames.append(self._calls.close_if_complete())
        if self._calls.is_open and needs_block(chunk):
            self._late_chunks.append(replace(chunk, tool_calls=(), finish_reason=None))
        else:
            frames.append(self._non_call_events(chunk))
        for delta in chunk.tool_calls:
            if not self._calls.is_open:
                frames += [self._close(), self._seal_rest(), self._show_searches()]
            call_events, self._index = self._calls.add(delta, self._index)
            frames.append(call_events)
        return b"".join(frames)

    def _non_call_events(self, chunk: Chunk) -> bytes:
        """Return the events for everything but calls."""
        extras = chunk.extras
        frames: list[bytes] = []
        if extras is not None and extras.reasoning_details:
            details = extras.reasoning_details
            if chunk.signature is not None:
                details = without_signature(details, chunk.signature)
            frames.append(self._detailed_reasoning(chunk.reasoning or "", details))
        elif chunk.reasoning:
            frames.append(self._reasoning_events(chunk.reasoning))
        if chunk.refusal:
            self._refusal.append(chunk.refusal)
        if chunk.signature is not None:
            self._members["extra_content"] = extra_content(chunk.signature)
        for block in () if extras is None else own_blocks(extras):
            frames += [self._begin("", block), block_stop(self._index - 1)]
        if extras is not None and self._searches.add(extras):
            # A text that follows the search is a separate block.
            self._text = None
        if chunk.text:
            frames += [self._begin_text(), (self._text or b"") + ascii_json(chunk.text) + END]
        if extras is not None and holds_more(extras):
            frames += self._rest(extras)
        return b"".join(frames)

    def _begin_text(self) -> bytes:
        """Return the events that begin a block of text; empty if a block of text is open."""
        if self._text is not None:
            return b""
        self._has_text = True
        sealed = b"" if self._open == "thinking" else self._seal(self._signature())
        begun = self._begin("text", {"type": "text", "text": ""})
        self._text = TEXT % (self._index - 1)
        return sealed + begun

    def _detailed_reasoning(self, reasoning: str, details: Sequence[JsonObject]) -> bytes:
        """Return the events of reasoning with details. Each of Claude's details gets a block; another vendor's details
        become one text."""
        if len(details) == 1 and is_claude_detail(details[0]):
            return self._claude_events(details[0], reasoning)
        own = self._split_details(details, reasoning)
        frames: list[bytes] = []
        if any([detail.get("text") for detail in own]):
            frames = [self._claude_events(detail, str(detail.get("text") or "")) for detail in own]
            reasoning = "".join([str(detail.get("text") or "") for detail in details if not is_claude_detail(detail)])
        else:
            for detail in own:
                shown = reasoning if detail["type"] == "reasoning.text" else ""
                reasoning = "" if shown else reasoning
                frames.append(self._claude_events(detail, shown))
        return b"".join([*frames, self._reasoning_events(reasoning) if reasoning else b""])

    def _reasoning_events(self, reasoning: str) -> bytes:
        begun = b"" if self._open == "thinking" else self._begin("thinking", _EMPTY_BLOCK)
        return begun + THINKING % (self._index - 1) + ascii_json(reasoning) + END

    def _claude_events(self, detail: JsonObject, reasoning: str) -> bytes:
        """Return the events of a chunk of Claude's reasoning."""
        events = self._begin_claude_block(detail)
        if reasoning:
            events += THINKING % (self._index - 1) + ascii_json(reasoning) + END
        signature = detail.get("signature")
        return events + self._sign(signature) if signature and isinstance(signature, str) else events

    def _split_details(self, details: Sequence[JsonObject], reasoning: str) -> list[JsonObject]:
        """Return Claude's own details, and store the others, which another vendor needs back. `reasoning` is the text
        that came with them."""
        others = [detail for detail in details if not is_claude_detail(detail)]
        if not reasoning and self._open != "thinking":
            after_text = self._has_text or self._calls.begun
            self._late_details += [detail for detail in others if after_text or is_of_text(detail)]
            others = [] if after_text else [detail for detail in others if not is_of_text(detail)]
        if others:
            self._details = self._details or GrowingExtras()
            self._details.add(Extras(reasoning_details=tuple(others)))
        return [detail for detail in details if is_claude_detail(detail)]

    def _rest(self, extras: Extras) -> list[bytes]:
        """Return the events of citations and of the vendor's own blocks, and store everything else for the end."""
        frames: list[bytes] = []
        other_extras = replace(extras, reasoning_details=())
        if cited := citations_of(extras):
            if self._open == "text":
                frames += [
                    block_delta(self._index - 1, {"type": "citations_delta", "citation": each}) for each in cited
                ]
            else:
                overlay(self._members, {"citations": [*cited]})
        self._extras = self._extras or GrowingExtras()
        self._extras.add(other_extras)
        if other_extras.answer is not None:
            overlay(self._members, other_fields(None, other_extras.answer))
        return frames

    def _begin_claude_block(self, detail: JsonObject) -> bytes:
        """Begin the block to which a chunk of Claude's reasoning belongs, or send a redacted block."""
        if detail["type"] == "reasoning.encrypted":
            return self._begin("", redacted_block(detail)) + block_stop(self._index - 1)
        if self._open == "thinking" and self._thinking_index == detail.get("index"):
            return b""
        begun = self._begin("thinking", _EMPTY_BLOCK)
        self._thinking_index = detail.get("index")
        return begun

    def _sign(self, signature: str) -> bytes:
        signed = block_delta(self._index - 1, {"type": "signature_delta", "signature": signature})
        self._open, self._thinking_index = "", None
        return signed + block_stop(self._index - 1)

    def _signature(self) -> str:
        """Return the signature that contains the details which later requests must send back for the reasoning so far,
        and remove these details."""
        return signature_for(self._take_details())

    def _take_details(self) -> Sequence[JsonObject]:
        whole, self._details = None if self._details is None else self._details.whole(), None
        return () if whole is None else whole.reasoning_details

    def _take_leftover_details(self) -> list[JsonObject]:
        """Return and remove the details that are in no block."""
        after_text, self._late_details = self._late_details, []
        return [*self._take_details(), *after_text]

    def _seal_rest(self) -> bytes:
        return self._seal(signature_for(self._take_leftover_details()))

    def _seal(self, signature: str) -> bytes:
        """Return the events of a block for a signature that came without reasoning; empty if the signature is empty."""
        if not signature:
            return b""
        begun = self._begin("thinking", _EMPTY_BLOCK)
        return begun + self._sign(signature)

    def _begin(self, kind: str, block: JsonObject) -> bytes:
        """Return the events that end the open block and begin another. A block without a `kind` is complete."""
        closed = self._close() + self._show_searches()
        self._open = kind
        self._index += 1
        return closed + block_start(self._index - 1, block)

    def _close(self) -> bytes:
        """Return the events that end the open block."""
        kind, self._open, self._text, self._thinking_index = self._open, "", None, None
        if not kind:
            return b""
        if kind == "thinking" and (signature := self._signature()):
            return self._sign(signature)
        return block_stop(self._index - 1)

    def _show_searches(self) -> bytes:
        """Return the events of the blocks of waiting searches."""
        shown, self._index = self._searches.events(self._index)
        return shown

    def _finish_calls(self, finish: str) -> bytes:
        if not self._calls.begun:
            return b""
        frames, self._index = self._calls.finish(self._index, finish)
        return frames
