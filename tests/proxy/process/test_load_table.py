"""Loading the configuration from its source: every problem is reported at once, and some rules apply only to a
configuration that is served."""

import sys
from pathlib import Path

import pytest

from config.problem import ConfigError
from proxy.process.load_table import Source
from tests.proxy.kit.table_reloader import GOOD, NEEDY
from tests.proxy.kit.tables import digest_of


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


def test_a_served_source_is_one_whose_credentials_may_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.yaml"
    path.write_text(NEEDY)
    source = Source(path, {"HOME": str(tmp_path)})
    assert source.load().warnings == ()
    (warning,) = source.load_to_serve().warnings
    assert (warning.line, warning.path) == (3, "vendors.v.credentials")
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    assert source.load().snapshot.models
    with pytest.raises(ConfigError, match=r"pip install '\.\[azure\]' in Dragoman's source"):
        source.load_to_serve()


@pytest.mark.parametrize(
    ("server", "form"),
    [
        ("", "text"),
        ("server: {port: 0}\n", "text"),
        ("server: {log: json}\n", "json"),
        ("server: {log: {slow: 1s}}\n", "text"),
    ],
)
def test_the_form_of_the_log_is_the_source_s_where_the_table_says_none(server: str, form: str, tmp_path: Path) -> None:
    path = tmp_path / "form.yaml"
    path.write_text(f"version: 1\nvendors: {{mock: }}\nmodels: {{mock/*: }}\n{server}", encoding="utf-8")
    table = Source(path, {}, log="text").load()
    assert table.loaded.config.server.log.form == form
    assert Source(path, {}).load().loaded.config.server.log.form == "json"
