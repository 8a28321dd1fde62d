"""Checks for the values of fields, to be combined in the field rules.

A check takes a JSON value other than null and returns its canonical form, or raises `Invalid`. Booleans are not
numbers, and an integral float counts as an integer, as in the vendors' own servers.
"""

from collections.abc import Callable
from typing import TypeVar

from providers.json_types import JsonObject, JsonValue

T = TypeVar("T")

Check = Callable[[JsonValue], object]

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


class Invalid(Exception):
    """The error for an invalid value. `message` is a predicate of the field's name ("must be ..."); `loc` is the path
    below the field."""

    def __init__(self, message: str, *loc: str | int, code: str = "invalid_value") -> None:
        super().__init__(message)
        self.message = message
        self.loc = loc
        self.code = code


def check_at(check: Callable[[JsonValue], T], value: JsonValue, *loc: str | int) -> T:
    """Check a value inside another value; `loc` is its path, for the error."""
    try:
        return check(value)
    except Invalid as bad:
        raise Invalid(bad.message, *loc, *bad.loc, code=bad.code) from None


def boolean(value: JsonValue) -> bool:
    """Check a boolean."""
    if isinstance(value, bool):
        return value
    raise Invalid("must be true or false")


def string(value: JsonValue) -> str:
    """Check a string."""
    if isinstance(value, str):
        return value
    raise Invalid("must be a string")


def text(value: JsonValue) -> str:
    """Check a non-empty string."""
    if isinstance(value, str) and value:
        return value
    raise Invalid("must be a non-empty string")


def json_object(value: JsonValue) -> JsonObject:
    """Check a JSON object."""
    if isinstance(value, dict):
        return value
    raise Invalid("must be an object")


def anything(value: JsonValue) -> JsonValue:
    """Accept any value."""
    return value


def integer(low: int, high: int = INT64_MAX) -> Callable[[JsonValue], int]:
    """Return a check for an integer from `low` to `high`. orjson reads integers beyond 64 bits as floats."""
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
    """Return a check for a number from `low` to `high`."""
    message = f"must be a number from {low:g} to {high:g}"

    def check(value: JsonValue) -> float:
        if (type(value) is float or type(value) is int) and low <= value <= high:
            return value
        raise Invalid(message)

    return check


def any_number(value: JsonValue) -> float:
    """Check a number."""
    if type(value) is float or type(value) is int:
        return value
    raise Invalid("must be a number")


def one_of(*names: str) -> Check:
    """Return a check for one of these strings."""
    message = f"must be one of {', '.join(repr(name) for name in names)}"

    def check(value: JsonValue) -> str:
        if isinstance(value, str) and value in names:
            return value
        raise Invalid(message)

    return check


def refuse(advice: str) -> Check:
    """Return a check that always fails, for a field of another operation."""

    def check(value: JsonValue) -> object:
        raise Invalid(advice)

    return check


def texts(value: JsonValue) -> tuple[str, ...]:
    """Check a list of non-empty strings; the list may be empty."""
    if not isinstance(value, list):
        raise Invalid("must be a list of strings")
    return tuple([check_at(text, item, index) for index, item in enumerate(value)])
