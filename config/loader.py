"""Files or text to a checked table: the steps of a load, in order, and what it found. Never the rules of a step.

parse (`tree`) -> include (`includes`) -> expand (`values`) -> shape (`validate`) -> names (`semantics`) ->
`certificates`. Every step runs on what the one before could save, so that one run reports everything.
"""

import hashlib
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from typing import Final

from config.certificates import Bundle, Pair, read_certificates
from config.doubts import semantic_warnings
from config.files import DISK, Copies, SourceFiles, Store, UnreadableError, current_hashes, digest
from config.includes import Includer, as_table
from config.problems import ConfigError, Locate, Path, Position, Problem
from config.schema import GatewayConfig
from config.semantics import Table, semantic_problems
from config.tree import MapNode, Node, ScalarNode, parse, value_position
from config.validate import validate
from config.values import Expander

DEFAULT_TABLE: Final = "config/default.yaml"
"""The name positions in the embedded default table carry."""

_EMPTY: Final = "the table is empty; it needs `version: 1`, vendors and models"


@dataclass(frozen=True, slots=True)
class Sources:
    """What a load looked at, included tables, secret files and certificates too: the hash of each file's content as it
    was found, in reading order, and the patterns of the includes."""

    hashes: Mapping[pathlib.Path, str]
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A sound table and what it was made of.

    `files` are all files read, included tables, secret files and certificates too. `digest` changes when any content
    does. `locate` gives the place of a value; of one that is not written, the place of the section it would stand in.
    `warnings` are for the operator to see, and errors under `--strict`. `authorities` are the certificates of each
    `ca_file`, by its path in the table; `pair` is the listener's. `copies` are what another process can load the same
    from. `referenced` holds the paths of values that came out of references, which no message repeats.
    """

    config: GatewayConfig
    files: tuple[pathlib.Path, ...]
    digest: str
    warnings: tuple[Problem, ...]
    authorities: Mapping[Path, Bundle]
    pair: Pair | None
    locate: Locate = field(repr=False)
    sources: Sources = field(repr=False)
    copies: Copies = field(repr=False)
    referenced: frozenset[Path] = frozenset()


@dataclass(frozen=True, slots=True)
class Examined:
    """What a load found. `table` holds what could be saved, so that whoever knows the vendors can go on looking for
    mistakes; it is sound only without `problems`, and None where nothing could be saved. `sources` are known always."""

    table: Loaded | None
    problems: tuple[Problem, ...]
    sources: Sources

    def sound(self) -> Loaded:
        """The table; raises `ConfigError` with everything that is wrong."""
        if self.problems or self.table is None:
            raise ConfigError(self.problems)
        return self.table


def examine_file(path: pathlib.Path, env: Mapping[str, str], store: Store = DISK) -> Examined:
    """The table in a YAML file, and everything that is wrong with it."""
    files = SourceFiles(store)
    try:
        text = files.read_table(path)
    except UnreadableError as error:
        return Examined(None, (_problem(str(path), f"cannot read the file: {error}"),), Sources(files.hashes))
    return _examine(text, str(path), env, files)


def examine_default(env: Mapping[str, str]) -> Examined:
    """The embedded table: the mock vendor on loopback."""
    text = resources.files("config").joinpath("default.yaml").read_text(encoding="utf-8")
    return _examine(text, DEFAULT_TABLE, env, SourceFiles())


def load_file(path: pathlib.Path, env: Mapping[str, str]) -> Loaded:
    """The table in a YAML file; raises `ConfigError` with everything that is wrong."""
    return examine_file(path, env).sound()


def load_text(text: str, name: str, env: Mapping[str, str]) -> Loaded:
    """The table in a text; `name` is the file name of its positions, and what relative paths in it are relative to."""
    return _examine(text, name, env, SourceFiles()).sound()


def load_default(env: Mapping[str, str]) -> Loaded:
    """The embedded table, sound."""
    return examine_default(env).sound()


def fingerprint(sources: Sources) -> Mapping[pathlib.Path, str]:
    """The hashes of a table's files as they are now, files that newly match an `include` among them; unequal to
    `sources.hashes` when something changed, and where one file is included under two names."""
    present = {path for pattern in sources.patterns for path in DISK.matching(pattern)}
    return current_hashes({*sources.hashes, *present})


def _problem(name: str, message: str) -> Problem:
    return Problem.at(Position(name, 1, 1), (), message)


def _examine(text: str, name: str, env: Mapping[str, str], files: SourceFiles) -> Examined:
    parsed = as_table(parse(text, name), name)
    if not isinstance(parsed.root, MapNode):
        return Examined(None, tuple(parsed.problems or [_no_table(parsed.root, name)]), Sources(files.hashes))
    expander = Expander(env, files)
    includer = Includer(expander)
    root = includer.merged(parsed.root)
    values = expander.mapping(root)
    problems = [*parsed.problems, *includer.problems, *expander.problems]
    validated = validate(values, root)
    problems.extend(_elsewhere(validated.problems, problems))
    warnings = list(expander.warnings)
    if validated.config is not None and includer.complete:
        table = Table(validated.config, root, expander.referenced, frozenset(each.path for each in problems))
        problems.extend(_elsewhere(semantic_problems(table), problems))
        warnings.extend(semantic_warnings(table))
    sources = Sources(files.hashes, files.patterns)
    if validated.config is None or not includer.complete:
        return Examined(None, tuple(problems), sources)
    certificates = read_certificates(validated.config, root, files)
    problems.extend(certificates.problems)
    warnings.extend(certificates.warnings)
    own = {pathlib.Path(name): hashlib.sha256(text.encode()).hexdigest()}
    table_found = Loaded(
        config=validated.config,
        files=files.paths,
        digest=digest({**own, **files.hashes}),
        warnings=tuple(sorted(set(warnings))),
        authorities=certificates.authorities,
        pair=certificates.pair,
        locate=partial(value_position, root),
        sources=sources,
        copies=files.copies(),
        referenced=frozenset(expander.referenced),
    )
    return Examined(table_found, tuple(problems), sources)


def _no_table(root: Node | None, name: str) -> Problem:
    if root is None or (isinstance(root, ScalarNode) and root.kind == "null"):
        return _problem(name, _EMPTY)
    return Problem.at(root.at, (), "expected a mapping with `version: 1`, vendors and models")


def _elsewhere(found: tuple[Problem, ...], earlier: list[Problem]) -> list[Problem]:
    """The problems at places without one yet: what a later step says there is only the echo of the first."""
    taken = {(each.file, each.line, each.column) for each in earlier}
    return [each for each in found if (each.file, each.line, each.column) not in taken]
