"""Sinks: the rows that they get, and the handling of rows that they do not accept."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from config.load_config import load_text
from providers.completion import Usage
from providers.json_types import JsonObject
from proxy.plugins import usage_sinks
from proxy.plugins.api import Poster, UsageRow
from proxy.plugins.load_plugins import LoadedPlugin, load_plugins
from proxy.plugins.usage_sinks import MAX_ROWS, TRIES, RunningSink, SinkRegistry, usage_row
from proxy.request_record import Attempt, RequestRecord
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.whole_gateway import MOCK, port_of, up
from tests.proxy.plugins.kit import Collector, plugin

pytestmark = pytest.mark.smoke


class NoHttp:
    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        return 200

    async def post_inside(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        return 200


def record(number: int = 0) -> RequestRecord:
    made = RequestRecord(f"r{number}", 1.0, "openai", "/v1/x", team="t", key="k", asked="a", model="m/x", status=200)
    made.attempts.append(Attempt("m/x/d", 1.0))
    made.finished = 1.25
    made.usage = Usage(10, 5, {"cached_tokens": 4}, {"reasoning_tokens": 2}, estimated=True)
    return made


ROW = usage_row(record(), 0.5, {"centre": "7"}, 1000)


def sink(made: object, deadline: float = 1.0) -> RunningSink:
    running = RunningSink(LoadedPlugin("s", made, deadline, False), NoHttp(), logging.getLogger("dragoman"))
    running.linger = running.first_wait = 0.0
    return running


def test_a_row_has_the_facts_of_a_request() -> None:
    assert (
        UsageRow(
            *(ROW.id, 1000, "r0", "t", "k", None, {"centre": "7"}, "openai", "a", "m/x", "m/x/d"),
            *(10, 4, 5, 2, True, 0.5, 200, "ok", 250, 1),
        )
        == ROW
    )


async def test_rows_come_in_batches_in_order_and_again_after_failures() -> None:
    made = Collector({"failures": 2})
    running = sink(made)
    for number in range(250):
        running.append(usage_row(record(number), None, {}, 0))
    await running.aclose()
    assert [row.request_id for row in made.rows] == [f"r{number}" for number in range(250)]
    assert (made.tries, running.failures, running.delivered, running.dropped, made.closed) == (5, 2, 250, 0, 1)


async def test_a_batch_that_fails_too_often_is_dropped_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    made = Collector({"failures": TRIES + 1})
    running = sink(made)
    running.append(ROW)
    while running.waiting:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0)
    running.append(ROW)
    await running.aclose()
    assert (running.dropped, running.delivered, len(made.rows)) == (1, 1, 1)
    (warning,) = [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]
    assert "plugin s raises OSError at kit.py" in warning


class Hanging:
    async def deliver(self, rows: Sequence[UsageRow], http: Poster) -> None:
        await asyncio.Event().wait()


async def test_a_delivery_that_hangs_ends_at_its_deadline() -> None:
    running = sink(Hanging(), 0.001)
    running.append(ROW)
    await running.aclose()
    assert (running.failures >= TRIES, running.dropped) == (True, 1)


class Quitting:
    """A sink that raises each of these exceptions in turn, then delivers."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.rows: list[UsageRow] = []

    async def deliver(self, rows: Sequence[UsageRow], http: Poster) -> None:
        await asyncio.sleep(0)
        if self.errors:
            raise self.errors.pop(0)
        self.rows += rows


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, MemoryError])
async def test_whatever_a_sink_raises_is_its_own_failure(
    error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    made = Quitting(error("canary"), error("canary"))
    running = sink(made)
    running.append(ROW)
    while running.waiting:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0)
    assert (made.rows, running.failures, running.delivered) == ([ROW], 2, 1)
    await running.aclose()
    assert f"plugin s raises {error.__name__} at test_usage_sinks.py" in caplog.text
    assert "canary" not in caplog.text


class UncancellableSink(Hanging):
    """A sink that cannot be cancelled until `held` is set."""

    def __init__(self) -> None:
        self.held = asyncio.Event()

    async def deliver(self, rows: Sequence[UsageRow], http: Poster) -> None:
        while not self.held.is_set():
            with suppress(asyncio.CancelledError):
                await self.held.wait()


async def test_a_delivery_that_cannot_be_cancelled_holds_up_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage_sinks, "CANCEL_GRACE", 0.001)
    monkeypatch.setattr(usage_sinks, "LAST_FLUSH", 0.01)
    made = UncancellableSink()
    running = sink(made, 0.001)
    running.append(ROW)
    await running.aclose()
    made.held.set()
    assert running.dropped == 1


async def test_no_more_than_so_many_rows_wait() -> None:
    running = sink(Hanging())
    for _ in range(MAX_ROWS + 3):
        running.append(ROW)
    assert (running.waiting, running.dropped) == (MAX_ROWS, 3)
    running.plugin = LoadedPlugin("s", Collector({}), 1.0, False)
    await running.aclose()
    assert running.delivered == MAX_ROWS


async def test_the_sinks_of_a_table_get_every_request_and_leave_with_it() -> None:
    registry = SinkRegistry(NoHttp, logging.getLogger("dragoman"), lambda: 1.0)
    registry.add(record(), None)
    loaded = load_text(f"{MOCK}plugins: {{s: {plugin('Collector')}}}\n", "t", {})
    await registry.use(loaded, load_plugins(loaded)[0])
    (running,) = registry.running
    running.linger = 0.0
    begun = record(1)
    begun.tags = {"centre": "7"}
    registry.add(begun, None)
    await registry.use(load_text(MOCK, "t", {}), {})
    assert registry.running == ()
    assert [(row.request_id, row.tags) for row in running.plugin.made.rows] == [("r1", {"centre": "7"})]


async def test_a_request_reaches_the_sink_before_the_gateway_ends(tmp_path: Path) -> None:
    async with up(f"{MOCK}plugins: {{s: {plugin('Collector')}}}\n", tmp_path) as app:
        (running,) = app.front.plugins.sinks.running
        body: JsonObject = {"model": "mock/echo", "prompt": "hello", "user": "me"}
        assert (await exchange(port_of(app.url), request("POST", "/v1/completions", body))).status == 200
    (row,) = running.plugin.made.rows
    assert (row.team, row.asked, row.model, row.status, row.user) == ("anonymous", "mock/echo", "mock/echo", 200, "me")
    assert "hello" not in repr(row)
