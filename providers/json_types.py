"""JSON values as Python types; merging JSON objects, limiting their nesting, looking for rare bytes of a text."""

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
JsonObject = dict[str, JsonValue]


def merged(below: JsonObject, above: JsonObject) -> JsonObject:
    """Return a new object with the members of both, nested objects merged too; `above` wins, lists are replaced."""
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def nests_deeper(value: JsonValue, most: int) -> bool:
    """Return whether a value has more than `most` levels of objects and lists. Does not recurse."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(most):
        level = [
            child
            for holder in level
            for child in (holder.values() if isinstance(holder, dict) else holder)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return bool(level)


def occurs_more(text: bytes, mark: bytes, limit: int) -> bool:
    """Return whether a byte occurs more than `limit` times; for rare bytes `find` is many times faster than `count`."""
    at = text.find(mark)
    while at >= 0:
        if not limit:
            return True
        limit -= 1
        at = text.find(mark, at + 1)
    return False
