"""Base classes of the table's sections."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidatorFunctionWrapHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from config.problem import did_you_mean
from config.sections.value_types import REFERENCE_PATTERN, TargetName, off_as_word, refuse


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


class SwitchableSection(ShorthandSection):
    """A section with a field `mode` in whose place the bare word `auto` or `off` may stand."""

    short_form: ClassVar[str] = "auto, off"
    modes: ClassVar[tuple[str, ...]] = ("auto", "off")

    @classmethod
    def short_form_schema(cls) -> JsonSchemaValue:
        return {"enum": [*cls.modes, False]}

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, value: object) -> object:
        word = off_as_word(value)
        if not isinstance(word, str):
            return value
        if word not in cls.modes:
            raise refuse("must be auto, off, or a mapping")
        return {"mode": str(word)}


class WordSection(ShorthandSection):
    """A section in whose place one of a few words may stand. `long_form` is how messages write the mapping."""

    words: ClassVar[tuple[str, ...]] = ()
    long_form: ClassVar[str] = ""

    @classmethod
    def short_form_schema(cls) -> JsonSchemaValue:
        return {"type": "string", "pattern": rf"^({'|'.join(cls.words)})$|{REFERENCE_PATTERN}"}


@dataclass(frozen=True, slots=True, eq=False)
class OrWord:
    """Annotation of `WordSection | Literal[...]`: errors keep the paths of the table. Those of a union of pydantic's
    have steps that name its members."""

    section: type[WordSection]

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        dumped = core_schema.plain_serializer_function_ser_schema(_dumped)
        inner = handler.generate_schema(self.section)
        return core_schema.no_info_wrap_validator_function(self._apply, inner, serialization=dumped)

    def _apply(self, value: object, inner: ValidatorFunctionWrapHandler) -> object:
        if not isinstance(value, str):
            return inner(value)
        if value not in self.section.words:
            near = did_you_mean(value, self.section.words)
            raise refuse(f"must be {self.section.short_form} or {self.section.long_form}{near}")
        return str(value)


def _dumped(value: WordSection | str) -> object:
    return value if isinstance(value, str) else value.model_dump()
