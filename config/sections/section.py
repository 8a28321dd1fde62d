"""Base classes of the table's sections."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict, GetJsonSchemaHandler, TypeAdapter, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from config.sections.value_types import TargetName


class Section(BaseModel):
    """A mapping of the table: no unknown keys, no silent conversions, no input in error texts."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        model_title_generator=lambda model: model.__name__.removesuffix("Section"),
    )


class MaybeEmptySection(Section):
    """A section that may be left empty: a key without a value."""

    @model_validator(mode="before")
    @classmethod
    def _from_nothing(cls, value: object) -> object:
        return {} if value is None else value

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {**handler.resolve_ref_schema(handler(schema)), "type": ["object", "null"]}


class ShorthandSection(Section):
    """A section with a short form, one scalar; `short_form` is what messages call it."""

    short_form: ClassVar[str] = "a name"

    @classmethod
    def short_form_schema(cls) -> JsonSchemaValue:
        """Return the JSON Schema of the short form."""
        return TypeAdapter(TargetName).json_schema()

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        section = handler.resolve_ref_schema(handler(schema))
        return {"anyOf": [cls.short_form_schema(), section]}
