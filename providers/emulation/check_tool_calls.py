"""Fits the parameters of strict tools to the form that the vendor enforces, and checks the calls that the vendor does
not enforce."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import orjson

from providers.capabilities import NO_PROMISE, Capabilities
from providers.completion import Chunk
from providers.constraints.adapt_schema import count_limited, fit_schema
from providers.constraints.schema_rules import TOOL_RULES, SchemaRules
from providers.emulation.check_answer import MAX_CHECKED, AnswerCheck, schema_answer_check
from providers.failure import Refusal
from providers.json_types import JsonObject
from providers.unified_request import Params

FIELD = "tools.strict"


def has_strict_tools(params: Params) -> bool:
    """Return whether any tool is strict: the arguments of its calls must satisfy its schema."""
    tools = params.get("tools", ())
    return any(isinstance(function := tool.get("function"), dict) and function.get("strict") for tool in tools)


@dataclass(slots=True)
class StrictTools:
    """The strict tools of one request in the form that one vendor accepts. `checks` are the checks of calls whose
    schema the vendor does not enforce, by the function's name."""

    table: Capabilities
    checks: dict[str, AnswerCheck] = field(default_factory=dict)
    _bytes: int = 0
    _strict: int = 0
    _optional: int = 0
    _unions: int = 0

    def fitted(self, tool: JsonObject) -> JsonObject:
        """Return the tool, which remains strict only if the vendor enforces its schema. Raises Refusal if all schemas
        together are too large."""
        function = tool.get("function")
        if not isinstance(function, dict) or not function.get("strict"):
            return tool
        parameters = function.get("parameters")
        given: JsonObject = parameters if isinstance(parameters, dict) else {}
        own: JsonObject = {"type": "object", **given} if given else {"type": "object", "properties": {}}
        self._bytes += len(orjson.dumps(own))
        if self._bytes > MAX_CHECKED:
            message = f"The parameters of strict tools may have at most {MAX_CHECKED} bytes together."
            raise Refusal("tools", message, "invalid_value")
        sent, held = self._enforced(own)
        if not held or self.table.verifies:
            self.checks[str(function.get("name"))] = schema_answer_check(FIELD, own)
        if sent is None:
            loose = {name: value for name, value in function.items() if name != "strict"}
            return {**tool, "function": loose}
        return tool if sent == own == given else {**tool, "function": {**function, "parameters": sent}}

    def _enforced(self, schema: JsonObject) -> tuple[JsonObject | None, bool]:
        """Return the parameters to send for a strict tool, or `None` if the vendor cannot accept the tool as strict;
        and whether the vendor enforces the whole schema."""
        if self.table.strict_tools == NO_PROMISE:
            return None, False
        rules = TOOL_RULES[self.table.strict_tools]
        fitted = fit_schema(schema, rules)
        if fitted.schema is None or not self._count_within_limits(fitted.schema, rules):
            return None, False
        return fitted.schema, not fitted.weakened

    def _count_within_limits(self, schema: JsonObject, rules: SchemaRules) -> bool:
        """Return whether the vendor accepts a schema in addition to the schemas that were counted before, and count
        it."""
        if rules.most_tools is None:
            return True
        optional, unions = count_limited(schema)
        strict, optional, unions = self._strict + 1, self._optional + optional, self._unions + unions
        sums = ((strict, rules.most_tools), (optional, rules.most_optional), (unions, rules.most_unions))
        if any(most is not None and amount > most for amount, most in sums):
            return False
        self._strict, self._optional, self._unions = strict, optional, unions
        return True


class FinishedCalls:
    """Collects the tool calls of a response's choices from chunks."""

    __slots__ = ("_arguments", "_checks", "_names")

    def __init__(self, checks: Mapping[str, AnswerCheck]) -> None:
        self._checks = checks
        self._names: dict[int, dict[int, str]] = {}
        self._arguments: dict[tuple[int, int], list[str]] = {}

    def add(self, chunk: Chunk) -> Iterator[tuple[AnswerCheck, str]]:
        """If a choice ends with this chunk and was not cut off, yield the check and the arguments of each of its calls
        that must be checked."""
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
