"""Conversations on Anthropic's wire: system text, and turns of the user and of the model that alternate.

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
    """Translation of one conversation into native turns.

    `folded` says that an instruction from the middle moved to the system text; `dropped` names members of messages that
    promise nothing and are left out. `marked` says that a block may have a cache marker, `thinks` that one is thinking.
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
        """Translate OpenAI-shaped messages. Raises Refusal naming the message at fault."""
        given = tuple(messages)
        for message, read in zip(given, read_messages(given, self._param), strict=True):
            if isinstance(read, PlainMessage):
                self._plain(read)
            else:
                self._read(read, message)
        if not self.turns:
            raise Refusal(self._param, f"'{self._param}' holds no text for the model to answer.", "invalid_value")
        self._trim()

    def _plain(self, message: PlainMessage) -> None:
        """Translate a plain message. Blank texts are left out, since the vendor refuses them."""
        text = message.text
        blank = not text or text.isspace()
        if message.role == "tool":
            self._turn("user", [text_result(message.call_id, None if blank else text)])
        elif message.calls or message.thinking:
            self._turn("assistant", self._plain_blocks(message, "" if blank else text))
        elif blank:
            return
        elif message.role == "system":
            self.folded = self.folded or bool(self.turns)
            self._instructions.append([{"type": "text", "text": text}])
        else:
            self._turn(message.role, text)

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

    def _read(self, turn: Turn, message: JsonValue) -> None:
        """Translate a message of any other form."""
        # Without the tools the vendor refuses their results.
        again = repeated_blocks(message) if turn.role == "assistant" and self._names.own else []
        self.dropped += [name for name in turn.unsent if not (again and name == BLOCKS)]
        if turn.role == "system":
            self._instruction(turn)
        elif turn.role == "assistant":
            self._turn("assistant", self._content(turn, again))
        else:
            self._turn("user", self._content(turn, []))

    @property
    def system(self) -> Content:
        """The instructions as one text, or as blocks where one has `cache_control`; empty when there are none."""
        if any("cache_control" in block for blocks in self._instructions for block in blocks):
            return [block for blocks in self._instructions for block in blocks]
        texts = [[str(block["text"]) for block in blocks] for blocks in self._instructions]
        return BETWEEN.join([joined_texts("system", each) for each in texts])

    def without_thinking(self) -> bool:
        """Leave out all thinking and the turns that held nothing else, and return whether there was any."""
        if not self.thinks:
            return False
        found = False
        for turn in self.turns:
            content = turn["content"]
            if turn["role"] == "assistant" and isinstance(content, list):
                kept = [block for block in content if not is_thinking(block)]
                found = found or len(kept) < len(content)
                turn["content"] = kept
        turns, self.turns = self.turns, []
        for turn in turns:
            content = turn["content"]
            if isinstance(content, str | list):
                self._turn(str(turn["role"]), content)
        return found

    def _instruction(self, turn: Turn) -> None:
        if not all(isinstance(part, Text) for part in turn.parts):
            raise turn.refusal("is an instruction and may only hold text")
        blocks = [block for part in turn.parts if (block := block_of(turn, part, self._names)) is not None]
        if blocks:
            self.folded = self.folded or bool(self.turns)
            self._instructions.append(blocks)
            self._note(blocks)

    def _content(self, turn: Turn, again: list[JsonObject]) -> Content:
        """Return the blocks of a turn, with those of server tools that came `again` behind its thinking."""
        blocks: list[JsonObject] = []
        for part in turn.parts:
            block = block_of(turn, part, self._names)
            if block is not None:
                blocks.append(block)
                if isinstance(part, Image) and part.detail not in _ANY_DETAIL:
                    self.dropped.append("detail")
            elif is_lost_thinking(part):
                self.dropped.append("thinking")
        if again:
            thoughts = next((at for at, block in enumerate(blocks) if not is_thinking(block)), len(blocks))
            blocks[thoughts:thoughts] = again
        self._note(blocks)
        return as_text_or_blocks(blocks)

    def _note(self, blocks: list[JsonObject]) -> None:
        """Note which steps behind this one have to look at the blocks. Nearly all conversations need none of them."""
        for block in blocks:
            self.marked = self.marked or MARKER in block
            self.thinks = self.thinks or is_thinking(block)

    def _turn(self, role: str, content: Content) -> None:
        """Add to the last turn of the same role, or begin one."""
        if not content:
            return
        last = self.turns[-1] if self.turns else None
        if last is None or last["role"] != role:
            self.turns.append({"role": role, "content": content})
            return
        blocks = _as_blocks(last["content"])
        blocks += _as_blocks(content)
        last["content"] = blocks

    def _trim(self) -> None:
        """Cut white space behind a text that the model is to continue, which the vendor refuses."""
        last = self.turns[-1]
        content = last["content"]
        if last["role"] != "assistant":
            return
        if isinstance(content, str):
            last["content"] = content.rstrip()
        elif isinstance(content, list) and isinstance(block := content[-1], dict) and block.get("type") == "text":
            content[-1] = {**block, "text": str(block["text"]).rstrip()}


_ANY_DETAIL = (None, "auto")
"""How closely an image is to be seen where the client leaves that to the model; the vendor has no setting for it."""


def _as_blocks(content: JsonValue) -> list[JsonValue]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]
