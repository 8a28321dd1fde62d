"""Loading the table again: whole or not at all, told either way."""

import asyncio
import logging
import sys
from pathlib import Path

import pytest

from config.problems import ConfigError
from config.server import Server
from proxy.reload import Source
from tests.proxy.reload_kit import BAD, GOOD, OTHER, Rig, reloading, stopped, until
from tests.proxy.tables import digest_of
from tests.support.authority import LOCAL, Authority


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """A good table in force."""
    return reloading(tmp_path)


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What the operator is told."""
    caplog.set_level(logging.INFO, "dragoman")
    return caplog


# Sources -------------------------------------------------------------------------------------------------------------


def test_without_a_file_the_source_is_the_embedded_table() -> None:
    assert list(Source(None, {}).load().snapshot.models) == ["mock/echo"]


def test_a_source_tells_everything_that_is_wrong_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(
        "version: 1\nserver: {host: 0.0.0.0}\nvendors: {v: {profile: nothing}}\nmodels: {v/m: {}, w/m: {}}\n"
    )
    with pytest.raises(ConfigError) as caught:
        Source(path, {}).load()
    assert [(problem.line, problem.path) for problem in caught.value.problems] == [
        (2, "server.host"),
        (3, "vendors.v.profile"),
        (4, "models.w/m"),
    ]


OPEN, TEAMS = GOOD, GOOD + f"teams: {{a: {{keys: ['{digest_of('k')}'], models: ['*']}}}}\n"


@pytest.mark.parametrize(
    ("text", "host", "insist", "fine"),
    [
        (OPEN, None, False, True),
        (OPEN, "127.0.0.1", False, True),
        (OPEN, "0.0.0.0", False, False),
        (OPEN, "0.0.0.0", True, True),
        (OPEN + "server: {host: 0.0.0.0}\n", None, False, False),
        (OPEN + "server: {host: 0.0.0.0}\n", "127.0.0.1", False, True),
        (TEAMS, "0.0.0.0", False, True),
    ],
)
def test_a_table_without_teams_is_open_to_this_machine_only(
    tmp_path: Path, text: str, host: str | None, insist: bool, fine: bool
) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(text)
    source = Source(path, {}, insist, host)
    if fine:
        assert source.load().snapshot.models
    else:
        with pytest.raises(ConfigError, match="without teams"):
            source.load()


NEEDY = """\
version: 1
vendors:
  v: {profile: openai_compatible, base_url: "https://v.example/v1", credentials: {entra: {scope: s}}}
models: {v/m: {}}
"""


def test_a_source_that_is_to_be_served_is_one_whose_credentials_may_be_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(NEEDY)
    source = Source(path, {"HOME": str(tmp_path)})
    assert source.load().warnings == ()
    (warning,) = source.load_to_serve().warnings
    assert (warning.line, warning.path) == (3, "vendors.v.credentials")
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    assert source.load().snapshot.models
    with pytest.raises(ConfigError, match=r"pip install 'dragoman\[azure\]'"):
        source.load_to_serve()


# Reloads -------------------------------------------------------------------------------------------------------------


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
    assert f"table {result.digest[:12]} in force" in told.text


@pytest.mark.parametrize(
    "text", [BAD, "", "version: 2", "{", "\t", "version: 1\nvendors: {mock: {}}\nmodels: {mock/m: {x: 1}}"]
)
async def test_a_bad_table_changes_nothing_and_is_told_with_its_place(
    rig: Rig, told: pytest.LogCaptureFixture, text: str
) -> None:
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
    "drain_grace": "drain_grace: 3s",
    "drain_timeout": "drain_timeout: 3s",
    "stall_limit": "stall_limit: 7s",
    "watch": "watch: false",
    "log": "log: text",
}


@pytest.mark.parametrize(("name", "written"), CHANGES.items())
async def test_what_needs_a_restart_is_told(rig: Rig, told: pytest.LogCaptureFixture, name: str, written: str) -> None:
    rig.write(OTHER + f"server: {{{written}}}\n")
    await rig.reloader.reload()
    assert f"changes that need a restart were not applied: server.{name}" in told.text
    assert rig.models == ["mock/two"]


async def test_tls_that_comes_or_goes_needs_a_restart_and_other_files_of_it_do_not(
    rig: Rig, told: pytest.LogCaptureFixture
) -> None:
    authority = Authority()
    for name in ("a", "b"):
        rig.path.with_name(name).write_bytes(b"".join(authority.pair(*LOCAL)))
    for server, restart in (("{tls: {cert: a, key: a}}", True), ("{tls: {cert: b, key: b}}", False), ("{}", True)):
        told.clear()
        rig.write(f"{OTHER}server: {server}\n")
        assert not (await rig.reloader.reload()).problems
        assert ("need a restart were not applied: server.tls" in told.text) is restart


async def test_what_needs_none_is_not(rig: Rig, told: pytest.LogCaptureFixture) -> None:
    pages = "hosts: [a.example], cors: {origins: ['https://b.example']}"
    rig.write(OTHER + f"server: {{surfaces: {{openai: {{default_vendor: mock}}}}, {pages}}}\n")
    await rig.reloader.reload()
    assert "restart" not in told.text
    assert rig.live.snapshot.default_vendors["openai"] == "mock"


def test_every_setting_of_the_server_is_one_or_the_other() -> None:
    assert set(Server.model_fields) == {*CHANGES, "cors", "hosts", "surfaces", "tls"}


# Who asks ------------------------------------------------------------------------------------------------------------


async def test_a_request_is_served_in_the_background(rig: Rig) -> None:
    rig.write(OTHER)
    serving = asyncio.create_task(rig.reloader.run())
    rig.reloader.request()
    await until(lambda: rig.models == ["mock/two"])
    rig.write(GOOD)
    rig.reloader.request()
    await until(lambda: rig.models == ["mock/one"])
    await stopped(serving)


@pytest.mark.parametrize(
    ("server", "form"), [("", "text"), ("server: {port: 0}\n", "text"), ("server: {log: json}\n", "json")]
)
def test_the_form_of_the_log_is_the_source_s_where_the_table_says_none(server: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / "form.yaml"
    path.write_text(f"version: 1\nvendors: {{mock: }}\nmodels: {{mock/*: }}\n{server}", encoding="utf-8")
    table = Source(path, {}, log="text").load()
    assert table.loaded.config.server.log == form
    assert Source(path, {}).load().loaded.config.server.log == "json"
