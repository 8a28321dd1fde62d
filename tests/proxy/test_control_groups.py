"""The control groups of this process, as the kernel reports them: both versions, groups within groups, and no group."""

from pathlib import Path

import pytest

from proxy.control_groups import own_groups, with_parents
from tests.support.looped import looped

ROOT = Path("/mount")


def own(folder: Path, text: str) -> Path:
    (folder / "cgroup").write_text(text, encoding="utf-8")
    return folder / "cgroup"


def test_each_hierarchy_has_its_group(tmp_path: Path) -> None:
    text = "9:name=systemd:/a\n4:cpu,memory:/docker/a:b\n0::/elsewhere\n"
    assert own_groups(own(tmp_path, text)) == {"name=systemd": "/a", "cpu,memory": "/docker/a:b", "": "/elsewhere"}


@pytest.mark.parametrize("text", ["", "\n", "nonsense\n", "one:colon\n"])
def test_what_is_no_group_is_none(tmp_path: Path, text: str) -> None:
    assert own_groups(own(tmp_path, text)) == {}


def test_without_a_proc_file_system_there_is_none(tmp_path: Path) -> None:
    assert own_groups(tmp_path / "absent") == {}


def test_a_group_comes_before_those_around_it() -> None:
    assert with_parents(ROOT, "/system.slice/gateway.service") == (
        ROOT / "system.slice" / "gateway.service",
        ROOT / "system.slice",
        ROOT,
    )
    assert with_parents(ROOT, "/") == (ROOT,)


@looped("path", ["/../pod", "/../../other", "/a/../b"])
def test_of_a_group_outside_only_the_root_is_known(path: str) -> None:
    assert with_parents(ROOT, path) == (ROOT,)
