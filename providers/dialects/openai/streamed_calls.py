"""Choices in streams of the OpenAI family, and their tool calls piece by piece."""

from collections.abc import Collection, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from providers.completion import Chunk, Extras, ToolCallDelta
from providers.dialect import UpstreamRequest
from providers.dialects.openai.answer import READ_IN_CALL, called_in, calls_in, shown_id
from providers.dialects.openai.cited_marks import MarkFinder, Source
from providers.dialects.openai.read import content_of, reasoning_of
from providers.dialects.shared.custom_tools import InputReader
from providers.dialects.shared.read_json import asked_index, call_id, malformed, unknown_in, unwrap_answer
from providers.failure import Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile


@dataclass(slots=True)
class _BegunCall:
    """A tool call in progress: its dense number, its name as the vendor writes it, and the vendor's id, empty where
    there is none."""

    number: int
    name: str
    identity: str


class StreamedCalls:
    """The tool calls of one choice; `count` is their number, the latest of each of the vendor's indices is known."""

    __slots__ = ("_bare", "_begun", "_choice", "_nameless", "_sent", "_texts", "count")

    def __init__(self, sent: UpstreamRequest, choice: int) -> None:
        self._sent = sent
        self._choice = choice
        self._begun: dict[int, _BegunCall] = {}
        # The ids of calls whose names are still to come, by the vendor's indices, and their further members.
        self._nameless: dict[int, tuple[str, JsonObject | None]] = {}
        # Readers of the arguments of calls of custom tools, by their numbers.
        self._texts: dict[int, InputReader] = {}
        # The numbers of the calls of functions that have no arguments so far; an empty set takes three times as much.
        self._bare: dict[int, None] = {}
        self.count = 0

    def rest(self) -> tuple[ToolCallDelta, ...]:
        """Return what remains of the calls when the choice has ended: of the texts of those of custom tools, and an
        empty object for a function without arguments, since clients parse these as JSON. Raises UpstreamError where a
        call's name has not come."""
        if self._nameless:
            raise malformed("has a tool call without a function's name")
        readers, self._texts = self._texts, {}
        bare, self._bare = self._bare, {}
        rests = [(at, reader.rest()) for at, reader in readers.items()]
        pieces = [ToolCallDelta(at, arguments=text, kind="custom") for at, text in rests if text]
        return (*pieces, *[ToolCallDelta(at, arguments="{}") for at in bare])

    def passing(self, native: int) -> int | None:
        """Return the number of the call that has begun at a vendor's index, if its arguments are passed on as they
        come and the first of them have come; None where they are not."""
        begun = self._begun.get(native)
        if begun is None or begun.number in self._texts or begun.number in self._bare or self._nameless:
            return None
        return begun.number

    def read(self, entries: list[JsonValue], answer: JsonValue) -> tuple[ToolCallDelta, ...]:
        """Return the pieces in one delta; `answer` is the answer's id. Raises UpstreamError."""
        found = [self._piece(entry, position, answer) for position, entry in enumerate(entries)]
        pieces = [piece for piece in found if piece is not None]
        if self._texts:
            pieces = [piece for piece in pieces if piece.id or piece.arguments or piece.extra]
        return tuple(pieces)

    def _piece(self, entry: JsonValue, position: int, answer: JsonValue) -> ToolCallDelta | None:
        """Return one piece of a call; None for an id whose name is still to come.

        A call begins with a new index, or with a name and another id at a known one, or with a name where neither has
        an id: the indices of some vendors are all 0 (Gemini's whole calls), and old vLLM gives every piece an id of its
        own. A missing index is the position in the list. Some vendors repeat the name in every piece; another name for
        the same call would be the rest of a name that was passed on as whole, and is malformed.
        """
        entry, kind, called, arguments = called_in({**entry, "function": {}} if _is_bare(entry) else entry)
        given, identity, name = entry.get("index"), entry.get("id"), called.get("name")
        native = given if isinstance(given, int) else position
        identity = identity if isinstance(identity, str) else ""
        extra = unknown_in(entry, READ_IN_CALL)
        begun = self._begun.get(native)
        if begun is not None and (not name or (identity == begun.identity if identity else begun.identity != "")):
            if name and name != begun.name:
                raise malformed("has two names for one tool call")
            reader = self._texts.get(begun.number)
            if reader is not None:
                return ToolCallDelta(begun.number, arguments=reader.add(arguments), kind="custom", extra=extra)
            if arguments and self._bare:
                self._bare.pop(begun.number, None)
            return ToolCallDelta(begun.number, arguments=arguments, kind=kind, extra=extra)
        if not isinstance(name, str) or not name:
            if not identity or arguments:
                raise malformed("has a tool call without a function's name")
            self._nameless[native] = identity, extra
            return None
        if self._nameless:
            held, more = self._nameless.pop(native, ("", None))
            identity, extra = identity or held, {**more, **(extra or {})} if more else extra
        begun = self._begun[native] = _BegunCall(self.count, name, identity)
        shown = shown_id(self._sent, entry, identity or call_id(answer, self._choice, self.count))
        self.count += 1
        name = self._sent.tool_names.get(name, name)
        if name in self._sent.custom_tools:
            reader = self._texts[begun.number] = InputReader()
            return ToolCallDelta(begun.number, shown, name, reader.add(arguments), "custom", extra)
        if not arguments and kind == "function":
            self._bare[begun.number] = None
        return ToolCallDelta(begun.number, shown, name, arguments, kind, extra)


