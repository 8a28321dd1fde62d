"""The judges of one profile's bodies: for each operation the published types that check them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from jsonschema import Draft202012Validator

from providers.json_types import JsonObject, JsonValue
from providers.unified_request import Operation

Members: TypeAlias = Mapping[str, JsonObject]
"""Fields of a body and the JSON Schema of the values that the vendor accepts there."""


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """The judge of each operation of a profile (`None` if it has no judge), and the differences between the vendor
    and its types.

    A judge is `sdk:operation` of a generated SDK, or a module below `tests.providers.dialects`. A field in `beyond`, of
    all operations or of one, is removed from the body if it matches its schema. `elsewhere` adds fields that the types
    require and that the vendor takes from the path.
    """

    chat: str | None = None
    completions: str | None = None
    beyond: Members = field(default_factory=dict)
    chat_beyond: Members = field(default_factory=dict)
    completions_beyond: Members = field(default_factory=dict)
    elsewhere: JsonObject = field(default_factory=dict)

    def operation(self, body: JsonObject) -> Operation:
        """Return the operation of a body."""
        if self.completions is None or (self.chat is not None and "messages" in body):
            return Operation.CHAT
        return Operation.COMPLETIONS

    def judge(self, operation: Operation) -> str:
        judge = self.chat if operation is Operation.CHAT else self.completions
        assert judge is not None
        return judge

    def shown(self, operation: Operation, body: JsonObject) -> JsonObject:
        """Return the body as the judge receives it."""
        more = self.chat_beyond if operation is Operation.CHAT else self.completions_beyond
        beyond = {**self.beyond, **more}
        kept = {name: value for name, value in body.items() if name not in beyond or not _is(value, beyond[name])}
        return {**self.elsewhere, **kept}


def _is(value: JsonValue, schema: JsonObject) -> bool:
    return Draft202012Validator(schema).is_valid(value)


def only(judge: str) -> JudgedBy:
    return JudgedBy(judge, judge)
