"""`dragoman usage`: show the usage of teams from the ledger of a configuration. The ledger is read and not changed."""

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from config.load_config import Loaded
from config.problem import did_you_mean, shown
from config.sections.server_section import AdminSection
from proxy.cli.terminal import USAGE, CommandError, Style, paint
from proxy.cli.usage.known_table import known_table
from proxy.cli.usage.limits_command import fetched
from proxy.ledger.ledger_settings import LedgerError, LedgerSettings, ledger_settings
from proxy.ledger.ledger_store import LedgerReader
from proxy.ledger.open_ledger import open_reader
from proxy.ledger.usage_query import UsageQuery, UsageQueryError, usage_query
from proxy.ledger.usage_report import (
    UsageReport,
    count_unloaded_rows,
    loaded_note,
    usage_csv,
    usage_json,
    usage_report,
    usage_table,
)
from proxy.process.load_table import Source

NO_LEDGER: Final = (
    "the configuration has no ledger: it is disabled, or there are no teams. Configure it, such as "
    "`server: {ledger: sqlite:ledger.db}`"
)


TIMEOUT_SECONDS: Final = 1.0
"""The maximum seconds to wait for a running gateway to report its waiting rows."""


@dataclass(frozen=True, slots=True)
class UsageOptions:
    """The options of the command line: dimensions separated by commas, the start, and the team (`None`: all)."""

    by: str
    since: str
    team: str | None = None


def usage(source: Source, options: UsageOptions, show: Callable[[UsageReport], None]) -> int:
    """Show the report. Raises CommandError if there is no ledger, if it cannot be read, or if the team is unknown."""
    table = known_table(source)
    settings = _settings(table)
    query = _query(options, settings.zone)
    try:
        reader = open_reader(settings)
        try:
            waiting = max(count_unloaded_rows(reader, settings), _reported_waiting(table.config.server.admin, settings))
            report = usage_report(reader, query, waiting)
            if not report.lines and query.team is not None and query.team not in table.config.teams:
                _check_team_has_rows(reader, query, query.team, table.config.teams)
        finally:
            reader.close()
    except LedgerError as error:
        raise CommandError(str(error)) from None
    show(report)
    return 0


def _reported_waiting(admin: AdminSection, settings: LedgerSettings) -> int:
    """Return the number of waiting rows that the running gateway reports. Only the running gateway knows the rows that
    it could not write to its journal. Return 0 if no gateway with this ledger responds."""
    try:
        found = json.loads(fetched(admin, admin.port, "/status", TIMEOUT_SECONDS)[1])
    except (CommandError, ValueError):
        return 0
    if not isinstance(found, dict):
        return 0
    ledger, waiting = str(found.get("ledger")), found.get("ledger_rows_waiting")
    places = (settings.place, str(Path(settings.place).absolute()))
    ours = any(ledger.startswith(f"{place}, ") for place in places)
    return waiting if ours and isinstance(waiting, int) else 0


def _check_team_has_rows(reader: LedgerReader, query: UsageQuery, team: str, known: Iterable[str]) -> None:
    """Raise CommandError for a team that is not in the configuration and has no rows. A former team has rows, but
    maybe none in the requested period."""
    if not reader.usage(replace(query, by=("team",), since=0, day=None)):
        meant = did_you_mean(team, known)
        raise CommandError(f"no team {shown(team)} in the configuration, and the ledger has no row of it{meant}")


def _settings(table: Loaded) -> LedgerSettings:
    if table.ledger is None:
        raise CommandError(NO_LEDGER)
    return ledger_settings(table.ledger, table.config.server.timezone)


def _query(options: UsageOptions, zone: str) -> UsageQuery:
    """Return the query. A team that is no longer in the configuration keeps its rows, so any team name is allowed."""
    by = [name.strip() for name in options.by.split(",") if name.strip()]
    try:
        return usage_query(by, options.since, options.team, zone, round(time.time() * 1000))
    except UsageQueryError as error:
        raise CommandError(f"--{error}", USAGE) from None


def show_table(report: UsageReport) -> None:
    """Print the report as a table. Print to stderr the time up to which the ledger is loaded."""
    heads, *rows = usage_table(report)
    print(paint(heads, Style.BOLD))
    for row in rows:
        print(row)
    print(paint(loaded_note(report), Style.DIM, sys.stderr), file=sys.stderr)


def show_csv(report: UsageReport) -> None:
    """Print the report as CSV."""
    print(usage_csv(report), end="")


def show_json(report: UsageReport) -> None:
    """Print the report as a JSON object."""
    print(usage_json(report).decode(), end="")


FORMS: Final[Mapping[str, Callable[[UsageReport], None]]] = {"table": show_table, "csv": show_csv, "json": show_json}
