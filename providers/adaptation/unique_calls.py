"""Gives each call of a response an id that occurs neither in the client's conversation nor in an earlier call of the
response.

A response in the client's own API is passed on unchanged, since the vendors of these APIs make unique ids. See
`providers.adaptation.unique_call_ids` for the engines that repeat ids.
"""

from collections.abc import Iterable
from dataclasses import replace

from providers.adaptation.unique_call_ids import ids_in, unused_id
from providers.completion import Choice, Chunk, Completion, ToolCallDelta
from providers.json_types import JsonObject
from providers.unified_request import ChatPrompt, Operation, UnifiedRequest


def may_call(request: UnifiedRequest) -> bool:
    """Return whether a response may contain tool calls."""
    return "tools" in request.params or bool(request.unknown or request.extra_params)


def unique_calls(request: UnifiedRequest) -> "UniqueCalls | None":
    """Return the object that makes the ids of a response's calls unique; `None` if the response cannot hold calls."""
    prompt = request.prompt
    if request.operation is not Operation.CHAT or not isinstance(prompt, ChatPrompt) or not may_call(request):
        return None
    return UniqueCalls(prompt.messages)


def with_unique_calls(request: UnifiedRequest, completion: Completion) -> Completion:
    """Return a non-streaming response whose calls have unique ids; the same object if they are unique already. The
    conversation is read only if there are calls."""
    if completion.native is not None or not any([choice.tool_calls for choice in completion.choices]):
        return completion
    unique = unique_calls(request)
    return completion if unique is None else unique.whole(completion)


class UniqueCalls:
    """The ids that are taken for the calls of one response, and the ids that these calls get."""

    __slots__ = ("_begun", "_taken")

    def __init__(self, messages: Iterable[JsonObject]) -> None:
        self._taken = ids_in(messages)
        # The id of each call, by the index of its choice and its index within the choice.
        self._begun: dict[tuple[int, int], str] = {}

    def whole(self, completion: Completion) -> Completion:
        """Return a response with unique ids; the same object if they are unique already."""
        choices = tuple([self._choice(choice) for choice in completion.choices])
        return replace(completion, choices=choices) if choices != completion.choices else completion

    def _choice(self, choice: Choice) -> Choice:
        calls = tuple(
            [
                call if (own := unused_id(call.id, self._taken)) == call.id else replace(call, id=own)
                for call in choice.tool_calls
            ]
        )
        return replace(choice, tool_calls=calls) if calls != choice.tool_calls else choice

    def chunk(self, chunk: Chunk) -> Chunk:
        """Return the next chunk with unique ids; the same object if they are unique already."""
        if not chunk.tool_calls or chunk.native is not None:
            return chunk
        calls = tuple([self._delta(chunk.index, call) for call in chunk.tool_calls])
        return replace(chunk, tool_calls=calls) if calls != chunk.tool_calls else chunk

    def _delta(self, choice: int, call: ToolCallDelta) -> ToolCallDelta:
        if not call.id:
            return call
        own = self._begun.get((choice, call.index))
        if own is None:
            own = self._begun[choice, call.index] = unused_id(call.id, self._taken)
        return call if own == call.id else replace(call, id=own)
