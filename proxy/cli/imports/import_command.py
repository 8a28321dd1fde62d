"""`dragoman import`: convert another gateway's configuration to a config file, and check it.

The file is read by the gateway's own YAML reader (JSON is a part of YAML), with its limits on size, depth and aliases.
Every loss is reported as a comment in the new config file and as a line on standard error.
"""

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from config.problem import ConfigError, Position, Problem
from config.reading.table_files import DISK, Copies, SourceFiles, Store, UnreadableError
from config.reading.yaml_tree import MapNode, Node, parse
from proxy.cli.check_command import examine, text_lines
from proxy.cli.imports.bifrost_table import bifrost_table
from proxy.cli.imports.foreign_section import ForeignSection
from proxy.cli.imports.litellm.database_files import NO_EXPORTS, Exports, read_exports
from proxy.cli.imports.litellm.settings import litellm_table
from proxy.cli.imports.portkey_table import portkey_table
from proxy.cli.imports.remarks import Remarks
from proxy.cli.imports.table_draft import TableDraft
from proxy.cli.imports.table_values import joined
from proxy.cli.imports.write_yaml import table_text
from proxy.cli.imports.written_file import Write, put_file
from proxy.cli.terminal import FAILED, INCOMPLETE, UNEQUIPPED
from proxy.process.load_table import Source, TableRefused

MAX_REMARK_LINES: Final = 200
"""The maximum lines of remarks on standard error. The comments in the config file have all of them."""

_OUTPUT: Final = Path("standard-output.yaml")
"""The name of a printed config file in messages."""

_SURROGATES: Final = re.compile(r"\\\\|\\u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})")
"""A surrogate pair of two escapes, which is one character. An escaped backslash is matched too, because no escape
begins after it."""

Reader = Callable[[ForeignSection, str], TableDraft]

READERS: Final[Mapping[str, Reader]] = {
    "litellm": litellm_table,
    "bifrost": bifrost_table,
    "portkey": portkey_table,
}
"""Converters by the name of the gateway."""


def import_to_output(gateway: str, path: Path, name: str, exports: Exports = NO_EXPORTS) -> int:
    """Print the config file, and print the remarks and the findings of a check on standard error. Return 0 if it is
    valid and complete, 3 if it is valid and something is missing, 4 if it is valid but this machine cannot serve it,
    and 1 if it is invalid."""
    draft, remarks = read(gateway, path, name, exports)
    text = table_text(draft)
    print(text, end="")
    sys.stdout.flush()
    return _report(draft, remarks, Source(_OUTPUT, _environment(draft)), Copies({_OUTPUT: text.encode()}, {}))


def import_to_file(
    gateway: str, path: Path, name: str, output: Path, write: Write, exports: Exports = NO_EXPORTS
) -> int:
    """Write the config file by `write`, and report as import_to_output does, with the same exit status."""
    draft, remarks = read(gateway, path, name, exports)
    put_file(output, table_text(draft), write)
    return _report(draft, remarks, Source(output, _environment(draft)), None)


def read(gateway: str, path: Path, name: str, exports: Exports = NO_EXPORTS) -> tuple[TableDraft, Remarks]:
    """Return the configuration for a file, and the remarks on it. Raises ConfigError if the file cannot be read."""
    root, problems = foreign_tree(path)
    if not isinstance(root, MapNode):
        at = Position(str(path), 1, 1) if root is None else root.at
        raise ConfigError(problems or [Problem.at(at, (), f"is not a configuration of {gateway}: not a mapping")])
    remarks = Remarks(problems)
    remarks.lost_sections.update(problems)
    section = ForeignSection(root, (), remarks, [])
    if exports == NO_EXPORTS:
        draft = READERS[gateway](section, name)
    else:
        draft = litellm_table(section, name, read_exports(exports, remarks))
    head = f"From {path.name}, a configuration of {gateway}, by `dragoman import`. Read it through."
    draft.root.comments.insert(0, head)
    remarks.problems = list(dict.fromkeys(remarks.problems))
    return draft, remarks


def foreign_tree(path: Path) -> tuple[Node | None, list[Problem]]:
    """Return the tree of a YAML or JSON file and its problems. Raises ConfigError if the file cannot be read."""
    try:
        text = SourceFiles().read_yaml(path)
    except UnreadableError as error:
        raise ConfigError([Problem.at(Position(str(path), 1, 1), (), f"cannot read the file: {error}")]) from None
    parsed = parse(json_as_yaml(text) if text.lstrip("\ufeff \t\r\n").startswith("{") else text, str(path))
    return parsed.root, list(parsed.problems)


def json_as_yaml(text: str) -> str:
    """Return JSON as YAML. Two things of JSON are not YAML: indentation by tabs (JSON strings cannot contain a bare
    tab), and escapes of characters beyond U+FFFF as two surrogates."""
    return _SURROGATES.sub(_one_escape, text.replace("\t", " "))


def _one_escape(found: re.Match[str]) -> str:
    if found["high"] is None:
        return found[0]
    number = 0x10000 + (int(found["high"], 16) - 0xD800) * 0x400 + int(found["low"], 16) - 0xDC00
    return f"\\U{number:08x}"


def _environment(draft: TableDraft) -> dict[str, str]:
    """Return the environment. Variables of the config file that are unset or empty have samples."""
    return {**draft.samples, **{name: value for name, value in os.environ.items() if value}}


def _report(draft: TableDraft, remarks: Remarks, source: Source, copies: Copies | None) -> int:
    for line in _remark_lines(remarks.problems):
        print(line, file=sys.stderr)
    for line in (*remarks.hints, *_variable_lines(draft.samples)):
        print(line, file=sys.stderr)
    findings, summary = examine(source, "warning", copies or DISK)
    for line in text_lines(findings, summary):
        print(line, file=sys.stderr)
    if not draft.section("models").entries:
        print("the configuration has no model: is the file of the right gateway?", file=sys.stderr)
        return FAILED
    print(f"taken: {remarks.summary()}", file=sys.stderr)
    if summary is None:
        return _refused(source, copies or DISK)
    return 0 if remarks.is_complete else INCOMPLETE


def _refused(source: Source, store: Store) -> int:
    """Return the exit status for a configuration that cannot be served: UNEQUIPPED if this machine is the reason, else
    FAILED."""
    try:
        source.load(store)
    except TableRefused:
        return FAILED
    print("the configuration is valid; this machine lacks the dependencies that the lines above name", file=sys.stderr)
    return UNEQUIPPED


def _remark_lines(problems: list[Problem]) -> Iterator[str]:
    yield from map(str, problems[:MAX_REMARK_LINES])
    if len(problems) > MAX_REMARK_LINES:
        yield f"and {len(problems) - MAX_REMARK_LINES} more, which are comments in the config file"


def _variable_lines(names: Iterable[str]) -> Iterator[str]:
    wanted = sorted(names)
    missing = [name for name in wanted if not os.environ.get(name)]
    if wanted:
        yield f"the config file refers to {len(wanted)} environment variables: {joined(wanted)}"
    if missing:
        yield f"not set here, and checked with samples: {joined(missing)}"
