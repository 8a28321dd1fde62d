"""Reports of usage as text, as CSV for spreadsheets, and as JSON, and the responses of `GET /usage`.

A team that uses its own key gets only its own usage.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl

import orjson

from proxy.ledger.journal_files import journal_files
from proxy.ledger.ledger_row import read_line
from proxy.ledger.ledger_settings import LedgerSettings
from proxy.ledger.ledger_store import LedgerReader, UsageLine
from proxy.ledger.rollups import SLOT_MS, UsageSums
from proxy.ledger.usage_query import DEFAULT_BY, DEFAULT_SINCE, UsageQuery, UsageQueryError, usage_query
from proxy.limits.limit import NANO

MAX_LINES: Final = 10_000
"""The most lines of a report over HTTP. The rest is summed up in one more line."""

REST_LABEL: Final = "…"

_TAIL: Final = 64 << 10


@dataclass(frozen=True, slots=True)
class UsageReport:
    """The ordered lines of a report, their total, and the state of the ledger: `newest` is the time of the newest row
    in ms, and `waiting` is how many rows of the local journals wait. `total` counts each request once, even if it has
    several tags."""

    query: UsageQuery
    lines: Sequence[UsageLine]
    total: UsageSums
    newest: int | None
    waiting: int = 0


def usage_report(reader: LedgerReader, query: UsageQuery, waiting: int = 0) -> UsageReport:
    """Read a report. Lines with a day are ordered by day, other lines by cost. Blocks. Raises LedgerError."""
    found = reader.usage(query)
    total = UsageSums()
    for line in found:
        total = total.plus(line.sums)
    if "tag" in query.by:
        found = _by_tag(found, query.by.index("tag"))
    days = [position for position, name in enumerate(query.by) if name == "day"]

    def order(line: UsageLine) -> tuple[object, ...]:
        sums = line.sums
        return (*(line.group[day] for day in days), -sums.cost, -sums.tokens_in - sums.tokens_out, line.group)

    return UsageReport(query, sorted(found, key=order), total, reader.newest(), waiting)


def _by_tag(lines: Sequence[UsageLine], position: int) -> list[UsageLine]:
    """Return a line for each tag instead of each set of tags."""
    sums: dict[tuple[str, ...], UsageSums] = {}
    for line in lines:
        tags = orjson.loads(line.group[position]) if line.group[position] else {}
        for tag in [f"{name}={value}" for name, value in tags.items()] or [""]:
            group = (*line.group[:position], tag, *line.group[position + 1 :])
            known = sums.get(group)
            sums[group] = line.sums if known is None else known.plus(line.sums)
    return [UsageLine(group, each) for group, each in sums.items()]


def count_waiting_rows(folder: Path, loaded: Mapping[str, int]) -> int:
    """Return how many rows of the journals in a folder are not in the database yet, by the numbers of the last rows."""
    last = {each.process: each for each in journal_files(folder)}
    waiting = 0
    for process, file in last.items():
        try:
            with file.path.open("rb") as reading:
                size = reading.seek(0, io.SEEK_END)
                reading.seek(max(0, size - _TAIL))
                lines = reading.read().splitlines()
        except OSError:  # It was loaded in the meantime, or this user may not read it.
            continue
        waiting += max(0, _last_number(lines, process) - loaded.get(process, 0))
    return waiting


def count_unloaded_rows(reader: LedgerReader, settings: LedgerSettings) -> int:
    """Return how many rows of a gateway's journals are not in its ledger yet, 0 if this user may not read the folder.
    Blocks. Raises LedgerError."""
    loaded = reader.spent_since(_NEVER).loaded
    try:
        return count_waiting_rows(settings.journals, loaded)
    except OSError:
        return 0


_NEVER: Final = (1 << 52) // SLOT_MS
"""A slot so late that no row is in it."""


def _last_number(lines: Sequence[bytes], process: str) -> int:
    for line in reversed(lines):
        try:
            return read_line(line, process).sequence
        except ValueError:  # Half a line, or a line of another version.
            continue
    return 0


# Forms --------------------------------------------------------------------------------------------------------------

_HEADS: Final = ("REQUESTS", "ERRORS", "TOKENS IN", "CACHED", "SHARE", "TOKENS OUT", "REASONING", "COST USD")


def usd(nano: int) -> str:
    """Return billionths of a USD as USD text, so exact that the lines of a report add up to its total. From one USD on,
    the text is exact to the cent; below one USD, to the hundredth of a cent; below one cent, it has all digits."""
    whole = nano / NANO
    if nano >= NANO or not nano:
        return f"{whole:,.2f}"
    return f"{whole:.4f}" if nano >= NANO // 100 else f"{whole:.9f}".rstrip("0")


def usage_table(report: UsageReport) -> list[str]:
    """Return the report as aligned lines, with the heads first and the total last."""
    by = report.query.by
    rows = [[shown(each) or "-" for each in line.group] + _cells(line.sums) for line in report.lines]
    if by:
        rows.append(["TOTAL", *[""] * (len(by) - 1), *_cells(report.total)])
    heads = [*(name.upper() for name in by), *_HEADS]
    if report.total.unpriced:
        heads.append("NO PRICE")
    else:
        rows = [row[:-1] for row in rows]
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    return [
        "  ".join(
            cell.ljust(width) if column < len(by) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (heads, *rows)
    ]


def _cells(sums: UsageSums) -> list[str]:
    before = (sums.requests, sums.errors, sums.tokens_in, sums.tokens_cached)
    share = f"{sums.tokens_cached / sums.tokens_in:.1%}" if sums.tokens_in else "-"
    after = (sums.tokens_out, sums.tokens_reasoning)
    numbers = [*(f"{count:,}" for count in before), share, *(f"{count:,}" for count in after)]
    cost = sums.known_cost
    return [*numbers, "-" if cost is None else usd(cost), f"{sums.unpriced:,}"]


def shown(text: str) -> str:
    """Return a client's text without the control characters that a terminal would interpret."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def loaded_note(report: UsageReport) -> str:
    """Return a note with the time up to which the ledger is loaded, and the number of requests that are not loaded
    yet."""
    if report.newest is None:
        so_far = "the ledger has no rows yet"
    else:
        so_far = f"loaded to {datetime.fromtimestamp(report.newest // 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return (
        so_far if not report.waiting else f"{so_far}; {report.waiting:,} requests in the journals are not counted yet"
    )


