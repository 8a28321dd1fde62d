"""Checks the arguments of tool calls against the parameters of tools that are strict, where no vendor promises them."""

from collections.abc import Iterator, Mapping

from providers.completion import Chunk
from providers.emulation.check_answer import AnswerCheck, schema_answer_check
from providers.json_types import JsonObject
from providers.unified_request import Params

FIELD = "tools.strict"


def strict_tool_checks(params: Params) -> Mapping[str, AnswerCheck]:
    """Return the check of each strict function's arguments, by its name. Raises Unenforceable for a schema that is too
    large."""
    checks: dict[str, AnswerCheck] = {}
    for tool in params.get("tools", ()):
        function = tool.get("function")
        if isinstance(function, dict) and function.get("strict"):
            parameters = function.get("parameters")
            schema: JsonObject = parameters if isinstance(parameters, dict) else {}
            checks[str(function["name"])] = schema_answer_check(FIELD, {"type": "object", **schema})
    return checks


class FinishedCalls:
    """Collects the tool calls of an answer's choices from chunks."""

    __slots__ = ("_arguments", "_checks", "_names")

    def __init__(self, checks: Mapping[str, AnswerCheck]) -> None:
        self._checks = checks
        self._names: dict[int, dict[int, str]] = {}
        self._arguments: dict[tuple[int, int], list[str]] = {}

    def add(self, chunk: Chunk) -> Iterator[tuple[AnswerCheck, str]]:
        """Yield each checked call of a choice that ends with this chunk, unless it was cut: its check, and its
        arguments."""
        names = self._names.setdefault(chunk.index, {}) if chunk.tool_calls else self._names.get(chunk.index, {})
        for delta in chunk.tool_calls:
            if delta.name is not None:
                names[delta.index] = delta.name
            if names.get(delta.index) in self._checks:
                self._arguments.setdefault((chunk.index, delta.index), []).append(delta.arguments)
        if chunk.finish_reason in ("stop", "tool_calls"):
            for number, name in names.items():
                if name in self._checks:
                    yield self._checks[name], "".join(self._arguments.pop((chunk.index, number), ()))
