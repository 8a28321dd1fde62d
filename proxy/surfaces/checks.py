"""The kinds of rule a field's value can be held to. Never knows a field's name.

A check takes a JSON value other than null and returns its canonical form, or raises `Invalid`. JSON's true and false
are not numbers here, and an integral float counts as an integer, as in the vendors' own servers.
"""

from collections.abc import Callable
from typing import TypeVar

from providers.unified import JsonObject, JsonValue

T = TypeVar("T")

Check = Callable[[JsonValue], object]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Invalid(Exception):
    """A value breaks its rule. `message` continues the field's name ("must be ..."); `loc` is the path below it."""

    def __init__(self, message: str, *loc: str | int, code: str = "invalid_value") -> None:
        super().__init__(message)
        self.message = message
        self.loc = loc
        self.code = code


def check_at(check: Callable[[JsonValue], T], value: JsonValue, *loc: str | int) -> T:
    """Hold a member to a rule; a complaint then names the member."""
    try:
        return check(value)
    except Invalid as bad:
        raise Invalid(bad.message, *loc, *bad.loc, code=bad.code) from None


def boolean(value: JsonValue) -> bool:
    """Exactly true or false."""
    if isinstance(value, bool):
        return value
    raise Invalid("must be true or false")


def string(value: JsonValue) -> str:
    """Any string."""
    if isinstance(value, str):
        return value
    raise Invalid("must be a string")


def text(value: JsonValue) -> str:
    """A string that is not empty."""
    if isinstance(value, str) and value:
        return value
    raise Invalid("must be a non-empty string")


def json_object(value: JsonValue) -> JsonObject:
    """Any JSON object."""
    if isinstance(value, dict):
        return value
    raise Invalid("must be an object")


def anything(value: JsonValue) -> JsonValue:
    """No rule."""
    return value


def integer(low: int, high: int = INT64_MAX) -> Callable[[JsonValue], int]:
    """An integer within both ends. orjson makes floats of integers beyond 64 bits; the range refuses those."""
    bounds = f"of at least {low}" if high == INT64_MAX else f"from {low} to {high}"
    message = "must be a 64-bit integer" if low == INT64_MIN else f"must be an integer {bounds}"

    def check(value: JsonValue) -> int:
        if type(value) is int and low <= value <= high:
            return value
        if type(value) is float and low <= value <= high and value.is_integer():
            return int(value)
        raise Invalid(message)

    return check


def number(low: float, high: float) -> Callable[[JsonValue], float]:
    """A number within both ends."""
    message = f"must be a number from {low:g} to {high:g}"

    def check(value: JsonValue) -> float:
        if (type(value) is float or type(value) is int) and low <= value <= high:
            return value
        raise Invalid(message)

    return check


def any_number(value: JsonValue) -> float:
    """A number of any size."""
    if type(value) is float or type(value) is int:
        return value
    raise Invalid("must be a number")


def one_of(*names: str) -> Check:
    """One of a few words."""
    message = f"must be one of {', '.join(repr(name) for name in names)}"

    def check(value: JsonValue) -> str:
        if isinstance(value, str) and value in names:
            return value
        raise Invalid(message)

    return check


def belongs(advice: str) -> Check:
    """A field of the other operation: always refused."""

    def check(value: JsonValue) -> object:
        raise Invalid(advice)

    return check


def texts(value: JsonValue) -> tuple[str, ...]:
    """A list, possibly empty, of strings that are not."""
    if not isinstance(value, list):
        raise Invalid("must be a list of strings")
    return tuple([check_at(text, item, index) for index, item in enumerate(value)])
