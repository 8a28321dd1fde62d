"""The demo's team: its output comes over HTTP and out of the ledger, and the demo leaves nothing behind."""

import asyncio
import os
import socket
import tempfile
from pathlib import Path

import pytest

from proxy.cli.usage.limit_demo import REQUESTS, TABLE, LimitNotShown, asked, show_report, show_team_limit
from proxy.ledger.ledger_store import UsageLine
from proxy.ledger.rollups import UsageSums
from proxy.ledger.usage_query import usage_query
from proxy.ledger.usage_report import UsageReport
from proxy.process.load_table import Source
from tests.support.http_scripts import json_answer
from tests.support.vendor import FakeVendor

pytestmark = pytest.mark.smoke


Output = pytest.CaptureFixture[str]


async def test_nothing_stays_and_the_key_is_shown_nowhere(
    tmp_path: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    await show_team_limit()
    assert os.listdir(tmp_path) == []
    out, err = capsys.readouterr()
    assert "200 200 200 429" in out
    assert "dk-" not in out + err


async def test_an_error_has_its_message() -> None:
    async with FakeVendor(json_answer(429, {"error": {"message": "too many"}})) as vendor:
        assert await asyncio.to_thread(asked, vendor.base_url, "k") == (429, "too many")


async def test_a_gateway_that_does_not_answer_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    nothing = await asyncio.to_thread(asked, url, "k")
    assert nothing == (0, "([Errno 111] Connection refused)")
    monkeypatch.setattr("proxy.cli.usage.limit_demo.asked", lambda url, key: nothing)
    with pytest.raises(LimitNotShown, match=r"let 0 pass .*refused"):
        await show_team_limit()


def test_a_ledger_that_lacks_a_request_is_told() -> None:
    query = usage_query(("team",), "1d", None, "UTC", 1_793_534_400_000)
    sums = UsageSums(requests=3)
    with pytest.raises(LimitNotShown, match="3 requests, of which 0 were refused"):
        show_report(UsageReport(query, [UsageLine(("search",), sums)], sums, None))


def test_the_demo_asks_no_other_gateway_for_what_waits(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(TABLE.format(digest="0" * 64, most=REQUESTS), encoding="utf-8")
    assert Source(path, {}).load().loaded.config.server.admin.port == 0
