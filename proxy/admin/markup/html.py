"""HTML as text: elements, and the only code that turns text into markup. Pure.

Only the results of the functions here are markup; every other text is escaped, whatever its source (HTML standard,
"Escaping a string", November 2026).
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

_ESCAPES: Final[Mapping[str, str]] = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
_SPECIAL: Final = re.compile(
    r"[&<>\"'\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Characters with a meaning in markup, characters that a page must not contain, and marks that change the direction of
text."""

_VOID: Final = frozenset({"br", "input", "link", "meta", "wbr"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: str) -> str:
    """Return a text escaped for HTML, which is also valid in the value of an attribute. Control characters and
    direction marks become the replacement character, so that a name cannot look like another one."""
    return _SPECIAL.sub(_escape, text)


def _escape(found: "re.Match[str]") -> str:
    return _ESCAPES.get(found[0], "\ufffd")


def element(tag: str, /, *children: str, **attributes: str | bool) -> Markup:
    """Return an element. A true attribute has no value; a false one is left out. In the name of an attribute `_`
    becomes `-`, and a trailing `_` is removed. Names of tags and attributes are constants of the page, never text from
    outside."""
    start = start_tag(tag, **attributes) if attributes else _start(tag)
    if tag in _VOID:
        return Markup(start)
    inner = "".join([child if type(child) is Markup else escaped(child) for child in children])
    return Markup(f"{start}{inner}</{tag}>")


def enclosed(start: Markup, child: str, end: Markup) -> Markup:
    """Return a child between two prepared tags. A page has thousands of such elements."""
    return Markup(start + (child if type(child) is Markup else escaped(child)) + end)


def start_tag(tag: str, /, **attributes: str | bool) -> Markup:
    """Return the tag that starts an element."""
    return Markup(f"<{tag}{''.join(map(_attribute, attributes.items()))}>")


@lru_cache(64)
def _start(tag: str) -> str:
    return f"<{tag}>"


def _attribute(pair: tuple[str, str | bool]) -> str:
    name, value = pair
    if value is False:
        return ""
    shown = name.rstrip("_").replace("_", "-")
    return f" {shown}" if value is True else f' {shown}="{escaped(str(value))}"'


def joined(parts: Iterable[str]) -> Markup:
    """Return the concatenated parts; parts that are not markup are escaped."""
    return Markup("".join([part if type(part) is Markup else escaped(part) for part in parts]))
