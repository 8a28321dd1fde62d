"""Model lists in virtual time: which requests wait for one, when it is fetched again, and which list stays after a
failed fetch.
"""

import asyncio
import logging
from collections.abc import Sequence

import pytest

from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from proxy.discovery.discovered_models import (
    DROP_AFTER,
    FIRST_WAIT,
    REFETCH_AFTER,
    RETRY_PAUSE,
    DiscoveredModels,
    ListState,
)
from tests.proxy.discovery.kit import BOTH, VENDORS, Answering, Given, ScriptedTransport, listing, table
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.support.looped import looped

DOWN = UpstreamError(Failure(FailureKind.CONNECT, "The upstream refused the connection.", ours=True))
REFUSED = Given(b"{}", 401)
AUTH = "auth, status 401: The upstream refused the gateway's credential."


def now() -> float:
    return asyncio.get_running_loop().time()


async def until(moment: float) -> None:
    await asyncio.sleep(moment - now())


async def made(answering: Answering, text: str = BOTH) -> tuple[DiscoveredModels, ScriptedTransport]:
    transport = ScriptedTransport(answering)
    discovered = DiscoveredModels(transport)
    await discovered.use(table(text))
    return discovered, transport


def known_models(discovered: DiscoveredModels, vendor: str = "v") -> list[str]:
    return [*discovered.known.get(vendor, {})]


def scripted(*outcomes: Given | UpstreamError) -> Answering:
    """Return one outcome for each call. The last one repeats for ever."""
    left = list(outcomes)
    return lambda request: left.pop(0) if len(left) > 1 else left[0]


@in_virtual_time
async def test_nothing_is_fetched_before_a_client_asks_and_nothing_of_other_vendors() -> None:
    discovered, transport = await made(lambda request: listing("a"))
    await asyncio.sleep(10 * REFETCH_AFTER)
    assert (transport.calls, discovered.known) == ([], {})
    await discovered.ready(["v", "nobody"])
    assert [call.target.vendor for call in transport.calls] == ["v"]
    assert known_models(discovered) == ["a"]
    await discovered.aclose()


@in_virtual_time
async def test_the_first_who_ask_wait_for_one_fetch_together() -> None:
    discovered, transport = await made(lambda request: listing("a", wait=1.0))
    await asyncio.gather(*(discovered.ready(["v"]) for _ in range(100)))
    assert (now(), len(transport.calls), known_models(discovered)) == (1.0, 1, ["a"])


@in_virtual_time
async def test_several_slow_vendors_delay_no_longer_than_one() -> None:
    discovered, transport = await made(lambda request: listing("a", wait=10.0))
    await discovered.ready(["v", "w"])
    assert (now(), len(transport.calls)) == (FIRST_WAIT, 2)
    await discovered.aclose()


@in_virtual_time
async def test_a_slow_list_is_waited_for_once_and_served_when_it_has_come() -> None:
    discovered, transport = await made(lambda request: listing("a", wait=10.0))
    await discovered.ready(["v"])
    for _ in range(3):
        await discovered.ready(["v"])
    assert (now(), known_models(discovered), len(transport.calls)) == (FIRST_WAIT, [], 1)
    await until(10.5)
    assert known_models(discovered) == ["a"]
    await discovered.ready(["v"])
    assert (now(), len(transport.calls)) == (10.5, 1)


@in_virtual_time
async def test_a_client_that_leaves_does_not_end_the_fetch_for_the_others() -> None:
    discovered, transport = await made(lambda request: listing("a", wait=1.0))
    first = asyncio.ensure_future(discovered.ready(["v"]))
    second = asyncio.ensure_future(discovered.ready(["v"]))
    await asyncio.sleep(0.5)
    first.cancel()
    await second
    assert (known_models(discovered), len(transport.calls)) == (["a"], 1)


@in_virtual_time
async def test_a_list_is_fetched_again_beside_the_request_that_finds_it_old() -> None:
    discovered, transport = await made(scripted(listing("a"), listing("b", wait=1.0)))
    await discovered.ready(["v"])
    await until(REFETCH_AFTER - 1)
    await discovered.ready(["v"])
    assert len(transport.calls) == 1
    await until(REFETCH_AFTER + 1)
    before = now()
    await asyncio.gather(*(discovered.ready(["v"]) for _ in range(10)))
    assert (now(), known_models(discovered), len(transport.calls)) == (before, ["a"], 2)
    await asyncio.sleep(1.5)
    assert known_models(discovered) == ["b"]


@in_virtual_time
async def test_an_unchanged_list_leaves_what_is_known_as_it_is() -> None:
    discovered, _ = await made(scripted(listing("a"), listing("a"), listing("a", "b")))
    await discovered.ready(["v"])
    first = discovered.known
    for same in (True, False):
        await asyncio.sleep(REFETCH_AFTER)
        await discovered.ready(["v"])
        await asyncio.sleep(1)
        assert (discovered.known is first) is same


