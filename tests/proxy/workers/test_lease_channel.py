"""Leases between a worker and its supervisor: requests arrive unchanged, and a missing response counts as a loss."""

import asyncio
from collections.abc import Callable

import pytest

from proxy.shared_state.lease import LeaseGrant, LeaseRequest, RateRequest, SlotsRequest, SpendingRequest
from proxy.workers import lease_channel
from proxy.workers.lease_channel import LeaseService, SupervisorLeases


def joined_leases(desk: LeaseService, worker: str) -> SupervisorLeases:
    """Return a worker's end whose bodies reach the service, and whose responses arrive in the next event loop
    iteration."""

    def send(body: bytes) -> None:
        asyncio.get_running_loop().call_soon(lambda: ends.receive_grants(desk.response(worker, body)))

    ends = SupervisorLeases(send)
    return ends


def rate(want: int, key: str = "team a") -> RateRequest:
    return RateRequest(key, 10.0, 600, want, 1, 0, 5.0)


async def granted(worker: SupervisorLeases, *asks: LeaseRequest) -> list[int]:
    return [0 if each is None else each.granted for each in await worker.exchange(asks)]


async def test_workers_get_of_one_rate_no_more_than_there_is() -> None:
    desk = LeaseService()
    one, two = joined_leases(desk, "1"), joined_leases(desk, "2")
    first = await granted(one, rate(500))
    second = await granted(two, rate(500))
    assert first == [500]
    assert 0 < second[0] <= 101


async def test_places_are_counted_together_and_free_when_their_worker_has_ended() -> None:
    desk = LeaseService()
    one, two = joined_leases(desk, "1"), joined_leases(desk, "2")
    assert await granted(one, SlotsRequest("team a", 3, 0, 3)) == [3]
    assert await granted(two, SlotsRequest("team a", 3, 0, 1)) == [0]
    desk.forget("1")
    assert await granted(two, SlotsRequest("team a", 3, 0, 3)) == [3]


async def test_each_hears_what_the_others_have_spent_and_nothing_of_one_that_has_ended() -> None:
    desk = LeaseService()
    one, two = joined_leases(desk, "1"), joined_leases(desk, "2")
    await one.exchange([SpendingRequest("team a usd", 70)])
    (heard,) = await two.exchange([SpendingRequest("team a usd", 5)])
    assert heard is not None
    assert heard.level == 70
    desk.forget("1")
    assert await two.exchange([SpendingRequest("team a usd", 5)]) == [LeaseGrant(0, 0, 1.0, 1, heard.epoch)]


async def test_several_entries_and_exchanges_are_told_apart() -> None:
    desk = LeaseService()
    worker = joined_leases(desk, "1")
    both = asyncio.gather(
        granted(worker, rate(7, "team a"), SlotsRequest("team b", 4, 0, 2)), granted(worker, rate(9, "team c"))
    )
    assert list(await both) == [[7, 2], [9]]


async def test_no_answer_in_time_is_a_loss_and_a_late_one_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_channel, "EXCHANGE_TIMEOUT", 0.01)
    sent: list[bytes] = []
    worker = SupervisorLeases(sent.append)
    with pytest.raises(ConnectionError):
        await worker.exchange([rate(1)])
    worker.receive_grants(LeaseService().response("1", sent[0]))
    assert worker._waiting == {}


async def test_an_exchange_that_is_given_up_leaves_nothing_behind() -> None:
    drop: Callable[[bytes], None] = lambda body: None  # noqa: E731 - a sender that loses everything
    worker = SupervisorLeases(drop)
    asking = asyncio.create_task(worker.exchange([rate(1)]))
    await asyncio.sleep(0)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert worker._waiting == {}