def usage_csv(report: UsageReport) -> str:
    """Return the report as CSV without a total. The cost is in USD with nine digits, and empty if it is not known."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*report.query.by, *(name for name in UsageSums._fields if name != "cost"), "cost_usd"])
    for line in report.lines:
        numbers = [number for name, number in zip(UsageSums._fields, line.sums, strict=True) if name != "cost"]
        writer.writerow([*(_inert(shown(each)) for each in line.group), *numbers, _exact(line.sums.known_cost)])
    return out.getvalue()


def _inert(text: str) -> str:
    """Return a client's text in a form that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@"} else text


def _exact(nano: int | None) -> str:
    return "" if nano is None else f"{nano // NANO}.{nano % NANO:09}"


def usage_json(report: UsageReport) -> bytes:
    """Return the report as a JSON object. `cost_usd` is null if no price is known."""
    query = report.query
    lines = report.lines
    if len(lines) > MAX_LINES:
        rest = UsageSums()
        for line in lines[MAX_LINES:]:
            rest = rest.plus(line.sums)
        lines = [*lines[:MAX_LINES], UsageLine((REST_LABEL,) * len(query.by), rest)]
    return orjson.dumps(
        {
            "by": query.by,
            "since": _stamp(query.since),
            "zone": query.zone,
            "team": query.team,
            "loaded_to": None if report.newest is None else _stamp(report.newest),
            "waiting": report.waiting,
            "usage": [{**dict(zip(query.by, line.group, strict=True)), **_json_fields(line.sums)} for line in lines],
            "total": _json_fields(report.total),
        },
        option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE,
    )


def _json_fields(sums: UsageSums) -> dict[str, int | float | None]:
    fields: dict[str, int | float | None] = dict(zip(UsageSums._fields, sums, strict=True))
    del fields["cost"]
    cost = sums.known_cost
    return {**fields, "cost_usd": None if cost is None else cost / NANO}


def _stamp(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


# Over HTTP ----------------------------------------------------------------------------------------------------------

_PARAMETERS: Final = frozenset({"by", "since", "team"})


@dataclass(frozen=True, slots=True)
class UsageResponse:
    """The status and the JSON body of a response of `GET /usage`. A refusal also has a code and a message, for surfaces
    with their own error envelope."""

    status: int
    body: bytes
    code: str = ""
    message: str = ""


def parse_usage_query(query_string: str, zone: str, now: int, own: str | None = None) -> UsageQuery | UsageResponse:
    """Return the query of a query string, or the response that refuses it. `own` is the team of the request's key."""
    try:
        given = dict(parse_qsl(query_string[:2000], max_num_fields=8))
        if unknown := given.keys() - _PARAMETERS:
            raise UsageQueryError(f"{min(unknown)[:40]!r} is none of by, since, team")
        if own is not None and given.get("team", own) != own:
            return usage_refusal(403, "A team's key shows the usage of that team only.")
        by = given["by"].split(",") if "by" in given else DEFAULT_BY
        return usage_query(by, given.get("since", DEFAULT_SINCE), own or given.get("team"), zone, now)
    except ValueError as error:
        return usage_refusal(400, f"{error}.")


def usage_refusal(status: int, message: str) -> UsageResponse:
    """Return a refusal."""
    code = _CODES[status]
    return UsageResponse(status, orjson.dumps({"error": {"message": message, "code": code}}), code, message)


_CODES: Final = {400: "invalid_value", 403: "model_not_allowed", 404: "not_found", 503: "overloaded"}
