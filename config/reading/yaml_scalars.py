"""The type of a YAML scalar: text, null, boolean or number.

PyYAML reads YAML 1.1, in which `no` is false, `017` is fifteen and `12:30` is 750 (measured with PyYAML 6.0.3). Editors
read YAML 1.2, in which all three are text. If only one of the two reads a scalar as a number, its kind is `odd`, and
`yaml_tree` reports a problem. Dates stay text, so that `api_version: 2024-10-21` needs no quotes. A field for a date
parses the text.
"""

import re
from typing import Final, Literal

from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

OTHER_NOTATION: Final = "a number in another notation (leading zero, colons, underscores, 0x)"

Kind = Literal["text", "null", "bool", "int", "float", "odd"]
Scalar = str | int | float | bool | None

_KINDS: Final[dict[str, Kind]] = {
    "tag:yaml.org,2002:null": "null",
    "tag:yaml.org,2002:bool": "bool",
    "tag:yaml.org,2002:int": "int",
    "tag:yaml.org,2002:float": "float",
    "tag:yaml.org,2002:str": "text",
    "tag:yaml.org,2002:timestamp": "text",
    "tag:yaml.org,2002:merge": "text",
    "tag:yaml.org,2002:value": "text",
}
_BOOLEANS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_DECIMAL: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FRACTION: Final = re.compile(r"[-+]?([0-9]{1,18}\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")
_LARGE: Final = re.compile(r"[-+]?[1-9][0-9]{18,}(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")
_NOT_FINITE: Final = re.compile(r"[-+]?\.inf|\.nan", re.IGNORECASE)
_LARGEST: Final = 10**18 - 1

_resolver = Resolver()


class Unquoted(str):
    """An unquoted scalar after expansion of its references. The field decides its type: an API key made of digits stays
    text, and `port: ${PORT}` is a number."""

    __slots__ = ()


def plain_kind(text: str) -> Kind:
    """Return the kind of an unquoted scalar."""
    tag: str = _resolver.resolve(ScalarNode, text, (True, False))  # type: ignore[no-untyped-call] # PyYAML lacks types
    return tagged_kind(tag, text) or "text"


def tagged_kind(tag: str, text: str) -> Kind | None:
    """Return the kind of a scalar with a YAML tag; `None` for a tag that plain scalars do not have."""
    kind = _KINDS.get(tag)
    if kind == "int":
        return "int" if _DECIMAL.fullmatch(text) else "odd"
    if kind == "float":
        return "float" if _FRACTION.fullmatch(text) else "odd"
    if kind == "bool":
        return "bool" if text.lower() in _BOOLEANS else "odd"
    return kind


def scalar_value(kind: Kind, text: str) -> Scalar:
    """Convert a scalar of this kind. The value of an `odd` scalar is its text."""
    if kind == "null":
        return None
    if kind == "bool":
        return _BOOLEANS[text.lower()]
    if kind == "int":
        return int(text)
    if kind == "float":
        return float(text)
    return text


def why_odd(text: str) -> str:
    """Return the message for a scalar of the kind `odd`."""
    if _NOT_FINITE.fullmatch(text):
        return "must be a finite number; a text goes in quotes"
    if _LARGE.fullmatch(text):
        bound = f"at least -{_LARGEST}" if text.startswith("-") else f"at most {_LARGEST}"
        return f"must be {bound}; a text of digits goes in quotes"
    return f"YAML reads this word as {OTHER_NOTATION}: put it in quotes, or write a plain decimal number"


def reread(text: str) -> Scalar:
    """Return the null, boolean or number that YAML reads in an unquoted scalar after its expansion. Only fields that
    are not text use it."""
    stripped = text.strip()
    return scalar_value(plain_kind(stripped), stripped)
