"""Translates conversations into Converse's form: system text, turns that alternate, media, reasoning, tool calls and
results.

The service refuses blank texts, turns without content, and documents without a text beside them ("A text block must be
included when using documents"). Depending on the model, it also refuses some blocks beside or inside a tool result. The
service joins turns of the same role, so two user turns are separate only if a turn of the model stands between them.

Sources: botocore 1.44.5 service model `bedrock-runtime`, shapes `Message` and `ContentBlock`; "Carry out a conversation
with the Converse API operations" page; pydantic-ai 2.68.0 `models/bedrock` with its live probes; errors quoted in
public issue threads, November 2026.
"""

import re
from binascii import Error, a2b_base64, b2a_base64
from collections.abc import Callable, Iterable

import orjson

from providers.conversation import (
    CLAUDE_FORMAT,
    UNKNOWN_FORMAT,
    Audio,
    Document,
    Image,
    OtherPart,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolResult,
    ToolUse,
    Turn,
    Video,
)
from providers.dialects.bedrock.converse_cache import cache_point, mark_last
from providers.dialects.bedrock.converse_media import ConverseMedia
from providers.dialects.bedrock.converse_models import UNKNOWN_MODEL, ConverseModel
from providers.dialects.shared.prompt import EMPTY_RESULT, failed_text
from providers.dialects.shared.read_conversation import read_conversation
from providers.dialects.shared.tool_names import FittedNames, fit_call_id
from providers.failure import Refusal
from providers.json_types import JsonObject, JsonValue

Blocks = list[JsonObject]

_CALL_ID = re.compile(r"[a-zA-Z0-9_.:-]{1,64}")

SEPARATOR: JsonObject = {"text": "."}
"""The text of an added turn that only separates two other turns or begins the conversation. Models refuse blank
texts."""


def service_call_id(given: str) -> str:
    """Return the id of a call in the form that the service accepts."""
    return fit_call_id(given, _CALL_ID)


