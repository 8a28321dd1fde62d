"""Loads the configuration from its source and builds everything that serving it needs.

It reads files, but opens no connection and calls no vendor.
"""

import ssl
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal

from config.checks.expiry import expiry_warnings
from config.checks.open_listener import exposure_problems, exposure_warnings
from config.load_config import Loaded, LoadResult, Sources, examine_embedded, examine_file
from config.problem import ConfigError, Problem
from config.reading.table_files import DISK, Store
from config.sections.server_section import ServerSection
from providers.list_prices.list_prices import ListPrices
from proxy.listener.tls import listener_context
from proxy.plugins.load_plugins import NO_PLUGINS, Plugins, load_plugins
from proxy.process.table_checks.check_credentials import missing_credentials
from proxy.process.table_checks.check_hedges import idle_hedges
from proxy.process.table_checks.check_max_tokens import needed_limits
from proxy.process.table_checks.check_out_of_service import unserved_names
from proxy.process.table_checks.check_own_address import doubled_port, self_calls
from proxy.process.table_checks.check_payload_log import payload_log_warnings
from proxy.process.table_checks.check_prices import budgets_that_refuse_everything, missing_prices
from proxy.routing.snapshot import Snapshot, compile_table

LogForm = Literal["json", "text"]

EMBEDDED = (
    "no config file is given (-c FILE, or DRAGOMAN_CONFIG) and there is no table.yaml in this folder: this is the "
    "embedded configuration, which has only the mock vendor"
)
"""The warning about the embedded configuration."""


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A loaded configuration: its source values, the snapshot compiled from it, its warnings, the TLS of the listener,
    and the plugins."""

    loaded: Loaded
    snapshot: Snapshot
    warnings: tuple[Problem, ...]
    tls: ssl.SSLContext | None = None
    plugins: Plugins = field(default_factory=lambda: NO_PLUGINS)


_OTHER_SECTIONS: Final = frozenset({"defaults", "vendors", "models", "routes", "teams", "plugins"})
"""Sections that are not needed to know the address of the operator's listener and the location of the ledger."""


class TableRefused(ConfigError):
    """The refusal of a configuration that cannot be used. `sources` are the files it was read from; a change of any of
    them may correct it. `warnings` concern the parts of the configuration that could be read."""

    def __init__(self, problems: Iterable[Problem], sources: Sources, warnings: tuple[Problem, ...] = ()) -> None:
        super().__init__(problems)
        self.sources = sources
        self.warnings = warnings