def _is_bare(entry: JsonValue) -> TypeGuard[JsonObject]:
    """Return whether a piece of a call has an id and nothing of the call itself."""
    return isinstance(entry, dict) and "id" in entry and entry.get("function") is None and entry.get("custom") is None


def check_text(profile: Profile, text: str) -> None:
    """Raise UpstreamError for a text that is an error; LocalAI sends one in a frame with the finish reason."""
    pattern = profile.errors.text
    if pattern is not None and pattern.search(text):
        raise UpstreamError(Failure(FailureKind.NONCONFORMING, "The upstream wrote an error in the answer's place."))


def adds_to_answer(choice: JsonObject) -> bool:
    """Return whether a streamed choice holds a piece of text, thinking or a call. A whole message is none: some vendors
    repeat it at the end."""
    delta = choice.get("delta")
    held = delta if isinstance(delta, dict) else {}
    if content_of(choice, held) or reasoning_of(held) or held.get("refusal"):
        return True
    calls = [entry.get("function") or entry.get("custom") for entry in calls_in(held) if isinstance(entry, dict)]
    return any(call.get(name) for call in calls if isinstance(call, dict) for name in ("name", "arguments", "input"))


@dataclass(slots=True)
class StreamedChoice:
    """State of one choice: `held` is text kept for its end, `written` the length of its text, `blocks` the number of
    its complete blocks of thinking, `marks` what finds citations in its text. `may_end` says that an empty reason stood
    beside its last piece: it ends there if nothing follows but the terminator."""

    index: int
    calls: StreamedCalls
    finished: bool = False
    may_end: bool = False
    refused: bool = False
    written: int = 0
    blocks: int = 0
    marks: MarkFinder | None = None
    held: list[str] = field(default_factory=list)

    def hold(self, text: str, reason: str | None) -> str:
        """Hold a choice inside a JSON object back until its end, then return the bare choice; a text that was cut off
        or refused is returned as it is."""
        self.held.append(text)
        if reason is None:
            return ""
        whole = "".join(self.held)
        return unwrap_answer(whole) if reason == "stop" and not self.refused else whole

    def cited(self, extras: Extras | None, text: str, sources: Sequence[Source], last: bool) -> Extras | None:
        """Return the extras with citations for the marks in the text, where the sources came before it."""
        if self.marks is None:
            if self.written:
                return extras
            self.marks = MarkFinder()
        found = self.marks.cite(text, sources, last)
        return replace(extras or Extras(), annotations=found) if found else extras


def choice_of(
    choice: JsonObject, choices: MutableMapping[int, StreamedChoice], sent: UpstreamRequest
) -> StreamedChoice | None:
    """Return the state of a streamed choice, which may be its first; None where nobody asked for it and it says
    nothing. Raises UpstreamError where it says something."""
    try:
        index = asked_index(choice, sent.choices)
    except UpstreamError:
        if adds_to_answer(choice):
            raise
        return None
    state = choices.get(index)
    if state is None:
        state = choices[index] = StreamedChoice(index, StreamedCalls(sent, index))
    return state


def may_end(choices: Collection[StreamedChoice]) -> bool:
    """Return whether all choices of a stream have ended, if its terminator comes next."""
    return bool(choices) and all([choice.finished or choice.may_end for choice in choices])


def ends_of_calls(choices: Iterable[StreamedChoice]) -> Iterator[Chunk]:
    """Yield the ends of the choices to which the terminator is one: their last word was an empty reason beside a call.
    Raises UpstreamError where a call's name has not come."""
    for choice in choices:
        if not choice.finished:
            choice.finished = True
            yield Chunk(choice.index, finish_reason="tool_calls", tool_calls=choice.calls.rest())
