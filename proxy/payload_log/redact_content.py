"""Removes matches of the operator's patterns from content, and cuts content that is too long. Pure."""

import json
import re
from collections.abc import Sequence
from typing import Final, NoReturn

from providers.client_extras.proxy_instructions import is_credential, is_instruction
from providers.json_types import JsonValue

REDACTED: Final = "[redacted]"
TOO_DEEP: Final = "[nested too deeply]"

DEEPEST: Final = 200
"""The most levels of nested content that are shown. All recursions of this module must be able to reach this depth,
which differs between versions of CPython (a level of `redacted` is two frames in 3.11, and one from 3.12 on)."""

CAPS: Final = (16_384, 4096, 1024, 256, 64)
"""The lengths in characters to which longer texts are cut. They are tried in this order until the content is short
enough."""

MOST_ESCAPED: Final = 8
"""The most levels of JSON within JSON strings that are searched, because each level is another pass over the text."""

_UNIT: Final = r"\\u[0-9a-fA-F]{4}"
_ESCAPE: Final = re.compile(rf"\\u[dD][89abAB][0-9a-fA-F]{{2}}\\u[dD][c-fC-F][0-9a-fA-F]{{2}}|{_UNIT}|\\[\"\\/bfnrt]")
"""The escapes of a JSON string (RFC 8259, section 7)."""

_SHORT: Final = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}

Patterns = Sequence[re.Pattern[str]]


def dumped(value: JsonValue) -> bytes:
    """Return a value as one line of JSON."""
    # A lone surrogate is written as its JSON escape.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def redacted_json(content: bytes, patterns: Patterns) -> JsonValue:
    """Return the JSON value of content, or its text if it is not JSON, with matches of the patterns removed."""
    try:
        value = json.loads(content, parse_constant=_no_constant)
    except RecursionError:
        return TOO_DEEP
    except ValueError:
        return redacted(content.decode("utf-8", "backslashreplace"), patterns)
    return TOO_DEEP if _is_deep(content, value) else redacted(value, patterns)


def _is_deep(content: bytes, value: JsonValue) -> bool:
    """Return whether a value has more than DEEPEST levels. Each level takes a bracket in `content`, so content with few
    brackets is not searched."""
    if content.count(b"[") + content.count(b"{") <= DEEPEST:
        return False
    level = [value]
    for _ in range(DEEPEST + 1):
        held = [each.values() if isinstance(each, dict) else each for each in level if isinstance(each, dict | list)]
        if not held:
            return False
        level = [each for values in held for each in values]
    return True


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def redacted(value: JsonValue, patterns: Patterns) -> JsonValue:
    """Return a value with matches of the patterns removed from its texts, names and numbers."""
    if not patterns:
        return value
    if isinstance(value, str):
        return _text(value, patterns)
    if isinstance(value, dict):
        return {_text(name, patterns): redacted(each, patterns) for name, each in value.items()}
    if isinstance(value, list):
        return [redacted(each, patterns) for each in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = str(value)
        return value if _text(text, patterns) == text else REDACTED
    return value


def without_credentials(body: JsonValue) -> JsonValue:
    """Return a client's body without the fields that are named as credentials, at its top level and within the
    instructions for another proxy, which are refused or left out for every vendor."""
    if not isinstance(body, dict) or not any([is_credential(name) or is_instruction(name) for name in body]):
        return body
    return {name: _without_secrets(name, value, is_instruction(name)) for name, value in body.items()}


def _without_secrets(name: str, value: JsonValue, within: bool) -> JsonValue:
    if isinstance(value, str) and is_credential(name):
        return REDACTED
    if within and isinstance(value, dict):
        return {inner: _without_secrets(inner, each, True) for inner, each in value.items()}
    if within and isinstance(value, list):
        return [_without_secrets("", each, True) for each in value]
    return value


def _text(text: str, patterns: Patterns) -> str:
    """Return a text with the matches of the patterns removed. The text behind its JSON escapes is searched too, because
    arguments of tools are JSON within JSON. If that text is redacted, it is shown without the escapes."""
    found = inner = _replaced(text, patterns)
    for _ in range(MOST_ESCAPED):
        if "\\" not in inner or (plain := _ESCAPE.sub(_character, inner)) == inner:
            return found
        inner = _replaced(plain, patterns)
        if inner != plain:
            found = inner
    return TOO_DEEP if _ESCAPE.search(inner) else found


def _replaced(text: str, patterns: Patterns) -> str:
    for pattern in patterns:
        text = pattern.sub(REDACTED, text)
    return text


def _character(escape: re.Match[str]) -> str:
    text = escape[0]
    return _SHORT[text[1]] if text[1] != "u" else str(json.loads(f'"{text}"'))


def fitted(value: JsonValue, most: int) -> tuple[bytes, bool]:
    """Return a value as JSON of at most `most` bytes, and whether something was cut. The longest texts are cut first;
    if that is not enough, the JSON itself is cut and written as a text."""
    data = dumped(value)
    if len(data) <= most:
        return data, False
    for cap in CAPS:
        data = dumped(_shortened(value, cap))
        if len(data) <= most:
            return data, True
    # Escaped as JSON, a byte takes at most six bytes.
    return dumped(data[: most // 6].decode("utf-8", "ignore")), True


def _shortened(value: JsonValue, cap: int) -> JsonValue:
    if isinstance(value, str):
        return value if len(value) <= cap else f"{value[:cap]}... [{len(value) - cap} more]"
    if isinstance(value, dict):
        return {name: _shortened(each, cap) for name, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each, cap) for each in value]
    return value
