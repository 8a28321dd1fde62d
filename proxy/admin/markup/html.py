"""HTML as text: elements, and the one place where text becomes markup. Pure.

Only what `element` and `joined` return is markup; every other text is escaped, whoever wrote it (HTML standard,
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
"""What markup gives a meaning to, what a page must not hold, and marks that turn the direction of the text around."""

_VOID: Final = frozenset({"br", "input", "link", "meta", "wbr"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escaped(text: str) -> str:
    """Return a text as it is written in HTML, in an attribute's value too. Controls and marks of direction become the
    replacement character, so that a name looks like what it is."""
    return _SPECIAL.sub(_escape, text)


def _escape(found: "re.Match[str]") -> str:
    return _ESCAPES.get(found[0], "\ufffd")


def element(tag: str, /, *children: str, **attributes: str | bool) -> Markup:
    """Return an element. A true attribute has no value, a false one is left out; `_` in a name stands for `-`, and one
    at its end for nothing. Names are the page's own, never anybody's text."""
    start = start_tag(tag, **attributes) if attributes else _start(tag)
    if tag in _VOID:
        return Markup(start)
    inner = "".join([child if type(child) is Markup else escaped(child) for child in children])
    return Markup(f"{start}{inner}</{tag}>")


def enclosed(start: Markup, child: str, end: Markup) -> Markup:
    """Return a child between two tags that were made before, for what a page has thousands of."""
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
    """Return parts one after the other; those that are no markup are escaped."""
    return Markup("".join([part if type(part) is Markup else escaped(part) for part in parts]))
