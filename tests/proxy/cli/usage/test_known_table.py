"""The config file of commands that only query: they use the settings that they need, and report other faults on
standard error.
"""

from collections.abc import Callable

import pytest

from config.problem import ConfigError
from proxy.cli.usage.known_table import known_table
from proxy.process.load_table import Source
from tests.proxy.cli.conftest import TABLE

Writer = Callable[[str], Source]
Output = pytest.CaptureFixture[str]


def test_a_table_without_faults_says_nothing(source: Writer, capsys: Output) -> None:
    assert set(known_table(source(TABLE)).config.teams) == {"search", "data"}
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("right", "wrong", "path"),
    [
        ("mock: {}", "mock: {api_key: '${NOT_SET}'}", "vendors.mock.api_key"),
        ("targets: [openai/", "targets: [opnai/", "routes.fast.targets"),
        ("models: [fast,", "keys_from: keys.yaml\n    models: [fast,", "teams.search.keys_from"),
    ],
)
def test_faults_elsewhere_hinder_nobody(source: Writer, capsys: Output, right: str, wrong: str, path: str) -> None:
    loaded = known_table(source(TABLE.replace(right, wrong, 1)))
    assert loaded.ledger is not None
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("dragoman: warning: ")
    assert path in line


@pytest.mark.parametrize("wrong", ["include: [gone.yaml]\n", "server: {admin: {port: no}}\n", "sever: {}\n", "- ["])
def test_a_table_whose_server_is_in_doubt_is_refused(source: Writer, wrong: str) -> None:
    with pytest.raises(ConfigError):
        known_table(source(TABLE + wrong))
