"""Reloading the configuration: completely or not at all, and logged either way."""

import asyncio
import logging
import sys
from pathlib import Path

import pytest

from config.sections.server_section import ServerSection
from proxy.process import reload
from tests.proxy.kit.table_reloader import BAD, GOOD, NEEDY, OTHER, Rig, reloading, stopped
from tests.support.authority import LOCAL, Authority
from tests.support.waiting import until


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return reloading(tmp_path)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "dragoman")
    return caplog


async def test_a_table_whose_credentials_cannot_be_had_is_refused(
    rig: Rig, told: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.write(NEEDY)
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    assert len((await rig.reloader.reload()).problems) == 1
    assert rig.models == ["mock/one"]
    monkeypatch.undo()
    assert (await rig.reloader.reload()).problems == ()
    assert rig.models == ["v/m"]
    assert "no credentials of Azure" in told.text


async def test_a_good_table_is_in_force_from_then_on(rig: Rig, told: pytest.LogCaptureFixture) -> None:
    before = rig.live.snapshot
    rig.write(OTHER)
    result = await rig.reloader.reload()
    assert rig.models == ["mock/two"]
    assert [list(table.snapshot.models) for table in rig.swapped] == [["mock/two"]]
    assert (result.digest, result.problems) == (rig.live.snapshot.digest, ())
    assert result.digest != before.digest
    assert list(before.models) == ["mock/one"]
    assert (rig.count("success"), rig.count("failure")) == (1, 0)
    assert f"configuration {result.digest[:12]} is current" in told.text


@pytest.mark.parametrize(
    "text", [BAD, "", "version: 2", "{", "\t", "version: 1\nvendors: {mock: {}}\nmodels: {mock/m: {x: 1}}"]
)
async def test_a_bad_table_changes_nothing_and_is_placed(rig: Rig, told: pytest.LogCaptureFixture, text: str) -> None:
    before = rig.live.snapshot
    rig.write(text)
    result = await rig.reloader.reload()
    assert rig.live.snapshot is before
    assert result.digest == before.digest
    assert result.problems
    for problem in result.problems:
        assert f"reload refused: {rig.path}:{problem.line}:{problem.column}" in told.text
    assert (rig.count("success"), rig.count("failure")) == (0, 1)


async def test_a_file_that_is_gone_is_a_bad_table(rig: Rig) -> None:
    rig.path.unlink()
    assert (await rig.reloader.reload()).problems
    assert rig.models == ["mock/one"]


async def test_after_a_refusal_a_good_table_is_taken(rig: Rig) -> None:
    rig.write(BAD)
    await rig.reloader.reload()
    rig.write(OTHER)
    assert not (await rig.reloader.reload()).problems
    assert rig.models == ["mock/two"]


async def test_reloads_at_the_same_time_come_one_after_the_other(rig: Rig) -> None:
    rig.write(OTHER)
    results = await asyncio.gather(*(rig.reloader.reload() for _ in range(3)))
    assert {result.digest for result in results} == {rig.live.snapshot.digest}
    assert rig.count("success") == 3


CHANGES = {
    "host": "host: localhost",
    "port": "port: 1234",
    "workers": "workers: 2",
    "admin": "admin: {port: 1234}",
    "max_body": "max_body: 2MiB",
    "limits": "limits: {streams: 7}",
    "shared": 'shared: {redis: "redis://127.0.0.1:1"}',
    "ledger": 'ledger: "sqlite:other.db"',
    "keep_thinking": "keep_thinking: process",
    "keep_responses": "keep_responses: {lifetime: 1h}",
    "drain_grace": "drain_grace: 3s",
    "drain_timeout": "drain_timeout: 3s",
    "stall_limit": "stall_limit: 7s",
    "watch": "watch: false",
    "log": "log: text",
    "payload_log": "payload_log: {path: p.jsonl, teams: ['*']}",
}


@pytest.mark.parametrize(("name", "written"), CHANGES.items())
async def test_what_needs_a_restart_is_told(rig: Rig, told: pytest.LogCaptureFixture, name: str, written: str) -> None:
    rig.write(OTHER + f"server: {{{written}}}\n")
    assert (await rig.reloader.reload()).needs_restart == (f"server.{name}",)
    assert f"changes that need a restart were not applied: server.{name}" in told.text
    assert rig.models == ["mock/two"]


async def test_what_needs_a_restart_is_told_until_it_is_as_at_the_start(rig: Rig) -> None:
    changed = OTHER + "server: {drain_grace: 3s}\n"
    tables = (changed, changed + "defaults: {concurrent: 9}\n", OTHER + "server: {drain_grace: 4s}\n", OTHER, changed)
    told = []
    for text in tables:
        rig.write(text)
        told.append((await rig.reloader.reload()).needs_restart)
    waiting = ("server.drain_grace",)
    assert told == [waiting, waiting, waiting, (), waiting]


async def test_tls_that_comes_or_goes_needs_a_restart_and_other_files_of_it_do_not(tmp_path: Path) -> None:
    authority = Authority()
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"".join(authority.pair(*LOCAL)))
    for began, servers in (
        ("{}", ("{tls: {cert: a, key: a}}", "{}")),
        ("{tls: {cert: a, key: a}}", ("{}", "{tls: {cert: b, key: b}}")),
    ):
        rig = reloading(tmp_path, f"{OTHER}server: {began}\n")
        told = []
        for server in servers:
            rig.write(f"{OTHER}server: {server}\n")
            result = await rig.reloader.reload()
            assert not result.problems
            told.append(result.needs_restart)
        assert told == [("server.tls",), ()]