class BedrockConversation:
    """The translation of OpenAI-shaped messages into Converse's turns for a model.

    `folded` is true if a turn was added, if a later instruction was moved to the system text, or if the system text was
    moved to the first turn. `calls` is true if there are tool calls. `lacks_reasoning` is true if the last tool results
    answer calls whose preceding reasoning was not sent. `dropped` names the fields of messages that were left out.
    """

    __slots__ = (
        "_call_id",
        "_has_results",
        "_late_media",
        "_media",
        "_model",
        "_names",
        "_param",
        "calls",
        "dropped",
        "folded",
        "lacks_reasoning",
        "system",
        "turns",
    )

    def __init__(
        self,
        names: FittedNames,
        param: str,
        model: ConverseModel = UNKNOWN_MODEL,
        call_id: Callable[[str], str] = service_call_id,
    ) -> None:
        self._call_id = call_id
        self._names = names
        self._param = param
        self._model = model
        self._media = ConverseMedia(model)
        self._late_media: Blocks = []
        self._has_results = False
        self.system: Blocks = []
        self.turns: list[JsonObject] = []
        self.folded = False
        self.calls = False
        self.dropped: list[str] = []
        self.lacks_reasoning = False

    def read(self, messages: Iterable[JsonValue]) -> None:
        """Translate OpenAI-shaped messages. Raises Refusal that names the message it cannot translate."""
        in_loop = False
        for turn in read_conversation(messages, self._param):
            self.dropped += turn.unsent
            if turn.role == "system":
                self._add_instruction(turn)
            elif turn.role == "assistant":
                blocks = self._add_assistant(turn)
                if not in_loop and blocks:
                    self.lacks_reasoning = "reasoningContent" not in blocks[0]
                    in_loop = any("toolUse" in block for block in blocks)
            elif turn.role == "tool":
                self._add_results(turn)
            else:
                self._add_user(turn)
                # A user text right after tool results does not end the tool loop.
                in_loop = in_loop and self._has_results
        self._append_late_media()
        self.lacks_reasoning = self.lacks_reasoning and in_loop
        if not self.turns:
            raise Refusal(self._param, f"'{self._param}' holds no text for the model to answer.", "invalid_value")
        if self.system and not self._model.system:
            self._instruct_as_user()
        self._meet_turn_rules()

    def mark_end(self, marker: JsonObject) -> None:
        """Put a cache point for the marker after the last block that accepts a cache point."""
        blocks = self.turns[-1]["content"]
        content = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
        self._mark(content, marker)
        self.turns[-1]["content"] = [*content]

    def _instruct_as_user(self) -> None:
        """Move the system text to the front of the first turn, for models that accept no system text."""
        if self.turns[0]["role"] != "user":
            self.turns.insert(0, {"role": "user", "content": []})
        first = self.turns[0]["content"]
        self.turns[0]["content"] = [*self.system, *(first if isinstance(first, list) else ())]
        self.system = []
        self.folded = True

    def _meet_turn_rules(self) -> None:
        """Add a text to turns with documents but no text, begin with a user turn if the model requires one, and remove
        white space at the end of the model's last text."""
        for turn in self.turns:
            blocks = turn["content"]
            if isinstance(blocks, list) and _lacks_text(blocks):
                blocks.insert(0, SEPARATOR)
                self.folded = True
        if self.turns[0]["role"] != "user" and not self._model.may_start:
            self.turns.insert(0, {"role": "user", "content": [SEPARATOR]})
            self.folded = True
        last = self.turns[-1]
        content = last["content"]
        if last["role"] == "assistant" and isinstance(content, list) and isinstance(end := content[-1], dict):
            text = end.get("text")
            if self._model.claude and isinstance(text, str):
                content[-1] = {"text": text.rstrip()}

    def _add_instruction(self, turn: Turn) -> None:
        blocks: Blocks = []
        for part in turn.parts:
            if not isinstance(part, Text) and not (isinstance(part, OtherPart) and part.kind == "guarded_text"):
                raise turn.refusal("is an instruction and may only hold text")
            self._add(blocks, turn, part, "system")
        if blocks:
            self.folded = self.folded or bool(self.turns)
            self.system += blocks

    def _add_user(self, turn: Turn) -> None:
        self._append_late_media()
        blocks: Blocks = []
        for part in turn.parts:
            self._add(blocks, turn, part)
        self._append("user", blocks)

    def _add_assistant(self, turn: Turn) -> Blocks:
        self._append_late_media()
        blocks: Blocks = []
        for part in turn.parts:
            self._add(blocks, turn, part)
        if all("reasoningContent" in block for block in blocks):
            blocks = []
        self._append("assistant", blocks)
        return blocks

    def _add_results(self, turn: Turn) -> None:
        """Add tool results, which must come first in a turn. Media that the model does not accept in a result follow
        after all results."""
        for part in turn.parts:
            if isinstance(part, ToolResult):
                self._add_result(turn, part)

    def _add_result(self, turn: Turn, result: ToolResult) -> None:
        content: Blocks = []
        marker = result.cache
        for part in result.parts:
            if isinstance(part, Audio):
                raise turn.refusal("is a tool's result and may not hold audio")
            block = self._block(turn, part)
            marker = marker or part_cache(part)
            if block is None:
                continue
            kind = next(iter(block))
            medium = block[kind]
            form = medium.get("format") if isinstance(medium, dict) else None
            if kind in ("text", "searchResult") or self._model.holds(kind, str(form)):
                content.append(block)
            else:
                number = len(self._late_media) // 2 + 1
                content.append({"text": f"[{kind} {number} follows]"})
                self._late_media += [{"text": f"[{kind} {number}]"}, block]
        self.calls = True
        if not content and not (result.failed and not self._model.result_status):
            # Several models refuse a result without content, or with a blank text.
            content.append({"text": EMPTY_RESULT})
        answer: JsonObject = {"toolUseId": self._call_id(result.call_id), "content": [*content]}
        if result.failed:
            self._put_failure(answer, content)
        blocks: Blocks = [{"toolResult": answer}]
        self._mark(blocks, marker)
        self._append("user", blocks)

    def _put_failure(self, answer: JsonObject, content: Blocks) -> None:
        if self._model.result_status:
            answer["status"] = "error"
        else:
            answer["content"] = [{"text": "The call failed:" if content else failed_text("")}, *content]

    def _append_late_media(self) -> None:
        """Append the media that the preceding results could not hold."""
        late, self._late_media = self._late_media, []
        self._append("user", late)

    def _append(self, role: str, blocks: Blocks) -> None:
        """Append blocks to the last turn if the roles match, otherwise to a new turn: the roles must alternate."""
        if not blocks:
            return
        last = self.turns[-1] if self.turns else None
        results = any("toolResult" in block for block in blocks)
        if last is not None and last["role"] == role:
            content = last["content"]
            if not ((results or self._has_results) and self._keeps_apart(blocks, content)):
                if isinstance(content, list):
                    content.extend(blocks)
                self._has_results = self._has_results or results
                return
            self.turns.append({"role": "assistant", "content": [SEPARATOR]})
            self.folded = True
        self.turns.append({"role": role, "content": [*blocks]})
        self._has_results = results

    def _keeps_apart(self, blocks: Blocks, content: JsonValue) -> bool:
        """Return whether the model refuses a turn with all these blocks, one of which is a tool result."""
        accepted = self._model.beside_results
        if accepted is None:
            return False
        accepted_kinds = accepted | {"toolResult", "cachePoint"}
        earlier = content if isinstance(content, list) and not self._has_results else []
        return any(isinstance(block, dict) and accepted_kinds.isdisjoint(block) for block in (*blocks, *earlier))

    def _add(self, blocks: Blocks, turn: Turn, part: Part, part_of_request: str = "messages") -> None:
        block = self._block(turn, part)
        if block is not None:
            blocks.append(block)
        self._mark(blocks, part_cache(part), part_of_request)

    def _mark(self, blocks: Blocks, marker: JsonObject | None, part_of_request: str = "messages") -> None:
        """Put a cache point after the blocks, or record that the marker was dropped."""
        if marker is None:
            return
        if part_of_request not in self._model.cached or not mark_last(
            blocks, cache_point(self._model, marker), self._model.claude
        ):
            self.dropped.append("cache_control")

    def _block(self, turn: Turn, part: Part) -> JsonObject | None:
        """Return the native block of a part, or `None` for a part that is left out, such as a blank text."""
        match part:
            case Text(text):
                return {"text": text} if text.strip() else None
            case Image() | Document() | Audio() | Video():
                return self._media.block(turn, part)
            case ToolUse():
                return self._call(part)
            case Reasoning() | RedactedReasoning():
                return self._thought(part)
            case OtherPart(kind, value):
                return _other_block(turn, kind, value)
            case _:
                raise turn.no_part("tool_result")

    def _call(self, part: ToolUse) -> JsonObject:
        self.calls = True
        identity = self._call_id(part.id)
        return {"toolUse": {"toolUseId": identity, "name": self._names.used(part.name), "input": part.arguments}}

    def _thought(self, part: Reasoning | RedactedReasoning) -> JsonObject | None:
        """Return reasoning if the model accepts it back: Claude accepts signed reasoning, other models only redacted
        reasoning.

        Other reasoning is left out and reported as dropped.
        """
        own_format = CLAUDE_FORMAT if self._model.claude else UNKNOWN_FORMAT
        if part.format == own_format:
            if isinstance(part, Reasoning) and self._model.claude and part.signature:
                return {"reasoningContent": {"reasoningText": {"text": part.text, "signature": part.signature}}}
            if isinstance(part, RedactedReasoning) and self._model.redacted and part.data:
                return {"reasoningContent": {"redactedContent": _as_base64(part.data)}}
        if isinstance(part, RedactedReasoning) or part.text or part.signature:
            self.dropped.append("thinking")
        return None


