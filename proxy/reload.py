"""When the table is loaded again, and the order of steps: load whole, build whole, swap once.

Never swaps half a table; a bad one changes nothing, is logged with its position and counted.
"""

import asyncio
import logging
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from config.expiry import expiry_warnings
from config.exposure import exposure_problems, exposure_warnings
from config.files import DISK, Store
from config.loader import Examined, Loaded, Sources, examine_default, examine_file, fingerprint
from config.problems import ConfigError, Problem
from config.server import Server
from proxy.credentials.lacks import lacks
from proxy.metrics import Metrics
from proxy.needed_limits import needed_limits
from proxy.own_address import doubled_port, self_calls
from proxy.snapshot import Snapshot, compile_table
from proxy.tls import listener_context

LogForm = Literal["json", "text"]

WATCH_EVERY = 5.0
"""Seconds between looks at the files; polling sees the symlink swaps of Kubernetes volumes, which file events miss."""


EMBEDDED = (
    "no table is named (-c FILE, or DRAGOMAN_CONFIG) and there is no table.yaml in this folder: this is the embedded "
    "one, which has only the mock vendor"
)
"""What an operator has to know who is given the embedded table."""


@dataclass(frozen=True, slots=True)
class Table:
    """A loaded table: what was written, what it compiled to, what is hardly meant, and the listener's TLS."""

    loaded: Loaded
    snapshot: Snapshot
    warnings: tuple[Problem, ...]
    tls: ssl.SSLContext | None = None


class Refused(ConfigError):
    """A table that cannot be used, with what it was read from: a correction may come in any of it. `warnings` are of
    what could be read."""

    def __init__(self, problems: Iterable[Problem], sources: Sources, warnings: tuple[Problem, ...] = ()) -> None:
        super().__init__(problems)
        self.sources = sources
        self.warnings = warnings


@dataclass(frozen=True, slots=True)
class Source:
    """Where the table comes from: a file, or the embedded default without one. `insecure_open` permits an open table
    beyond loopback; `host` is the command line's word, which beats the file's. `wall` tells unix seconds, by which
    things expire; `port` is the command line's too. `found` says how the file was found where the command line does not
    name it; `log` is the form of the log where the file does not say."""

    path: Path | None
    env: Mapping[str, str]
    insecure_open: bool = False
    host: str | None = None
    wall: Callable[[], float] = time.time
    port: int | None = None
    found: str = ""
    log: LogForm = "json"

    @property
    def title(self) -> str:
        """Which table it is, in words."""
        if self.path is None:
            return "the embedded table"
        return f"{self.path.absolute()} ({self.found})" if self.found else str(self.path.absolute())

    def load_to_serve(self) -> Table:
        """Load and build, and look for the credentials that calls will need, and for calls that would come back. Raises
        Refused with every problem."""
        examined = self._examined(DISK)
        table, problems = self._built(examined)
        if table is None:
            raise Refused(problems, examined.sources)
        found = lacks(table.loaded, table.snapshot, self.env)
        problems += _news([*found.problems, *self._own_addresses(table, problems)], problems)
        ending = expiry_warnings(table.loaded, self.wall())
        needed = needed_limits(table.loaded, table.snapshot) if not _is_about(problems, "max_output_tokens") else ()
        exposed = exposure_warnings(table.loaded, self.host, self.insecure_open)
        warnings = (*table.warnings, *found.warnings, *needed, *ending, *exposed)
        if problems:
            raise Refused(problems, examined.sources, tuple(_news(warnings, problems)))
        return replace(table, warnings=warnings)

    def load(self, store: Store = DISK) -> Table:
        """Load and build, for what calls nobody. Raises Refused with every problem."""
        examined = self._examined(store)
        table, problems = self._built(examined)
        if table is None or problems:
            raise Refused(problems, examined.sources)
        return table

    def _examined(self, store: Store) -> Examined:
        return examine_default(self.env) if self.path is None else examine_file(self.path, self.env, store)

    def _built(self, examined: Examined) -> tuple[Table | None, list[Problem]]:
        """What can be built, sound only without problems; None where nothing can."""
        if examined.table is None:
            return None, list(examined.problems)
        loaded = self._with_log(examined.table)
        problems = [*examined.problems, *exposure_problems(loaded, self.host, self.insecure_open)]
        tls = listener_context(loaded)
        if isinstance(tls, Problem):
            problems.append(tls)
        compiled = compile_table(loaded)
        problems += _news(compiled.problems, problems)
        return Table(loaded, compiled.snapshot, loaded.warnings, None if isinstance(tls, Problem) else tls), problems

    def _own_addresses(self, table: Table, told: Sequence[Problem]) -> tuple[Problem, ...]:
        """What is wrong with them, unless one of them cannot be read."""
        if _unread_listeners(table.loaded.config.server, told):
            return ()
        return (
            *self_calls(table.loaded, table.snapshot, self.host, self.port),
            *doubled_port(table.loaded, self.host, self.port),
        )

    def _with_log(self, loaded: Loaded) -> Loaded:
        """The same, with a word on the form of the log."""
        config = loaded.config
        if "log" in config.server.model_fields_set:
            return loaded
        server = config.server.model_copy(update={"log": self.log})
        return replace(loaded, config=config.model_copy(update={"server": server}))


