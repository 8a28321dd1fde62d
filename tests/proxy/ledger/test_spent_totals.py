"""The sums of periods, kept up to date: always those that adding up the rows gives."""

import random
from collections.abc import Mapping, Sequence

from proxy.ledger import spent_totals
from proxy.ledger.ledger_row import Journaled
from proxy.ledger.ledger_settings import LedgerSettings
from proxy.ledger.ledger_store import Amounts
from proxy.ledger.open_ledger import open_reader, open_store
from proxy.ledger.spent_totals import SLOT, SpentTotals
from tests.proxy.ledger.kit import NOON, journaled

NOW = NOON // 1000
HOUR = 3600


def added_up(rows: Sequence[Journaled], start: int) -> dict[str, Amounts]:
    """What teams used from a time on, by the rows."""
    sums: dict[str, Amounts] = {}
    for _, row in rows:
        if row.time >= start * 1000:
            requests, tokens, cost = sums.get(f"team {row.team}", (0, 0, 0))
            used = (row.tokens_in or 0) + (row.tokens_out or 0)
            sums[f"team {row.team}"] = requests + 1, tokens + used, cost + (row.cost or 0)
    return sums


def teams(sums: Mapping[str, Amounts]) -> dict[str, Amounts]:
    return {scope: each for scope, each in sums.items() if scope.startswith("team ") and " model " not in scope}


def test_the_sums_are_those_of_the_rows_whenever_they_come_in(settings: LedgerSettings) -> None:
    """Also of rows that come in hours late, and where hours and days begin meanwhile."""
    draw = random.Random(3)
    store, reader = open_store(settings), open_reader(settings)
    totals = SpentTotals[str]()
    known: dict[str, dict[str, Amounts]] = {}
    starts: dict[str, int] = {}
    rows: list[Journaled] = []
    now = NOW
    for turn in range(60):
        now += draw.choice([1, 60, 900, 2700])
        late = draw.choice([0, 0, 0, 1800, 3 * HOUR, 30 * HOUR])
        new = [
            journaled(100 * turn + number, (now - late - draw.randrange(60)) * 1000, f"t{draw.randrange(3)}")
            for number in range(draw.randrange(4))
        ]
        store.add(new)
        rows += new
        periods = {"hour": (now - now % HOUR, 0), "day": (now - now % (24 * HOUR), 0), "month": (NOW - 12 * HOUR, 0)}
        news = totals.refresh(reader, periods, now)
        for period, (start, _) in periods.items():
            if starts.get(period) != start:
                starts[period], known[period] = start, {}
            known[period].update(teams(news.sums[period]))
            assert known[period] == added_up(rows, start), (turn, period)
    reader.close()
    store.close()


def test_only_what_changed_is_told(settings: LedgerSettings) -> None:
    store, reader = open_store(settings), open_reader(settings)
    totals = SpentTotals[str]()
    store.add([journaled(1), journaled(2, NOON, "data")])
    periods = {"day": (NOW - 12 * HOUR, NOW + 12 * HOUR)}
    assert set(teams(totals.refresh(reader, periods, NOW).sums["day"])) == {"team search", "team data"}
    assert totals.refresh(reader, periods, NOW).sums == {"day": {}}
    store.add([journaled(3, NOON + 1)])
    news = totals.refresh(reader, periods, NOW)
    assert teams(news.sums["day"]) == {"team search": (2, 220, 42_000)}
    assert news.loaded == {"g1": 3}
    reader.close()
    store.close()


def test_few_slots_are_kept_however_long_it_runs(settings: LedgerSettings) -> None:
    store, reader = open_store(settings), open_reader(settings)
    totals = SpentTotals[str]()
    for number in range(1, 100):
        now = NOW + number * SLOT
        store.add([journaled(number, now * 1000)])
        totals.refresh(reader, {"month": (NOW - 12 * HOUR, 0)}, now)
    assert len({slot for _, slot in totals._slots}) <= 2 * spent_totals.RECENT + 1
    assert teams(totals._totals["month"])["team search"][0] == 99
    reader.close()
    store.close()


def test_without_periods_there_is_nothing_to_tell(settings: LedgerSettings) -> None:
    store, reader = open_store(settings), open_reader(settings)
    store.add([journaled(1)])
    assert SpentTotals[str]().refresh(reader, {}, NOW).sums == {}
    reader.close()
    store.close()
