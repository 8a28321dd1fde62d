"""`dragoman limits`: it calls the gateway of the config file, and suggests a remedy if none responds."""

import asyncio
import io
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC
from pathlib import Path
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import pytest

from proxy.cli.terminal import CommandError
from proxy.cli.usage.limits_command import LimitsOptions, limits, limits_table, show_limits, show_limits_json
from proxy.process.assemble_app import Addresses, running
from proxy.process.load_table import Source
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import body_answer
from tests.support.vendor import FakeVendor

Writer = Callable[[str], Source]
Output = pytest.CaptureFixture[str]

TOKEN = "admin-token-canary"


def table(port: int, token: str = TOKEN) -> str:
    return f"""version: 1
server: {{admin: {{port: {port}, token: {token}}}}}
vendors: {{mock: {{}}}}
models: {{mock/echo: {{price: {{input: 1, output: 2}}}}}}
teams:
  search:
    keys: ["{digest_of("k")}"]
    models: ["*"]
    limits: {{requests_per_minute: 5}}
    budget: {{usd: 5, per: day}}
  data: {{keys: ["{digest_of("d")}"], models: ["*"], limits: {{concurrent: 9}}}}
"""


@asynccontextmanager
async def gateway(folder: Path, text: str = table(0)) -> AsyncIterator[int]:
    """Yield the port of the admin listener of a gateway."""
    path = folder / "running.yaml"
    path.write_text(text, encoding="utf-8")
    source = Source(path, {})
    async with running(source, source.load(), Addresses("127.0.0.1", 0, "127.0.0.1", 0), io.BytesIO()) as app:
        yield urlsplit(app.admin_url).port or 0


@pytest.mark.smoke
async def test_people_see_what_is_left_of_each_limit(source: Writer, tmp_path: Path, capsys: Output) -> None:
    async with gateway(tmp_path) as port:
        assert await asyncio.to_thread(limits, source(table(port)), LimitsOptions(), show_limits) == 0
        rows = [line.split() for line in capsys.readouterr().out.splitlines()]
        assert rows[0] == ["SCOPE", "LIMIT", "USED", "LEFT", "SHARE", "ENDS", "THEN"]
        assert ["team", "search", "5", "requests", "per", "minute", "0", "5", "0%", "reject"] in rows
        assert ["team", "data", "9", "requests", "at", "once", "0", "9", "0%", "reject"] in rows
        (budget,) = (row for row in rows if "USD" in row)
        assert budget[:9] == ["team", "search", "5", "USD", "per", "day", "0", "5", "0%"]
        assert budget[11:] == ["00:00", "reject", "at", "100%"]


@pytest.mark.smoke
async def test_one_team_is_shown_alone_and_as_json(source: Writer, tmp_path: Path, capsys: Output) -> None:
    async with gateway(tmp_path) as port:
        made, options = source(table(1)), LimitsOptions("data", port)
        await asyncio.to_thread(limits, made, options, show_limits_json)
        found = json.loads(capsys.readouterr().out)
        assert (found["team"], [each["scope"] for each in found["limits"]]) == ("data", ["team data"])


@pytest.mark.parametrize(
    ("team", "told"),
    [
        ("serch", r"no team serch; did you mean search\?"),
        ("nope", "no team nope; teams are data, search"),
        ("x\x1b[31m", "teams are"),
    ],
)
async def test_a_team_that_does_not_exist_is_an_error(source: Writer, tmp_path: Path, team: str, told: str) -> None:
    async with gateway(tmp_path) as port:
        made, options = source(table(1)), LimitsOptions(team, port)
        for show in (show_limits, show_limits_json):
            with pytest.raises(CommandError, match=told) as failed:
                await asyncio.to_thread(limits, made, options, show)
            assert failed.value.status == 1
            assert "\x1b" not in str(failed.value)


