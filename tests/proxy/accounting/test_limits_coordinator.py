"""Redis counts if the configuration has it, otherwise the supervisor, otherwise the process itself."""

from collections.abc import Sequence

from config.sections.server_section import SharedSection
from proxy.accounting.limits_coordinator import SINGLE_PROCESS, EndedSiblings, Siblings, make_leases
from proxy.loop_clock import loop_clock
from proxy.shared_state.lease import LeaseGrant, LeaseRequest
from proxy.shared_state.redis_leases import RedisLeases
from proxy.shared_state.redis_sync import SharedState


class Silent:
    async def exchange(self, asks: Sequence[LeaseRequest]) -> Sequence[LeaseGrant | None]:
        raise ConnectionError


async def test_one_process_without_redis_counts_by_itself() -> None:
    assert make_leases(None, SINGLE_PROCESS, loop_clock()) is None


async def test_workers_without_redis_ask_their_supervisor_and_expect_as_many_as_there_are() -> None:
    source = Silent()
    made = make_leases(None, Siblings(3, source), loop_clock())
    assert made is not None
    assert (made.expected, made.guessed) == (3, False)
    assert made._source is source


async def test_redis_counts_for_workers_too_and_each_process_has_a_name_of_its_own() -> None:
    section = SharedSection.model_validate({"redis": "redis://127.0.0.1:1"})
    shared = SharedState(section, lambda cooldowns, now: None)
    books = [make_leases(shared, Siblings(2, Silent()), loop_clock()) for _ in range(2)]
    sources = [registry._source for registry in books if registry is not None]
    names = {source.process for source in sources if isinstance(source, RedisLeases)}
    assert len(names) == 2
    assert [(registry.expected, registry.guessed) for registry in books if registry is not None] == [(3, True)] * 2
    heard = EndedSiblings()
    await heard.notify("one")  # there is no coordinator yet
    named = make_leases(shared, Siblings(2, Silent(), 1, "gateway.7", heard), loop_clock())
    assert named is not None
    assert isinstance(named._source, RedisLeases)
    assert named._source.process == "gateway.7"
    assert heard.release_ended == named._source.release_ended
    await heard.notify("one")  # Redis is unreachable
    await shared._redis.aclose()
