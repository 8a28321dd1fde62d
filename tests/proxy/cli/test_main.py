"""Exit statuses, one line for each mistake, and the config file that a command uses."""

import argparse
import errno
import json
from pathlib import Path

import pytest

from proxy.cli import arguments
from proxy.cli import main as cli
from proxy.cli.main import CLOSED_PIPE, INTERRUPTED, main
from proxy.cli.terminal import USAGE, CommandError

Output = pytest.CaptureFixture[str]


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr(arguments, "_version", run)


def test_the_status_of_the_command_is_the_status_of_the_program(capsys: Output) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("dragoman ")


@pytest.mark.parametrize("command", ["routes", "explain", "check", "serve"])
def test_a_bad_table_is_its_problems_and_status_1(command: str, tmp_path: Path, capsys: Output) -> None:
    table, body = tmp_path / "t.yaml", tmp_path / "request.json"
    table.write_text("version: 1\nvendrs: {}\nmodles: {}\n", encoding="utf-8")
    body.write_text("{}", encoding="utf-8")
    arguments = [command, "-c", str(table), *([str(body)] if command == "explain" else [])]
    assert main(arguments) == 1
    lines = "".join(capsys.readouterr()).removeprefix(f"checking {table}\n").splitlines()
    assert [line.partition(" ")[0] for line in lines] == [f"{table}:2:1", f"{table}:3:1"]


def test_a_mistake_is_one_line_on_standard_error(monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    raising(CommandError("no such thing", USAGE), monkeypatch)
    assert main(["version"]) == USAGE
    assert capsys.readouterr().err == "dragoman: no such thing\n"


@pytest.mark.parametrize("error", [KeyboardInterrupt(), BaseExceptionGroup("tasks", [KeyboardInterrupt()])])
def test_an_interrupt_is_silent(error: BaseException, monkeypatch: pytest.MonkeyPatch, capsys: Output) -> None:
    raising(error, monkeypatch)
    assert main(["version"]) == INTERRUPTED
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("error", [BrokenPipeError(), ExceptionGroup("tasks", [BrokenPipeError()])])
def test_a_reader_that_left_is_silent(error: BaseException, monkeypatch: pytest.MonkeyPatch, capfd: Output) -> None:
    raising(error, monkeypatch)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)
    assert main(["version"]) == CLOSED_PIPE
    assert capfd.readouterr().err == ""


TABLE = "version: 1\nvendors: {mock: }\nmodels: {mock/own: }\n"
"""A configuration unlike the embedded one."""

EMBEDDED_WARNING = (
    "dragoman: warning: no config file is given (-c FILE, or DRAGOMAN_CONFIG) and there is no table.yaml in this "
    "folder: this is the embedded configuration, which has only the mock vendor\n"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)
    (tmp_path / "request.json").write_text('{"model": "mock/own", "prompt": "hi"}', encoding="utf-8")
    return tmp_path


COMMANDS_WITH_A_TABLE = [["check"], ["routes"], ["explain", "request.json"], ["prices"]]


@pytest.mark.parametrize("command", COMMANDS_WITH_A_TABLE, ids=lambda command: command[0])
def test_the_embedded_table_never_stands_in_silently(command: list[str], here: Path, capsys: Output) -> None:
    assert main(command) == 0
    assert capsys.readouterr().err == EMBEDDED_WARNING


@pytest.mark.parametrize("command", COMMANDS_WITH_A_TABLE, ids=lambda command: command[0])
def test_the_table_of_the_working_folder_is_taken_and_told(command: list[str], here: Path, capsys: Output) -> None:
    (here / "table.yaml").write_text(TABLE, encoding="utf-8")
    assert main(command) == 0
    told = f"{here / 'table.yaml'} (found in this folder)\n"
    output = capsys.readouterr()
    if command == ["check"]:
        assert output.out.startswith(f"checking {told}ok: 1 vendor, 1 model")
    else:
        assert output.err == f"dragoman: the config file is {told}"


@pytest.mark.parametrize("command", COMMANDS_WITH_A_TABLE, ids=lambda command: command[0])
def test_the_environment_names_the_table_for_every_command(
    command: list[str], here: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "table.yaml").write_text("no table", encoding="utf-8")
    (here / "other.yaml").write_text(TABLE, encoding="utf-8")
    monkeypatch.setenv("DRAGOMAN_CONFIG", "other.yaml")
    assert main(command) == 0
    assert f"{here / 'other.yaml'} (named by DRAGOMAN_CONFIG)\n" in "".join(capsys.readouterr())


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS_WITH_A_TABLE if each[0] not in ("explain", "prices")], ids=str
)
def test_a_table_may_be_named_without_c(command: list[str], here: Path, capsys: Output) -> None:
    (here / "own.yaml").write_text(TABLE, encoding="utf-8")
    assert main([*command, "own.yaml"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*command, "own.yaml", "-c", "own.yaml"]) == USAGE
    assert capsys.readouterr().err == "dragoman: only one config file: own.yaml and -c own.yaml\n"


@pytest.mark.parametrize("form", ["json", "github"])
def test_what_programs_read_of_a_check_begins_with_its_findings(form: str, here: Path, capsys: Output) -> None:
    (here / "table.yaml").write_text(TABLE, encoding="utf-8")
    assert main(["check", "--output", form]) == 0
    output = capsys.readouterr()
    assert output.out.startswith({"json": "[]\n", "github": "ok: "}[form])
    assert output.err == f"checking {here / 'table.yaml'} (found in this folder)\n"


def test_what_programs_read_of_an_explanation_is_json_alone(here: Path, capsys: Output) -> None:
    assert main(["explain", "request.json", "--output", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "mock/own"


def test_a_table_that_cannot_be_served_is_named_by_where_its_name_came_from(
    here: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_CONFIG", "gone.yaml")
    assert main(["serve"]) == 1
    assert capsys.readouterr().err == (
        f"dragoman: the config file is {here / 'gone.yaml'} (named by DRAGOMAN_CONFIG)\n"
        "gone.yaml:1:1 cannot read the file: No such file or directory\n"
    )


def test_an_error_that_is_not_the_outputs_is_not_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (OSError(errno.ENOSPC, "full", "t.yaml"), OSError(errno.EACCES, "no")):
        raising(error, monkeypatch)
        with pytest.raises(ExceptionGroup) as caught:
            main(["version"])
        assert caught.value.exceptions == (error,)
