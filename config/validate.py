"""Values to a `GatewayConfig`, with every complaint of the models said in the operator's words at its place.

Never references between names: those are checked on what this returns.
"""

import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Final, Union

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from config.misshapen_routes import is_name
from config.problems import Path, Problem, did_you_mean, glued_key, shown
from config.schema import GatewayConfig, Route, Vendor
from config.sections import Section, Shorthand
from config.tree import ListNode, MapNode, Node, ScalarNode, find, key_position, value_position
from config.types import Referable
from config.values import Value

_PLANNED: Final = frozenset({"limits", "budget"})

_WANTED: Final = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "datetime_type": "a date or a time",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}
_BOUNDS: Final = {
    "greater_than": ("more than", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than_equal": ("at most", "le"),
}
_NO_SPACE: Final = "a space is missing after the colon of {}"
_GLUED: Final = re.compile(r"([A-Za-z_-]+):(?!\s)")
_UNITS: Final = {"duration": "s", "size": " bytes"}
_SENTENCES: Final = {"missing": "required key is missing", "too_short": "must not be empty"}
_STAND_IN: Final = f"sha256:{'0' * 64}"
"""Takes the place of a refused element, so that its list is not empty: it has the form of a key's digest and of a name.

Whatever is then said about it, is said at the place of the refusal, and dropped as its echo.
"""
_NAMED: Final = {
    "vendors": "vendor",
    "models": "model",
    "deployments": "deployment",
    "routes": "route",
    "teams": "team",
}
"""Mappings by names of the operator's, and what each name is one of."""

_MOST_VENDORS: Final = 3
_MOST_LISTED: Final = 4
"""Vendors and targets that a message names; more would hide what it says."""

_KEY_STEP: Final = "[key]"
"""What pydantic puts at the end of a location when the key itself is wrong."""


@dataclass(frozen=True, slots=True)
class Validated:
    """The table as far as it is sound: with problems, what is left without the refused parts, or None if nothing is."""

    config: GatewayConfig | None
    problems: tuple[Problem, ...]


def validate(values: Mapping[str, Value], root: Node) -> Validated:
    """Checks the shape of a table; `root` is the tree the values came from and tells where they stand."""
    try:
        return Validated(GatewayConfig.model_validate(values), ())
    except ValidationError as error:
        errors = _details(error)
    return Validated(_salvage(values, root, errors), tuple(_problems(errors, root)))


def _details(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_input=False)


# What is left without the refused parts -------------------------------------------------------------------------------


def _salvage(values: Mapping[str, Value], root: Node, errors: list[ErrorDetails]) -> GatewayConfig | None:
    refused: set[Path] = set()
    # Leaving out a required value makes its section incomplete, then the section goes too: once for each level.
    while found := {_refused_path(each, root) for each in errors} - refused:
        refused |= found
        try:
            return GatewayConfig.model_validate({**_kept(values, refused, ()), "version": 1})
        except ValidationError as error:
            errors = _details(error)
    return None


def _refused_path(error: ErrorDetails, root: Node) -> Path:
    path = _path(error)[:-1] if error["type"] == "missing" else _path(error)
    return path[: find(root, path)[2]]


def _kept(values: Mapping[str, Value], refused: Set[Path], path: Path) -> dict[str, Value]:
    inner = {key: (*path, key) for key in values}
    return {key: _left(values[key], refused, at) for key, at in inner.items() if at not in refused}


def _left(value: Value, refused: Set[Path], path: Path) -> Value:
    if isinstance(value, Mapping):
        return _kept(value, refused, path)
    if isinstance(value, list):
        inner = [(*path, index) for index in range(len(value))]
        return [_STAND_IN if at in refused else _left(value[index], refused, at) for index, at in enumerate(inner)]
    return value


# Messages -----------------------------------------------------------------------------------------------------------


def _path(error: ErrorDetails) -> Path:
    location = error["loc"]
    return location[:-1] if location and location[-1] == _KEY_STEP else location


def _problems(errors: list[ErrorDetails], root: Node) -> Iterator[Problem]:
    """One for each error, but the same thing of the same path only once: a key and its value may both tell of it."""
    told = set()
    for problem in (_problem(each, root) for each in errors if not _is_echo_of_glued(each, root)):
        if (same := (problem.path, problem.message)) not in told:
            told.add(same)
            yield problem


def _is_echo_of_glued(error: ErrorDetails, root: Node) -> bool:
    """Whether it only follows from a key that holds its value too: the key it should be is missing, its own value is
    not there."""
    path = _path(error)
    if error["type"] == "missing":
        section = find(root, path[:-1])[0]
        return isinstance(section, MapNode) and any(key.startswith(f"{path[-1]}:") for key in section.entries)
    return bool(path) and glued_key(path) is not None and not _is_about_key(error)


def _is_about_key(error: ErrorDetails) -> bool:
    return error["type"] == "extra_forbidden" or error["loc"][-1:] == (_KEY_STEP,)


def _problem(error: ErrorDetails, root: Node) -> Problem:
    path, message = _path(error), _message(error, root)
    if error["type"] == "missing":
        return Problem.at(key_position(root, path), path, message)
    if _is_about_key(error) and (key := glued_key(path)) is not None:
        return Problem.at(key_position(root, path), path, _NO_SPACE.format(shown(key)))
    node, _, depth = find(root, path)
    place = key_position if _is_about_key(error) else value_position
    return Problem.at(place(root, path), path[:depth] if isinstance(node, ScalarNode) else path, message)


def _message(error: ErrorDetails, root: Node) -> str:
    kind, path = error["type"], _path(error)
    if kind == "extra_forbidden":
        return _unknown_key(path, root)
    if kind in _WANTED:
        return _wrong_type(kind, path, root)
    if kind in _BOUNDS:
        word, key = _BOUNDS[kind]
        return f"must be {word} {error['ctx'][key]:g}{_unit(path)}"
    if kind == "literal_error":
        node = find(root, path)[0]
        word = str(path[-1]) if error["loc"][-1] == _KEY_STEP else node.text if isinstance(node, ScalarNode) else ""
        return _not_an_option(error["ctx"]["expected"], word)
    if error["loc"][-1:] == (_KEY_STEP,) and (told := _no_model_key(path, root)):
        return told
    return _SENTENCES.get(kind, error["msg"])


def _unit(path: Path) -> str:
    """What a number of this setting counts, as it is written in the table."""
    section = _section_at(path[:-1])
    known = section.model_fields.get(str(path[-1])) if section else None
    titles = [each.title for each in known.metadata if isinstance(each, Referable)] if known else []
    return next((_UNITS[title] for title in titles if title in _UNITS), "")


def _no_model_key(path: Path, root: Node) -> str | None:
    """What to write for a model without its vendor, or for a setting that stands beside its model."""
    if path[:-1] != ("models",) or "/" in (name := str(path[-1])):
        return None
    if told := _beside(path):
        return told
    vendors, _, depth = find(root, ("vendors",))
    written = vendors.entries if depth and isinstance(vendors, MapNode) else ()
    known = [vendor for vendor in written if vendor not in Vendor.model_fields][:_MOST_VENDORS]
    meant = " or ".join(shown(f"{vendor}/{name}") for vendor in known)
    return f"a model key is vendor/model or vendor/*{f'; did you mean {meant}?' if meant else ''}"


def _beside(path: Path) -> str | None:
    """Of a setting that stands beside the section it belongs into, as if it were the name of one."""
    section, name = _section_at(path), str(path[-1])
    kind = _NAMED.get(str(path[-2])) if len(path) > 1 else None
    if section is None or kind is None or name not in section.model_fields:
        return None
    return f"{name} is a setting of a {kind}: indent it further, below the {kind}'s name"


def _unknown_key(path: Path, root: Node) -> str:
    name, section = str(path[-1]), _section_at(path[:-1])
    if name in _PLANNED:
        return "unknown key; not supported by this version"
    near = did_you_mean(name, section.model_fields if section else ())
    return f"unknown key{near or _below_the_empty(path, root)}"


def _below_the_empty(path: Path, root: Node) -> str:
    """What an unknown key lacks to belong to the empty section above it."""
    around = find(root, path[:-1])[0]
    keys = list(around.entries) if isinstance(around, MapNode) else []
    above = keys[keys.index(str(path[-1])) - 1] if str(path[-1]) in keys[1:] else None
    if above is None or not isinstance(around, MapNode) or _found(around.entries[above].node) != "nothing":
        return ""
    return f"; if it belongs to {shown(above)}, indent it further" if _child(_section_at(path[:-1]), above) else ""


def _wrong_type(kind: str, path: Path, root: Node) -> str:
    section = _section_at(path)
    if told := _beside(path):
        return told
    node = find(root, path)[0]
    glued = _GLUED.match(node.text) if isinstance(node, ScalarNode) else None
    if section and glued and glued[1] in section.model_fields:
        return _NO_SPACE.format(glued[1])
    wanted = f"{section.word} or a mapping" if section and issubclass(section, Shorthand) else _WANTED[kind]
    found = _found(node)
    if wanted == "a whole number" and isinstance(node, ScalarNode) and node.kind == "float":
        return f"expected a whole number; {shown(node.text)} is none"
    if wanted == "text" and found in ("true or false", "a number"):
        return f"expected text; YAML reads this unquoted word as {found}: put it in quotes"
    return f"expected {wanted}, found {found}{_way_out(wanted, path, node)}"


def _way_out(wanted: str, path: Path, node: Node) -> str:
    """What to write instead, where it can only be one thing."""
    if isinstance(node, ListNode) and _section_at(path) is Route:
        return f"; write {shown(str(path[-1]))}: {{targets: [{_listed(node)}]}}"
    if wanted == "a mapping" and _found(node) == "nothing":
        return "; indent what belongs to it, or write {} for an empty one"
    if wanted == "a mapping" and (kind := _NAMED.get(str(path[-1]))):
        return f"; write each {kind} on a line of its own, its name as a key: no -, and a colon after it"
    if wanted == "a list" and isinstance(node, ScalarNode) and node.kind == "text":
        return "; a space is missing after the dash" if node.plain and node.text[:1] == "-" else "; put it in [ ]"
    return ""


def _listed(targets: ListNode) -> str:
    """The names of a list as they are written, where it holds nothing else."""
    words = [shown(item.text) for item in targets.items if isinstance(item, ScalarNode) and is_name(item)]
    return ", ".join(words) if 0 < len(words) == len(targets.items) <= _MOST_LISTED else "..."


def _found(node: Node) -> str:
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    words = {"null": "nothing", "bool": "true or false", "int": "a number", "float": "a number"}
    return words.get(node.kind, "text")


def _not_an_option(expected: str, word: str) -> str:
    # pydantic lists the options as "'json' or 'text'"; the word found is only compared, never repeated.
    sentence = expected.replace("'", "")
    options = sentence.replace(" or ", ", ").split(", ")
    if word in options:
        return f"must be {sentence}, without quotes"
    return f"must be {sentence}{did_you_mean(word, options)}"


# Which section a path leads to --------------------------------------------------------------------------------------


def _section_at(path: Path) -> type[Section] | None:
    annotation: object = GatewayConfig
    for step in path:
        annotation = _child(annotation, step)
    return annotation if isinstance(annotation, type) and issubclass(annotation, Section) else None


def _child(annotation: object, step: str | int) -> object:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        known = annotation.model_fields.get(str(step))
        return _bare(known.annotation) if known else None
    if typing.get_origin(annotation) in (dict, list):
        return _bare(typing.get_args(annotation)[-1])
    return None


def _bare(annotation: object) -> object:
    """The annotation without what pydantic reads beside it, and without its `| None`."""
    while typing.get_origin(annotation) in (Annotated, Union, UnionType):
        options: Iterable[object] = typing.get_args(annotation)
        annotation = next(each for each in options if each is not type(None))
    return annotation
