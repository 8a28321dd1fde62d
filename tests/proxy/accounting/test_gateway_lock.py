"""One gateway holds a SQLite ledger for its whole life. Another one waits a moment for it to end, and is then
refused.
"""

import asyncio
import logging
import os
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from proxy.accounting.gateway_lock import SUFFIX, sole_gateway
from proxy.ledger.ledger_settings import LedgerRefusedError, LedgerSettings
from tests.proxy.ledger.kit import sqlite
from tests.support.waiting import until


async def test_a_second_gateway_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    settings = sqlite(tmp_path)
    link = tmp_path / "link.db"
    link.symlink_to(tmp_path / "ledger.db")
    for same in (settings, replace(settings, journals=tmp_path / "other"), replace(settings, file=link)):
        async with sole_gateway(settings):
            with pytest.raises(LedgerRefusedError, match="another gateway uses the ledger"):
                async with sole_gateway(same, patience=0.0):
                    pass
        async with sole_gateway(same, patience=0.0):
            pass


async def test_one_that_ends_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman")
    settings = sqlite(tmp_path)
    async with AsyncExitStack() as first:
        await first.enter_async_context(sole_gateway(settings))

        async def second() -> str:
            async with sole_gateway(settings, patience=60.0):
                return "serves"

        waiting = asyncio.create_task(second())
        await until(lambda: bool(caplog.messages))
        await first.aclose()
        assert await waiting == "serves"
    assert caplog.messages == [
        f"ledger: another gateway uses {settings.file}; waiting up to 60 s for its end",
    ]


async def test_a_file_that_a_killed_gateway_left_blocks_nobody(tmp_path: Path) -> None:
    settings = sqlite(tmp_path)
    assert settings.file is not None
    settings.file.with_name(settings.file.name + SUFFIX).write_bytes(b"")
    async with sole_gateway(settings, patience=0.0):
        pass


async def test_a_place_that_takes_no_lock_keeps_nobody_from_serving(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_bytes(b"")
    async with sole_gateway(replace(sqlite(tmp_path), file=tmp_path / "file" / "ledger.db")):
        pass
    assert "cannot be locked, so that a second gateway on it is not refused: " in caplog.text


async def test_gateways_share_other_ledgers(tmp_path: Path) -> None:
    shared = LedgerSettings("postgresql", 60.0, "UTC", tmp_path, url="postgresql://u@h/d")
    async with sole_gateway(shared, 0.0), sole_gateway(shared, 0.0), sole_gateway(None):
        assert os.listdir(tmp_path) == []
