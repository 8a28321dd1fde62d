"""The program starts, prints one line for each mistake, and leaves no traceback on a closed pipe."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forked_program import run_program
from tests.support.looped import looped

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = (sys.executable, "-m", "proxy")


def run(*arguments: str, stdin: bytes | None = None) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([*PROGRAM, *arguments], cwd=ROOT, input=stdin, capture_output=True, check=False)


@pytest.mark.smoke
def test_the_module_is_the_program() -> None:
    done = run("version")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"dragoman ")


@pytest.mark.smoke
def test_the_console_script_is_the_program() -> None:
    script = Path(sys.executable).with_name("dragoman")
    done = subprocess.run([script, "version"], capture_output=True, check=False)
    assert done.stdout == run("version").stdout


def test_without_a_command_the_usage_is_shown() -> None:
    done = run()
    assert done.returncode == 2
    assert b"usage: dragoman" in done.stderr


def test_a_reader_that_went_away_is_no_traceback() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    try:
        done = subprocess.run(
            [*PROGRAM, "schema"], cwd=ROOT, stdout=write_end, stderr=subprocess.PIPE, check=False, text=True
        )
    finally:
        os.close(write_end)
    assert (done.returncode, done.stderr) == (141, "")


def with_output(redirection: str, arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the program once with its standard output redirected by a shell."""
    script = f'exec "$0" -m proxy {arguments} {redirection}'
    return subprocess.run(["sh", "-c", script, sys.executable], cwd=ROOT, capture_output=True, check=False, text=True)


@pytest.mark.parametrize(
    ("arguments", "unbuffered"), [("schema", ""), ("key new", ""), ("--version", ""), ("--help", ""), ("version", "1")]
)
def test_an_output_that_is_full_is_one_line(arguments: str, unbuffered: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    done = with_output(">/dev/full", arguments)
    own = [line for line in done.stderr.splitlines() if not line.startswith("The key, ")]
    assert (done.returncode, own) == (1, ["dragoman: cannot write the output: No space left on device"])


@looped("arguments", ["check", "schema", "--version", "key new", "demo --once"])
def test_without_an_output_nothing_is_done_for_it(arguments: str) -> None:
    done = with_output(">&-", arguments)
    assert (done.returncode, done.stderr) == (1, "dragoman: cannot write the output: standard output is closed\n")


@looped("command", ["serve", "routes", "check"])
def test_a_missing_table_is_one_line(command: str) -> None:
    done = run_program(("-m", "proxy", command, "-c", "nowhere.yaml"))
    said = (done.stdout if command == "check" else done.stderr).decode()
    assert done.returncode == 1
    assert (
        said.removeprefix(f"checking {ROOT / 'nowhere.yaml'}\n")
        == "nowhere.yaml:1:1 cannot read the file: No such file or directory\n"
    )


@pytest.mark.parametrize(("arguments", "heavy"), [(("version",), "pydantic"), (("check",), "aiohttp")])
def test_short_commands_do_not_wait_for_what_they_do_not_need(arguments: tuple[str, ...], heavy: str) -> None:
    code = f"import sys; from proxy.cli.main import main; main({list(arguments)}); sys.exit({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_a_command_does_not_look_for_cycles_among_its_modules() -> None:
    code = """
import gc, sys
from proxy.__main__ import main
def looks(): return sum(each["collections"] for each in gc.get_stats())
before = looks()
sys.argv[1:] = ["check"]
main()
sys.exit(looks() - before > 9)
"""
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False).returncode == 0


def test_text_that_the_terminal_cannot_show_is_escaped(tmp_path: Path) -> None:
    table = tmp_path / "t.yaml"
    table.write_text("version: 1\nvendors: {modèle: {}}\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*PROGRAM, "check", "-c", str(table)], cwd=ROOT, env=environment, capture_output=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == b""


def test_make_hands_the_demos_arguments_on() -> None:
    make = ["make", "--no-print-directory", "--dry-run", "--always-make", "demo", "ARGS=--once"]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, check=False, text=True)
    assert done.stdout.splitlines()[-1].endswith("dragoman demo --once")