async def test_a_team_without_limits_is_no_error(source: Writer, tmp_path: Path, capsys: Output) -> None:
    text = table(0) + f"  free: {{keys: ['{digest_of('f')}'], models: ['*']}}\n"
    async with gateway(tmp_path, text) as port:
        assert await asyncio.to_thread(limits, source(table(1)), LimitsOptions("free", port), show_limits) == 0
    assert capsys.readouterr().out == "no limits of team free\n"


async def test_a_wrong_file_of_keys_is_said_beside_the_limits(source: Writer, tmp_path: Path, capsys: Output) -> None:
    async with gateway(tmp_path) as port:
        made = source(table(port).replace("teams:\n  search:\n", "teams:\n  search:\n    keys_from: gone.yaml\n"))
        assert await asyncio.to_thread(limits, made, LimitsOptions(), show_limits) == 0
    out, err = capsys.readouterr()
    assert "team search" in out
    assert "teams.search.keys_from: cannot read the file" in err


async def test_a_wrong_token_is_said_without_the_token(source: Writer, tmp_path: Path) -> None:
    async with gateway(tmp_path) as port:
        with pytest.raises(CommandError, match="refuses the configured admin token") as failed:
            await asyncio.to_thread(limits, source(table(port, "another-canary")), LimitsOptions(), show_limits)
    assert "canary" not in str(failed.value)


def test_a_gateway_that_does_not_run_is_one_line(source: Writer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(CommandError, match=rf"no gateway listens for operators on 127\.0\.0\.1:{port}: start it"):
        limits(source(table(port)), LimitsOptions(), show_limits)


async def test_what_is_no_gateway_is_told_from_one(source: Writer) -> None:
    for status, body in ((404, b"{}"), (200, b"<html>"), (200, b"[]")):
        async with FakeVendor(body_answer(status, body)) as other:
            made = source(table(urlsplit(other.base_url).port or 0))
            with pytest.raises(CommandError, match=f"not a gateway of this version: HTTP {status}"):
                await asyncio.to_thread(limits, made, LimitsOptions(), show_limits)


def limit(**changes: object) -> dict[str, object]:
    facts: dict[str, object] = {
        **{"scope": "team a", "kind": "quota", "unit": "tokens", "period": "day", "limit": 5_000_000, "used": 1_234},
        **{"remaining": 4_998_766, "ratio": 0.0002, "ends": "2026-11-02T00:00:00+00:00", "at": 1.0},
        **{"then": "reject", "reached": False, **changes},
    }
    return facts


def test_numbers_are_aligned_and_times_are_those_of_the_zone() -> None:
    spent = limit(kind="budget", unit="usd", period="month", limit=500.0, used=400.5, remaining=99.5, ratio=0.801)
    lines = limits_table([limit(), {**spent, "then": "warn", "at": 0.8, "reached": True}], ZoneInfo("Europe/Berlin"))
    assert lines == [
        "SCOPE   LIMIT                       USED       LEFT  SHARE  ENDS          THEN",
        "team a  5,000,000 tokens per day   1,234  4,998,766     0%  Mon 02 01:00  reject",
        "team a  500 USD per month         400.50      99.50    80%  Mon 02 01:00  warn at 80%, reached",
    ]


def test_one_is_one_and_who_waits_is_told_how_long() -> None:
    one = limit(kind="concurrent", unit="requests", period=None, limit=1, used=0, remaining=1, ends=None, queue_s=90.0)
    assert " ".join(limits_table([one], UTC)[1].split()) == "team a 1 request at once 0 1 0% queue 90s"


def test_a_scope_cannot_write_to_the_terminal() -> None:
    assert "\x1b" not in limits_table([limit(scope="team \x1b[31m")], UTC)[1]


def test_a_gateway_that_counts_alone_says_so(capsys: Output) -> None:
    show_limits({"alone": True, "limits": [limit(reached=True)]}, UTC)
    assert capsys.readouterr().out.startswith("This gateway counts on its own now")
