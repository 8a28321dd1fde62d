"""Expand references in values: `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, `${file:PATH}`. `$${` becomes a plain
`${`.

References are expanded in parsed scalars, so an expanded value cannot change the structure of a configuration. Messages
name the variable or file, never a value. Variables have the same forms as in Docker Compose.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from config.reading.table_files import UnreadableError

ReadFile = Callable[[str], str]
"""Reads the file of a `${file:PATH}`. Raises `UnreadableError`."""

_REFERENCE: Final = re.compile(r"\$\$\{|\$\{(?P<body>[^{}]*)(?P<end>\}?)")
_BODY: Final = re.compile(r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?P<form>:[-?])?(?P<rest>.*)", re.DOTALL)
_FORMS: Final = "${VAR}, ${VAR:-default}, ${VAR:?message} or ${file:PATH}"


@dataclass(frozen=True, slots=True)
class Expansion:
    """A scalar after expansion. `by_reference` is false if all of the text is written in the configuration."""

    text: str
    faults: tuple[str, ...]
    by_reference: bool


@dataclass(frozen=True, slots=True)
class _Replacement:
    text: str = ""
    fault: str | None = None
    by_reference: bool = True


def has_reference(text: str) -> bool:
    """Return whether `expand` would change or reject the text."""
    return "${" in text


def expand(text: str, env: Mapping[str, str], read_file: ReadFile) -> Expansion:
    """Expand every reference once. The value of a variable is not expanded again."""
    replacements: list[_Replacement] = []

    def replace(match: re.Match[str]) -> str:
        replacement = _replacement_for(match, env, read_file)
        replacements.append(replacement)
        return replacement.text

    expanded = _REFERENCE.sub(replace, text)
    faults = tuple(replacement.fault for replacement in replacements if replacement.fault is not None)
    return Expansion(expanded, faults, any(replacement.by_reference for replacement in replacements))


def _replacement_for(match: re.Match[str], env: Mapping[str, str], read_file: ReadFile) -> _Replacement:
    body = match["body"]
    if body is None:
        return _Replacement("${", by_reference=False)
    if not match["end"]:
        return _Replacement(fault="a ${ without its }; write $${ for the characters themselves")
    if body.startswith("file:"):
        return _from_file(body.removeprefix("file:"), read_file)
    parts = _BODY.fullmatch(body)
    if parts is None or (parts["rest"] and not parts["form"]):
        return _Replacement(fault=f"a reference is written {_FORMS}; write $${{ for the characters themselves")
    return _from_environment(parts, env)


def _from_file(path: str, read_file: ReadFile) -> _Replacement:
    if not path:
        return _Replacement(fault=f"a reference without a path; it is written {_FORMS}")
    try:
        return _Replacement(read_file(path))
    except UnreadableError as error:
        return _Replacement(fault=f"cannot read the file {path}: {error}")


def _from_environment(parts: re.Match[str], env: Mapping[str, str]) -> _Replacement:
    name, form, rest = parts["name"], parts["form"], parts["rest"]
    value = env.get(name)
    if form == ":-" and not value:
        return _Replacement(rest, by_reference=not rest)
    if value is None or (form == ":?" and not value):
        return _Replacement(fault=f"the environment variable {name} is not set{': ' + rest if rest else ''}")
    if not _is_unicode(value):
        return _Replacement(fault=f"the environment variable {name} is not UTF-8")
    return _Replacement(value)


def _is_unicode(value: str) -> bool:
    """Return whether a value is valid Unicode. A value with undecodable bytes (lone surrogates) is not, and no header
    or URL can carry it."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
