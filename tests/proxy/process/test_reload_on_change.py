"""Changed files are loaded again, once, unless another reload has done so."""

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from config.load_config import Sources, fingerprint
from proxy.process import reload as reload_module
from proxy.process.load_table import LoadedTable, Source
from tests.proxy.kit.table_reloader import BAD, GOOD, OTHER, Rig, reloading, stopped
from tests.support.waiting import until


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """Return a good configuration in use, whose watcher looks often."""
    monkeypatch.setattr(reload_module, "WATCH_EVERY", 0.01)
    return reloading(tmp_path)


async def test_the_watcher_takes_a_change_and_leaves_what_did_not_change(watched: Rig) -> None:
    watching = asyncio.create_task(watched.reloader.watch())
    watched.write(OTHER)
    await until(lambda: watched.models == ["mock/two"])
    await asyncio.sleep(0.1)
    assert watched.count("success") == 1
    await stopped(watching)


async def test_the_watcher_tries_a_bad_table_once_and_its_correction_again(watched: Rig) -> None:
    watching = asyncio.create_task(watched.reloader.watch())
    watched.write(BAD)
    await until(lambda: watched.count("failure") == 1)
    await asyncio.sleep(0.1)
    assert watched.count("failure") == 1
    watched.write(OTHER)
    await until(lambda: watched.models == ["mock/two"])
    await stopped(watching)


async def test_the_watcher_leaves_what_another_has_just_loaded(watched: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(sources: Sources) -> Mapping[Path, str]:
        begun.set()
        go_on.wait()
        return fingerprint(sources)

    monkeypatch.setattr(reload_module, "fingerprint", slow)
    watching = asyncio.create_task(watched.reloader.watch())
    await asyncio.to_thread(begun.wait)
    watched.write(OTHER)
    await watched.reloader.reload()
    go_on.set()
    await asyncio.sleep(0.1)
    assert watched.count("success") == 1
    await stopped(watching)


async def test_the_watcher_leaves_what_another_is_just_loading(watched: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on, load = threading.Event(), threading.Event(), Source.load_to_serve

    def slowly(source: Source) -> LoadedTable:
        table = load(source)
        begun.set()
        go_on.wait()
        return table

    monkeypatch.setattr(Source, "load_to_serve", slowly)
    watched.write(OTHER)
    reloading = asyncio.create_task(watched.reloader.reload())
    await asyncio.to_thread(begun.wait)
    watching = asyncio.create_task(watched.reloader.watch())
    await asyncio.sleep(0.1)
    go_on.set()
    await reloading
    await asyncio.sleep(0.1)
    assert watched.count("success") == 1
    await stopped(watching)


async def test_the_watcher_sees_included_files_come_change_and_go(watched: Rig) -> None:
    watched.write("version: 1\nvendors: {mock: {}}\nmodels: {mock/one: {}}\ninclude: ['more-*.yaml']\n")
    await watched.reloader.reload()
    watching = asyncio.create_task(watched.reloader.watch())
    more = watched.path.with_name("more-1.yaml")
    more.write_text("models: {mock/two: {}}\n")
    await until(lambda: watched.models == ["mock/one", "mock/two"])
    more.write_text("models: {mock/three: {}}\n")
    await until(lambda: watched.models == ["mock/one", "mock/three"])
    more.unlink()
    await until(lambda: watched.models == ["mock/one"])
    await stopped(watching)


INCLUDING = GOOD + "include: ['parts/*.yaml', late.yaml]\n"


async def test_the_watcher_sees_a_correction_in_a_file_that_only_the_refused_table_includes(watched: Rig) -> None:
    watching = asyncio.create_task(watched.reloader.watch())
    part = watched.path.with_name("parts") / "a.yaml"
    part.parent.mkdir()
    part.write_text("models: {nobody/two: {}}\n")
    watched.write(INCLUDING)
    await until(lambda: watched.count("failure") == 1)
    watched.path.with_name("late.yaml").write_text("")  # the missing file is there
    await until(lambda: watched.count("failure") == 2)
    await asyncio.sleep(0.1)
    assert watched.count("failure") == 2
    part.write_text("models: {mock/two: {}}\n")
    await until(lambda: watched.models == ["mock/one", "mock/two"])
    await stopped(watching)


async def test_the_watcher_sees_a_refused_table_taken_back(watched: Rig) -> None:
    watching = asyncio.create_task(watched.reloader.watch())
    watched.write(BAD)
    await until(lambda: watched.count("failure") == 1)
    watched.write(GOOD)
    await until(lambda: watched.count("success") == 1)
    await stopped(watching)


async def test_the_watcher_tries_a_table_that_names_a_file_twice_no_more_than_once_again(watched: Rig) -> None:
    watched.path.with_name("a.yaml").write_text("models: {mock/two: {}}\n")
    watched.path.with_name("b.yaml").symlink_to("a.yaml")
    watched.write(GOOD + "include: [a.yaml, b.yaml]\n")
    watching = asyncio.create_task(watched.reloader.watch())
    await until(lambda: watched.models == ["mock/one", "mock/two"])
    await asyncio.sleep(0.1)
    assert watched.count("success") <= 2
    await stopped(watching)
