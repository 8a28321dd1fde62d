"""Equal requests in flight: which one leads, which ones follow, and the results of the followers."""

import asyncio

from proxy.response_cache.coalescing import AT_ONCE, MOST_FOLLOWERS, CoalescedRequest, CoalescedRequests


async def followers(flight: CoalescedRequest[str], count: int) -> list["asyncio.Task[str | None]"]:
    tasks = [asyncio.create_task(flight.follow(None)) for _ in range(count)]
    await asyncio.sleep(0)
    return tasks


async def test_followers_get_the_leader_s_answer() -> None:
    flights: CoalescedRequests[str] = CoalescedRequests()
    flight = flights.lead("k")
    assert flights.of("k") is flight
    before = flight.followed
    tasks = await followers(flight, 3)
    assert (before, flight.followed) == (False, True)
    flight.land("answer")
    assert await asyncio.gather(*tasks) == ["answer"] * 3
    assert (flights.of("k"), len(flights), flight.alone) == (None, 0, False)


async def test_an_answer_for_one_client_alone_is_nobody_else_s() -> None:
    flight: CoalescedRequest[str] = CoalescedRequests[str]().lead("k")
    (task,) = await followers(flight, 1)
    flight.land(None)
    assert await task is None
    assert flight.alone


async def test_a_leader_that_fails_leaves_its_place() -> None:
    flights: CoalescedRequests[str] = CoalescedRequests()
    flight = flights.lead("k")
    tasks = await followers(flight, 2)
    flight.close()
    assert await asyncio.gather(*tasks) == [None, None]
    assert (flights.of("k"), flight.over, flight.alone) == (None, True, False)


async def test_what_ended_ends_no_other_of_its_key() -> None:
    flights: CoalescedRequests[str] = CoalescedRequests()
    first = flights.lead("k")
    first.close()
    second = flights.lead("k")
    first.close()
    first.land("late")
    assert flights.of("k") is second


async def test_a_follower_that_leaves_or_is_impatient_hurts_nobody() -> None:
    flight: CoalescedRequest[str] = CoalescedRequests[str]().lead("k")
    gone, stays = await followers(flight, 2)
    impatient = asyncio.create_task(flight.follow(0.0))
    gone.cancel()
    await asyncio.wait((gone, impatient))
    assert impatient.result() is None
    assert not flight.over
    flight.land("answer")
    assert await stays == "answer"


async def test_many_followers_go_on_a_few_at_a_time_and_no_more_can_follow() -> None:
    flight: CoalescedRequest[str] = CoalescedRequests[str]().lead("k")
    tasks = await followers(flight, MOST_FOLLOWERS)
    assert flight.full
    done: list[int] = []
    for task in tasks:
        task.add_done_callback(lambda each: done.append(1))
    flight.land("answer")
    most = last = 0
    while len(done) < MOST_FOLLOWERS:
        await asyncio.sleep(0)
        most, last = max(most, len(done) - last), len(done)
    assert most <= AT_ONCE
