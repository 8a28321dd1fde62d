"""Load a configuration from files or text: parse, merge includes, expand references, check, read certificates.

Every step continues with the valid results of the steps before it, so that one load reports every problem.
"""

import hashlib
import pathlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import resources
from typing import Final

from config.checks.check_answer_cache import check_answer_cache
from config.checks.check_between_sections import CheckContext, check_between_sections, levels
from config.checks.check_keys_and_values import check_sections
from config.checks.check_limits import check_limits
from config.checks.check_plugins import check_plugins
from config.checks.check_team_keys import check_team_keys
from config.checks.doubtful_limits import doubtful_limits
from config.checks.doubtful_settings import doubtful_settings
from config.problem import ConfigError, Locate, Path, Position, Problem, dotted
from config.reading.complete_teams import TeamCompleter
from config.reading.lone_budgets import LoneBudgets
from config.reading.merge_includes import INCLUDE, Includer, as_configuration
from config.reading.read_certificates import Bundle, Pair, read_certificates
from config.reading.table_files import DISK, Copies, SourceFiles, Store, UnreadableError, current_hashes, digest
from config.reading.tree_values import Expander
from config.reading.yaml_tree import MapNode, Node, ScalarNode, parse, value_position
from config.sections.ledger_section import LedgerLocation
from config.sections.log_section import PayloadLogSettings
from config.table.table_schema import GatewayConfig

EMBEDDED_CONFIG: Final = "config/demo_table.yaml"
"""The file name in positions of the embedded configuration."""

_KEYS: Final = (*GatewayConfig.model_fields, INCLUDE)
_EMPTY: Final = "the configuration is empty; it needs `version: 1`, vendors and models"


@dataclass(frozen=True, slots=True)
class Sources:
    """The files that a load read, among them included files, secrets and certificates: the hash of each, in reading
    order, and the patterns of the includes."""

    hashes: Mapping[pathlib.Path, str]
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A valid configuration and the files that it was loaded from.

    `files` are all files read, among them included files, secrets and certificates. `digest` changes if the content of
    any file changes. `locate` returns the position of a value or, if the value is not written, of the section that
    would hold it. `warnings` count as errors under `--strict`. `authorities` holds the certificates of each `ca_file`,
    by its path in the configuration. `pair` is the listener's certificate and key. `copies` lets another process load
    the same configuration. `referenced` holds the paths of values that came from references; no message repeats these
    values. `ledger` is the location of the ledger, `payloads` the settings of the payload log. `as_written` converts
    the paths of problems to the paths of the file.
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
    ledger: LedgerLocation | None = None
    payloads: PayloadLogSettings | None = None
    as_written: Callable[[Iterable[Problem]], tuple[Problem, ...]] = field(default=tuple, repr=False)

    def problem(self, path: Path, message: str) -> Problem:
        """Return a problem at a path of the configuration, shown by its path in the file."""
        (written,) = self.as_written((Problem.at(self.locate(path), path, message),))
        return written

    def without_positions(self) -> "Loaded":
        """Return this object without the positions of its values, which is the form that is stored while the
        configuration is served. `locate` of the returned object raises RuntimeError. The positions take half of the
        memory of a configuration with ten thousand teams, which is 5 KB per team."""
        return replace(self, locate=_no_position, as_written=tuple)


def _no_position(path: Path) -> Position:
    raise RuntimeError(f"the position of {dotted(path)} is not stored while the configuration is served")


@dataclass(frozen=True, slots=True)
class LoadResult:
    """The result of a load. If there are problems, `table` holds only the valid parts, or is `None` if nothing is
    valid."""

    table: Loaded | None
    problems: tuple[Problem, ...]
    sources: Sources

    def sound(self) -> Loaded:
        """Return the configuration. Raises ConfigError with every problem."""
        if self.problems or self.table is None:
            raise ConfigError(self.problems)
        return self.table


def examine_file(path: pathlib.Path, env: Mapping[str, str], store: Store = DISK) -> LoadResult:
    """Load the configuration in a YAML file. Return it with every problem."""
    files = SourceFiles(store)
    try:
        text = files.read_yaml(path)
    except UnreadableError as error:
        return LoadResult(None, (_file_problem(str(path), f"cannot read the file: {error}"),), Sources(files.hashes))
    return _examine(text, str(path), env, files)


def examine_embedded(env: Mapping[str, str]) -> LoadResult:
    """Load the embedded configuration: the mock vendor on loopback."""
    text = resources.files("config").joinpath("demo_table.yaml").read_text(encoding="utf-8")
    return _examine(text, EMBEDDED_CONFIG, env, SourceFiles())


