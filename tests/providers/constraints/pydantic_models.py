"""Forty models as people write them for structured output, each with a valid and an invalid value.

The invalid values break rules that vendors most often do not enforce: bounds, lengths, patterns, and rules that no
vendor's keywords can express.
"""

import datetime
import decimal
import enum
import uuid
from typing import Annotated, Generic, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, HttpUrl, RootModel, TypeAdapter
from typing_extensions import TypedDict

from providers.json_types import JsonObject, JsonValue


class Color(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Plain(BaseModel):
    name: str
    age: int


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    city: str


class Nested(BaseModel):
    name: str
    address: Address


class TwiceNested(BaseModel):
    first: Address = Field(description="The first one.")
    second: Address


class Optionals(BaseModel):
    name: str
    nick: str | None = None
    age: int | None = None


class Defaults(BaseModel):
    name: str = "nobody"
    count: int = 3
    tags: list[str] = []


class AllOptional(BaseModel):
    a: str | None = None
    b: int | None = None


class WithEnum(BaseModel):
    color: Color
    level: Level


class WithLiteral(BaseModel):
    kind: Literal["a", "b"]
    single: Literal["only"]
    number: Literal[1, 2]
    flag: Literal[True]


class MixedLiteral(BaseModel):
    value: Literal["a", 1, None]


class Union(BaseModel):
    value: int | str | None
    other: Plain | Address


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    good: bool


class Discriminated(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class DiscriminatedList(BaseModel):
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]]


class Bounds(BaseModel):
    score: Annotated[int, Field(ge=0, le=10)]
    share: Annotated[float, Field(gt=0, lt=1)]


class Multiple(BaseModel):
    even: Annotated[int, Field(multiple_of=2)]


class Lengths(BaseModel):
    code: Annotated[str, Field(min_length=3, max_length=5)]


class Pattern(BaseModel):
    code: Annotated[str, Field(pattern="^[A-Z]{2}[0-9]+$")]


class Lists(BaseModel):
    few: Annotated[list[str], Field(min_length=2, max_length=3)]


class NestedLists(BaseModel):
    matrix: list[list[float]]
    rows: list[Plain]


class Sets(BaseModel):
    tags: set[str]


class Tuples(BaseModel):
    pair: tuple[int, str]


class SameTuple(BaseModel):
    point: tuple[float, float, float]


class Map(BaseModel):
    counts: dict[str, int]


class MapOfModels(BaseModel):
    people: dict[str, Plain]


class AnyMap(BaseModel):
    data: dict[str, object]


class Anything(BaseModel):
    value: object