def _lacks_text(blocks: list[JsonValue]) -> bool:
    kinds = {kind for block in blocks if isinstance(block, dict) for kind in block}
    return "document" in kinds and kinds.isdisjoint({"text", "toolResult"})


def part_cache(part: Part) -> JsonObject | None:
    """Return the cache marker of a part, or `None` for kinds of parts without markers."""
    if isinstance(part, OtherPart):
        marker = part.value.get("cache_control")
        return marker if isinstance(marker, dict) else None
    return None if isinstance(part, Reasoning | RedactedReasoning) else part.cache


def _as_base64(data: str) -> str:
    """Return redacted reasoning as base64, which the service requires. Reasoning from another API may not be base64."""
    try:
        a2b_base64(data, strict_mode=True)
    except (Error, ValueError):
        return b2a_base64(data.encode(errors="replace"), newline=False).decode()
    return data


def _other_block(turn: Turn, kind: str, value: JsonObject) -> JsonObject:
    """Return the block of a kind of part that other vendors lack: a search result in Anthropic's form, or a guarded
    text."""
    match kind, value:
        case "search_result", {"source": str(source), "title": str(title), "content": list(texts)}:
            content: list[JsonValue] = [
                {"text": str(text["text"])} for text in texts if isinstance(text, dict) and "text" in text
            ]
            block: JsonObject = {"source": source, "title": title, "content": content}
            if isinstance(citations := value.get("citations"), dict):
                block["citations"] = {"enabled": citations.get("enabled") is True}
            return {"searchResult": block}
        case "guarded_text", {"text": str(text)}:
            return {"guardContent": {"text": {"text": text}}}
        case _:
            raise turn.no_part(kind)


def without_calls(turns: Iterable[JsonObject]) -> list[JsonObject]:
    """Return the turns with tool calls and results as texts. The service refuses tool blocks if no tool is offered."""
    plain: list[JsonObject] = []
    for turn in turns:
        blocks = turn["content"]
        content = [each for block in blocks for each in _as_text(block)] if isinstance(blocks, list) else []
        plain.append({**turn, "content": content})
    return plain


def _as_text(block: JsonValue) -> list[JsonValue]:
    match block:
        case {"toolUse": {"toolUseId": call, "name": name, "input": given}}:
            return [{"text": f"[call {call} of {name}: {orjson.dumps(given).decode()}]"}]
        case {"toolResult": {"toolUseId": call, "content": list(content)}}:
            texts = [str(part["text"]) for part in content if isinstance(part, dict) and "text" in part]
            rest = [part for part in content if isinstance(part, dict) and "text" not in part]
            return [{"text": f"[result of call {call}: {''.join(texts)}]"}, *rest]
        case _:
            return [block]
