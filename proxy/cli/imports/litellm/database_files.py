"""Read exports of LiteLLM's database: the JSON of its endpoints, or a CSV of a database table.

Sources: `/key/list?return_full_object=true`, `/key/info`, `/team/list`, `/v2/team/list`, `/team/info` and
`/model/info` of litellm 1.108.7 (`KeyListResponseObject`, `LiteLLM_VerificationToken`, `TeamListResponse`,
`LiteLLM_TeamTable`), and the columns of `litellm_verificationtoken` as PostgreSQL's COPY writes them, November 2026.
"""

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from config.problem import ConfigError, Position, Problem, shown
from config.reading.yaml_tree import Entry, ListNode, MapNode, Node, ScalarNode
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.remarks import Remarks

MAX_FILE_BYTES: Final = 64 * 2**20
MAX_DEPTH: Final = 40

Kind = Literal["keys", "teams", "models"]

_LISTS: Final[Mapping[Kind, tuple[str, ...]]] = {"keys": ("keys",), "teams": ("teams",), "models": ("data", "models")}
_INNER: Final[Mapping[Kind, str]] = {"keys": "info", "teams": "team_info", "models": "data"}
"""The field with the row in responses for one key, team or model."""

_OWN: Final[Mapping[Kind, tuple[str, ...]]] = {
    "keys": ("token", "key"),
    "teams": ("team_id",),
    "models": ("model_name",),
}
"""Names of the fields that identify a row. Each row has one of these fields."""

_LABELS: Final[Mapping[Kind, tuple[str, ...]]] = {
    "keys": ("key_alias", "token"),
    "teams": ("team_alias", "team_id"),
    "models": ("model_name",),
}


@dataclass(frozen=True, slots=True)
class Exports:
    """The files that the command line names. Several files of a kind are pages of one export."""

    keys: tuple[Path, ...] = ()
    teams: tuple[Path, ...] = ()
    models: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Database:
    """The rows of the files."""

    keys: tuple[ForeignSection, ...] = ()
    teams: tuple[ForeignSection, ...] = ()
    models: tuple[ForeignSection, ...] = ()


NO_EXPORTS: Final = Exports()
NO_DATABASE: Final = Database()


def read_exports(exports: Exports, remarks: Remarks) -> Database:
    """Return the rows of the files. Raises ConfigError if a file cannot be read."""
    return Database(
        _rows("keys", exports.keys, remarks),
        _rows("teams", exports.teams, remarks),
        _rows("models", exports.models, remarks),
    )


def _rows(kind: Kind, paths: tuple[Path, ...], remarks: Remarks) -> tuple[ForeignSection, ...]:
    found: list[ForeignSection] = []
    announced = 0
    for path in paths:
        at = Position(str(path), 1, 1)
        content = _content(path, at)
        listed = _listed(kind, content, path)
        if listed is None:
            raise ConfigError([Problem.at(at, (), f"is not a list of {kind} of LiteLLM")])
        announced = max(announced, _announced(content))
        found += (_section(kind, index, row, remarks) for index, row in enumerate(listed))
    if announced > len(found):
        text = f"has {len(found)} of {announced} {kind}: give --{kind} for each page (page=2, page=3 and so on)"
        problem = Problem.at(Position(str(paths[-1]), 1, 1), (kind,), text)
        remarks.problems.append(problem)
        remarks.lost_sections.add(problem)
        remarks.count(kind.removesuffix("s"), 0, announced - len(found))
    return tuple(found)


def _content(path: Path, at: Position) -> object:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError([Problem.at(at, (), f"cannot read the file: {error.strerror}")]) from None
    if len(raw) > MAX_FILE_BYTES:
        raise ConfigError([Problem.at(at, (), f"cannot read the file: larger than {MAX_FILE_BYTES >> 20} MiB")])
    try:
        text = raw.decode("utf-8-sig")
        return json.loads(text) if text.lstrip()[:1] in ("{", "[") else [*_csv_rows(text, path)]
    except (ValueError, RecursionError, csv.Error):
        raise ConfigError([Problem.at(at, (), "is neither JSON nor CSV with a header, in UTF-8")]) from None


@dataclass(frozen=True, slots=True)
class _PlacedRow:
    """A row with its position. In a CSV file, the position is its line. In a JSON file, it is a JSON pointer (RFC
    6901), because the endpoints write everything on one line."""

    row: object
    at: Position


def _listed(kind: Kind, content: object, path: Path) -> list[_PlacedRow] | None:
    """Return the rows of a file's content; `None` if the content is of another kind."""
    found = [*_rows_of(kind, content, path)]
    return found if all(_is_row(kind, each.row) for each in found) else None


