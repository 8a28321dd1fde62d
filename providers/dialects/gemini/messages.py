"""Conversations on Gemini's wire: instructions, turns, media, function calls, their signatures and their results.

Thoughts are not sent back: the model goes on from the signatures of its calls and texts, and only without any is the
thinking named as left out. A part that holds nothing but a signature is not sent either, since the vendor refuses it.

Sources: `google-genai` 3.4.0 types `Content`, `Part`, `FunctionResponse`; "Function calling" and "Thought signatures"
pages of the Gemini API; pydantic-ai 2.68.0 `models/google` on media in results and on parts that are refused when sent
back, November 2026.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import cast

from providers.conversation import (
    Audio,
    Document,
    Image,
    OtherPart,
    Part,
    PlainMessage,
    RedactedThinking,
    Role,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    Turn,
    Video,
)
from providers.dialects.gemini.media import (
    GOOGLE_PARTS,
    Unsendable,
    fits_result,
    media_part,
    own_part,
    parts_to_send_back,
    sound_part,
)
from providers.dialects.gemini.tools import GeminiToolNames
from providers.dialects.shared.read_conversation import CACHE, read_messages
from providers.dialects.shared.thought_signatures import (
    MARKS,
    SKIPPED,
    Service,
    SignedId,
    TurnSignatures,
    fit_signature,
    turn_signatures,
    unpack_call_id,
)
from providers.failure import Refusal
from providers.frozen_record import record
from providers.json_types import JsonObject, JsonValue

_RESOLUTIONS: Mapping[str, str] = {
    "low": "MEDIA_RESOLUTION_LOW",
    "high": "MEDIA_RESOLUTION_HIGH",
    "original": "MEDIA_RESOLUTION_HIGH",
}
_ROLES: Mapping[Role, str] = {"user": "user", "assistant": "model"}
_THINKING = "thinking"
_BAD = "invalid_value"


@dataclass(frozen=True, slots=True)
class GeminiWire:
    """What the target's model and service take: `modern` models need ids and signatures of calls, and take media in
    results. `files` is the address of the service's uploaded files, None where it has none."""

    modern: bool
    service: Service = "studio"
    files: str | None = None


@record
class _MadeCall:
    """A call of the conversation: its name and id on the wire, and its position among all calls."""

    name: str
    id: str
    number: int


