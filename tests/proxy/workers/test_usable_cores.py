"""The usable cores are the cores of the affinity mask, reduced by the limits of control groups."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from proxy.workers.usable_cores import usable_cores


def cores_on(
    monkeypatch: pytest.MonkeyPatch, folder: Path, mask: int, group: str | None, limits: Mapping[str, str]
) -> int:
    """Return the result on a machine that lets this process run on `mask` cores, in that group, with these files."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(mask)))
    own, mount = folder / "cgroup", folder / "mount"
    if group is not None:
        own.write_text(group, encoding="utf-8")
    for path, text in limits.items():
        (mount / path).mkdir(parents=True, exist_ok=True)
        (mount / path / "cpu.max").write_text(text, encoding="ascii")
    return usable_cores(own, mount)


CASES: Mapping[str, tuple[int, str | None, Mapping[str, str], int]] = {
    "no control groups": (4, None, {}, 4),
    "no limit": (4, "0::/a\n", {"a": "max 100000\n"}, 4),
    "a limit of two": (4, "0::/a\n", {"a": "200000 100000\n"}, 2),
    "a limit above the mask": (2, "0::/a\n", {"a": "800000 100000\n"}, 2),
    "a part of a core is none": (4, "0::/a\n", {"a": "250000 100000\n"}, 2),
    "less than one is one": (4, "0::/a\n", {"a": "20000 100000\n"}, 1),
    "a parent's limit": (8, "0::/a/b/c\n", {"a": "300000 100000", "a/b/c": "max 100000"}, 3),
    "the least of several": (8, "0::/a/b\n", {"a": "500000 100000", "a/b": "400000 100000"}, 4),
    "another period": (8, "0::/a\n", {"a": "50000 10000"}, 5),
    "a container's own root": (8, "0::/\n", {".": "300000 100000"}, 3),
    "the host's path in a container": (8, "0::/../../pod\n", {".": "300000 100000"}, 3),
    "version 1 beside it": (8, "3:cpu:/x\n0::/a\n", {"a": "300000 100000", "x": "100000 100000"}, 3),
    "version 1 alone": (8, "3:cpu:/x\n", {"x": "100000 100000"}, 8),
    "not as documented": (8, "0::/a\n", {"a": "lots"}, 8),
    "no period": (8, "0::/a\n", {"a": "100000 0"}, 8),
}


@pytest.mark.parametrize(("mask", "group", "limits", "cores"), CASES.values(), ids=CASES)
def test_as_many_as_may_run_and_are_granted(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    mask: int,
    group: str | None,
    limits: Mapping[str, str],
    cores: int,
) -> None:
    assert cores_on(monkeypatch, tmp_path, mask, group, limits) == cores


def test_without_a_mask_all_cores_of_the_machine_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    assert usable_cores(tmp_path / "none", tmp_path) == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert usable_cores(tmp_path / "none", tmp_path) == 1


def test_this_machine_has_at_least_one() -> None:
    assert 1 <= usable_cores() <= (os.cpu_count() or 1)