def load_file(path: pathlib.Path, env: Mapping[str, str]) -> Loaded:
    """Load the configuration in a YAML file. Raises ConfigError with every problem."""
    return examine_file(path, env).sound()


def load_text(text: str, name: str, env: Mapping[str, str]) -> Loaded:
    """Load the configuration in a text. `name` is the file name in its positions; paths in the text are relative to
    it."""
    return _examine(text, name, env, SourceFiles()).sound()


def fingerprint(sources: Sources) -> Mapping[pathlib.Path, str]:
    """Return the current hashes of a configuration's files, including new files that match its includes.

    The result differs from `sources.hashes` if any content has changed. It also differs if one file is included under
    two names.
    """
    present = {path for pattern in sources.patterns for path in DISK.matching(pattern)}
    return current_hashes({*sources.hashes, *present})


def _file_problem(name: str, message: str) -> Problem:
    return Problem.at(Position(name, 1, 1), (), message)


def _examine(text: str, name: str, env: Mapping[str, str], files: SourceFiles) -> LoadResult:
    main = next(iter(files.paths), None)  # no file has been read if the configuration is a text
    parsed = as_configuration(parse(text, name), name, _KEYS)
    if not isinstance(parsed.root, MapNode):
        return LoadResult(None, tuple(parsed.problems or [_not_a_mapping(parsed.root, name)]), Sources(files.hashes))
    expander = Expander(env, files)
    includer = Includer(expander, _KEYS)
    completer = TeamCompleter(expander)
    budgets = LoneBudgets()
    root = budgets.listed(completer.completed(includer.merged(parsed.root)))
    values = expander.mapping(root)
    problems = [*parsed.problems, *includer.problems, *completer.problems, *expander.problems]
    checked = check_sections(values, root)
    problems.extend(_without_repetitions(checked.problems, problems))
    warnings = list(expander.warnings)
    if checked.config is not None and includer.complete:
        context = CheckContext(checked.config, root, expander.referenced, frozenset(each.path for each in problems))
        for check in (check_between_sections, check_team_keys, check_limits, check_answer_cache, check_plugins):
            problems.extend(_without_repetitions(check(context), problems))
        warnings.extend((*doubtful_settings(context), *doubtful_limits(context)))
    sources = Sources(files.hashes, files.patterns)
    if checked.config is None or not includer.complete:
        return LoadResult(None, budgets.as_written(problems), sources)
    tls = checked.config.server.tls
    pair = None if tls is None else (tls.cert, tls.key)
    certificates = read_certificates(_ca_files(checked.config), pair, root, files)
    problems.extend(certificates.problems)
    warnings.extend(certificates.warnings)
    own = {pathlib.Path(name): hashlib.sha256(text.encode()).hexdigest()}
    table = Loaded(
        config=checked.config,
        files=files.paths,
        digest=digest({**own, **files.hashes}),
        warnings=tuple(sorted(set(budgets.as_written(warnings)))),
        authorities=certificates.authorities,
        pair=certificates.pair,
        locate=partial(value_position, root),
        sources=sources,
        copies=files.copies(),
        referenced=frozenset(expander.referenced),
        ledger=_ledger(checked.config, name, main),
        payloads=_payloads(checked.config, main or pathlib.Path(name)),
        as_written=budgets.as_written,
    )
    return LoadResult(table, budgets.as_written(problems), sources)


def _ledger(config: GatewayConfig, name: str, main: pathlib.Path | None) -> LedgerLocation | None:
    section = config.server.ledger
    by_default = main is not None and bool(config.teams)
    return section.place(main or pathlib.Path(name)) if section.url is not None or by_default else None


def _payloads(config: GatewayConfig, table: pathlib.Path) -> PayloadLogSettings | None:
    section = config.server.payload_log
    return None if section is None else section.place(table)


def _ca_files(config: GatewayConfig) -> Iterator[tuple[Path, str]]:
    for path, level in levels(config):
        if level.ca_file:
            yield (*path, "ca_file"), level.ca_file
        if level.credentials is not None and level.credentials.oidc is not None and level.credentials.oidc.ca_file:
            yield (*path, "credentials", "oidc", "ca_file"), level.credentials.oidc.ca_file


def _not_a_mapping(root: Node | None, name: str) -> Problem:
    if root is None or (isinstance(root, ScalarNode) and root.kind == "null"):
        return _file_problem(name, _EMPTY)
    return Problem.at(root.at, (), "expected a mapping with `version: 1`, vendors and models")


def _without_repetitions(found: tuple[Problem, ...], earlier: list[Problem]) -> list[Problem]:
    """Return the problems at positions without an earlier problem. At such a position a later step only repeats the
    first."""
    taken = {(each.file, each.line, each.column) for each in earlier}
    return [each for each in found if (each.file, each.line, each.column) not in taken]
