"""What every section of the table has in common. Never a section of its own."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, TypeAdapter, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from config.types import TargetName


class Section(BaseModel):
    """A mapping of the table: no unknown keys, no silent conversions, no input in error texts."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)


class MayBeEmpty(Section):
    """A section of which nothing need be said: a key with nothing after it is one."""

    @model_validator(mode="before")
    @classmethod
    def _from_nothing(cls, value: object) -> object:
        return {} if value is None else value

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler.resolve_ref_schema(handler(schema)), "type": ["object", "null"]}


class Shorthand(Section):
    """A section that may also be written as one word: a name, unless it says otherwise."""

    word: ClassVar[str] = "a name"

    @classmethod
    def short_form(cls) -> JsonSchemaValue:
        """The word alone, for editors."""
        return TypeAdapter(TargetName).json_schema()

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        section = handler.resolve_ref_schema(handler(schema))
        return {"anyOf": [cls.short_form(), section]}
