"""How an unquoted YAML word reads: text, nothing, true/false or a number. Never positions or fields.

PyYAML reads YAML 1.1, where `no` is false, `017` is fifteen and `12:30` is 750 (measured with PyYAML 6.0.3). Editors
read YAML 1.2, where all three are text. Where the two disagree on a number the word is `odd`, and the tree refuses it.
Dates are text here, for fields to read: `api_version: 2024-10-21` means what it says.
"""

import re
from typing import Final, Literal

from yaml.nodes import ScalarNode
from yaml.resolver import Resolver

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
_TRUTH: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_DECIMAL: Final = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})")
_FRACTION: Final = re.compile(r"[-+]?([0-9]{1,18}\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]{1,3})?")

_resolver = Resolver()


class Unquoted(str):
    """What references in an unquoted scalar expanded to: text for a text field, a number or truth value for the others.

    The field decides, so that a key made of digits stays a key and `port: ${PORT}` still is a number.
    """

    __slots__ = ()


def plain_kind(text: str) -> Kind:
    """How an unquoted word reads."""
    tag: str = _resolver.resolve(ScalarNode, text, (True, False))  # type: ignore[no-untyped-call] # so are PyYAML's stubs
    return tagged_kind(tag, text) or "text"


def tagged_kind(tag: str, text: str) -> Kind | None:
    """How a word with a YAML tag reads; None for a tag that is no plain scalar's."""
    kind = _KINDS.get(tag)
    if kind == "int":
        return "int" if _DECIMAL.fullmatch(text) else "odd"
    if kind == "float":
        return "float" if _FRACTION.fullmatch(text) else "odd"
    if kind == "bool":
        return "bool" if text.lower() in _TRUTH else "odd"
    return kind


def scalar_value(kind: Kind, text: str) -> Scalar:
    """The value of a word of that kind; an odd one keeps its text."""
    if kind == "null":
        return None
    if kind == "bool":
        return _TRUTH[text.lower()]
    if kind == "int":
        return int(text)
    if kind == "float":
        return float(text)
    return text


def reread(text: str) -> Scalar:
    """The value an expanded unquoted word has in a field that is not text: what YAML would have read in its place."""
    word = text.strip()
    return scalar_value(plain_kind(word), word)
