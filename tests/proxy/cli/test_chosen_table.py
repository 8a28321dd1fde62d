"""The config file is the one of the command line, else the environment, else the working folder, else the embedded
one.
"""

from pathlib import Path

import pytest

from proxy.cli.chosen_table import ChosenTable, chosen_table
from proxy.cli.terminal import USAGE, CommandError
from proxy.process.load_table import Source

A, B = Path("a.yaml"), Path("b.yaml")
NAMED = {"DRAGOMAN_CONFIG": "c.yaml"}
FOUND = ChosenTable(Path("table.yaml"), "found in this folder")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "table.yaml").write_text("version: 1\n", encoding="utf-8")
    return tmp_path


def test_the_command_line_comes_first_then_the_environment_which_says_something_then_the_folder(folder: Path) -> None:
    assert chosen_table(A, None, NAMED, folder) == ChosenTable(A)
    assert chosen_table(None, B, NAMED, folder) == ChosenTable(B)
    assert chosen_table(None, None, NAMED, folder) == ChosenTable(Path("c.yaml"), "named by DRAGOMAN_CONFIG")
    assert chosen_table(None, None, {"DRAGOMAN_CONFIG": ""}, folder) == FOUND


def test_where_nothing_is_named_and_nothing_lies_there_the_table_is_embedded(tmp_path: Path) -> None:
    assert chosen_table(None, None, {}, tmp_path) == ChosenTable(None)


def test_a_link_that_leads_nowhere_and_a_folder_are_taken_and_then_told(tmp_path: Path) -> None:
    (tmp_path / "table.yaml").symlink_to("nowhere")
    assert chosen_table(None, None, {}, tmp_path) == FOUND
    (tmp_path / "table.yaml").unlink()
    (tmp_path / "table.yaml").mkdir()
    assert chosen_table(None, None, {}, tmp_path) == FOUND


def test_two_names_on_the_command_line_are_wrong_usage(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="only one config file") as caught:
        chosen_table(A, B, {}, tmp_path)
    assert caught.value.status == USAGE


def test_a_table_is_called_by_its_whole_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert Source(A, {}).title == f"{tmp_path}/a.yaml"
    assert Source(A, {}, found="named by DRAGOMAN_CONFIG").title == f"{tmp_path}/a.yaml (named by DRAGOMAN_CONFIG)"
    assert Source(None, {}).title == "the embedded configuration"
