"""Typed access to the fields of a request body."""

from providers.json_types import JsonObject, JsonValue
from providers.mock.errors import bad_request


class Fields:
    """The fields of one body. A null field counts as absent; a wrong type or value raises MockError."""

    def __init__(self, body: JsonObject) -> None:
        self._body = body

    def any(self, name: str) -> JsonValue:
        """Return the field unchanged."""
        return self._body.get(name)

    def integer(self, name: str, low: int, high: int) -> int | None:
        """Return a whole number within bounds, or `None` if the field is absent."""
        value = self._body.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise bad_request(name, f"Invalid type for '{name}': expected an integer.")
        if not low <= value <= high:
            raise bad_request(name, f"Invalid value for '{name}': expected an integer from {low} to {high}.")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean, which is false if the field is absent."""
        value = self._body.get(name)
        if value is not None and not isinstance(value, bool):
            raise bad_request(name, f"Invalid type for '{name}': expected a boolean.")
        return value is True

    def text(self, name: str) -> str:
        """Return a string, which is empty if the field is absent."""
        value = self._body.get(name)
        if value is not None and not isinstance(value, str):
            raise bad_request(name, f"Invalid type for '{name}': expected a string.")
        return value or ""

    def object(self, name: str) -> JsonObject:
        """Return an object, which is empty if the field is absent."""
        value = self._body.get(name)
        if value is not None and not isinstance(value, dict):
            raise bad_request(name, f"Invalid type for '{name}': expected an object.")
        return value or {}

    def strings(self, name: str) -> tuple[str, ...]:
        """Return the strings of a field that is a string or a list of strings. Empty strings are refused."""
        value = self._body.get(name)
        listed = [] if value is None else value if isinstance(value, list) else [value]
        strings = tuple([item for item in listed if isinstance(item, str) and item])
        if len(strings) < len(listed):
            raise bad_request(name, f"Invalid type for '{name}': expected non-empty strings.")
        return strings
