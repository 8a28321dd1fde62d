"""Check each section by its pydantic model, and turn pydantic's errors into problems with positions in plain words."""

import re
import typing
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from types import UnionType
from typing import Annotated, Final, Union

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from config.checks.misshapen_routes import is_name
from config.problem import Path, Problem, did_you_mean, glued_key, shown
from config.reading.other_gateways import foreign_key, import_hint
from config.reading.tree_values import Value
from config.reading.yaml_tree import ListNode, MapNode, Node, ScalarNode, find, key_position, value_position
from config.sections.cache_section import CacheSection
from config.sections.route_section import RouteSection
from config.sections.section import Section, ShorthandSection
from config.sections.value_types import DURATION_PATTERN, Referable
from config.table.table_schema import GatewayConfig, VendorSection
from config.units import AS_WRITTEN

_EXPECTED_TYPES: Final = {
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
_GLUED_VALUE: Final = re.compile(r"([A-Za-z_-]+):(?!\s)")
_FIXED_MESSAGES: Final = {"missing": "required key is missing", "too_short": "must not be empty"}
_STAND_IN: Final = f"sha256:{'0' * 64}"
"""The value that replaces an invalid list element, so that the list is not empty. It is valid both as a key's digest
and as a name. Problems that it causes are at the position of the invalid element, and are dropped as repetitions."""
_MUST_BE: Final = "must be "
_EXPECTED: Final = re.compile(r"expected (a whole number|a number)\b")
_KIND_OF_KEY: Final = {
    "vendors": "vendor",
    "models": "model",
    "deployments": "deployment",
    "routes": "route",
    "teams": "team",
    "plugins": "plugin",
}
"""Mappings whose keys the operator chooses, and the kind of object that each key names."""

_MOST_VENDORS: Final = 3
_MOST_LISTED: Final = 4
"""The most vendors, and also the most targets, that one message lists."""

_KEY_STEP: Final = "[key]"
"""The last step of pydantic's location of an invalid key."""


@dataclass(frozen=True, slots=True)
class CheckedSections:
    """The checked configuration. If there are problems, `config` holds only the valid parts, or is `None` if nothing is
    valid."""

    config: GatewayConfig | None
    problems: tuple[Problem, ...]


def check_sections(values: Mapping[str, Value], root: Node) -> CheckedSections:
    """Check the sections of a configuration. `root` is the tree of the values; it gives the positions."""
    try:
        return CheckedSections(GatewayConfig.model_validate(values), ())
    except ValidationError as error:
        errors = _details(error)
    return CheckedSections(_valid_parts(values, root, errors), tuple(_problems(errors, root)))


def _details(error: ValidationError) -> list[ErrorDetails]:
    return error.errors(include_url=False, include_input=False)


# The valid parts ------------------------------------------------------------------------------------------------------


def _valid_parts(values: Mapping[str, Value], root: Node, errors: list[ErrorDetails]) -> GatewayConfig | None:
    refused: set[Path] = set()
    # A section without one of its required values is invalid and must be removed too, level by level. So must a list
    # if `_STAND_IN` is no valid element of it.
    while errors:
        found = {_refused_path(each, root) for each in errors}
        further = found - refused or {path[:-1] for path in found if path} - refused
        if not further:
            return None
        refused |= further
        try:
            return GatewayConfig.model_validate({**_valid_entries(values, refused, ()), "version": 1})
        except ValidationError as error:
            errors = _details(error)
    return None


def _refused_path(error: ErrorDetails, root: Node) -> Path:
    path = _path(error)[:-1] if error["type"] == "missing" else _path(error)
    return path[: find(root, path)[2]]


def _valid_entries(values: Mapping[str, Value], refused: Set[Path], path: Path) -> dict[str, Value]:
    inner = {key: (*path, key) for key in values}
    return {key: _valid_value(values[key], refused, at) for key, at in inner.items() if at not in refused}


def _valid_value(value: Value, refused: Set[Path], path: Path) -> Value:
    if isinstance(value, Mapping):
        return _valid_entries(value, refused, path)
    if isinstance(value, list):
        inner = [(*path, index) for index in range(len(value))]
        return [
            _STAND_IN if at in refused else _valid_value(value[index], refused, at) for index, at in enumerate(inner)
        ]
    return value


# Messages -----------------------------------------------------------------------------------------------------------


def _path(error: ErrorDetails) -> Path:
    location = error["loc"]
    return location[:-1] if location and location[-1] == _KEY_STEP else location


def _problems(errors: list[ErrorDetails], root: Node) -> Iterator[Problem]:
    """Yield a problem for each error, once per path and message: a key and its value may both cause the same one. The
    alternatives for one value, such as a number or a word, become one problem."""
    found: dict[str, list[Problem]] = {}
    for problem in (_problem(each, root) for each in errors if not _follows_from_glued_key(each, root)):
        known = found.setdefault(problem.path, [])
        if all(problem.message != each.message for each in known):
            known.append(problem)
    for problems in found.values():
        problems = _as_options(problems)
        if all(each.message.startswith(_MUST_BE) for each in problems):
            allowed = " or ".join(each.message.removeprefix(_MUST_BE) for each in problems)
            yield replace(problems[0], message=f"{_MUST_BE}{allowed}")
        else:
            yield from problems


def _as_options(problems: list[Problem]) -> list[Problem]:
    """Return the problems of one value. If any of them lists allowed values, a wrong type becomes one more allowed
    value."""
    if not any(each.message.startswith(_MUST_BE) for each in problems):
        return problems
    found = [(each, _EXPECTED.match(each.message)) for each in problems]
    return [each if type_ is None else replace(each, message=_MUST_BE + type_[1]) for each, type_ in found]


def _follows_from_glued_key(error: ErrorDetails, root: Node) -> bool:
    """Return whether the error only follows from a missing space: YAML reads `key:value` as one key, so that the key is
    missing or has no value."""
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
    position_of = key_position if _is_about_key(error) else value_position
    return Problem.at(position_of(root, path), path[:depth] if isinstance(node, ScalarNode) else path, message)


def _message(error: ErrorDetails, root: Node) -> str:
    kind, path = error["type"], _path(error)
    if kind == "extra_forbidden":
        return _unknown_key(path, root)
    if kind in _EXPECTED_TYPES:
        return _wrong_type(kind, path, root)
    if kind in _BOUNDS:
        word, key = _BOUNDS[kind]
        return f"must be {word} {_as_written(path, error['ctx'][key])}"
    if kind == "literal_error":
        node = find(root, path)[0]
        word = str(path[-1]) if error["loc"][-1] == _KEY_STEP else node.text if isinstance(node, ScalarNode) else ""
        return _not_an_option(error["ctx"]["expected"], word)
    if error["loc"][-1:] == (_KEY_STEP,) and (message := _no_model_key(path, root)):
        return message
    return _FIXED_MESSAGES.get(kind, error["msg"])


def _as_written(path: Path, number: float) -> str:
    """Return a number in the notation of this setting: with its unit, and never as 1e+12."""
    section = _section_at(path[:-1])
    known = section.model_fields.get(str(path[-1])) if section else None
    titles = [each.title for each in known.metadata if isinstance(each, Referable)] if known else []
    plain = f"{number:.0f}" if number == int(number) else f"{number:g}"
    return next((AS_WRITTEN[title](number) for title in titles if title in AS_WRITTEN), plain)


def _no_model_key(path: Path, root: Node) -> str | None:
    """Return the message for a model key without a vendor, or for a setting that is indented like a model."""
    if path[:-1] != ("models",) or "/" in (name := str(path[-1])):
        return None
    if message := _misindented(path):
        return message
    vendors, _, depth = find(root, ("vendors",))
    written = vendors.entries if depth and isinstance(vendors, MapNode) else ()
    known = [vendor for vendor in written if vendor not in VendorSection.model_fields][:_MOST_VENDORS]
    meant = " or ".join(shown(f"{vendor}/{name}") for vendor in known)
    return f"a model key is vendor/model or vendor/*{f'; did you mean {meant}?' if meant else ''}"


def _misindented(path: Path) -> str | None:
    """Return the message for a setting that is written beside its section instead of in it; `None` for any other
    key."""
    section, name = _section_at(path), str(path[-1])
    kind = _KIND_OF_KEY.get(str(path[-2])) if len(path) > 1 else None
    if section is None or kind is None or name not in section.model_fields:
        return None
    return f"{name} is a setting of a {kind}: indent it further, below the {kind}'s name"


def _unknown_key(path: Path, root: Node) -> str:
    foreign = foreign_key(root.entries) if isinstance(root, MapNode) else None
    if foreign is not None and path == (foreign,):
        return import_hint(foreign)
    name, section = str(path[-1]), _section_at(path[:-1])
    near = did_you_mean(name, section.model_fields if section else ())
    return f"unknown key{near or _indentation_hint(path, root)}"


def _indentation_hint(path: Path, root: Node) -> str:
    """Return the hint for a key that would belong to the empty section above it if it were indented."""
    around = find(root, path[:-1])[0]
    keys = list(around.entries) if isinstance(around, MapNode) else []
    above = keys[keys.index(str(path[-1])) - 1] if str(path[-1]) in keys[1:] else None
    if above is None or not isinstance(around, MapNode) or _kind_of(around.entries[above].node) != "nothing":
        return ""
    return (
        f"; if it belongs to {shown(above)}, indent it further"
        if _inner_annotation(_section_at(path[:-1]), above)
        else ""
    )


def _wrong_type(kind: str, path: Path, root: Node) -> str:
    section = _section_at(path)
    if message := _misindented(path):
        return message
    node = find(root, path)[0]
    glued = _GLUED_VALUE.match(node.text) if isinstance(node, ScalarNode) else None
    if section and glued and glued[1] in section.model_fields:
        return _NO_SPACE.format(glued[1])
    wanted = (
        f"{section.short_form} or a mapping"
        if section and issubclass(section, ShorthandSection)
        else _EXPECTED_TYPES[kind]
    )
    found = _kind_of(node)
    if wanted == "a whole number" and isinstance(node, ScalarNode) and node.kind == "float":
        return f"expected a whole number; {shown(node.text)} is not one"
    if wanted == "text" and found in ("true or false", "a number"):
        return f"expected text; YAML reads this unquoted word as {found}: put it in quotes"
    return f"expected {wanted}, found {found}{_correction(wanted, path, node)}"


def _correction(wanted: str, path: Path, node: Node) -> str:
    """Return a hint that shows the corrected text, if there is only one possible correction; otherwise empty text."""
    if isinstance(node, ListNode) and _section_at(path) is RouteSection:
        return f"; write {shown(str(path[-1]))}: {{targets: [{_target_list(node)}]}}"
    if _section_at(path) is CacheSection and isinstance(node, ScalarNode) and (meant := _cache_section_for(node)):
        return f"; write {meant}"
    if wanted == "a mapping" and _kind_of(node) == "nothing":
        return "; indent the lines that belong to it, or write {} for an empty one"
    if wanted == "a mapping" and (kind := _KIND_OF_KEY.get(str(path[-1]))):
        return f"; write each {kind} on a line of its own, its name as a key: no -, and a colon after it"
    if wanted == "a list" and isinstance(node, ScalarNode) and node.kind == "text":
        return "; a space is missing after the dash" if node.plain and node.text[:1] == "-" else "; put it in [ ]"
    return ""


def _cache_section_for(node: ScalarNode) -> str:
    """Return the section that a bare word in its position stands for; empty text for an unknown word."""
    if re.fullmatch(DURATION_PATTERN, node.text):
        return f"{{ttl: {node.text}}}"
    return {"off": "{where: off}", "false": "{where: off}", "on": "{}", "true": "{}"}.get(node.text.lower(), "")


def _target_list(targets: ListNode) -> str:
    """Return the names of a list as written. Return `...` if the list holds other values or too many names."""
    words = [shown(item.text) for item in targets.items if isinstance(item, ScalarNode) and is_name(item)]
    return ", ".join(words) if 0 < len(words) == len(targets.items) <= _MOST_LISTED else "..."


def _kind_of(node: Node) -> str:
    if isinstance(node, MapNode):
        return "a mapping"
    if isinstance(node, ListNode):
        return "a list"
    words = {"null": "nothing", "bool": "true or false", "int": "a number", "float": "a number"}
    return words.get(node.kind, "text")


def _not_an_option(expected: str, word: str) -> str:
    # pydantic lists the options as "'json' or 'text'". The operator's word is only compared, never repeated.
    sentence = expected.replace("'", "")
    options = sentence.replace(" or ", ", ").split(", ")
    if word in options:
        return f"must be {sentence}, without quotes"
    return f"must be {sentence}{did_you_mean(word, options)}"


# The section at a path ----------------------------------------------------------------------------------------------


def _section_at(path: Path) -> type[Section] | None:
    annotation: object = GatewayConfig
    for step in path:
        annotation = _inner_annotation(annotation, step)
    return annotation if isinstance(annotation, type) and issubclass(annotation, Section) else None


def _inner_annotation(annotation: object, step: str | int) -> object:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        known = annotation.model_fields.get(str(step))
        return _without_wrappers(known.annotation) if known else None
    if typing.get_origin(annotation) in (dict, list):
        return _without_wrappers(typing.get_args(annotation)[-1])
    return None


def _without_wrappers(annotation: object) -> object:
    while typing.get_origin(annotation) in (Annotated, Union, UnionType):
        options: Iterable[object] = typing.get_args(annotation)
        annotation = next(each for each in options if each is not type(None))
    return annotation
