"""The memory meter over files as the kernel writes them: both versions, groups within groups, and values that are not
a limit."""

import asyncio
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.overload.memory_usage import V1, V2, CgroupFiles, Group, MemoryMeter, groups, reclaimable
from tests.proxy.kit.virtual_time import in_virtual_time

UNLIMITED = {V1: "9223372036854771712\n", V2: "max\n"}
VERSIONS = pytest.mark.parametrize("names", [V1, V2], ids=["v1", "v2"])


def group(folder: Path, names: CgroupFiles, limit: str, usage: int, inactive: int = 0) -> Group:
    """Create a control group with its three files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / names.limit).write_text(limit)
    (folder / names.usage).write_text(f"{usage}\n")
    # The name of the other version is in both files, with another meaning in version 1.
    stat = f"anon 5\n{names.reclaimable} {inactive}\nactive_file 7\nnot_{names.reclaimable} 9\n"
    (folder / "memory.stat").write_text(stat)
    return Group(folder, names)


@VERSIONS
def test_the_share_is_that_of_the_limit_without_what_can_be_taken_back(names: CgroupFiles, tmp_path: Path) -> None:
    assert group(tmp_path, names, "1000\n", 900).share() == 0.9
    assert group(tmp_path, names, "1000\n", 900, 400).share() == 0.5


@VERSIONS
def test_without_a_limit_nothing_is_used_up(names: CgroupFiles, tmp_path: Path) -> None:
    assert group(tmp_path, names, UNLIMITED[names], 2**40).share() == 0.0


@VERSIONS
def test_more_than_the_limit_is_more_than_all_and_less_than_none_is_none(names: CgroupFiles, tmp_path: Path) -> None:
    assert group(tmp_path, names, "1000\n", 1500).share() == 1.5
    assert group(tmp_path, names, "1000\n", 100, 400).share() == 0.0
    assert group(tmp_path, names, "0\n", 100).share() == 100.0


@given(st.text(), st.sampled_from([V1.reclaimable, V2.reclaimable]), st.integers(0, 2**62))
def test_the_line_is_found_wherever_it_stands(before: str, name: str, value: int) -> None:
    before = "".join(f"x{line}\n" for line in before.splitlines())
    assert reclaimable(f"{before}{name} {value}\n", name) == value
    assert reclaimable(before, name) == 0


def own(folder: Path, text: str) -> Path:
    (folder / "cgroup").write_text(text)
    return folder / "cgroup"


def test_a_group_of_version_2_is_bound_by_those_around_it(tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    inner = group(mount / "system.slice" / "gateway.service", V2, "max\n", 10)
    outer = group(mount / "system.slice", V2, "1000\n", 10)
    assert groups(own(tmp_path, "0::/system.slice/gateway.service\n"), mount) == (inner, outer)


def test_a_container_of_version_2_sees_its_group_at_the_root(tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    only = group(mount, V2, "1000\n", 10)
    for line in ("0::/\n", "0::/../../other\n", "0::/kubepods/pod1/abc\n"):
        assert groups(own(tmp_path, line), mount) == (only,)


def test_version_1_is_read_where_it_has_the_memory_controller(tmp_path: Path) -> None:
    mount = tmp_path / "mount"
    group(mount, V2, "1000\n", 10)
    inner = group(mount / "memory" / "docker" / "abc", V1, "1000\n", 10)
    outer = group(mount / "memory", V1, UNLIMITED[V1], 10)
    text = "9:name=systemd:/\n4:cpu,memory:/docker/abc\n0::/elsewhere\n"
    assert groups(own(tmp_path, text), mount) == (inner, outer)


@pytest.mark.parametrize("text", ["", "\n", "nonsense\n", "1:cpu:/\n", "0::/\n"])
def test_without_control_groups_nothing_binds(text: str, tmp_path: Path) -> None:
    assert groups(own(tmp_path, text), tmp_path / "mount") == ()


def test_without_a_proc_file_system_nothing_binds(tmp_path: Path) -> None:
    assert groups(tmp_path / "absent", tmp_path) == ()


def test_the_groups_of_this_machine_can_be_read() -> None:
    assert all(bound.share() >= 0 for bound in groups())


def test_the_tightest_group_counts_and_one_that_is_gone_does_not(tmp_path: Path) -> None:
    meter = MemoryMeter(
        (
            group(tmp_path / "a", V2, "1000\n", 200),
            group(tmp_path / "b", V2, "1000\n", 800),
            group(tmp_path / "c", V2, "nonsense\n", 900),
            Group(tmp_path / "gone", V2),
        )
    )
    assert meter.share == 0.0
    meter.read()
    assert meter.share == 0.8
    (tmp_path / "b" / V2.usage).unlink()
    meter.read()
    assert meter.share == 0.2


def test_without_groups_nothing_is_used_up() -> None:
    meter = MemoryMeter(())
    meter.read()
    assert meter.share == 0.0


@in_virtual_time
async def test_it_is_read_at_once_and_then_every_second(tmp_path: Path) -> None:
    meter = MemoryMeter((group(tmp_path, V2, "1000\n", 200),))
    reading = asyncio.create_task(meter.run())
    await asyncio.sleep(0.5)
    assert meter.share == 0.2
    group(tmp_path, V2, "1000\n", 900)
    await asyncio.sleep(0.4)
    assert meter.share == 0.2
    await asyncio.sleep(0.2)
    assert meter.share == 0.9
    reading.cancel()
