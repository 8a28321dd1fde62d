"""`dragoman usage`: show what teams used, from the ledger of a table, which it reads and does not change."""

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
from proxy.cli.terminal import USAGE, CommandError, Ink, paint
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
    "the table has no ledger: it is switched off, or there are no teams. Say where it is, such as "
    "`server: {ledger: sqlite:ledger.db}`"
)


SECONDS: Final = 1.0
"""For a gateway that may run to say what waits."""


@dataclass(frozen=True, slots=True)
class UsageOptions:
    """What the command line asks for: dimensions between commas, since when, and of which team (None: of all)."""

    by: str
    since: str
    team: str | None = None


def usage(source: Source, options: UsageOptions, show: Callable[[UsageReport], None]) -> int:
    """Show the report. Raises CommandError where there is no ledger, or it cannot be read, or nobody knows the team."""
    table = known_table(source)
    settings = _settings(table)
    query = _query(options, settings.zone)
    try:
        reader = open_reader(settings)
        try:
            waiting = max(count_unloaded_rows(reader, settings), _told_waiting(table.config.server.admin, settings))
            report = usage_report(reader, query, waiting)
            if not report.lines and query.team is not None and query.team not in table.config.teams:
                _must_have_rows(reader, query, query.team, table.config.teams)
        finally:
            reader.close()
    except LedgerError as error:
        raise CommandError(str(error)) from None
    show(report)
    return 0


def _told_waiting(admin: AdminSection, settings: LedgerSettings) -> int:
    """Return how many rows wait by the word of the gateway that runs: it alone knows of those that it could not write
    to its journal. 0 where no gateway with this ledger answers."""
    try:
        found = json.loads(fetched(admin, admin.port, "/status", SECONDS)[1])
    except (CommandError, ValueError):
        return 0
    if not isinstance(found, dict):
        return 0
    ledger, waiting = str(found.get("ledger")), found.get("ledger_rows_waiting")
    places = (settings.place, str(Path(settings.place).absolute()))
    ours = any(ledger.startswith(f"{place}, ") for place in places)
    return waiting if ours and isinstance(waiting, int) else 0


def _must_have_rows(reader: LedgerReader, query: UsageQuery, team: str, known: Iterable[str]) -> None:
    """Raise CommandError for a team that the table does not have and never had: one that it had has rows, though none
    of the time that is asked for."""
    if not reader.usage(replace(query, by=("team",), since=0, day=None)):
        meant = did_you_mean(team, known)
        raise CommandError(f"no team {shown(team)} in the table, and no row of it in the ledger{meant}")


def _settings(table: Loaded) -> LedgerSettings:
    if table.ledger is None:
        raise CommandError(NO_LEDGER)
    return ledger_settings(table.ledger, table.config.server.timezone)


def _query(options: UsageOptions, zone: str) -> UsageQuery:
    """Return the query. A team that the table no longer has keeps its rows, so any name may be asked for."""
    by = [name.strip() for name in options.by.split(",") if name.strip()]
    try:
        return usage_query(by, options.since, options.team, zone, round(time.time() * 1000))
    except UsageQueryError as error:
        raise CommandError(f"--{error}", USAGE) from None


def show_table(report: UsageReport) -> None:
    """Print the report for people, and how far the ledger is loaded."""
    heads, *rows = usage_table(report)
    print(paint(heads, Ink.BOLD))
    for row in rows:
        print(row)
    print(paint(loaded_note(report), Ink.DIM, sys.stderr), file=sys.stderr)


def show_csv(report: UsageReport) -> None:
    """Print the report for spreadsheets."""
    print(usage_csv(report), end="")


def show_json(report: UsageReport) -> None:
    """Print the report as a JSON object."""
    print(usage_json(report).decode(), end="")


FORMS: Final[Mapping[str, Callable[[UsageReport], None]]] = {"table": show_table, "csv": show_csv, "json": show_json}