@in_virtual_time
async def test_a_vendor_that_fails_is_asked_again_after_a_pause_and_delays_nobody() -> None:
    discovered, transport = await made(lambda request: DOWN)
    for _ in range(600):
        await discovered.ready(["v"])
        await asyncio.sleep(1)
    assert transport.moments == [pytest.approx(number * RETRY_PAUSE, abs=1.1) for number in range(10)]
    assert known_models(discovered) == []


@in_virtual_time
async def test_what_a_vendor_listed_stays_while_it_fails_and_no_longer_than_a_day() -> None:
    discovered, _ = await made(scripted(listing("a"), DOWN))
    await discovered.ready(["v"])
    while now() < DROP_AFTER - REFETCH_AFTER:
        await asyncio.sleep(REFETCH_AFTER)
        await discovered.ready(["v"])
        assert known_models(discovered) == ["a"]
    assert str(discovered.states()["v"]).startswith("1 models, last fetch failed: connect")
    await until(DROP_AFTER + 1)
    await discovered.ready(["v"])
    assert known_models(discovered) == []
    assert str(discovered.states()["v"]).startswith("not fetched yet, last fetch failed: connect")
    await discovered.aclose()


@in_virtual_time
async def test_a_failure_is_logged_once_until_it_changes_or_passes(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "dragoman")
    outcomes: list[Given | UpstreamError] = [
        DOWN,
        DOWN,
        REFUSED,
        REFUSED,
        listing("a", "bad name"),
        listing("b", "bad name"),
        DOWN,
    ]
    discovered, _ = await made(scripted(*outcomes))
    for _ in outcomes:
        await discovered.ready(["v"])
        await asyncio.sleep(REFETCH_AFTER)
    assert [record.getMessage() for record in caplog.records] == [
        "the list of models of v could not be fetched: connect: The upstream refused the connection.",
        f"the list of models of v could not be fetched: {AUTH}",
        "the list of models of v can be fetched again",
        "of the list of models of v, entries left out for their names or their number: 1",
        "the list of models of v could not be fetched: connect: The upstream refused the connection.",
    ]


@in_virtual_time
async def test_a_fault_of_ours_is_not_repeated_for_every_request() -> None:
    def broken(request: UpstreamRequest) -> Given:
        raise RuntimeError("a bug")

    discovered, transport = await made(broken)
    with pytest.raises(RuntimeError):
        await discovered.ready(["v"])
    for _ in range(10):
        await discovered.ready(["v"])
    assert len(transport.calls) == 1


@in_virtual_time
async def test_a_reload_keeps_the_lists_of_vendors_that_are_asked_in_the_same_way() -> None:
    discovered, transport = await made(lambda request: listing(request.target.base_url.rpartition(":")[2][0]))
    await discovered.ready(["v", "w"])
    assert (known_models(discovered, "v"), known_models(discovered, "w")) == (["1"], ["2"])
    await discovered.use(table(BOTH + "routes: {fast: v/x}\n"))
    await discovered.ready(["v", "w"])
    assert len(transport.calls) == 2
    await discovered.use(table(BOTH.replace("127.0.0.1:2", "127.0.0.1:3")))
    assert (known_models(discovered, "v"), known_models(discovered, "w")) == (["1"], [])
    await discovered.ready(["w"])
    assert known_models(discovered, "w") == ["3"]


@in_virtual_time
async def test_a_reload_forgets_vendors_that_are_no_longer_discovered_and_ends_their_fetches() -> None:
    discovered, transport = await made(lambda request: listing("a", wait=5.0))
    await discovered.ready(["v", "w"])
    await discovered.use(table(VENDORS.replace(", discover: true", "", 1) + "models: {v/*: {}, w/*: {}}\n"))
    await asyncio.sleep(10)
    assert (known_models(discovered, "v"), known_models(discovered, "w")) == ([], ["a"])
    assert [*discovered.states()] == ["w"]
    await discovered.ready(["v"])
    assert len(transport.calls) == 2
    await discovered.use(table(VENDORS + "models: {v/m: {}}\n"))
    assert not discovered.known
    assert not discovered.states()


@in_virtual_time
async def test_closing_ends_what_is_under_way() -> None:
    discovered, _ = await made(lambda request: listing("a", wait=5.0))
    await discovered.ready(["v", "w"])
    assert len(asyncio.all_tasks()) == 3
    await discovered.aclose()
    assert len(asyncio.all_tasks()) == 1


@looped(
    ("states", "shown"),
    [
        ([ListState(), ListState(5)], "5 models"),
        ([ListState(5), ListState(6, 2)], "6 models, 2 left out for their names or their number"),
        ([ListState(5), ListState(3, 0, "timeout")], "3 models, last fetch failed: timeout"),
        ([ListState(), ListState()], "not fetched yet"),
    ],
)
def test_of_several_processes_the_one_that_failed_or_has_more_is_shown(states: Sequence[ListState], shown: str) -> None:
    assert str(states[0].beside(states[1])) == str(states[1].beside(states[0])) == shown
