"""Configurations of one team with a budget and a ledger, and requests of that team."""

import threading
from pathlib import Path

from proxy.ledger.ledger_settings import LedgerSettings
from proxy.ledger.open_ledger import open_reader
from proxy.process.load_table import LoadedTable, Source
from proxy.request_record import RequestRecord
from tests.proxy.ledger.kit import record

TABLE = """\
version: 1
server: {LINES}
vendors: {mock: {}}
models: {mock/echo: {price: {input: 1, output: 1}}}
teams:
  search:
    keys: ["sha256:8d1562f0bd6ad3a9fe3de5779174fe8878e98cb4e5a88c0efe0ff9ea13fa8e71"]
    models: ["*"]
    limits: {requests_per_minute: 600}
    budget: {usd: 0.01, per: day}
    tags: {cost_center: "4711"}
"""


def table(folder: Path, lines: str = "port: 0") -> LoadedTable:
    """Return a configuration in `folder` with `lines` in its `server` section."""
    path = folder / "table.yaml"
    path.write_text(TABLE.replace("LINES", lines), encoding="utf-8")
    return Source(path, {}).load()


def spent(tokens: int) -> RequestRecord:
    """Return a completed request of the team, at 0.15 millionths of a USD a token."""
    return record("search", tokens)


def sums(settings: LedgerSettings) -> tuple[int, int]:
    """Return the number of the team's requests in the ledger, and their cost in billionths of a USD."""
    reader = open_reader(settings)
    try:
        found = [each for each in reader.spent_since(0).spent if each.scope == "team search"]
    finally:
        reader.close()
    return sum(each.requests for each in found), sum(each.cost for each in found)


def ledger_threads() -> list[str]:
    return [each.name for each in threading.enumerate() if each.name.startswith("ledger")]
