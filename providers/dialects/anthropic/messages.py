"""Translates conversations into Anthropic's form: system text, and turns that alternate between the user and the model.

Sources: `anthropic` 2.12.0 types `MessageParam` and `ContentBlockParam`; "Messages" and "Preserved thinking" pages,
November 2026.
"""

from collections.abc import Iterable

from providers.adaptation.merged_messages import BETWEEN
from providers.conversation import Image, PlainMessage, Text, Turn
from providers.dialects.anthropic.answer_parts import BLOCKS
from providers.dialects.anthropic.blocks import (
    as_text_or_blocks,
    block_of,
    call_block,
    is_lost_thinking,
    is_thinking,
    repeated_blocks,
    text_result,
    thinking_block,
)
from providers.dialects.anthropic.cache_markers import MARKER
from providers.dialects.anthropic.tools import ToolNames
from providers.dialects.shared.prompt import joined_texts
from providers.dialects.shared.read_conversation import read_messages
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue

Content = str | list[JsonValue]


class Conversation:
    """The translation of one conversation into Anthropic's turns.

    `folded` is true if an instruction from the middle of the conversation was moved to the system text. `dropped` names
    advisory fields of messages that are left out. `marked` is true if a block may have a cache marker. `thinks` is true
    if a block is a `thinking` block.
    """

    __slots__ = ("_instructions", "_names", "_param", "dropped", "folded", "marked", "thinks", "turns")

    def __init__(self, names: ToolNames, param: str) -> None:
        self._names = names
        self._param = param
        self._instructions: list[list[JsonObject]] = []
        self.turns: list[JsonObject] = []
        self.folded = False
        self.marked = False
        self.thinks = False
        self.dropped: list[str] = []

    def read(self, messages: Iterable[JsonValue]) -> None:
        """Translate OpenAI-shaped messages. Raises Refusal that names the message it cannot translate."""
        given = tuple(messages)
        for message, read in zip(given, read_messages(given, self._param), strict=True):
            if isinstance(read, PlainMessage):
                self._add_plain(read)
            else:
                self._add_message(read, message)
        if not self.turns:
            raise Refusal(self._param, f"'{self._param}' holds no text for the model to answer.", "invalid_value")
        self._trim_end()

    def _add_plain(self, message: PlainMessage) -> None:
        """Translate a plain message. Blank texts are left out, since the vendor refuses them."""
        text = message.text
        blank = not text or text.isspace()
        if message.role == "tool":
            self._append("user", [text_result(message.call_id, None if blank else text)])
        elif message.calls or message.thinking:
            self._append("assistant", self._plain_blocks(message, "" if blank else text))
        elif blank:
            return
        elif message.role == "system":
            self.folded = self.folded or bool(self.turns)
            self._instructions.append([{"type": "text", "text": text}])
        else:
            self._append(message.role, text)

    def _plain_blocks(self, message: PlainMessage, text: str) -> Content:
        blocks: list[JsonObject] = []
        for thought in message.thinking:
            block = thinking_block(thought)
            if block is not None:
                blocks.append(block)
                self.thinks = True
            elif is_lost_thinking(thought):
                self.dropped.append("thinking")
        if text:
            blocks.append({"type": "text", "text": text})
        blocks += [call_block(call, self._names) for call in message.calls]
        return as_text_or_blocks(blocks)

    def _add_message(self, turn: Turn, message: JsonValue) -> None:
        """Translate a message that is more than a role and a text."""
        # If the request offers no server tools, the vendor refuses their results.
        server_blocks = repeated_blocks(message) if turn.role == "assistant" and self._names.own else []
        self.dropped += [name for name in turn.unsent if not (server_blocks and name == BLOCKS)]
        if turn.role == "system":
            self._add_instruction(turn)
        elif turn.role == "assistant":
            self._append("assistant", self._content(turn, server_blocks))
        else:
            self._append("user", self._content(turn, []))

    @property
    def system(self) -> Content:
        """The instructions as one text, or as blocks if an instruction has `cache_control`; empty if there are no
        instructions."""
        if any("cache_control" in block for blocks in self._instructions for block in blocks):
            return [block for blocks in self._instructions for block in blocks]
        texts = [[str(block["text"]) for block in blocks] for blocks in self._instructions]
        return BETWEEN.join([joined_texts("system", each) for each in texts])

    def without_thinking(self) -> bool:
        """Remove all `thinking` blocks, and the turns that held nothing else. Return whether there were any `thinking`
        blocks."""
        if not self.thinks:
            return False
        found = False
        for turn in self.turns:
            content = turn["content"]
            if turn["role"] == "assistant" and isinstance(content, list):
                rest = [block for block in content if not is_thinking(block)]
                found = found or len(rest) < len(content)
                turn["content"] = rest
        turns, self.turns = self.turns, []
        for turn in turns:
            content = turn["content"]
            if isinstance(content, str | list):
                self._append(str(turn["role"]), content)
        return found

    def _add_instruction(self, turn: Turn) -> None:
        if not all(isinstance(part, Text) for part in turn.parts):
            raise turn.refusal("is an instruction and may only hold text")
        blocks = [block for part in turn.parts if (block := block_of(turn, part, self._names)) is not None]
        if blocks:
            self.folded = self.folded or bool(self.turns)
            self._instructions.append(blocks)
            self._note_contents(blocks)

    def _content(self, turn: Turn, server_blocks: list[JsonObject]) -> Content:
        """Return the blocks of a turn.

        The `server_blocks` that the client sent back are placed after the turn's `thinking` blocks.
        """
        blocks: list[JsonObject] = []
        for part in turn.parts:
            block = block_of(turn, part, self._names)
            if block is not None:
                blocks.append(block)
                if isinstance(part, Image) and part.detail not in _MODEL_CHOOSES_DETAIL:
                    self.dropped.append("detail")
            elif is_lost_thinking(part):
                self.dropped.append("thinking")
        if server_blocks:
            thinking_end = next((at for at, block in enumerate(blocks) if not is_thinking(block)), len(blocks))
            blocks[thinking_end:thinking_end] = server_blocks
        self._note_contents(blocks)
        return as_text_or_blocks(blocks)

    def _note_contents(self, blocks: list[JsonObject]) -> None:
        """Record which later steps must look at the blocks. Nearly all conversations need no such step."""
        for block in blocks:
            self.marked = self.marked or MARKER in block
            self.thinks = self.thinks or is_thinking(block)

    def _append(self, role: str, content: Content) -> None:
        """Append blocks to the last turn if the roles match, otherwise to a new turn."""
        if not content:
            return
        last = self.turns[-1] if self.turns else None
        if last is None or last["role"] != role:
            self.turns.append({"role": role, "content": content})
            return
        blocks = _as_blocks(last["content"])
        blocks += _as_blocks(content)
        last["content"] = blocks

    def _trim_end(self) -> None:
        """Remove white space after a text that the model is to continue; the vendor refuses such white space."""
        last = self.turns[-1]
        content = last["content"]
        if last["role"] != "assistant":
            return
        if isinstance(content, str):
            last["content"] = content.rstrip()
        elif isinstance(content, list) and isinstance(block := content[-1], dict) and block.get("type") == "text":
            content[-1] = {**block, "text": str(block["text"]).rstrip()}


_MODEL_CHOOSES_DETAIL = (None, "auto")
"""The values of an image's `detail` that leave the choice to the model. The vendor has no field for `detail`, so any
other value is dropped."""


def _as_blocks(content: JsonValue) -> list[JsonValue]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
