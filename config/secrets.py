"""References in values: `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, `${file:PATH}`, and `$${` for a plain `${`.

Never YAML and never positions: text in, text out, so that an expanded value cannot change the structure of a table.
What goes wrong is told by the name of the variable or file, never by a value. The variable forms are Docker Compose's.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from config.files import UnreadableError

ReadFile = Callable[[str], str]
"""The text of the file of a `${file:PATH}`; raises `UnreadableError`."""

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{(?P<body>[^{}]*)(?P<end>\}?)")
_BODY: Final = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<form>:[-?])?(?P<rest>.*)", re.DOTALL)
_FORMS: Final = "${VAR}, ${VAR:-default}, ${VAR:?message} or ${file:PATH}"


@dataclass(frozen=True, slots=True)
class Expansion:
    """A scalar with its references replaced. `by_reference` is false when all of the text was written in the table."""

    text: str
    faults: tuple[str, ...]
    by_reference: bool


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str = ""
    fault: str | None = None
    by_reference: bool = True


def has_reference(text: str) -> bool:
    """Whether `expand` would change or refuse anything."""
    return "${" in text


def expand(text: str, env: Mapping[str, str], read_file: ReadFile) -> Expansion:
    """The text with every reference replaced once: what a variable holds is never expanded again."""
    pieces: list[_Piece] = []

    def replace(match: re.Match[str]) -> str:
        piece = _piece(match, env, read_file)
        pieces.append(piece)
        return piece.text

    expanded = _REFERENCE.sub(replace, text)
    faults = tuple(piece.fault for piece in pieces if piece.fault is not None)
    return Expansion(expanded, faults, any(piece.by_reference for piece in pieces))


def _piece(match: re.Match[str], env: Mapping[str, str], read_file: ReadFile) -> _Piece:
    body = match["body"]
    if body is None:
        return _Piece("${", by_reference=False)
    if not match["end"]:
        return _Piece(fault="a ${ without its }; write $${ for the characters themselves")
    if body.startswith("file:"):
        return _from_file(body.removeprefix("file:"), read_file)
    parts = _BODY.fullmatch(body)
    if parts is None or (parts["rest"] and not parts["form"]):
        return _Piece(fault=f"a reference is written {_FORMS}; write $${{ for the characters themselves")
    return _from_environment(parts, env)


def _from_file(path: str, read_file: ReadFile) -> _Piece:
    if not path:
        return _Piece(fault=f"a reference without a path; it is written {_FORMS}")
    try:
        return _Piece(read_file(path))
    except UnreadableError as error:
        return _Piece(fault=f"cannot read the file {path}: {error}")


def _from_environment(parts: re.Match[str], env: Mapping[str, str]) -> _Piece:
    name, form, rest = parts["name"], parts["form"], parts["rest"]
    value = env.get(name)
    if form == ":-" and not value:
        return _Piece(rest, by_reference=not rest)
    if value is None or (form == ":?" and not value):
        return _Piece(fault=f"the environment variable {name} is not set{': ' + rest if rest else ''}")
    if not _is_unicode(value):
        return _Piece(fault=f"the environment variable {name} is not UTF-8")
    return _Piece(value)


def _is_unicode(value: str) -> bool:
    """False for bytes that the interpreter smuggles through as lone surrogates: no header or URL can carry them."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
