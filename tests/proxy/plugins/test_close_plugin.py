"""The end of plugins, whatever their `close()` does."""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import pytest

from config.load_config import load_text
from proxy.off_loop.request_threads import RequestThreads
from proxy.plugins import plugin_threads
from proxy.plugins.load_plugins import LoadedPlugin
from proxy.plugins.plugin_threads import begin_close
from proxy.plugins.post_json import JsonPoster
from proxy.plugins.team_guards import TeamGuards
from proxy.plugins.usage_sinks import SinkRegistry
from tests.proxy.kit.whole_gateway import MOCK, up
from tests.proxy.plugins.kit import RELEASE, Hider, plugin
from tests.support.gateway import running_gateway
from tests.support.waiting import until

LOG = logging.getLogger("dragoman")
BOTH = "version: 1\nvendors: {mock: {}}\nmodels: {mock/echo: {}}\nplugins: {p: {use: x}}\n"
LATE = "plugin {} is abandoned: its close() takes longer than {:g} s"


class ClosingPlugin:
    """A plugin that closes as its options say."""

    def __init__(self, close: Callable[[], object]) -> None:
        self.close = close


def closed(made: object) -> threading.Thread:
    closing = begin_close(LoadedPlugin("p", made, 1.0, False), LOG)
    assert closing is not None
    return closing


@pytest.fixture
def blocking() -> Iterator[threading.Event]:
    yield RELEASE
    RELEASE.set()
    RELEASE.clear()  # other tests' plugins may hang; the tasks that waited continue


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugin_threads, "CLOSE_WITHIN", 0.05)


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_plugin_is_closed_in_a_thread_and_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[threading.Thread] = []
    may_go = threading.Event()

    def close() -> None:
        may_go.wait()
        seen.append(threading.current_thread())

    waiting = closed(ClosingPlugin(close))
    assert waiting.is_alive()
    may_go.set()
    waiting.join()
    assert seen != [threading.main_thread()]
    assert messages(caplog) == []


def test_one_that_blocks_is_named(blocking: threading.Event, hasty: None, caplog: pytest.LogCaptureFixture) -> None:
    others = threading.enumerate()
    waiting = closed(ClosingPlugin(blocking.wait))
    waiting.join()
    (left,) = [each for each in threading.enumerate() if each.name == "plugin p" and each not in others]
    assert left.daemon
    assert messages(caplog) == [LATE.format("p", 0.05)]
    blocking.set()
    left.join()


def test_one_that_raises_is_named_without_what_it_says(caplog: pytest.LogCaptureFixture) -> None:
    def close() -> None:
        raise SystemExit("canary")

    closed(ClosingPlugin(close)).join()
    (message,) = messages(caplog)
    assert message.startswith("plugin p could not be closed: its close() raised SystemExit at test_close_plugin.py:")
    assert "canary" not in message


def test_one_without_a_close_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    closed(object()).join()
    assert messages(caplog) == []


@pytest.mark.usefixtures("hasty")
async def test_guards_and_sinks_that_block_hold_up_neither_a_reload_nor_the_loop_nor_the_end(
    tmp_path: Path, blocking: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    table = f"{MOCK}plugins: {{a: {plugin('Lingerer')}, b: {plugin('Hider')}}}\n"
    async with asyncio.timeout(30), up(table, tmp_path) as app:
        (tmp_path / "t.yaml").write_text(f"{MOCK}plugins: {{c: {plugin('Lingerer')}}}\n", encoding="utf-8")
        assert not (await app.reloader.reload()).problems
        await until(lambda: LATE.format("a", 0.05) in messages(caplog))
        assert LATE.format("c", 0.05) not in messages(caplog)
    assert LATE.format("c", 0.05) in messages(caplog)
    assert not blocking.is_set()


async def test_a_slow_close_of_a_guard_is_waited_for_at_the_end(tmp_path: Path) -> None:
    made: list[Hider] = []
    table = f"{MOCK}plugins: {{g: {plugin('Hider')}}}\n"
    async with up(table, tmp_path) as app:
        registry = app.front.plugins.guards
        assert registry is not None
        guard: Hider = registry.running["g"].plugin.made
        began, close = threading.Event(), guard.close

        def slow() -> None:
            began.wait()
            close()

        guard.close = slow  # type: ignore[method-assign]
        asyncio.get_running_loop().call_later(0.05, began.set)
        made.append(guard)
        del registry
    assert [each.closed for each in made] == [1]


async def test_workers_whose_plugins_do_not_close_end_with_a_line_of_each(tmp_path: Path) -> None:
    table = f"""\
version: 1
server:
  port: ${{PORT}}
  admin:
    port: ${{ADMIN_PORT}}
  drain_grace: 0s
  watch: false
  workers: 2
vendors: {{mock: {{}}}}
models: {{mock/echo: {{}}}}
plugins: {{stuck: {plugin("Lingerer")}}}
"""
    async with running_gateway(table, tmp_path) as gateway:
        await gateway.serving(2)
        async with aiohttp.ClientSession() as http:
            body = {"model": "mock/echo", "prompt": "hi"}
            async with http.post(f"{gateway.url}/v1/completions", json=body) as answer:
                assert answer.status == 200
        async with asyncio.timeout(45):  # its close() blocks for a minute
            assert await gateway.stop() == 0
        said = gateway.messages()
    assert said.count(LATE.format("stuck", plugin_threads.CLOSE_WITHIN)) >= 2


class GuardAndSink(ClosingPlugin):
    """A plugin that is both."""

    def check_request(self, request: object) -> None:
        """Allow everything."""

    async def deliver(self, rows: object, http: object) -> None:
        """Accept everything."""


@pytest.mark.parametrize("guard_first", [True, False])
async def test_a_plugin_that_is_guard_and_sink_is_closed_once_when_both_have_ended(guard_first: bool) -> None:
    closes: list[str] = []
    plugin = LoadedPlugin("p", GuardAndSink(lambda: closes.append("closed")), 1.0, False)
    loaded = load_text(BOTH, "t.yaml", {})
    registry, sinks = TeamGuards(loaded, {"p": plugin}, LOG, RequestThreads()), SinkRegistry(JsonPoster, LOG)
    await sinks.use(loaded, {"p": plugin})

    async def end_guards() -> None:
        for each in registry.close() or ():
            await asyncio.to_thread(each.join)

    assert [*registry.running] == ["p"]
    for end in (end_guards, sinks.aclose) if guard_first else (sinks.aclose, end_guards):
        assert not closes
        await end()
    assert closes == ["closed"]