async def test_what_needs_none_is_not(rig: Rig, told: pytest.LogCaptureFixture) -> None:
    pages = "hosts: [a.example], cors: {origins: ['https://b.example']}"
    rig.write(OTHER + f"server: {{surfaces: {{openai: {{default_vendor: mock}}}}, {pages}}}\n")
    await rig.reloader.reload()
    assert "restart" not in told.text
    assert rig.live.snapshot.default_vendors["openai"] == "mock"


async def test_a_ledger_that_comes_with_a_first_team_needs_a_restart(rig: Rig, told: pytest.LogCaptureFixture) -> None:
    rig.write(f"{OTHER}teams: {{t: {{keys: ['sha256:{'1' * 64}'], models: ['*']}}}}\n")
    assert not (await rig.reloader.reload()).problems
    assert "need a restart were not applied: server.ledger" in told.text


async def test_a_time_zone_counts_for_limits_at_once_and_for_days_of_the_ledger_later(
    rig: Rig, told: pytest.LogCaptureFixture
) -> None:
    rig.write(OTHER + "server: {timezone: Europe/Berlin}\n")
    await rig.reloader.reload()
    assert str(rig.live.snapshot.zone) == "Europe/Berlin"
    assert "limits and budgets follow it now, days of the ledger after a restart" in told.text
    assert "not applied" not in told.text


def test_every_setting_of_the_server_is_one_or_the_other() -> None:
    assert set(ServerSection.model_fields) == {
        *CHANGES,
        "cors",
        "hosts",
        "receipt",
        "surfaces",
        "timezone",
        "tls",
        "tracing",
    }


# Keys of a file -----------------------------------------------------------------------------------------------------


def with_keys(rig: Rig, keys: str) -> list[str]:
    """Rewrite the file of a team's keys, and return the digests that end in each of its letters."""
    rig.path.with_name("keys.yaml").write_text(keys, encoding="utf-8")
    return [f"{'0' * 63}{letter}" for letter in "ab"]


TEAM = f"{GOOD}teams: {{t: {{keys_from: keys.yaml, models: ['*']}}}}\n"
KEY_A, KEY_B = (f"- {{hash: sha256:{'0' * 63}{letter}, name: {letter}}}\n" for letter in "ab")


async def test_a_key_that_a_file_gains_or_loses_counts_from_the_next_reload(rig: Rig) -> None:
    rig.write(TEAM)
    first, second = with_keys(rig, KEY_A)
    assert not (await rig.reloader.reload()).problems
    assert set(rig.live.snapshot.keys) == {first}
    with_keys(rig, KEY_A + KEY_B)
    assert not (await rig.reloader.reload()).problems
    assert set(rig.live.snapshot.keys) == {first, second}
    with_keys(rig, KEY_B)
    assert not (await rig.reloader.reload()).problems
    assert {key.name for key in rig.live.snapshot.keys.values()} == {"b"}


@pytest.mark.parametrize("keys", [None, "- sha256:canary\n", "- {", "key: canary\n", KEY_A + KEY_A, KEY_B * 20_000])
async def test_a_file_of_keys_that_is_missing_or_wrong_changes_nothing(
    rig: Rig, told: pytest.LogCaptureFixture, keys: str | None
) -> None:
    rig.write(TEAM)
    with_keys(rig, KEY_A)
    await rig.reloader.reload()
    before = rig.live.snapshot
    if keys is None:
        rig.path.with_name("keys.yaml").unlink()
    else:
        with_keys(rig, keys)
    assert (await rig.reloader.reload()).problems
    assert rig.live.snapshot is before
    assert "canary" not in told.text


async def test_the_watcher_sees_a_file_of_keys(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "WATCH_EVERY", 0.01)
    rig.write(TEAM)
    first, second = with_keys(rig, KEY_A)
    await rig.reloader.reload()
    watching = asyncio.create_task(rig.reloader.watch())
    with_keys(rig, KEY_B)
    await until(lambda: set(rig.live.snapshot.keys) == {second})
    with_keys(rig, "- {")
    await until(lambda: rig.count("failure") == 1)
    with_keys(rig, KEY_A)
    await until(lambda: set(rig.live.snapshot.keys) == {first})
    await stopped(watching)


# Requests for a reload ------------------------------------------------------------------------------------------------


async def test_a_request_is_served_in_the_background(rig: Rig) -> None:
    rig.write(OTHER)
    serving = asyncio.create_task(rig.reloader.run())
    rig.reloader.request()
    await until(lambda: rig.models == ["mock/two"])
    rig.write(GOOD)
    rig.reloader.request()
    await until(lambda: rig.models == ["mock/one"])
    await stopped(serving)
