"""Features of the server only: several gateways, partitions, restarts, versions, and another user's rights."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.ledger.ledger_row import LATEST_MS, JournalRow
from proxy.ledger.ledger_settings import LedgerError, LedgerRefusedError, LedgerSettings
from proxy.ledger.ledger_store import VERSION
from proxy.ledger.postgres_connection import PostgresConnection
from proxy.ledger.postgres_store import PostgresReader, PostgresStore
from proxy.ledger.usage_query import usage_query
from tests.proxy.ledger.kit import KEEP, NOON, journaled, ledger_at
from tests.support.postgres import RealPostgres

DAY = 86_400_000


@pytest.fixture
def ledger(postgres: RealPostgres, tmp_path: Path) -> LedgerSettings:
    return ledger_at(postgres.fresh_database(), KEEP, "UTC", tmp_path)


def partitions(settings: LedgerSettings) -> set[str]:
    link = PostgresConnection(settings.url, settings.place)
    found = link.rows("SELECT relname FROM pg_class WHERE relname ~ '^request_[0-9]{4}' AND relkind = 'r'")
    link.close()
    return {name for (name,) in found}


@pytest.mark.smoke
def test_loaders_of_several_gateways_add_to_the_same_sums(ledger: LedgerSettings) -> None:
    """Each transaction begins with the number of its batch, so that no two wait for each other."""
    failures: list[LedgerError] = []

    def load(gateway: str) -> None:
        try:
            store = PostgresStore(ledger)
            for turn in range(15):
                store.add([journaled(turn * 20 + number, NOON + number, gateway=gateway) for number in range(1, 21)])
            store.close()
        except LedgerError as error:
            failures.append(error)

    threads = [threading.Thread(target=load, args=(f"g{number}",)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []
    reader = PostgresReader(ledger)
    found = reader.spent_since(0)
    reader.close()
    assert {each.requests for each in found.spent} == {4 * 300}
    assert found.loaded == {f"g{number}": 300 for number in range(4)}
    assert found.batch == 60


def test_what_is_read_by_the_number_of_the_batch_misses_no_other_loaders(ledger: LedgerSettings) -> None:
    """A batch that began earlier is committed earlier."""
    stores = [PostgresStore(ledger) for _ in range(3)]
    reader = PostgresReader(ledger)
    seen: dict[tuple[str, int], int] = {}
    after = 0
    done = threading.Event()

    def load() -> None:
        for turn in range(40):
            stores[turn % 3].add([journaled(turn + 1, NOON + turn * 900_000, gateway=f"g{turn % 3}")])
        done.set()

    thread = threading.Thread(target=load)
    thread.start()
    while True:
        last = done.is_set()
        found = reader.spent_since(0, after)
        after = found.batch
        seen.update({(each.scope, each.slot): each.requests for each in found.spent})
        if last:
            break
    thread.join()
    assert sum(count for (scope, _), count in seen.items() if scope == "team search") == 40
    for store in stores:
        store.close()
    reader.close()


@pytest.mark.smoke
def test_months_are_made_ahead_and_dropped_whole(ledger: LedgerSettings) -> None:
    store = PostgresStore(replace(ledger, keep=40 * 86400.0))
    store.add([journaled(1, NOON), journaled(2, NOON + 31 * DAY)])
    store.tidy(NOON)
    assert partitions(ledger) == {"request_2026_11", "request_2026_12", "request_2027_01"}
    store.tidy(NOON + 60 * DAY)
    assert partitions(ledger) == {f"request_{month}" for month in ("2026_11", "2026_12", "2027_01", "2027_02")}
    store.tidy(NOON + 90 * DAY)
    assert partitions(ledger) == {f"request_{month}" for month in ("2026_12", "2027_01", "2027_02", "2027_03")}
    assert store.add([journaled(3, NOON + 90 * DAY)]) == 1
    store.close()


def test_a_row_of_any_time_has_a_place(ledger: LedgerSettings) -> None:
    """A clock that was wrong once must not block the rows of a batch."""
    store = PostgresStore(ledger)
    rows = [journaled(number, time) for number, time in enumerate([0, 1, NOON, NOON + 3650 * DAY], 1)]
    assert store.add([*rows, JournalRow(5, rows[0].row._replace(id=b"x" * 16, time=LATEST_MS - 10**10))]) == 5
    assert store.add(rows) == 0
    store.close()


def test_a_server_that_was_restarted_is_used_again(postgres: RealPostgres, ledger: LedgerSettings) -> None:
    store, reader = PostgresStore(ledger), PostgresReader(ledger)
    store.add([journaled(1)])
    assert reader.newest() == NOON
    postgres.stop()
    try:
        for _ in range(2):
            with pytest.raises(LedgerError):
                store.add([journaled(2)])
            with pytest.raises(LedgerError):
                reader.spent_since(0)
    finally:
        postgres.start()
    assert store.add([journaled(1), journaled(2)]) == 2
    assert reader.spent_since(0).spent[0].requests == 3
    store.close()
    reader.close()


def test_a_newer_version_is_refused_naming_both(postgres: RealPostgres, ledger: LedgerSettings) -> None:
    PostgresStore(ledger).close()
    postgres.run("UPDATE dragoman.meta SET version = 7", ledger.url.rpartition("/")[2])
    for opened in (PostgresStore, PostgresReader):
        with pytest.raises(LedgerRefusedError, match=f"has version 7, and this gateway knows versions up to {VERSION}"):
            opened(ledger)


def test_gateways_that_start_together_make_the_schema_once(ledger: LedgerSettings) -> None:
    failures: list[LedgerError] = []

    def start() -> None:
        try:
            PostgresStore(ledger).close()
        except LedgerError as error:
            failures.append(error)

    threads = [threading.Thread(target=start) for _ in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert failures == []


def test_a_user_without_the_right_to_make_schemas_needs_one_there(postgres: RealPostgres, tmp_path: Path) -> None:
    url = postgres.fresh_database()
    name = url.rpartition("/")[2]
    postgres.run(f"CREATE ROLE poor_{name} LOGIN PASSWORD 'p'")
    poor = ledger_at(
        url.replace("dragoman:", f"poor_{name}:").replace(url.split(":")[2].split("@")[0], "p"), KEEP, "UTC", tmp_path
    )
    with pytest.raises(LedgerError, match="permission denied"):
        PostgresStore(poor)
    postgres.run(f"CREATE SCHEMA dragoman AUTHORIZATION poor_{name}", name)
    store = PostgresStore(poor)
    assert store.add([journaled()]) == 1
    store.close()


def test_a_reader_does_not_write(ledger: LedgerSettings) -> None:
    store = PostgresStore(ledger)
    store.add([journaled()])
    reader = PostgresReader(ledger)
    reader.usage(usage_query(["team"], "30d", "search", "UTC", NOON))
    assert reader.spent_since(0).loaded == {"g1": 1}
    reader.close()
    store.close()