def _rows_of(kind: Kind, content: object, path: Path) -> Iterator[_PlacedRow]:
    base = Position(f"{path}#", 0, 0)
    if isinstance(content, dict):
        name = next((key for key in _LISTS[kind] if isinstance(content.get(key), list)), None)
        one = content.get(_INNER[kind])
        if name is not None:
            content, base = content[name], _below(base, name)
        elif isinstance(one, dict):
            yield _PlacedRow({**one, **_named(content)}, _below(base, _INNER[kind]))
            return
    if not isinstance(content, list):
        yield _PlacedRow(content, base)
        return
    for index, row in enumerate(content):
        yield row if isinstance(row, _PlacedRow) else _PlacedRow(row, _below(base, str(index)))


def _below(at: Position, key: str) -> Position:
    """Return the position of a value within the value at `at`. In a CSV file, it is the position of the whole line."""
    return at if at.line else Position(f"{at.file}/{key.replace('~', '~0').replace('/', '~1')}", 0, 0)


def _named(content: Mapping[str, object]) -> dict[str, object]:
    return {key: content[key] for key in ("team_id",) if key in content} | (
        {"token": content["key"]} if isinstance(content.get("key"), str) else {}
    )


def _is_row(kind: Kind, row: object) -> bool:
    return (kind == "keys" and isinstance(row, str)) or (isinstance(row, dict) and any(k in row for k in _OWN[kind]))


def _announced(content: object) -> int:
    """Return the number of rows on all pages, as a page reports it."""
    said = (content.get("total_count") or content.get("total")) if isinstance(content, dict) else 0
    return said if isinstance(said, int) else 0


def _section(kind: Kind, index: int, placed: _PlacedRow, remarks: Remarks) -> ForeignSection:
    values = placed.row if isinstance(placed.row, dict) else {"token": placed.row}
    known = (values.get(key) for key in _LABELS[kind])
    label = next((each for each in known if isinstance(each, str) and each), str(index))
    node = _node(values, placed.at, 0)
    if not isinstance(node, MapNode):
        raise TypeError("a row is a mapping")
    return ForeignSection(node, (kind, row_label(label)), remarks, [])


def row_label(label: str) -> str:
    """Return the label of a row in messages: its name, or the beginning of a digest or key."""
    return f"{label[:8]}…" if label.startswith("sk-") or len(label) >= 64 else shown(label)


def _node(value: object, at: Position, depth: int) -> Node:
    if depth > MAX_DEPTH:
        raise ConfigError([Problem.at(at, (), f"nested deeper than {MAX_DEPTH} levels")])
    if isinstance(value, dict):
        places = {key: _below(at, str(key)) for key in value}
        entries = {str(key): Entry(places[key], _node(each, places[key], depth + 1)) for key, each in value.items()}
        return MapNode(at, entries, 1, 1)
    if isinstance(value, list):
        items = (_node(each, _below(at, str(index)), depth + 1) for index, each in enumerate(value))
        return ListNode(at, tuple(items), 1, 1)
    if value is None:
        return ScalarNode(at, "", "null", plain=True)
    if isinstance(value, bool):
        return ScalarNode(at, "true" if value else "false", "bool", plain=True)
    return ScalarNode(at, str(value), "text" if isinstance(value, str) else "float", plain=True)


_TRUTHS: Final = frozenset({"blocked", "auto_rotate", "soft_budget_cooldown"})

# CSV ----------------------------------------------------------------------------------------------------------------


def _csv_rows(text: str, path: Path) -> Iterator[_PlacedRow]:
    reader = csv.DictReader(io.StringIO(text), strict=True)
    if not {name for names in _OWN.values() for name in names}.intersection(reader.fieldnames or ()):
        raise ValueError("no column of a key, team or model")
    line = reader.line_num + 1
    for row in reader:
        cells = {key: _cell(key, text) for key, text in row.items() if isinstance(key, str) and isinstance(text, str)}
        yield _PlacedRow(cells, Position(str(path), line, 1))
        line = reader.line_num + 1


def _cell(column: str, text: str) -> object:
    """Return a cell's value: JSON, a PostgreSQL array, a boolean or text; `None` if it is empty."""
    if text in ("", "\\N", "NULL"):
        return None
    if column in _TRUTHS and text in ("t", "f"):
        return text == "t"
    if text[0] in "{[":
        try:
            # An empty PostgreSQL array is written like an empty JSON object.
            return json.loads(text) or None
        except (ValueError, RecursionError):
            return _array(text)
    return text


def _array(text: str) -> object:
    """Return an array in PostgreSQL's notation, such as {a,"b c"}."""
    if not (text.startswith("{") and text.endswith("}")):
        return text
    (items,) = list(csv.reader([text[1:-1]], escapechar="\\")) or [[]]
    return items
