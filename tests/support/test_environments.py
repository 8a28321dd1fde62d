"""Environments are named after their lock and are installed completely or not at all; and the processes in them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import environments
from tests.support.environments import Environment, LineProcess

ANSWERING = """
import sys

for line in sys.stdin:
    if line == "end\\n":
        sys.exit(3)
    print(sys.argv[1] + line, end="", flush=True)
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(environments, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def some(tmp_path: Path, cache: Path) -> Environment:
    lock = tmp_path / "some.lock"
    lock.write_text("a==1", encoding="utf-8")
    return Environment("some", lock, ("a==1", "b"), "python -m locker", ("c", "d"), ("e==1",))


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every pip command. The stand-in makes the directory and succeeds."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        commands.append(command)
        Path(command[command.index("--target") + 1]).mkdir()
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return commands


def test_another_lock_is_another_directory(some: Environment) -> None:
    directories = set()
    for text in ("a==1", "a==2", "a==1"):
        some.lock.write_text(text, encoding="utf-8")
        directories.add(some.directory)
    assert len(directories) == 2
    assert all(str(sys.implementation.cache_tag) in directory.name for directory in directories)


def test_what_is_there_is_not_installed_again(some: Environment, commands: list[list[str]]) -> None:
    assert some.install() == some.install() == some.directory
    assert len(commands) == 1
    assert {"--require-hashes", "--no-deps"} <= set(commands[0])


def test_nothing_in_the_cache_can_be_committed(cache: Path, some: Environment, commands: list[list[str]]) -> None:
    some.install()
    assert (cache / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_an_interrupted_installation_does_not_count(
    some: Environment, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    working = subprocess.run

    def interrupt(command: list[str], **_: object) -> None:
        working(command, check=False)
        (Path(command[command.index("--target") + 1]) / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        some.install()
    assert not some.directory.exists()
    monkeypatch.setattr(subprocess, "run", working)
    assert list(some.install().iterdir()) == []


def test_a_failed_installation_says_why(some: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        return subprocess.CompletedProcess(command, 1, "", "no network")

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(RuntimeError, match=r"a==1:\nno network"):
        some.install()
    assert not some.directory.exists()


def test_a_lock_has_all_requirements_but_what_is_left_out(some: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bool, str]] = []

    def run(command: list[str], *, input: str, **_: object) -> "subprocess.CompletedProcess[str]":
        assert command[command.index("--custom-compile-command") + 1] == "python -m locker"
        excluded = Path(command[command.index("--excludes") + 1]).read_text("utf-8") if "--excludes" in command else ""
        seen.append((input, "--no-deps" in command, excluded))
        return subprocess.CompletedProcess(command, 0, f"{len(seen)}\n", "")

    monkeypatch.setattr(subprocess, "run", run)
    some.write_lock()
    assert seen == [("a==1\nb", False, "c\nd"), ("e==1", True, "")]
    assert some.lock.read_text(encoding="utf-8") == "1\n2\n"


def test_a_process_knows_nothing_of_this_one(
    some: Environment, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ours")
    assert set(some.variables()) == {"PATH", "PYTHONPATH"}
    assert some.variables()["PYTHONPATH"] == str(some.directory)


def test_a_process_answers_lines_until_it_ends(
    some: Environment, commands: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (some.install() / "answering.py").write_text(ANSWERING, encoding="utf-8")
    with LineProcess(some, "answering", "heard ") as process:
        assert [process.exchange(line) for line in ("one", "two")] == ["heard one\n", "heard two\n"]
        with pytest.raises(RuntimeError, match=r"^the process of some ended with status 3 on end$"):
            process.exchange("end")
