"""The state of the choices in a stream of the OpenAI family, and of their tool calls, which arrive in deltas."""

from collections.abc import Collection, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeGuard

from providers.completion import Chunk, Extras, ToolCallDelta
from providers.dialect import UpstreamRequest
from providers.dialects.openai.answer import READ_IN_CALL, called_in, calls_in, shown_id
from providers.dialects.openai.cited_marks import MarkFinder, Source
from providers.dialects.openai.read import content_of, reasoning_of
from providers.dialects.shared.custom_tools import InputReader
from providers.dialects.shared.read_json import call_id, malformed, requested_index, unknown_in, unwrap_answer
from providers.failure import Failure, FailureKind, UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.profile import Profile


@dataclass(slots=True)
class _BegunCall:
    """A tool call in progress.

    `number` counts the calls of the choice without gaps. `name` is the name as the vendor writes it. `identity` is the
    vendor's id, empty if the vendor sends no id.
    """

    number: int
    name: str
    identity: str


class StreamedCalls:
    """The tool calls of one choice. `count` is their number. `_begun` has the latest call at each of the vendor's
    indices."""

    __slots__ = ("_begun", "_choice", "_nameless", "_sent", "_texts", "_without_arguments", "count")

    def __init__(self, sent: UpstreamRequest, choice: int) -> None:
        self._sent = sent
        self._choice = choice
        self._begun: dict[int, _BegunCall] = {}
        # By the vendor's index of a call: the id and the vendor's own fields of each call whose name has not arrived
        # yet.
        self._nameless: dict[int, tuple[str, JsonObject | None]] = {}
        # By the calls' numbers: the readers of the arguments of custom tool calls.
        self._texts: dict[int, InputReader] = {}
        # The numbers of the function calls that have no arguments so far. A dict, because an empty set takes three
        # times the memory.
        self._without_arguments: dict[int, None] = {}
        self.count = 0

    def rest(self) -> tuple[ToolCallDelta, ...]:
        """Return the last deltas of the calls once the choice has ended.

        These are the rest of the text of each custom tool call, and an empty object for each function call without
        arguments, since clients parse the arguments as JSON. Raises UpstreamError if the name of a call has not
        arrived.
        """
        if self._nameless:
            raise malformed("has a tool call without a function's name")
        readers, self._texts = self._texts, {}
        without_arguments, self._without_arguments = self._without_arguments, {}
        rest_texts = [(at, reader.rest()) for at, reader in readers.items()]
        deltas = [ToolCallDelta(at, arguments=text, kind="custom") for at, text in rest_texts if text]
        return (*deltas, *[ToolCallDelta(at, arguments="{}") for at in without_arguments])

    def passing(self, native: int) -> int | None:
        """Return the number of the call at a vendor's index, if its arguments are passed on unchanged and have begun to
        arrive; otherwise `None`."""
        begun = self._begun.get(native)
        if begun is None or begun.number in self._texts or begun.number in self._without_arguments or self._nameless:
            return None
        return begun.number

    def read(self, entries: list[JsonValue], answer: JsonValue) -> tuple[ToolCallDelta, ...]:
        """Return the call deltas in one delta of the choice. `answer` is the id of the response. Raises
        UpstreamError."""
        entries_read = [self._read_delta(entry, position, answer) for position, entry in enumerate(entries)]
        deltas = [delta for delta in entries_read if delta is not None]
        if self._texts:
            deltas = [delta for delta in deltas if delta.id or delta.arguments or delta.extra]
        return tuple(deltas)

    def _read_delta(self, entry: JsonValue, position: int, answer: JsonValue) -> ToolCallDelta | None:
        """Return one delta of a call; `None` if it has only an id whose name has not arrived yet.

        A call begins with a new index. At a known index, a call begins with a name and another id, or with a name if
        neither call has an id: some vendors give all calls the index 0 (Gemini, whose calls arrive complete), and old
        vLLM gives every delta its own id. If the index is missing, the position in the list is used. Some vendors
        repeat the name in every delta. Another name for the same call would be the rest of a name that was passed on as
        complete, and is malformed.
        """
        entry, kind, called, arguments = called_in({**entry, "function": {}} if _has_only_id(entry) else entry)
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
            if arguments and self._without_arguments:
                self._without_arguments.pop(begun.number, None)
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
            self._without_arguments[begun.number] = None
        return ToolCallDelta(begun.number, shown, name, arguments, kind, extra)


