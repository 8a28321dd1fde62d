"""The program that loads the ledger: its arguments, its reports, and its end."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from proxy.accounting.loader_program import (
    AUTOGROUP,
    NICENESS,
    decode_order,
    decode_report,
    encode_order,
    let_others_go_first,
)
from proxy.ledger.journal import Journal
from proxy.ledger.journal_files import journal_files
from proxy.ledger.ledger_settings import LedgerSettings, LedgerState
from proxy.off_loop.child_process import Child, start_child
from tests.proxy.ledger.kit import ledger_at, record, sqlite

pytestmark = pytest.mark.processes


async def started(settings: LedgerSettings | None) -> Child:
    child = await start_child("proxy.accounting.loader_program")
    if settings is not None:
        child.writer.write(encode_order(settings, "json"))
    return child


async def last_report(child: Child) -> LedgerState:
    """Return the last state that the program has reported when it has ended."""
    lines = (await child.reader.read()).splitlines()
    assert await child.process.wait() == 0
    child.writer.close()
    return decode_report(lines[-1])


def read(name: str, child: Child) -> str:
    """Return the system's information about the process."""
    return Path(f"/proc/{child.process.pid}/{name}").read_text(encoding="utf-8")


@pytest.mark.parametrize("url", ["sqlite:ledger.db", "postgresql://me:secret@127.0.0.1/usage"])
def test_what_it_is_told_arrives(tmp_path: Path, url: str) -> None:
    settings = ledger_at(url, 86400.0, "Europe/Berlin", tmp_path)
    assert decode_order(encode_order(settings, "text")) == (settings, "text")


@pytest.mark.smoke
async def test_the_end_of_its_link_lets_it_load_what_is_left(tmp_path: Path) -> None:
    settings = sqlite(tmp_path)
    child = await started(settings)
    assert decode_report(await child.reader.readline()).loading
    journal = Journal(settings.journals)
    for _ in range(300):
        journal.append(record())
    journal.close()
    child.writer.write_eof()
    report = await last_report(child)
    assert (report.loaded, report.behind, report.trouble) == (300, 0.0, None)
    assert journal_files(settings.journals) == []


async def test_no_signal_that_a_whole_service_gets_ends_it_and_it_gives_way_to_others(tmp_path: Path) -> None:
    child = await started(sqlite(tmp_path))
    await child.reader.readline()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(child.process.pid, number)
    assert decode_report(await child.reader.readline()).loading
    assert os.getpriority(os.PRIO_PROCESS, child.process.pid) >= 10
    if AUTOGROUP.exists():
        assert read("autogroup", child).endswith(f" nice {NICENESS}\n")
    assert read("comm", child).strip() == "dragoman-ledger"
    child.writer.write_eof()
    await last_report(child)


def test_a_session_of_others_is_not_made_to_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "autogroup"
    monkeypatch.setattr(os, "nice", lambda _: 0)
    monkeypatch.setattr(os, "getsid", lambda _: os.getpid() + 1)
    let_others_go_first(told)
    assert not told.exists()
    monkeypatch.setattr(os, "getsid", lambda _: os.getpid())
    let_others_go_first(told)
    assert told.read_text(encoding="ascii") == str(NICENESS)
    let_others_go_first(tmp_path / "none here" / "autogroup")


async def test_a_parent_that_is_gone_before_it_said_anything_ends_it() -> None:
    child = await started(None)
    child.writer.close()
    assert await asyncio.wait_for(child.process.wait(), 30) == 0


async def test_it_knows_nothing_of_tables_whose_words_take_much_memory(tmp_path: Path) -> None:
    child = await started(sqlite(tmp_path))
    await child.reader.readline()
    maps = read("maps", child)
    assert "orjson" in maps
    assert "pydantic" not in maps
    child.writer.write_eof()
    await last_report(child)