@dataclass(frozen=True, slots=True)
class Source:
    """The source of the configuration: a file, or the embedded configuration if `path` is `None`.

    `host` and `port` come from the command line and override the config file. `insecure_open` permits a configuration
    without teams beyond loopback. `wall` returns unix seconds, by which keys and certificates expire. `found` describes
    how the file was found if the command line does not name it. `log` is the log format if the config file sets no
    format. `workers` is the number of processes that serve, which overrides the config file; it is `None` until the
    number is decided.
    `counted` is true if `workers` is the number of cores.
    """

    path: Path | None
    env: Mapping[str, str]
    insecure_open: bool = False
    host: str | None = None
    wall: Callable[[], float] = time.time
    port: int | None = None
    found: str = ""
    log: LogForm = "json"
    workers: int | None = None
    counted: bool = False

    @property
    def title(self) -> str:
        """The configuration's name in the log: its absolute path and how the file was found."""
        if self.path is None:
            return "the embedded configuration"
        return f"{self.path.absolute()}{f' ({self.found})' if self.found else ''}"

    def load_to_serve(self, store: Store = DISK) -> LoadedTable:
        """Load and build the configuration, for commands that serve. This also checks that credentials are there, and
        that no deployment is this gateway itself. Raises TableRefused with every problem."""
        examined = self._examined(store)
        table, problems = self._built(examined)
        if table is None:
            raise TableRefused(problems, examined.sources)
        found = missing_credentials(table.loaded, table.snapshot, self.env)
        problems += _unreported([*found.problems, *self._own_addresses(table, problems)], problems)
        expiring = expiry_warnings(table.loaded, self.wall())
        needed = needed_limits(table.loaded, table.snapshot) if not _concerns(problems, "max_output_tokens") else ()
        exposed = exposure_warnings(table.loaded, self.host, self.insecure_open)
        unwritten = payload_log_warnings(table.loaded)
        unserved = unserved_names(table.loaded, table.snapshot)
        hedges = idle_hedges(table.loaded, table.snapshot)
        warnings = (*table.warnings, *found.warnings, *needed, *expiring, *exposed, *unwritten, *unserved, *hedges)
        if problems:
            raise TableRefused(problems, examined.sources, tuple(_unreported(warnings, problems)))
        return replace(table, warnings=warnings)

    def load(self, store: Store = DISK) -> LoadedTable:
        """Load and build the configuration, for commands that call no vendor. Raises TableRefused with every
        problem."""
        examined = self._examined(store)
        table, problems = self._built(examined)
        if table is None or problems:
            raise TableRefused(problems, examined.sources)
        return table

    def load_for_queries(self, store: Store = DISK) -> tuple[Loaded, tuple[Problem, ...]]:
        """Load the configuration for commands that only query gateways or their files; they only need `server`. Return
        the configuration with the problems in other sections, for example in a file of keys that another program
        writes. Raises TableRefused with every problem if one concerns the needed sections."""
        examined = self._examined(store)
        if examined.table is None or any(
            each.path.partition(".")[0] not in _OTHER_SECTIONS for each in examined.problems
        ):
            raise TableRefused(examined.problems, examined.sources)
        return examined.table, examined.problems

    def _examined(self, store: Store) -> LoadResult:
        return examine_embedded(self.env) if self.path is None else examine_file(self.path, self.env, store)

    def _built(self, examined: LoadResult) -> tuple[LoadedTable | None, list[Problem]]:
        """Return the built configuration and the problems. Use the configuration only if there are no problems; it is
        `None` if nothing can be built."""
        if examined.table is None:
            return None, list(examined.problems)
        loaded = self.with_settings(examined.table)
        problems = [*examined.problems, *exposure_problems(loaded, self.host, self.insecure_open)]
        tls = listener_context(loaded)
        if isinstance(tls, Problem):
            problems.append(tls)
        compiled = compile_table(loaded, ListPrices(datetime.fromtimestamp(self.wall(), UTC).date()))
        problems += _unreported(compiled.problems, problems)
        plugins, faults = load_plugins(loaded)
        problems += _unreported(faults, problems)
        warnings = loaded.warnings
        if not problems:
            problems += budgets_that_refuse_everything(loaded, compiled.snapshot)
            warnings = (*warnings, *missing_prices(loaded, compiled.snapshot))
        context = None if isinstance(tls, Problem) else tls
        return LoadedTable(loaded, compiled.snapshot, warnings, context, plugins), problems

    def _own_addresses(self, table: LoadedTable, known: Sequence[Problem]) -> tuple[Problem, ...]:
        """Return the problems of the listeners' addresses; no problems if one of the addresses has already been
        refused."""
        if _refused_listeners(table.loaded.config.server, known):
            return ()
        return (
            *self_calls(table.loaded, table.snapshot, self.host, self.port),
            *doubled_port(table.loaded, self.host, self.port),
        )

    def with_settings(self, loaded: Loaded) -> Loaded:
        """Return the configuration with this source's log format, if the config file sets none, and with this source's
        number of processes, if that is decided."""
        server = loaded.config.server
        form_unset = "form" not in server.log.model_fields_set
        settled: dict[str, object] = {"log": server.log.model_copy(update={"form": self.log})} if form_unset else {}
        if self.workers is not None:
            settled["workers"] = self.workers
        server = server.model_copy(update=settled)
        return replace(loaded, config=loaded.config.model_copy(update={"server": server}))


def _refused_listeners(server: ServerSection, problems: Sequence[Problem]) -> bool:
    """Return whether a listener's address was set and refused, so that `server` has the default instead."""
    known = {each.path for each in problems}
    written = {"server": server, "server.admin": server.admin}
    refused = (
        f"{path}.{key}" in known and key not in section.model_fields_set
        for path, section in written.items()
        for key in ("host", "port")
    )
    return any(refused) or not known.isdisjoint(written)


def _concerns(problems: Sequence[Problem], key: str) -> bool:
    """Return whether a setting of this name was refused, so that the configuration has the default instead."""
    return any(each.path.rpartition(".")[2] == key for each in problems)


def _unreported(found: Sequence[Problem], earlier: Sequence[Problem]) -> list[Problem]:
    """Return the problems in `found`, except the problems whose path, or a path below it, already has a problem in
    `earlier`."""
    return [new for new in found if not any(f"{old.path}.".startswith(f"{new.path}.") for old in earlier)]
