"""The limits, budgets and ledger of a process, assembled and closed."""

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, cast

import pytest

from proxy.accounting import limit_shares_file
from proxy.accounting import limits_and_ledger as module
from proxy.accounting.ledger_service import LedgerService, settings_of
from proxy.accounting.limits_and_ledger import limits_and_ledger
from proxy.accounting.limits_coordinator import SINGLE_PROCESS, Siblings
from proxy.background_tasks import background
from proxy.limits.lease_registry import LeaseRegistry
from proxy.limits.reservation import Reservation
from proxy.process.load_table import LoadedTable
from proxy.shared_state.lease import LeaseGrant, LeaseRequest, RateRequest, SpendingRequest
from proxy.shared_state.redis_sync import SharedState
from tests.proxy.accounting.kit import ledger_threads, spent, sums, table


class Generous:
    """Grants every request."""

    async def exchange(self, asks: Sequence[LeaseRequest]) -> Sequence[LeaseGrant | None]:
        return [
            LeaseGrant(each.want if isinstance(each, RateRequest | SpendingRequest) else 0, 1000, 0.25, 4)
            for each in asks
        ]


async def test_a_table_without_a_ledger_starts_no_thread_and_reads_nothing(tmp_path: Path) -> None:
    made, before = table(tmp_path, "ledger: 'off'"), ledger_threads()
    async with limits_and_ledger(made.loaded, made.snapshot, None, SINGLE_PROCESS) as both:
        assert both.ledger is None
        assert len(both.services) == 1  # the log of the limits' events
        assert ledger_threads() == before


@pytest.mark.smoke
async def test_rows_are_in_the_ledger_when_the_block_has_ended_and_no_thread_is_left(tmp_path: Path) -> None:
    made, before = table(tmp_path), ledger_threads()
    async with (
        limits_and_ledger(made.loaded, made.snapshot, None, SINGLE_PROCESS) as both,
        background(both.services),
    ):
        assert both.ledger is not None
        for _ in range(40):
            both.ledger.append(spent(1000))
    settings = settings_of(made.loaded)
    assert settings is not None
    assert sums(settings) == (40, 40 * (1000 * 150 + 10 * 600))
    assert ledger_threads() == before


async def test_a_worker_writes_its_journal_and_leaves_the_loading_to_the_supervisor(tmp_path: Path) -> None:
    made = table(tmp_path)
    async with limits_and_ledger(made.loaded, made.snapshot, None, Siblings(2, Generous())) as both:
        assert both.ledger is not None
        both.ledger.append(spent(1000))
    settings = settings_of(made.loaded)
    assert settings is not None
    assert not (tmp_path / "ledger.db").exists()
    assert [path.name.split(".")[0] for path in settings.journals.iterdir()] == ["ledger"]


def far_away(made: LoadedTable) -> SharedState:
    """Return the shared state of the configuration, whose Redis does not exist."""
    section = made.loaded.config.server.shared
    assert section is not None
    return SharedState(section, lambda cooldowns, now: None)


async def test_each_keeps_its_share_for_a_start_without_redis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def counted(shared: object, siblings: Siblings, clock: Callable[[], float]) -> LeaseRegistry:
        return LeaseRegistry(Generous(), siblings.processes, clock)

    monkeypatch.setattr(module, "make_leases", counted)
    monkeypatch.setattr(limit_shares_file, "SAVE_EVERY", 0.02)
    made = table(tmp_path, "shared: {redis: 'redis://127.0.0.1:1'}")
    settings = settings_of(made.loaded)
    assert settings is not None
    shared, second = far_away(made), Siblings(2, Generous(), 2)
    kept = settings.journals / "shares.2.json"
    async with (
        limits_and_ledger(made.loaded, made.snapshot, shared, second) as both,
        background(both.services),
    ):
        while not kept.exists() or len(json.loads(kept.read_bytes())) < 2:
            held = await both.registry.admit_waiting(("team search",), 1, 1)
            assert isinstance(held, Reservation)
            held.settle(1, 1)
            await asyncio.sleep(0.01)
    shares = json.loads(kept.read_bytes())
    assert shares.pop("processes")[1] == 4
    ((key, share),) = shares.items()
    assert key.startswith("team search")
    assert share == [0.25, 4]
    assert not (settings.journals / "shares.1.json").exists()


@pytest.mark.smoke
async def test_shares_that_cannot_be_read_or_written_are_said_and_stop_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limit_shares_file, "SAVE_EVERY", 0.01)
    made = table(tmp_path, "shared: {redis: 'redis://127.0.0.1:1'}")
    settings = settings_of(made.loaded)
    assert settings is not None
    (settings.journals / "shares.1.json").mkdir(parents=True)
    async with (
        limits_and_ledger(made.loaded, made.snapshot, far_away(made), SINGLE_PROCESS) as both,
        background(both.services),
    ):
        await both.registry.admit_waiting(("team search",), 1, None)
        await asyncio.sleep(0.1)
    assert sum("shares.1.json cannot be read" in message for message in caplog.messages) == 1
    assert sum("shares.1.json cannot be written" in message for message in caplog.messages) <= 1


async def test_a_gateway_that_knows_of_no_other_expects_as_many_as_write_to_the_ledger_that_they_share(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Ledger:
        answers: ClassVar = [None, 7]

        async def writers(self) -> int | None:
            return self.answers.pop(0)

    for name in ("REDIS_REPLY_WITHIN", "RETRY_EVERY"):
        monkeypatch.setattr(module, name, 0.0)
    leases = LeaseRegistry(Generous(), 2, lambda: 0.0)
    leases.expect_other_gateways()
    assert leases.expected == 3
    await module._count_writers(cast(LedgerService, Ledger()), leases)
    assert (leases.expected, leases.guessed, leases.division) == (7, True, None)
    leases.assume(4)
    await module._count_writers(cast(LedgerService, Ledger()), leases)  # the number is known by now
    assert leases.division == (0.25, 4)
