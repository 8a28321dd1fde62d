"""Translates conversations into Gemini's form: instructions, turns, media, function calls, and the signatures and
results of these calls.

Reasoning texts are not sent back: the model continues from the signatures of its calls and texts. Reasoning is reported
as dropped only if there is no signature. A part that holds only a signature is not sent either, because the vendor
refuses such a part.

Sources: `google-genai` 3.4.0 types `Content`, `Part`, `FunctionResponse`; "Function calling" and "Thought signatures"
pages of the Gemini API; pydantic-ai 2.68.0 `models/google` for media in results and for parts that the vendor refuses
when they are sent back, November 2026.
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
    Reasoning,
    RedactedReasoning,
    Role,
    Text,
    ToolResult,
    ToolUse,
    Turn,
    Video,
)
from providers.dialects.gemini.media import (
    GOOGLE_PARTS,
    Unsendable,
    audio_part,
    fits_result,
    google_part,
    media_part,
    parts_to_send_back,
)
from providers.dialects.gemini.tools import GeminiToolNames
from providers.dialects.shared.read_conversation import CACHE, read_messages
from providers.dialects.shared.thought_signatures import (
    MARKS,
    SKIP_SIGNATURE,
    Service,
    SignedId,
    TurnSignatures,
    fit_signature,
    turn_signatures,
    unpack_call_id,
)
from providers.failure import Refusal
from providers.frozen_record import frozen
from providers.json_types import JsonObject, JsonValue

_RESOLUTIONS: Mapping[str, str] = {
    "low": "MEDIA_RESOLUTION_LOW",
    "high": "MEDIA_RESOLUTION_HIGH",
    "original": "MEDIA_RESOLUTION_HIGH",
}
_ROLES: Mapping[Role, str] = {"user": "user", "assistant": "model"}
_THINKING = "thinking"
_INVALID_VALUE = "invalid_value"


@dataclass(frozen=True, slots=True)
class GeminiFeatures:
    """The features of the target's model and service.

    `modern` models require ids and signatures of calls, and accept media in results. `files` is the address of the
    service's uploaded files, or `None` if it has none.
    """

    modern: bool
    service: Service = "studio"
    files: str | None = None


@frozen
class _SeenCall:
    """A call of the conversation: its name and id as sent to the vendor, and its position among all calls."""

    name: str
    id: str
    number: int


class GeminiConversation:
    """The translation of OpenAI-shaped messages into Gemini's contents.

    `folded` is true if an instruction or the media of a result were moved. `resolutions` are the resolutions that the
    images request. `dropped` names advisory fields that were left out.
    """

    __slots__ = (
        "_call_count",
        "_calls_by_id",
        "_features",
        "_instructions",
        "_last_content",
        "_late_media",
        "_names",
        "_param",
        "_results",
        "contents",
        "dropped",
        "folded",
        "resolutions",
    )

    def __init__(self, names: GeminiToolNames, param: str, features: GeminiFeatures) -> None:
        self._names = names
        self._param = param
        self._features = features
        self._instructions: list[JsonValue] = []
        self._last_content: JsonObject | None = None
        self._calls_by_id: dict[str, _SeenCall] = {}
        self._call_count = 0
        self._results: list[tuple[int, JsonObject]] = []
        self._late_media: list[JsonValue] = []
        self.contents: list[JsonValue] = []
        self.dropped: dict[str, None] = {}
        self.folded = False
        self.resolutions: set[str] = set()

    def read(self, messages: Iterable[JsonValue]) -> None:
        """Translate OpenAI-shaped messages. Raises Refusal that names the message it cannot translate."""
        given_messages = [*messages]
        for position, (message, read) in enumerate(
            zip(given_messages, read_messages(given_messages, self._param), strict=True)
        ):
            role = read.role
            if self._results and role != "tool":
                self._append_results()
            if isinstance(read, PlainMessage):
                self._add_plain(read, position)
            else:
                self._add_message(read, message)
        self._append_results()
        if not self.contents and self._instructions:
            # The vendor requires at least one turn, so instructions alone become a user turn.
            self.contents, self._instructions, self.folded = [_content("user", self._instructions)], [], True
        if not self.contents:
            raise Refusal(self._param, f"'{self._param}' holds no text for the model to answer.", _INVALID_VALUE)

    def _add_message(self, turn: Turn, message: JsonValue) -> None:
        """Translate a message that is more than a role and a text."""
        self.dropped |= dict.fromkeys(turn.unsent)
        match turn.role:
            case "system":
                self._add_instruction(turn)
            case "user":
                self._append("user", self._parts(turn))
            case "assistant":
                self._add_assistant(turn, parts_to_send_back(message))
            case "tool":
                self._add_results(turn)

    def _add_plain(self, message: PlainMessage, position: int) -> None:
        """Translate a plain message. A blank text is left out, because the vendor refuses it."""
        calls = message.calls
        if message.role == "tool":
            call = self._answered_call(message.call_id, position)
            self._store_result(call, {"output": message.text}, [])
        else:
            parts: list[JsonObject] = [{"text": message.text}] if message.text.strip() else []
            if calls or message.thinking:
                self._add_model_turn(parts, calls, turn_signatures(self._features.service, message.thinking, calls), [])
            elif message.role == "system":
                self._append_instructions(parts)
            else:
                self._append(_ROLES[message.role], parts)

    @property
    def system(self) -> list[JsonValue]:
        """The parts of the instructions."""
        return self._instructions

    def _add_instruction(self, turn: Turn) -> None:
        parts = self._parts(turn)
        if any("text" not in part for part in parts):
            raise turn.refusal("is an instruction and may only hold text")
        self._append_instructions(parts)

    def _append_instructions(self, parts: Sequence[JsonValue]) -> None:
        self.folded = self.folded or bool(parts and self.contents)
        self._instructions += parts

    # Turns of the model -----------------------------------------------------------------------------------------------

    def _add_assistant(self, turn: Turn, google_parts: list[JsonObject]) -> None:
        calls = [part for part in turn.parts if isinstance(part, ToolUse)]
        signatures = turn_signatures(self._features.service, turn.parts, calls, turn.text_signature)
        self._add_model_turn(self._parts(turn), calls, signatures, google_parts)

    def _add_model_turn(
        self,
        content: list[JsonObject],
        calls: Sequence[ToolUse],
        signatures: TurnSignatures,
        google_parts: list[JsonObject],
    ) -> None:
        """Append a turn of the model, with its calls and their signatures. `google_parts` are the parts of Google's own
        tools that the client sent back."""
        if (
            not google_parts
            and signatures.none
            and all([MARKS not in call.id and call.signature is None for call in calls])
        ):
            # Nearly every turn takes this branch.
            self._append("model", [*content, *self._unsigned_calls(calls)])
            if signatures.left_out:
                self.dropped[_THINKING] = None
            return
        signed = [unpack_call_id(call.id) for call in calls]
        parts = [self._signed_call(call, ids, signatures) for call, ids in zip(calls, signed, strict=True)]
        unassigned = signatures.loose
        if parts and self._features.modern and "thoughtSignature" not in parts[0]:
            parts[0]["thoughtSignature"] = unassigned[0] if unassigned else SKIP_SIGNATURE
            unassigned = unassigned[1:]
        before = next((ids.text_signature for ids in signed if ids.text_signature and self._signed_here(ids)), None)
        signed_here = all(map(self._signed_here, signed))
        if google_parts and not (calls and signed_here):
            # The vendor requires these parts only between calls. They may come from the other Google service.
            self.dropped[GOOGLE_PARTS], google_parts = None, []
        text_signature = before or (signed_here and signatures.of_text) or next(iter(unassigned), None)
        last = next((part for part in reversed(content) if "text" in part), None)
        if text_signature and last is not None:
            last["thoughtSignature"] = text_signature
        if signatures.left_out and not (text_signature or any(ids.signature for ids in signed)):
            self.dropped[_THINKING] = None
        self._append("model", [*google_parts, *content, *parts])

    def _signed_here(self, ids: SignedId) -> bool:
        return ids.service in (None, self._features.service)

    def _signed_call(self, call: ToolUse, ids: SignedId, signatures: TurnSignatures) -> JsonObject:
        part = self._unsigned_call(call, ids.id)
        given = signatures.of_calls.get(call.id) or signatures.of_calls.get(ids.id)
        # If the id carries the signature of the text before the call, the call itself has no signature.
        signature = ids.signature or given or (None if ids.text_signature else fit_signature(call.signature))
        if signature and self._signed_here(ids):
            part["thoughtSignature"] = signature
        return part

    def _unsigned_calls(self, calls: Sequence[ToolUse]) -> list[JsonObject]:
        """Return the calls of a turn without signatures."""
        parts = [self._unsigned_call(call, call.id) for call in calls]
        if parts and self._features.modern:
            # The vendor requires a signature on the first call of a turn, whichever model made it.
            parts[0]["thoughtSignature"] = SKIP_SIGNATURE
        return parts

    def _unsigned_call(self, call: ToolUse, identity: str) -> JsonObject:
        """Return a call without a signature, under the id that the vendor gave it, and store the call for its
        result."""
        self._note_marker(call.cache)
        name = self._names.used(call.name)
        function: JsonObject = {"name": name, "args": call.arguments}
        if self._features.modern:
            function["id"] = identity
        self._call_count += 1
        self._calls_by_id[call.id] = _SeenCall(name, identity, self._call_count)
        return {"functionCall": function}

    # Results ----------------------------------------------------------------------------------------------------------

    def _add_results(self, turn: Turn) -> None:
        for result in turn.parts:
            if isinstance(result, ToolResult):
                self._add_result(turn, result)

    def _answered_call(self, call_id: str, position: int) -> _SeenCall:
        """Return the call that a result belongs to. Raises Refusal that names the message of the result."""
        call = self._calls_by_id.get(call_id)
        if call is None:
            turn = Turn("tool", (), None, None, self._param, position)
            raise turn.refusal(f"answers the call '{call_id[:64]}', which no earlier message makes", _INVALID_VALUE)
        return call

    def _add_result(self, turn: Turn, result: ToolResult) -> None:
        call = self._answered_call(result.call_id, turn.position)
        self._note_marker(result.cache)
        texts = [part.text for part in result.parts if isinstance(part, Text)]
        media = [self._part(turn, part) for part in result.parts if not isinstance(part, Text)]
        for part in result.parts:
            self._note_marker(None if isinstance(part, OtherPart) else part.cache)
        within = [part for part in media if self._features.modern and fits_result(part)]
        beside = [part for part in media if not (self._features.modern and fits_result(part))]
        self._store_result(call, {"error" if result.failed else "output": "\n".join(texts)}, within)
        if beside:
            self._late_media += [{"text": f"Files that '{call.name}' returned:"}, *beside]
            self.folded = True

    def _store_result(self, call: _SeenCall, output: JsonObject, media: list[JsonObject]) -> None:
        """Store a result for the next content with results."""
        response: JsonObject = {"name": call.name, "response": output}
        if media:
            response["parts"] = cast(JsonValue, media)
        if self._features.modern:
            response["id"] = call.id
        self._results.append((call.number, {"functionResponse": response}))

    def _append_results(self) -> None:
        """Append one content with the stored results, in the order of their calls, because some models match results by
        order.

        Media that a result cannot hold follow in a content of their own.
        """
        if not self._results:
            return
        self._results.sort(key=itemgetter(0))
        self.contents.append(_content("user", [part for _, part in self._results]))
        self._results, self._last_content = [], None
        after, self._late_media = self._late_media, []
        if after:
            self._last_content = _content("user", after)
            self.contents.append(self._last_content)

    # Parts ------------------------------------------------------------------------------------------------------------

    def _append(self, role: str, parts: Sequence[JsonValue]) -> None:
        """Append a part to the last content if the roles match, otherwise to a new content. Results have a content of
        their own."""
        if not parts:
            return
        open_parts = (
            self._last_content["parts"]
            if self._last_content is not None and self._last_content["role"] == role
            else None
        )
        if isinstance(open_parts, list):
            open_parts += parts
        else:
            self._last_content = _content(role, [*parts])
            self.contents.append(self._last_content)

    def _parts(self, turn: Turn) -> list[JsonObject]:
        """Return all native parts of a turn except its calls. Blank texts are left out, because the vendor refuses
        them."""
        parts: list[JsonObject] = []
        for part in turn.parts:
            match part:
                case Text(text):
                    self._note_marker(part.cache)
                    if text.strip():
                        parts.append({"text": text})
                case ToolUse() | Reasoning() | RedactedReasoning():
                    continue
                case _:
                    self._note_marker(None if isinstance(part, OtherPart) else part.cache)
                    parts.append(self._part(turn, part))
        return parts

    def _part(self, turn: Turn, part: Part) -> JsonObject:
        """Return the native part of media, or of a part in the vendor's own form."""
        try:
            match part:
                case Image():
                    if resolution := _RESOLUTIONS.get(part.detail or ""):
                        self.resolutions.add(resolution)
                    return media_part(part, self._features.files)
                case Document() | Video():
                    if isinstance(part, Document) and part.name:
                        # The vendor has no field for a title.
                        self.dropped["filename"] = None
                    return media_part(part, self._features.files)
                case Audio():
                    return audio_part(part)
                case _:
                    native = google_part(part) if isinstance(part, OtherPart) else None
                    if native is None:
                        raise turn.no_part(part.kind if isinstance(part, OtherPart) else type(part).__name__)
                    return native
        except Unsendable as problem:
            raise turn.refusal(str(problem)) from None

    def _note_marker(self, cache: JsonObject | None) -> None:
        if cache is not None:
            self.dropped[CACHE] = None


def _content(role: str, parts: list[JsonValue]) -> JsonObject:
    return {"role": role, "parts": parts}