def _has_only_id(entry: JsonValue) -> TypeGuard[JsonObject]:
    """Return whether a delta of a call has an id but no function and no custom tool."""
    return isinstance(entry, dict) and "id" in entry and entry.get("function") is None and entry.get("custom") is None


def check_text(profile: Profile, text: str) -> None:
    """Raise UpstreamError if a text is an error. LocalAI sends an error as the text of the event with the finish
    reason."""
    pattern = profile.errors.text
    if pattern is not None and pattern.search(text):
        raise UpstreamError(Failure(FailureKind.NONCONFORMING, "The upstream wrote an error instead of a response."))


def adds_content(choice: JsonObject) -> bool:
    """Return whether a streamed choice holds a delta of text, reasoning or a call. A complete message does not count:
    some vendors repeat it at the end."""
    delta = choice.get("delta")
    held = delta if isinstance(delta, dict) else {}
    if content_of(choice, held) or reasoning_of(held) or held.get("refusal"):
        return True
    calls = [entry.get("function") or entry.get("custom") for entry in calls_in(held) if isinstance(entry, dict)]
    return any(call.get(name) for call in calls if isinstance(call, dict) for name in ("name", "arguments", "input"))


@dataclass(slots=True)
class StreamedChoice:
    """The state of one choice.

    `held` is text that is held back until the end of the choice. `written` is the length of its text in characters.
    `blocks` is the number of its complete reasoning blocks. `marks` finds the citation marks in its text. `may_end` is
    true if the last delta of the choice had an empty finish reason: the choice ends there if only the terminator
    follows.
    """

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
        """Hold back a text that wraps one of the client's choices in a JSON object, and return the choice at the end.

        A text that was cut off or is a refusal is returned unchanged.
        """
        self.held.append(text)
        if reason is None:
            return ""
        whole = "".join(self.held)
        return unwrap_answer(whole) if reason == "stop" and not self.refused else whole

    def cited(self, extras: Extras | None, text: str, sources: Sequence[Source], last: bool) -> Extras | None:
        """Return the extras with citations for the marks in the text. Sources that arrive after the first text are
        ignored."""
        if self.marks is None:
            if self.written:
                return extras
            self.marks = MarkFinder()
        annotations = self.marks.cite(text, sources, last)
        return replace(extras or Extras(), annotations=annotations) if annotations else extras


def state_of_choice(
    choice: JsonObject, choices: MutableMapping[int, StreamedChoice], sent: UpstreamRequest
) -> StreamedChoice | None:
    """Return the state of a streamed choice, and create the state for a new choice.

    For a choice that was not requested, return `None` if it has no content, otherwise raise UpstreamError.
    """
    try:
        index = requested_index(choice, sent.choices)
    except UpstreamError:
        if adds_content(choice):
            raise
        return None
    state = choices.get(index)
    if state is None:
        state = choices[index] = StreamedChoice(index, StreamedCalls(sent, index))
    return state


def may_end(choices: Collection[StreamedChoice]) -> bool:
    """Return whether all choices of a stream count as ended if the terminator follows."""
    return bool(choices) and all([choice.finished or choice.may_end for choice in choices])


def ends_of_calls(choices: Iterable[StreamedChoice]) -> Iterator[Chunk]:
    """Yield the last chunk of each choice that ends only with the terminator: its last delta had an empty finish reason
    beside a call. Raises UpstreamError if the name of a call has not arrived."""
    for choice in choices:
        if not choice.finished:
            choice.finished = True
            yield Chunk(choice.index, finish_reason="tool_calls", tool_calls=choice.calls.rest())
