"""The sums of periods, updated step by step: they always equal the sums over the rows."""

import random
from collections.abc import Mapping, Sequence

from proxy.ledger import spent_totals
from proxy.ledger.ledger_row import JournalRow
from proxy.ledger.ledger_settings import LedgerSettings
from proxy.ledger.ledger_store import Amounts
from proxy.ledger.open_ledger import open_reader, open_store
from proxy.ledger.spent_totals import SLOT_SECONDS, SpentTotals, UserTotals, recent_slot
from proxy.limits.limit import user_scope
from tests.proxy.ledger.kit import NOON, journaled

NOW = NOON // 1000
HOUR = 3600


def added_up(rows: Sequence[JournalRow], start: int) -> dict[str, Amounts]:
    """Return the usage of teams since a time, summed over the rows."""
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
    """This also holds for rows that arrive hours late, and if hours and days begin meanwhile."""
    draw = random.Random(3)
    store, reader = open_store(settings), open_reader(settings)
    totals = SpentTotals[str]()
    known: dict[str, dict[str, Amounts]] = {}
    starts: dict[str, int] = {}
    rows: list[JournalRow] = []
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
        now = NOW + number * SLOT_SECONDS
        store.add([journaled(number, now * 1000)])
        totals.refresh(reader, {"month": (NOW - 12 * HOUR, 0)}, now)
    assert len({slot for _, slot in totals._slots}) <= 2 * spent_totals.RECENT_SLOTS + 1
    assert teams(totals._totals["month"])["team search"][0] == 99
    reader.close()
    store.close()


def test_without_periods_there_is_nothing_to_tell(settings: LedgerSettings) -> None:
    store, reader = open_store(settings), open_reader(settings)
    store.add([journaled(1)])
    assert SpentTotals[str]().refresh(reader, {}, NOW).sums == {}
    reader.close()
    store.close()


def test_the_sums_of_users_are_those_of_the_rows_from_when_each_is_first_seen(settings: LedgerSettings) -> None:
    """This also holds if users are forgotten and seen again, for late rows, and if hours begin meanwhile."""
    draw = random.Random(5)
    store, reader = open_store(settings), open_reader(settings)
    totals, users = SpentTotals[str](), UserTotals[str]()
    names = [f"u{number}" for number in range(6)]
    rows: list[tuple[str, JournalRow]] = []
    known: dict[tuple[str, str], tuple[int, Amounts]] = {}
    now = NOW
    for turn in range(80):
        now += draw.choice([1, 60, 900, 2700])
        late = draw.choice([0, 0, 0, 1800, 3 * HOUR, 30 * HOUR])
        for number in range(draw.randrange(6)):
            name = draw.choice(names)
            each = journaled(100 * turn + number, (now - late - draw.randrange(60)) * 1000)
            rows.append((name, JournalRow(each.sequence, each.row._replace(user_name=name))))
            store.add([rows[-1][1]])
        periods = {"hour": (now - now % HOUR, 0), "day": (now - now % (24 * HOUR), 0), "month": (NOW - 12 * HOUR, 0)}
        starts = {period: start // SLOT_SECONDS for period, (start, _) in periods.items()}
        news = totals.refresh(reader, periods, now, users.batch if len(users) else None)
        found, stale = users.follow(news.users, news.batch, starts, now)
        users.forget({*stale, user_scope("search", draw.choice(names))})
        seen = [scope for name in draw.sample(names, 2) if (scope := user_scope("search", name)) not in users]
        base = reader.users_from(seen, list(starts.values()), recent_slot(now)) if seen else None
        for sums in (found, {} if base is None else users.begin(seen, base, starts, now)):
            for period, of_users in sums.items():
                known.update({(period, scope): (starts[period], amounts) for scope, amounts in of_users.items()})
        for name in names:
            if (scope := user_scope("search", name)) in users:
                for period, (start, _) in periods.items():
                    began, amounts = known[period, scope]
                    of_user = added_up([row for named, row in rows if named == name], start).get("team search")
                    # A period that has begun since, without any row, has no sum yet. That counts as zero.
                    assert (amounts if began == starts[period] else (0, 0, 0)) == (of_user or (0, 0, 0)), (turn, period)
    assert len(rows) > 100
    reader.close()
    store.close()


def test_what_users_spent_is_read_for_those_alone_who_are_asked_for(settings: LedgerSettings) -> None:
    store, reader = open_store(settings), open_reader(settings)
    each = journaled()
    store.add(
        [JournalRow(number, each.row._replace(user_name=f"u{number}", id=b"%016d" % number)) for number in range(9)]
    )
    totals = SpentTotals[str]()
    assert not any(scope.startswith("user ") for scope in totals.refresh(reader, {"day": (0, 1)}, NOW).sums["day"])
    wanted = [user_scope("search", "u3"), user_scope("search", "nobody")]
    base = reader.users_from(wanted, [0], 0)
    assert [*base.totals[0]] == wanted[:1]
    assert {slot.scope for slot in base.recent} == set(wanted[:1])
    assert totals.refresh(reader, {"day": (0, 1)}, NOW).users == []
    reader.close()
    store.close()