class GeminiConversation:
    """Translates OpenAI-shaped messages to Gemini's contents.

    `folded` says that something was moved: an instruction, or the media of a result. `resolutions` lists those of the
    images, `dropped` what was left out since it promises nothing.
    """

    __slots__ = (
        "_after",
        "_called",
        "_count",
        "_instructions",
        "_names",
        "_open",
        "_param",
        "_results",
        "_wire",
        "contents",
        "dropped",
        "folded",
        "resolutions",
    )

    def __init__(self, names: GeminiToolNames, param: str, wire: GeminiWire) -> None:
        self._names = names
        self._param = param
        self._wire = wire
        self._instructions: list[JsonValue] = []
        self._open: JsonObject | None = None
        self._called: dict[str, _MadeCall] = {}
        self._count = 0
        self._results: list[tuple[int, JsonObject]] = []
        self._after: list[JsonValue] = []
        self.contents: list[JsonValue] = []
        self.dropped: dict[str, None] = {}
        self.folded = False
        self.resolutions: set[str] = set()

    def read(self, messages: Iterable[JsonValue]) -> None:
        """Translate OpenAI-shaped messages. Raises Refusal naming the message at fault."""
        listed = [*messages]
        for position, (message, read) in enumerate(zip(listed, read_messages(listed, self._param), strict=True)):
            role = read.role
            if self._results and role != "tool":
                self._give_results()
            if isinstance(read, PlainMessage):
                self._plain(read, position)
            else:
                self._read(read, message)
        self._give_results()
        if not self.contents and self._instructions:
            # The vendor requires a turn to answer, so instructions without any become one.
            self.contents, self._instructions, self.folded = [_content("user", self._instructions)], [], True
        if not self.contents:
            raise Refusal(self._param, f"'{self._param}' holds no text for the model to answer.", _BAD)

    def _read(self, turn: Turn, message: JsonValue) -> None:
        """Translate a message that is not a plain one."""
        self.dropped |= dict.fromkeys(turn.unsent)
        match turn.role:
            case "system":
                self._instruction(turn)
            case "user":
                self._add("user", self._parts(turn))
            case "assistant":
                self._assistant(turn, parts_to_send_back(message))
            case "tool":
                self._tool(turn)

    def _plain(self, message: PlainMessage, position: int) -> None:
        """Translate a plain message, without its text if that is blank, which the vendor refuses."""
        calls = message.calls
        if message.role == "tool":
            call = self._call_of(message.call_id, position)
            self._put_result(call, {"output": message.text}, [])
        else:
            parts: list[JsonObject] = [{"text": message.text}] if message.text.strip() else []
            if calls or message.thinking:
                self._say(parts, calls, turn_signatures(self._wire.service, message.thinking, calls), [])
            elif message.role == "system":
                self._instruct(parts)
            else:
                self._add(_ROLES[message.role], parts)

    @property
    def system(self) -> list[JsonValue]:
        """Return the parts of the instructions."""
        return self._instructions

    def _instruction(self, turn: Turn) -> None:
        parts = self._parts(turn)
        if any("text" not in part for part in parts):
            raise turn.refusal("is an instruction and may only hold text")
        self._instruct(parts)

    def _instruct(self, parts: Sequence[JsonValue]) -> None:
        self.folded = self.folded or bool(parts and self.contents)
        self._instructions += parts

    # Turns of the model -----------------------------------------------------------------------------------------------

    def _assistant(self, turn: Turn, own: list[JsonObject]) -> None:
        calls = [part for part in turn.parts if isinstance(part, ToolUse)]
        signatures = turn_signatures(self._wire.service, turn.parts, calls, turn.text_signature)
        self._say(self._parts(turn), calls, signatures, own)

    def _say(
        self, content: list[JsonObject], calls: Sequence[ToolUse], signatures: TurnSignatures, own: list[JsonObject]
    ) -> None:
        """Add a turn of the model, with its calls and what it signed."""
        if not own and signatures.none and all([MARKS not in call.id and call.signature is None for call in calls]):
            # As nearly every turn.
            self._add("model", [*content, *self._unsigned_calls(calls)])
            if signatures.left_out:
                self.dropped[_THINKING] = None
            return
        signed = [unpack_call_id(call.id) for call in calls]
        parts = [self._call(call, ids, signatures) for call, ids in zip(calls, signed, strict=True)]
        loose = signatures.loose
        if parts and self._wire.modern and "thoughtSignature" not in parts[0]:
            parts[0]["thoughtSignature"] = loose[0] if loose else SKIPPED
            loose = loose[1:]
        before = next((ids.text_signature for ids in signed if ids.text_signature and self._signed_here(ids)), None)
        signed_here = all(map(self._signed_here, signed))
        if own and not (calls and signed_here):
            # The vendor needs them between calls only, and they may be the other service's.
            self.dropped[GOOGLE_PARTS], own = None, []
        text_signature = before or (signed_here and signatures.of_text) or next(iter(loose), None)
        last = next((part for part in reversed(content) if "text" in part), None)
        if text_signature and last is not None:
            last["thoughtSignature"] = text_signature
        if signatures.left_out and not (text_signature or any(ids.signature for ids in signed)):
            self.dropped[_THINKING] = None
        self._add("model", [*own, *content, *parts])

    def _signed_here(self, ids: SignedId) -> bool:
        return ids.service in (None, self._wire.service)

    def _call(self, call: ToolUse, ids: SignedId, signatures: TurnSignatures) -> JsonObject:
        part = self._unsigned_call(call, ids.id)
        given = signatures.of_calls.get(call.id) or signatures.of_calls.get(ids.id)
        # An id that carries a signature of the text before says that the call itself has none.
        signature = ids.signature or given or (None if ids.text_signature else fit_signature(call.signature))
        if signature and self._signed_here(ids):
            part["thoughtSignature"] = signature
        return part

    def _unsigned_calls(self, calls: Sequence[ToolUse]) -> list[JsonObject]:
        """Return the calls of a turn that brought no signatures."""
        parts = [self._unsigned_call(call, call.id) for call in calls]
        if parts and self._wire.modern:
            # The vendor demands one on the first call of a turn of any model.
            parts[0]["thoughtSignature"] = SKIPPED
        return parts

    def _unsigned_call(self, call: ToolUse, identity: str) -> JsonObject:
        """Return a call under the vendor's own id, without a signature, and note it for its result."""
        self._mark(call.cache)
        name = self._names.used(call.name)
        function: JsonObject = {"name": name, "args": call.arguments}
        if self._wire.modern:
            function["id"] = identity
        self._count += 1
        self._called[call.id] = _MadeCall(name, identity, self._count)
        return {"functionCall": function}

    # Results ----------------------------------------------------------------------------------------------------------

    def _tool(self, turn: Turn) -> None:
        for result in turn.parts:
            if isinstance(result, ToolResult):
                self._result(turn, result)

    def _call_of(self, call_id: str, position: int) -> _MadeCall:
        """Return the call that a result answers. Raises Refusal naming the message of the result."""
        call = self._called.get(call_id)
        if call is None:
            turn = Turn("tool", (), None, None, self._param, position)
            raise turn.refusal(f"answers the call '{call_id[:64]}', which no message before it makes", _BAD)
        return call

    def _result(self, turn: Turn, result: ToolResult) -> None:
        call = self._call_of(result.call_id, turn.position)
        self._mark(result.cache)
        texts = [part.text for part in result.parts if isinstance(part, Text)]
        media = [self._part(turn, part) for part in result.parts if not isinstance(part, Text)]
        for part in result.parts:
            self._mark(None if isinstance(part, OtherPart) else part.cache)
        within = [part for part in media if self._wire.modern and fits_result(part)]
        beside = [part for part in media if not (self._wire.modern and fits_result(part))]
        self._put_result(call, {"error" if result.failed else "output": "\n".join(texts)}, within)
        if beside:
            self._after += [{"text": f"Files that '{call.name}' returned:"}, *beside]
            self.folded = True

    def _put_result(self, call: _MadeCall, output: JsonObject, media: list[JsonObject]) -> None:
        """Note a result for the next content with results."""
        response: JsonObject = {"name": call.name, "response": output}
        if media:
            response["parts"] = cast(JsonValue, media)
        if self._wire.modern:
            response["id"] = call.id
        self._results.append((call.number, {"functionResponse": response}))

    def _give_results(self) -> None:
        """Add one content with the results of the turn before, in the order of its calls: some models match by order.

        Media that a result cannot hold follow in a content of their own.
        """
        if not self._results:
            return
        self._results.sort(key=itemgetter(0))
        self.contents.append(_content("user", [part for _, part in self._results]))
        self._results, self._open = [], None
        after, self._after = self._after, []
        if after:
            self._open = _content("user", after)
            self.contents.append(self._open)

    # Parts ------------------------------------------------------------------------------------------------------------

    def _add(self, role: str, parts: Sequence[JsonValue]) -> None:
        """Add to the last content of the same role, or begin one; results have a content of their own."""
        if not parts:
            return
        held = self._open["parts"] if self._open is not None and self._open["role"] == role else None
        if isinstance(held, list):
            held += parts
        else:
            self._open = _content(role, [*parts])
            self.contents.append(self._open)

    def _parts(self, turn: Turn) -> list[JsonObject]:
        """Return the native parts of a turn besides its calls, without blank texts, which the vendor refuses."""
        parts: list[JsonObject] = []
        for part in turn.parts:
            match part:
                case Text(text):
                    self._mark(part.cache)
                    if text.strip():
                        parts.append({"text": text})
                case ToolUse() | Thinking() | RedactedThinking():
                    continue
                case _:
                    self._mark(None if isinstance(part, OtherPart) else part.cache)
                    parts.append(self._part(turn, part))
        return parts

    def _part(self, turn: Turn, part: Part) -> JsonObject:
        """Return the native part of media, or of a part that is the vendor's own."""
        try:
            match part:
                case Image():
                    if resolution := _RESOLUTIONS.get(part.detail or ""):
                        self.resolutions.add(resolution)
                    return media_part(part, self._wire.files)
                case Document() | Video():
                    if isinstance(part, Document) and part.name:
                        # The vendor has no place for a title.
                        self.dropped["filename"] = None
                    return media_part(part, self._wire.files)
                case Audio():
                    return sound_part(part)
                case _:
                    native = own_part(part) if isinstance(part, OtherPart) else None
                    if native is None:
                        raise turn.no_part(part.kind if isinstance(part, OtherPart) else type(part).__name__)
                    return native
        except Unsendable as problem:
            raise turn.refusal(str(problem)) from None

    def _mark(self, cache: JsonObject | None) -> None:
        if cache is not None:
            self.dropped[CACHE] = None


def _content(role: str, parts: list[JsonValue]) -> JsonObject:
    return {"role": role, "parts": parts}