def _unread_listeners(server: Server, problems: Sequence[Problem]) -> bool:
    """Whether a listener's address was written and refused, so that the default stands in its place."""
    told = {each.path for each in problems}
    written = {"server": server, "server.admin": server.admin}
    refused = (
        f"{path}.{key}" in told and key not in section.model_fields_set
        for path, section in written.items()
        for key in ("host", "port")
    )
    return any(refused) or not told.isdisjoint(written)


def _is_about(problems: Sequence[Problem], key: str) -> bool:
    """Whether a setting of this name has been refused, so that what stands in its place was not written."""
    return any(each.path.rpartition(".")[2] == key for each in problems)


def _news(found: Sequence[Problem], earlier: Sequence[Problem]) -> list[Problem]:
    """Without the echoes: what is said of a place, when something at or below it has been found wrong before."""
    return [new for new in found if not any(f"{old.path}.".startswith(f"{new.path}.") for old in earlier)]


@dataclass(frozen=True, slots=True)
class Reloaded:
    """The result of one reload: the digest in force, and why the new table was refused."""

    digest: str
    problems: tuple[Problem, ...] = ()


class Reloader:
    """Reloads on request; one at a time, off the event loop. `take` puts a table in force."""

    def __init__(
        self, source: Source, table: Table, metrics: Metrics, take: Callable[[Table], Awaitable[None]]
    ) -> None:
        self._source = source
        self._table = table
        self._sources = table.loaded.sources
        self._metrics = metrics
        self._take = take
        self._lock = asyncio.Lock()
        self._wanted = asyncio.Event()
        self._log = logging.getLogger("dragoman")

    def request(self) -> None:
        """Ask for a reload, as a signal handler does."""
        self._wanted.set()

    async def run(self) -> None:
        """Serve requests for reloads, for ever."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            await self.reload()

    async def watch(self) -> None:
        """Look for ever at the files of the last table, taken or refused, and reload when they change."""
        tried: tuple[Sources, Mapping[Path, str]] | None = None
        while True:
            await asyncio.sleep(WATCH_EVERY)
            now = await asyncio.to_thread(fingerprint, self._sources)
            async with self._lock:
                # Somebody else may have loaded it meanwhile.
                sources = self._sources
                if now != sources.hashes and (sources, now) != tried:
                    tried = (sources, now)
                    await self._reload()

    async def reload(self) -> Reloaded:
        """Load and build the table again and swap it in; on any problem the old one stays."""
        async with self._lock:
            return await self._reload()

    async def _reload(self) -> Reloaded:
        try:
            table = await asyncio.to_thread(self._source.load_to_serve)
        except Refused as error:
            self._sources = error.sources
            self._metrics.reload_failed()
            for problem in error.problems:
                self._log.error("reload refused: %s", problem)
            return Reloaded(self._table.snapshot.digest, error.problems)
        if changed := _needs_restart(self._table.loaded.config.server, table.loaded.config.server):
            self._log.warning("changes that need a restart were not applied: %s", ", ".join(changed))
        self._table, self._sources = table, table.loaded.sources
        await self._take(table)
        self._metrics.reloaded(table.snapshot.digest)
        self._log.info("table %s in force", table.snapshot.digest[:12])
        for warning in table.warnings:
            self._log.warning("%s", warning)
        return Reloaded(table.snapshot.digest)


def _needs_restart(old: Server, new: Server) -> tuple[str, ...]:
    fixed = ("host", "port", "workers", "admin", "max_body", "limits", "shared", "watch", "log")
    times = ("drain_grace", "drain_timeout", "stall_limit")
    changed = [name for name in (*fixed, *times) if getattr(old, name) != getattr(new, name)]
    # Other files are taken as they come; whether there is TLS at all is the listener's.
    if (old.tls is None) != (new.tls is None):
        changed.append("tls")
    return tuple(f"server.{name}" for name in changed)
