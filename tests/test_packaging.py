"""The installed and shipped distribution: its dependencies, lock files, wheel, and the owners of its three import
names."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from tests.support.looped import looped

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("config", "providers", "proxy")
RUNTIME = {"aiohttp", "pydantic", "pyyaml", "tenacity", "prometheus-client", "orjson", "jsonschema-rs"} | {
    "aiohappyeyeballs",
    "httptools",
    "jiter",
}
RUNTIME_LOCK, CLOUDS_LOCK, DEV_LOCK = LOCKS = ("requirements.lock", "requirements-clouds.lock", "requirements-dev.lock")
BUILD_LOCK, PIP_LOCK, DOCS_LOCK = "requirements-build.lock", "requirements-pip.lock", "requirements-docs.lock"
CLOUDS = ("aws", "azure", "gcp", "otel", "postgres", "redis")
"""The extras for credentials and for state that processes share. The second lock has them besides the runtime's."""


def project() -> dict[str, Any]:  # Any: values of TOML
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def name_of(requirement: str) -> str:
    found = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert found is not None, requirement
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def locked(lock: str) -> dict[str, set[str]]:
    """Return the versions of each distribution in a lock; several if they differ by Python version or platform."""
    versions: dict[str, set[str]] = {}
    for name, version in re.findall(r"^([a-z0-9._-]+)==([^ ;\\]+)", (ROOT / lock).read_text("utf-8"), re.MULTILINE):
        versions.setdefault(name, set()).add(version)
    return versions


def strangers(owners: list[str]) -> list[str]:
    """Return the owners of an import name other than this project."""
    return [owner for owner in owners if owner != "dragoman"]


@looped("package", PACKAGES)
def test_no_other_distribution_owns_the_import_name(package: str) -> None:
    # An editable install lists no owner at all, so the test checks only that there is no other owner.
    assert strangers(metadata.packages_distributions().get(package, [])) == []


def test_another_owner_would_be_named() -> None:
    assert strangers(["dragoman", "proxy-py"]) == ["proxy-py"]


def test_the_runtime_needs_exactly_ten_distributions() -> None:
    declared = project()["project"]["dependencies"]
    assert {name_of(requirement) for requirement in declared} == RUNTIME
    assert len(declared) == len(RUNTIME)


def test_the_installed_metadata_is_that_of_this_checkout() -> None:
    declared = project()["project"]
    assert metadata.version("dragoman") == declared["version"]
    installed = [name_of(line) for line in metadata.requires("dragoman") or [] if "extra ==" not in line]
    assert set(installed) == RUNTIME


def test_what_builds_the_wheel_is_locked() -> None:
    declared = project()
    assert declared["dependency-groups"]["build"] == declared["build-system"]["requires"]
    assert {name_of(requirement) for requirement in declared["build-system"]["requires"]} <= locked(BUILD_LOCK).keys()


def test_what_installs_the_locks_is_locked_alone() -> None:
    assert [name_of(each) for each in project()["dependency-groups"]["install"]] == ["pip"] == [*locked(PIP_LOCK)]


def test_what_builds_the_documents_is_locked_alone_and_no_part_of_the_gateway() -> None:
    declared = {name_of(each) for each in project()["dependency-groups"]["docs"]}
    assert declared <= locked(DOCS_LOCK).keys()
    assert declared & {*locked(CLOUDS_LOCK), *locked(DEV_LOCK)} == set()


def test_nothing_that_only_builds_the_wheel_is_installed_to_run_it() -> None:
    build = locked(BUILD_LOCK)
    assert locked(RUNTIME_LOCK).keys() & build.keys() == set()
    assert {"hatchling", "pluggy", "pathspec", "trove-classifiers"} & locked(CLOUDS_LOCK).keys() == set()
    # The tests build wheels, with the same versions.
    assert {name: locked(DEV_LOCK).get(name) for name in build} == build


@looped("lock", [*LOCKS, BUILD_LOCK, PIP_LOCK, DOCS_LOCK])
def test_a_lock_holds_what_is_declared_with_hashes_and_names_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text(encoding="utf-8")
    pins = re.findall(r"^[a-z0-9._-]+==.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)*", text, re.MULTILINE)
    assert pins
    assert [pin.splitlines()[0] for pin in pins if "--hash=" not in pin] == []
    assert lock in (BUILD_LOCK, PIP_LOCK, DOCS_LOCK) or locked(lock).keys() >= RUNTIME
    assert re.findall(r"://|^\s*-(?!-hash)|@ ", text, re.MULTILINE) == []


def extras(*names: str) -> set[str]:
    """Return the distributions that some extras require, or all extras if none is named."""
    declared = project()["project"]["optional-dependencies"]
    return {name_of(requirement) for name in names or declared for requirement in declared[name]}


def test_the_locks_hold_the_extras_that_they_are_for() -> None:
    assert extras() - locked(DEV_LOCK).keys() == set()
    assert extras(*CLOUDS) - locked(CLOUDS_LOCK).keys() == set()


def test_the_locks_agree_so_that_one_environment_serves_all() -> None:
    for narrow, wide in pairwise(map(locked, LOCKS)):
        assert {name: wide.get(name) for name in narrow} == narrow


def test_the_runtime_lock_stays_within_twenty_five_distributions() -> None:
    assert len(locked(RUNTIME_LOCK)) <= 25


def built(checkout: Path, folder: Path) -> Path:
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)],
        cwd=checkout,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def wheel_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def wheel(wheel_file: Path) -> set[str]:
    with zipfile.ZipFile(wheel_file) as archive:
        return set(archive.namelist())


def test_the_wheel_has_the_same_bytes_wherever_and_whenever_it_is_built(wheel_file: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "elsewhere"
    checkout.mkdir()
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    for package in PACKAGES:
        shutil.copytree(ROOT / package, checkout / package, ignore=shutil.ignore_patterns("__pycache__"))
    for path in checkout.rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
        os.utime(path, (1_000_000_000, 1_000_000_000))
    assert built(checkout, tmp_path).read_bytes() == wheel_file.read_bytes()


def test_the_wheel_holds_every_module_and_data_file(wheel: set[str]) -> None:
    files = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.suffix in {".py", ".yaml", ".json"}
    }
    assert files - wheel == set()
    assert {"config/demo_table.yaml", "config/schema.json", "providers/profiles/profiles.yaml"} <= wheel


def test_the_wheel_holds_nothing_outside_the_three_packages(wheel: set[str]) -> None:
    version = project()["project"]["version"]
    tops = {PurePosixPath(name).parts[0] for name in wheel}
    assert tops == {*PACKAGES, f"dragoman-{version}.dist-info"}
    assert [name for name in wheel if name.endswith(".pyc") or "/tests/" in name] == []


def test_the_wheel_carries_the_licence_and_the_command(wheel: set[str]) -> None:
    info = f"dragoman-{project()['project']['version']}.dist-info"
    assert {f"{info}/licenses/LICENSE", f"{info}/entry_points.txt"} <= wheel
