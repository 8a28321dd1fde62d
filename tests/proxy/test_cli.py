"""Arguments reach their command, mistakes are one line and a status, and every help has examples."""

import argparse
import errno
import json
from pathlib import Path

import pytest

from proxy import cli
from proxy.cli import CLOSED_PIPE, INTERRUPTED, SURFACE_NAMES, main
from proxy.surfaces.registry import SURFACES
from proxy.terminal import USAGE, CommandError

COMMANDS = ("demo", "serve", "check", "routes", "explain", "key", "schema", "vendors", "prices", "version")
Output = pytest.CaptureFixture[str]


def usage_error(*arguments: str) -> int | str | None:
    """The exit status of arguments that are refused."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return caught.value.code


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `version` raise."""

    def run(_: argparse.Namespace) -> int:
        raise error

    monkeypatch.setattr(cli, "_version", run)


def test_the_status_of_the_command_is_the_status_of_the_program(capsys: Output) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("dragoman ")


@pytest.mark.parametrize(
    "arguments", [[], ["chekc"], ["serve", "--port", "x"], ["check", "--output", "xml"], ["key"], ["prices"]]
)
def test_wrong_usage_is_status_2(arguments: list[str], capsys: Output) -> None:
    assert usage_error(*arguments) == 2
    assert "usage: dragoman" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["-1", "65536", "8080.0", "²"])
def test_a_number_that_is_no_port_is_named(port: str, capsys: Output) -> None:
    assert usage_error("serve", f"--port={port}") == 2
    assert f"'{port}' is no port: 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_commands_help_ends_in_examples_of_it(command: str, capsys: Output) -> None:
    assert usage_error(command, "--help") == 0
    examples = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith(f"  dragoman {command}") for line in examples)


def test_the_help_names_every_command(capsys: Output) -> None:
    assert usage_error("--help") == 0
    listed = capsys.readouterr().out
    assert [command for command in COMMANDS if f"    {command} " not in listed] == []


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
    monkeypatch.setattr(cli, "_forget_output", lambda: None)
    assert main(["version"]) == CLOSED_PIPE
    assert capfd.readouterr().err == ""


def test_the_surfaces_to_choose_from_are_those_there_are() -> None:
    assert set(SURFACE_NAMES) == {surface.name for surface in SURFACES}


def test_key_schema_and_check_are_reached(capsys: Output) -> None:
    assert [main(["key", "new"]), main(["schema"]), main(["check", "--strict", "--output", "json"])] == [0, 0, 0]
    assert capsys.readouterr().out.startswith("drg_")


def test_routes_are_reached_with_their_team(capsys: Output) -> None:
    assert main(["routes"]) == 0
    assert "mock/echo" in capsys.readouterr().out
    assert main(["routes", "--team", "search"]) == USAGE
    assert "the table has no teams" in capsys.readouterr().err


def test_explain_is_reached_with_its_form(tmp_path: Path, capsys: Output) -> None:
    body = tmp_path / "request.json"
    body.write_text('{"model": "mock/echo", "prompt": "hi"}', encoding="utf-8")
    assert main(["explain", str(body), "--output", "json", "--path", "/v5/completions"]) == 0
    assert '"surface": "scale"' in capsys.readouterr().out


def test_one_demonstration_is_reached(capsys: Output) -> None:
    assert main(["demo", "--once", "--port", "0"]) == 0
    assert "any vendor." in capsys.readouterr().out.splitlines()[-1]


def test_the_version_is_there_as_an_option_too(capsys: Output) -> None:
    assert usage_error("--version") == 0
    as_option = capsys.readouterr().out
    assert main(["version"]) == 0
    assert capsys.readouterr().out == as_option


TABLE = "version: 1\nvendors: {mock: }\nmodels: {mock/own: }\n"
"""A table unlike the embedded one."""

EMBEDDED_WARNING = (
    "dragoman: warning: no table is named (-c FILE, or DRAGOMAN_CONFIG) and there is no table.yaml in this folder: "
    "this is the embedded one, which has only the mock vendor\n"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, empty but for a request, and no table named by the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DRAGOMAN_CONFIG", raising=False)
    (tmp_path / "request.json").write_text('{"model": "mock/own", "prompt": "hi"}', encoding="utf-8")
    return tmp_path


COMMANDS_WITH_A_TABLE = [["check"], ["routes"], ["explain", "request.json"], ["prices", "import"]]


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
        assert output.err == f"dragoman: the table is {told}"


@pytest.mark.parametrize("command", COMMANDS_WITH_A_TABLE, ids=lambda command: command[0])
def test_the_environment_names_the_table_for_every_command(
    command: list[str], here: Path, capsys: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    (here / "table.yaml").write_text("no table", encoding="utf-8")
    (here / "other.yaml").write_text(TABLE, encoding="utf-8")
    monkeypatch.setenv("DRAGOMAN_CONFIG", "other.yaml")
    assert main(command) == 0
    assert f"{here / 'other.yaml'} (named by DRAGOMAN_CONFIG)\n" in "".join(capsys.readouterr())


@pytest.mark.parametrize("command", [each for each in COMMANDS_WITH_A_TABLE if each[0] != "explain"], ids=str)
def test_a_table_may_be_named_without_c(command: list[str], here: Path, capsys: Output) -> None:
    (here / "own.yaml").write_text(TABLE, encoding="utf-8")
    assert main([*command, "own.yaml"]) == 0
    assert capsys.readouterr().err == ""
    assert main([*command, "own.yaml", "-c", "own.yaml"]) == USAGE
    assert capsys.readouterr().err == "dragoman: one table at a time: own.yaml and -c own.yaml\n"


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
        f"dragoman: the table is {here / 'gone.yaml'} (named by DRAGOMAN_CONFIG)\n"
        "gone.yaml:1:1 cannot read the file: No such file or directory\n"
    )


def test_an_error_that_is_not_the_outputs_is_not_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for error in (OSError(errno.ENOSPC, "full", "t.yaml"), OSError(errno.EACCES, "no")):
        raising(error, monkeypatch)
        with pytest.raises(ExceptionGroup) as caught:
            main(["version"])
        assert caught.value.exceptions == (error,)