class Extra(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str


class Dates(BaseModel):
    day: datetime.date
    at: datetime.datetime
    time: datetime.time
    took: datetime.timedelta


class Ids(BaseModel):
    id: uuid.UUID
    url: HttpUrl


class Money(BaseModel):
    amount: Annotated[decimal.Decimal, Field(max_digits=5, decimal_places=2)]


class Node(BaseModel):
    value: int
    next: "Node | None" = None


class Tree(BaseModel):
    name: str
    children: list["Tree"] = []


class RequiredTree(BaseModel):
    name: str
    children: list["RequiredTree"]


class Left(BaseModel):
    right: "Right | None" = None


class Right(BaseModel):
    left: Left | None = None
    value: Annotated[int, Field(ge=0)]


class Described(BaseModel):
    """A model with words."""

    model_config = ConfigDict(title="Words", json_schema_extra={"examples": [{"name": "a"}]})
    name: str = Field(title="The name", description="Of the person", examples=["a"])
    home: Address = Field(description="The home", default=Address(street="a", city="b"))


class Typed(TypedDict, total=False):
    a: int
    b: str


class HoldsTyped(BaseModel):
    inner: Typed


class Point(NamedTuple):
    x: int
    y: int


class HoldsNamed(BaseModel):
    point: Point


class ListRoot(RootModel[list[Plain]]):
    pass


class UnionRoot(RootModel[Cat | Dog]):
    pass


class StringRoot(RootModel[Annotated[str, Field(min_length=2)]]):
    pass


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    item: T
    total: Annotated[int, Field(ge=0)]


class Wide(BaseModel):
    """More options than Claude takes."""

    a01: str | None = None
    a02: str | None = None
    a03: str | None = None
    a04: str | None = None
    a05: str | None = None
    a06: str | None = None
    a07: str | None = None
    a08: str | None = None
    a09: str | None = None
    a10: str | None = None
    a11: str | None = None
    a12: str | None = None
    a13: str | None = None
    a14: str | None = None
    a15: str | None = None
    a16: str | None = None
    a17: str | None = None
    a18: str | None = None


Row = tuple[JsonObject, JsonValue, JsonValue]
_PLAIN: JsonObject = {"name": "a", "age": 1}
_HOME: JsonObject = {"street": "a", "city": "b"}
_CAT: JsonObject = {"kind": "cat", "lives": 9}
_DOG: JsonObject = {"kind": "dog", "good": True}


def _row(model: type[BaseModel], good: JsonValue, bad: JsonValue) -> Row:
    TypeAdapter(model).validate_python(good)
    return model.model_json_schema(), good, bad


MODELS: dict[str, Row] = {
    "plain": _row(Plain, _PLAIN, {"name": "a"}),
    "nested": _row(Nested, {"name": "a", "address": _HOME}, {"name": "a", "address": {}}),
    "twice_nested": _row(TwiceNested, {"first": _HOME, "second": _HOME}, {"first": _HOME}),
    "optionals": _row(Optionals, {"name": "a", "nick": None, "age": 1}, {"nick": "b"}),
    "defaults": _row(Defaults, {"name": "a", "count": 1, "tags": []}, {"name": 1}),
    "all_optional": _row(AllOptional, {"a": None, "b": 1}, {"a": 1}),
    "enum": _row(WithEnum, {"color": "red", "level": 1}, {"color": "green", "level": 1}),
    "literal": _row(
        WithLiteral,
        {"kind": "a", "single": "only", "number": 1, "flag": True},
        {"kind": "a", "single": "only", "number": 1, "flag": False},
    ),
    "mixed_literal": _row(MixedLiteral, {"value": None}, {"value": "b"}),
    "union": _row(Union, {"value": "a", "other": _HOME}, {"value": [], "other": _HOME}),
    "discriminated": _row(Discriminated, {"pet": _CAT}, {"pet": {"kind": "cat", "good": True}}),
    "discriminated_list": _row(DiscriminatedList, {"pets": [_CAT, _DOG]}, {"pets": [{"kind": "cow"}]}),
    "bounds": _row(Bounds, {"score": 10, "share": 0.5}, {"score": 11, "share": 0.5}),
    "multiple": _row(Multiple, {"even": 4}, {"even": 3}),
    "lengths": _row(Lengths, {"code": "abc"}, {"code": "ab"}),
    "pattern": _row(Pattern, {"code": "AB1"}, {"code": "ab1"}),
    "lists": _row(Lists, {"few": ["a", "b"]}, {"few": ["a"]}),
    "nested_lists": _row(NestedLists, {"matrix": [[1.5]], "rows": [_PLAIN]}, {"matrix": [["a"]], "rows": []}),
    "sets": _row(Sets, {"tags": ["a", "b"]}, {"tags": ["a", "a"]}),
    "tuples": _row(Tuples, {"pair": [1, "a"]}, {"pair": ["a", 1]}),
    "same_tuple": _row(SameTuple, {"point": [1.5, 2, 3]}, {"point": [1.5]}),
    "map": _row(Map, {"counts": {"a": 1}}, {"counts": {"a": "b"}}),
    "map_of_models": _row(MapOfModels, {"people": {"a": _PLAIN}}, {"people": {"a": {}}}),
    "any_map": _row(AnyMap, {"data": {"a": [1]}}, {"data": []}),
    "anything": _row(Anything, {"value": [1]}, {}),
    "extra": _row(Extra, {"name": "a"}, {"name": 1}),
    "closed": _row(Closed, {"name": "a"}, {"name": "a", "b": 1}),
    "dates": _row(
        Dates, {"day": "2026-11-01", "at": "2026-11-01T00:00:00Z", "time": "01:02:03", "took": "P1D"}, {"day": 1}
    ),
    "ids": _row(Ids, {"id": "12345678-1234-5678-1234-567812345678", "url": "https://a.example/"}, {"id": 1}),
    "money": _row(Money, {"amount": "1.25"}, {"amount": []}),
    "node": _row(Node, {"value": 1, "next": {"value": 2, "next": None}}, {"value": 1, "next": {}}),
    "tree": _row(Tree, {"name": "a", "children": [{"name": "b", "children": []}]}, {"name": "a", "children": [1]}),
    "required_tree": _row(RequiredTree, {"name": "a", "children": [{"name": "b", "children": []}]}, {"name": "a"}),
    "mutual": _row(Left, {"right": {"value": 1, "left": None}}, {"right": {"value": -1, "left": None}}),
    "described": _row(Described, {"name": "a", "home": _HOME}, {"home": _HOME}),
    "typed_dict": _row(HoldsTyped, {"inner": {"a": 1, "b": "c"}}, {"inner": {"a": "b"}}),
    "named_tuple": _row(HoldsNamed, {"point": [1, 2]}, {"point": [1]}),
    "list_root": _row(ListRoot, [_PLAIN], [{}]),
    "union_root": _row(UnionRoot, _DOG, {"kind": "cow"}),
    "string_root": _row(StringRoot, "ab", "a"),
    "generic": _row(Page[Plain], {"item": _PLAIN, "total": 1}, {"item": _PLAIN, "total": -1}),
    "wide": _row(Wide, {f"a{number:02}": "b" for number in range(1, 19)}, {"a01": 1}),
}
