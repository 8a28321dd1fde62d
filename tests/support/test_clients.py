"""How SDKs are installed and kept: locked with hashes, named after their lock, whole or not at all."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import clients


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setattr(clients, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every pip command; it makes the directory and succeeds."""
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        Path(command[command.index("--target") + 1]).mkdir()
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    return commands


@pytest.mark.parametrize("name", clients.RECIPES)
def test_a_lock_pins_the_wanted_version_with_hashes_and_names_no_host(name: str) -> None:
    text = (clients.LOCKS / f"{name}.lock").read_text(encoding="utf-8")
    pins = re.findall(r"^[a-z0-9._-]+==.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)*", text, re.MULTILINE)
    assert [pin.splitlines()[0] for pin in pins if "--hash=" not in pin] == []
    assert clients.RECIPES[name].requirement in {pin.split()[0] for pin in pins}
    assert re.findall(r"://|^\s*-(?!-hash)|@ ", text, re.MULTILINE) == []


def test_there_is_no_lock_without_a_recipe() -> None:
    assert {path.stem for path in clients.LOCKS.glob("*.lock")} == set(clients.RECIPES)


def test_another_lock_is_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "LOCKS", tmp_path)
    directories = set()
    for text in ("a==1", "a==2", "a==1"):
        (tmp_path / "openai3.lock").write_text(text, encoding="utf-8")
        directories.add(clients.directory_of("openai3"))
    assert len(directories) == 2
    assert all(sys.implementation.cache_tag in directory.name for directory in directories)


def test_what_is_there_is_not_installed_again(cache: Path, installed: list[list[str]]) -> None:
    assert clients.install("openai3") == clients.install("openai3")
    assert len(installed) == 1
    assert "--require-hashes" in installed[0]


def test_nothing_in_the_cache_can_be_committed(cache: Path, installed: list[list[str]]) -> None:
    clients.install("openai3")
    assert (cache / ".gitignore").read_text(encoding="utf-8") == "*\n"


def test_an_interrupted_installation_does_not_count(
    cache: Path, installed: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    working = subprocess.run

    def interrupt(command: list[str], **_: object) -> None:
        working(command, check=False)
        (Path(command[command.index("--target") + 1]) / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        clients.install("openai3")
    assert not clients.directory_of("openai3").exists()
    monkeypatch.setattr(subprocess, "run", working)
    assert list(clients.install("openai3").iterdir()) == []


def test_a_failed_installation_says_why(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "no network")

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(RuntimeError, match=r"openai==[\d.]+:\nno network"):
        clients.install("openai3")
    assert not clients.directory_of("openai3").exists()
