"""All installed packages are above their known vulnerabilities, and the gate accepts nothing else."""

import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from proxy.listener.aiohttp_version import LEAST_AIOHTTP
from tests.security.floor import LOCKS, ROOT, Floor, below, load, main, release
from tests.support.looped import looped

FLOORS = load()
BAD = "aiohttp==3.9.0 \\\n    --hash=sha256:00\n"


@looped("lock", LOCKS)
def test_no_lock_holds_a_package_below_its_floor(lock: str) -> None:
    assert below((ROOT / lock).read_text("utf-8"), FLOORS) == []


def test_the_gate_fails_on_a_planted_hole_and_names_what_is_open(tmp_path: Path) -> None:
    planted = tmp_path / "planted.lock"
    planted.write_text((ROOT / LOCKS[0]).read_text("utf-8").replace("aiohttp==", "aiohttp==3.9.0 # "), "utf-8")
    command = [sys.executable, "-m", "tests.security.floor", str(planted)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.startswith("planted.lock: aiohttp 3.9.0 is below 3.14.3: CVE-2024-23829, ")
    assert "CVE-2023-49081" not in done.stdout
    assert "CVE-2026-69244" in done.stdout


def test_the_gate_passes_on_what_is_locked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.startswith(f"{len(LOCKS)} locks hold nothing below the ")


def test_a_file_that_pins_nothing_is_no_lock() -> None:
    with pytest.raises(ValueError, match="no pinned package"):
        below("", FLOORS)


@looped(
    ("version", "sound"),
    [
        *((version, True) for version in ("3.14.3", "3.14.10", "3.15", "4.0.0a1", "3.14.3.post1")),
        *((version, False) for version in ("3.14.2", "3.14.3rc1", "3.14.3.dev0", "3.9.0", "3")),
    ],
)
def test_versions_are_compared_by_their_numbers(version: str, sound: bool) -> None:
    floors = {"aiohttp": Floor(least="3.14.3", because={"3.14.3": ("CVE-1",)})}
    assert (below(f"AioHTTP=={version} ; python_version > '3'\n", floors) == []) is sound


def test_every_floor_says_why_and_is_the_last_of_its_reasons() -> None:
    for name, floor in FLOORS.items():
        assert max(floor.because, key=release) == floor.least, name
        known = [each for advisories in floor.because.values() for each in advisories]
        assert len(set(known)) == len(known) > 0
        assert [each for each in known if not re.fullmatch(r"CVE-\d{4}-\d{4,}", each)] == []


def test_every_floor_is_of_a_package_that_some_lock_has() -> None:
    locked = {
        name for lock in LOCKS for name in re.findall(r"^([a-z0-9-]+)==", (ROOT / lock).read_text(), re.MULTILINE)
    }
    assert FLOORS.keys() - locked == set()


def test_no_declared_dependency_allows_a_version_below_its_floor() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    for requirement in declared:
        found = re.match(r"([A-Za-z-]+)>=([0-9.]+),<", requirement)
        assert found is not None, requirement
        assert below(f"{found[1]}=={found[2]}", FLOORS) == []


def test_what_is_installed_is_above_every_floor() -> None:
    installed = {name: version for name in FLOORS if (version := version_of(name))}
    assert "aiohttp" in installed
    assert below("\n".join(f"{name}=={version}" for name, version in installed.items()), FLOORS) == []


def version_of(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def test_the_gateway_s_own_floor_is_that_of_the_file() -> None:
    assert ".".join(map(str, LEAST_AIOHTTP)) == FLOORS["aiohttp"].least


@looped("lock", LOCKS[:3])
def test_everything_that_is_run_or_builds_it_comes_with_hashes_and_none_is_built_on_the_way(lock: str) -> None:
    pins = re.split(r"\n(?=[a-z0-9])", (ROOT / lock).read_text("utf-8"))
    packages = [pin for pin in pins if "==" in pin.splitlines()[0]]
    # A single hash would be a source distribution without wheels.
    assert [pin.splitlines()[0] for pin in packages if pin.count("--hash=sha256:") < 2] == []
