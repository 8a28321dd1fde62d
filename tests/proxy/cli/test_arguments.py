"""Arguments reach their command, wrong ones are named, and every help text has examples."""

from pathlib import Path

import pytest

from proxy.cli.arguments import SHELLS, SURFACE_NAMES
from proxy.cli.completion_command import SCRIPTS
from proxy.cli.main import main
from proxy.cli.terminal import USAGE
from proxy.surfaces.registry import SURFACES

COMMANDS = (
    *(
        "demo",
        "serve",
        "check",
        "routes",
        "explain",
        "key",
        "logs",
        "schema",
        "vendors",
        "prices",
        "import",
        "completion",
    ),
    "version",
)
Output = pytest.CaptureFixture[str]


def usage_error(*arguments: str) -> int | str | None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    return caught.value.code


@pytest.mark.parametrize(
    "arguments", [[], ["chekc"], ["serve", "--port", "x"], ["check", "--output", "xml"], ["key"], ["import"]]
)
def test_wrong_usage_is_status_2(arguments: list[str], capsys: Output) -> None:
    assert usage_error(*arguments) == 2
    assert "dragoman" in capsys.readouterr().err


@pytest.mark.parametrize("port", ["-1", "65536", "8080.0", "²"])
def test_a_number_that_is_no_port_is_named(port: str, capsys: Output) -> None:
    assert usage_error("serve", f"--port={port}") == 2
    assert f"'{port}' is not a port: 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_commands_help_ends_in_examples_of_it(command: str, capsys: Output) -> None:
    assert usage_error(command, "--help") == 0
    examples = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
    assert examples
    assert all(line.startswith(f"  dragoman {command}") for line in examples)


def test_the_help_names_every_command(capsys: Output) -> None:
    assert usage_error("--help") == 0
    listed = capsys.readouterr().out
    assert [
        command
        for command in COMMANDS
        if f"    {command}" not in listed.splitlines() and f"    {command} " not in listed
    ] == []


def test_the_surfaces_and_shells_to_choose_from_are_those_there_are() -> None:
    assert set(SURFACE_NAMES) == {surface.name for surface in SURFACES}
    assert set(SHELLS) == SCRIPTS.keys()


def test_completion_and_import_are_reached(tmp_path: Path, capsys: Output) -> None:
    assert main(["completion", "fish"]) == 0
    assert "complete -c dragoman" in capsys.readouterr().out
    config = tmp_path / "my config.json"
    config.write_text('{"provider": "groq", "override_params": {"model": "m"}}', encoding="utf-8")
    assert main(["import", "portkey", str(config)]) == 0
    assert "routes: {my-config: groq/m}" in capsys.readouterr().out


def test_key_schema_check_and_routes_are_reached(capsys: Output) -> None:
    assert [main(["key", "new"]), main(["schema"]), main(["check", "--strict", "--output", "json"])] == [0, 0, 0]
    assert capsys.readouterr().out.startswith("drg_")
    assert main(["routes"]) == 0
    assert "mock/echo" in capsys.readouterr().out
    assert main(["routes", "--team", "search"]) == USAGE
    assert "the configuration has no teams" in capsys.readouterr().err


def test_explain_is_reached_with_its_form(tmp_path: Path, capsys: Output) -> None:
    body = tmp_path / "request.json"
    body.write_text('{"model": "mock/echo", "prompt": "hi"}', encoding="utf-8")
    assert main(["explain", str(body), "--output", "json", "--path", "/v5/completions"]) == 0
    assert '"surface": "scale"' in capsys.readouterr().out


@pytest.mark.smoke
def test_one_demonstration_is_reached(capsys: Output) -> None:
    assert main(["demo", "--once", "--port", "0"]) == 0
    assert "One endpoint, one request language, one completion shape, any vendor." in capsys.readouterr().out


def test_the_version_is_there_as_an_option_too(capsys: Output) -> None:
    assert usage_error("--version") == 0
    as_option = capsys.readouterr().out
    assert main(["version"]) == 0
    assert capsys.readouterr().out == as_option
