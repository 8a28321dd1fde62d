"""Base classes of the configuration's sections, and the declaration of a setting that deployments inherit."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Final, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    ValidatorFunctionWrapHandler,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from config.problem import did_you_mean
from config.sections.value_types import REFERENCE_PATTERN, TargetName, off_as_word, refuse


class Section(BaseModel):
    """A mapping of the configuration: no unknown keys, no implicit conversions, no input in error texts."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        model_title_generator=lambda model: model.__name__.removesuffix("Section"),
    )


BUILT_IN: Final = "{built_in}"
"""The text that stands for the built-in value in a setting's description. If a description lacks this text, the
built-in value is appended to it."""

_S = TypeVar("_S", bound=Section)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, eq=False)
class Declaration:
    """The mark of a field that is a setting, with the arguments of `setting`."""

    built_in: object
    resolved: bool
    instead_of: str


def setting(
    description: str, built_in: object = None, *, default: object = None, resolved: bool = True, instead_of: str = ""
) -> Any:  # noqa: ANN401 -- it stands for a value of any type, as pydantic's `Field` does
    """Declare a setting: a field that each level may write, from the deployment up to the `defaults`.

    The deepest level that writes the setting decides. If `default` is a section, this applies to each of its keys; if
    it is a mapping, to each entry; otherwise to the whole value. Empty text stands for no value. `built_in` is the
    value if no level writes one, in the form that the operator would write. If `resolved` is False, other code applies
    the setting, since it depends on more than the deployment. A level that writes a setting with `instead_of` does not
    inherit the setting that `instead_of` names.
    """
    if built_in is not None:
        words = f"[{', '.join(built_in)}]" if isinstance(built_in, list) else str(built_in)
        shown = words.lower() if isinstance(built_in, bool) else words
        whole = description if BUILT_IN in description else f"{description} Built in: {BUILT_IN}."
        description = whole.replace(BUILT_IN, shown)
    field = FieldInfo.from_field(default, description=description)
    field.metadata.append(Declaration(built_in, resolved, instead_of))
    return field


@cache
def settings_of(section: type[Section]) -> Mapping[str, Declaration]:
    """Return the settings among the fields of a section, in the order of their declaration."""
    fields = section.model_fields.items()
    return {name: each for name, field in fields for each in field.metadata if isinstance(each, Declaration)}


def built_in(section: type[Section], key: str, kind: type[_T]) -> _T:
    """Return the built-in value of a setting, for code that applies it. Raises TypeError if the value has another
    type."""
    value = getattr(section.model_validate({key: settings_of(section)[key].built_in}), key)
    if not isinstance(value, kind):
        raise TypeError(f"the built-in value of {key} is not of type {kind.__name__}")
    return value


def built_in_section(section: type[_S]) -> _S:
    """Return the section if no level writes a setting: it has the built-in values, and no field counts as set."""
    known = ((name, each.built_in) for name, each in settings_of(section).items() if each.resolved)
    made = section.model_validate({name: value for name, value in known if value is not None})
    inner = {name: built_in_section(type(value)) for name, value in made if isinstance(value, Section)}
    return section.model_construct(set(), **{**dict(made), **inner})


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
    """A section with a short form, one scalar. `short_form` describes it in messages."""

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
    """A section with a field `mode`. The bare word `auto` or `off` may be written instead of the mapping."""

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
    """A section instead of which one of a few words may be written. `long_form` describes the mapping in messages."""

    words: ClassVar[tuple[str, ...]] = ()
    long_form: ClassVar[str] = ""

    @classmethod
    def short_form_schema(cls) -> JsonSchemaValue:
        return {"type": "string", "pattern": rf"^({'|'.join(cls.words)})$|{REFERENCE_PATTERN}"}


@dataclass(frozen=True, slots=True, eq=False)
class OrWord:
    """Annotation of `WordSection | Literal[...]`. With it, errors have the paths of the configuration; a union of
    pydantic would add steps that name the alternatives."""

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
