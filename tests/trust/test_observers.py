"""R45: whichever observer of finished requests fails, each client gets its response and every other observer gets the
request."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final, get_args

import pytest

from proxy.process.request_observer import Observer, RequestObserver
from proxy.request_record import RequestRecord
from proxy.telemetry.observer_guard import FinishedObserver
from tests.faults.check_answers import good
from tests.faults.fault_rig import TABLE, Rig, rig

REQUESTS: Final = 10
WAYS: Final = {"whole": False, "streamed": True}


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[Rig]:
    """A gateway with every observer that a config file may configure."""
    ledger = f"ledger: {{url: 'sqlite:{tmp_path}/l.db', journal: '{tmp_path}/j'}}"
    payloads = f"payload_log: {{path: '{tmp_path}/p.jsonl', teams: ['*']}}"
    table = TABLE.replace("watch: false,", f"watch: false, {ledger}, {payloads},")
    async with rig(tmp_path, table=table) as running:
        yield running


class Observed:
    """The observers of a gateway, one of which fails. `calls` counts the requests that each has received."""

    def __init__(self, observer: RequestObserver, broken: str) -> None:
        self.calls: Counter[str] = Counter()
        self._broken = broken
        self._before = observer._observers
        observer._observers = tuple(self._watched(each) for each in self._before)

    def _watched(self, each: Observer) -> Observer:
        def observe(record: RequestRecord, cost: float | None) -> None:
            self.calls[each.name] += 1
            if each.name == self._broken:
                raise TypeError("an observer's own fault")
            each.observe(record, cost)

        return replace(each, observe=observe)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("broken", get_args(FinishedObserver))
async def test_a_fault_in_an_observer_changes_no_response(made: Rig, broken: FinishedObserver, way: str) -> None:
    observer: RequestObserver = made.app.front.gateway._emit.__self__  # type: ignore[attr-defined]  # a bound method
    observed = Observed(observer, broken)
    made.stream = WAYS[way]
    before = await made.series("observer_failures")
    for _ in range(REQUESTS):
        answer = await made.ask()
        assert answer.status == 200
        assert answer.whole
        assert good(answer, stream=made.stream) == "one"
    await made.app.front.gateway.idle.wait()
    names = [each.name for each in observer._observers]
    assert observed.calls == Counter({name: REQUESTS * names.count(name) for name in names})
    assert set(names) == set(get_args(FinishedObserver))
    assert before == {}
    found = await made.series("observer_failures")
    assert found == {f"observer_failures_total observer={broken}": REQUESTS * names.count(broken)}
    if broken != "log":
        assert [line["status"] for line in await asyncio.wait_for(made.logged(), 30)] == [200] * REQUESTS
