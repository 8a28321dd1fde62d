"""Responses stored for later turns: their owners, lifetimes and bounds, and the error for one that is gone."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from providers.completion import Chunk, Completion, NativeEvent, TextRun, Usage
from providers.json_types import JsonObject
from providers.unified_request import Operation, TextPrompt, UnifiedRequest
from proxy.conversations import stored_responses
from proxy.conversations.owner_memory import OwnerMemory, owner_of
from proxy.conversations.response_entries import MOST_TURNS, answer_in, read_chain, read_items
from proxy.conversations.stored_entries import StoredEntries
from proxy.conversations.stored_responses import StoredResponses, StoringHook
from proxy.errors import ErrorFacts, GatewayError
from proxy.off_loop.request_threads import RequestThreads
from proxy.request_record import RequestRecord
from proxy.surfaces.responses.renderer import ResponsesRenderer
from proxy.surfaces.surface import AnswerFacts, ReferredIds, StoredResponse
from tests.proxy.conversations.test_owner_memory import Others
from tests.proxy.conversations.test_response_entries import item, response


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def store(
    others: Others | None = None, most: int = 1_000_000, seconds: float = 10.0, clock: Clock | None = None
) -> StoredResponses:
    return StoredResponses(OwnerMemory(clock or Clock(), StoredEntries(most, seconds), others))


async def conversation(stored: StoredResponses, owner: str, turns: int, text: str = "") -> list[str]:
    """Store a chain of responses, and return their ids."""
    names: list[str] = []
    for number in range(turns):
        name = f"resp_{number}"
        made = response(name, *names, said=(item(f"in_{number}", text=text),), out=(item(f"out_{number}"),))
        assert await stored.keep(owner, made)
        names.append(name)
    return names


async def refused(stored: StoredResponses, owner: str, previous: str) -> ErrorFacts:
    with pytest.raises(GatewayError) as caught:
        await stored.recall(owner, ReferredIds(previous))
    return caught.value.facts


@pytest.fixture
def stored() -> StoredResponses:
    return store()


async def test_a_request_gets_the_whole_chain_that_it_continues_oldest_first(stored: StoredResponses) -> None:
    names = await conversation(stored, "a", 4)
    found = read_chain(await stored.recall("a", ReferredIds(names[-1])))
    assert [each.id for each in found] == names
    assert found[2].ancestors == ("resp_0", "resp_1")
    assert [each.input[0]["id"] for each in found] == ["in_0", "in_1", "in_2", "in_3"]


async def test_items_are_found_by_their_own_ids_those_of_inputs_too(stored: StoredResponses) -> None:
    await conversation(stored, "a", 2)
    found = await stored.recall("a", ReferredIds(None, ("out_0", "in_1", "absent")))
    assert read_items(found) == {"out_0": item("out_0"), "in_1": item("in_1", text="")}


async def test_another_owner_finds_nothing_by_any_id(stored: StoredResponses) -> None:
    (name,) = await conversation(stored, "team a", 1)
    for other in ("team b", "client a", "team ", "", "team a "):
        assert (await refused(stored, other, name)).code == "previous_response_not_found"
        assert read_items(await stored.recall(other, ReferredIds(None, ("in_0", "out_0")))) == {}
        for call in (stored.get, stored.delete):
            with pytest.raises(GatewayError) as caught:
                await call(other, name)
            assert caught.value.facts.status == 404
    assert answer_in(name, await stored.get("team a", name))


async def test_an_item_s_id_is_no_response_s(stored: StoredResponses) -> None:
    await conversation(stored, "a", 1)
    for name in ("in_0", "i:in_0", "r:resp_0", ""):
        assert (await refused(stored, "a", name)).status == 400


async def test_a_response_ends_some_time_after_it_was_last_used_and_its_chain_with_it() -> None:
    clock = Clock()
    stored = store(clock=clock)
    names = await conversation(stored, "a", 3)
    clock.now = 8.0
    await stored.recall("a", ReferredIds(names[2]))
    clock.now = 16.0
    assert len(read_chain(await stored.recall("a", ReferredIds(names[2])))) == 3
    clock.now = 20.0
    await stored.get("a", names[2])
    clock.now = 27.0
    gone = await refused(stored, "a", names[2])
    assert (gone.status, gone.code, gone.param) == (400, "previous_response_not_found", "previous_response_id")
    assert "'resp_0'" in gone.message


async def test_what_is_deleted_is_gone_and_named_to_those_who_continue_it(stored: StoredResponses) -> None:
    names = await conversation(stored, "a", 3)
    await stored.delete("a", names[1])
    with pytest.raises(GatewayError):
        await stored.get("a", names[1])
    assert "'resp_1'" in (await refused(stored, "a", names[2])).message
    assert read_items(await stored.recall("a", ReferredIds(None, ("in_1", "in_2")))) == {"in_2": item("in_2", text="")}


async def test_a_conversation_is_bounded_in_turns() -> None:
    stored = store(most=1 << 30)
    ids = [f"r{number}" for number in range(MOST_TURNS)]
    assert await stored.keep("a", response("last", *ids[:-1]))
    for name in ids:
        assert await stored.keep("a", response(name))
    assert len((await stored.recall("a", ReferredIds("last"))).chain) == MOST_TURNS
    assert await stored.keep("a", response("longer", *ids))
    facts = await refused(stored, "a", "longer")
    assert (facts.status, facts.param) == (400, "previous_response_id")
    assert "512 turns" in facts.message


async def test_a_conversation_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_responses, "MOST_CONTINUED", 100_000)
    stored = store()
    names = await conversation(stored, "a", 9, "x" * 20_000)
    assert (await stored.recall("a", ReferredIds(names[3]))).size < 100_000
    assert "MiB" in (await refused(stored, "a", names[8])).message
    with pytest.raises(GatewayError):
        await stored.recall("a", ReferredIds(None, tuple(f"in_{number}" for number in range(9))))


async def test_one_who_fills_the_store_takes_no_one_else_s_share() -> None:
    stored = store(most=200_000)
    light = await conversation(stored, "light", 3, "x" * 1000)
    for number in range(500):
        await stored.keep("flood", response(f"f{number}", said=(item(f"i{number}", text="x" * 5000),)))
    assert stored.entries.kept.size <= 200_000
    assert len((await stored.recall("light", ReferredIds(light[-1]))).chain) == 3
    assert (await refused(stored, "flood", "f0")).status == 400
    assert answer_in("f499", await stored.get("flood", "f499"))


async def test_a_response_larger_than_all_room_is_not_stored_and_evicts_nobody() -> None:
    stored = store(most=10_000)
    await conversation(stored, "a", 1)
    assert not await stored.keep("b", response("big", said=(item("m", text="x" * 20_000),)))
    assert answer_in("resp_0", await stored.get("a", "resp_0"))


async def test_while_it_is_off_nothing_is_stored_and_no_request_can_continue(stored: StoredResponses) -> None:
    stored.off = True
    assert not await stored.keep("a", response("resp_0"))
    facts = await refused(stored, "a", "resp_0")
    assert (facts.status, facts.code, facts.param) == (400, "unsupported_parameter", "previous_response_id")
    assert read_items(await stored.recall("a", ReferredIds(None, ("m",)))) == {}


async def test_another_process_finds_what_one_stored_and_not_what_one_deleted() -> None:
    others = Others()
    one, two = store(others), store(others)
    names = await conversation(one, "a", 3)
    assert len((await two.recall("a", ReferredIds(names[2]))).chain) == 3
    await one.delete("a", names[0])
    assert "'resp_0'" in (await refused(two, "a", names[2])).message
    with pytest.raises(GatewayError):
        await two.get("a", names[0])


async def test_a_long_chain_that_another_process_stored_takes_two_lookups() -> None:
    others = Others()
    one, two = store(others), store(others)
    names = await conversation(one, "a", 50)
    others.asked.clear()
    await two.recall("a", ReferredIds(names[-1]))
    assert [len(wanted) for wanted, _ in others.asked] == [1, 49]


async def test_while_the_others_are_away_it_goes_on_and_says_what_cannot_be_known() -> None:
    others = Others()
    one, two = store(others), store(others)
    names = await conversation(one, "a", 2)
    others.away = True
    assert len((await one.recall("a", ReferredIds(names[1]))).chain) == 2
    assert await one.keep("a", response("resp_9", *names))
    for facts in (await refused(two, "a", names[1]), await refused(one, "a", "unknown")):
        assert (facts.status, facts.headers) == (503, {"retry-after": "2"})
    with pytest.raises(GatewayError) as caught:
        await one.delete("a", names[1])
    assert caught.value.facts.status == 503


@dataclass
class Rendered:
    """A renderer that has rendered a response."""

    answer: StoredResponse | None
    calls: list[str] = field(default_factory=list)

    def stored(self) -> StoredResponse | None:
        return self.answer

    def unstored(self, shown: bytes) -> bytes:
        return shown + b", not stored"

    def completion(self, completion: Completion) -> bytes:
        return b""

    def chunk(self, chunk: Chunk) -> bytes:
        return b""

    def run(self, run: TextRun) -> bytes:
        return b""

    def usage(self, usage: Usage) -> bytes:
        return b""

    def end(self) -> bytes:
        return b""

    def error(self, facts: ErrorFacts) -> bytes:
        return b""


def record() -> RequestRecord:
    return RequestRecord("id", 0.0, "responses", "/v1/responses")


async def written(stored: StoredResponses, told: RequestRecord, renderer: Rendered) -> bytes:
    """Return the bytes that a client gets of a response that the surface has written."""
    return await StoringHook(stored, RequestThreads()).written(told, renderer, b"shown", heavy=False)


async def test_an_answer_is_stored_for_its_owner() -> None:
    stored, told = store(), record()
    kept = await written(stored, told, Rendered(response("resp_1")))
    assert kept == b"shown"
    assert answer_in("resp_1", await stored.get(owner_of(told), "resp_1"))
    assert told.dropped == ()


async def test_an_answer_that_was_to_be_stored_and_is_not_is_named() -> None:
    stored, told = store(most=100), record()
    told.dropped = ("user",)
    shown = await written(stored, told, Rendered(response("resp_1")))
    assert shown == b"shown, not stored"
    assert list(told.dropped) == ["user", "store"]
    unwanted = record()
    assert await written(stored, unwanted, Rendered(None)) == b"shown"
    assert unwanted.dropped == ()


async def test_parallel_requests_of_one_conversation_do_not_disturb_each_other(stored: StoredResponses) -> None:
    names = await conversation(stored, "a", 3)
    branches: Sequence[JsonObject] = [item(f"b{number}") for number in range(20)]
    await asyncio.gather(
        *(stored.keep("a", response(f"b{n}", *names, said=(each,))) for n, each in enumerate(branches))
    )
    for number in range(20):
        chain = read_chain(await stored.recall("a", ReferredIds(f"b{number}")))
        assert [each.id for each in chain] == [*names, f"b{number}"]


def test_the_last_event_of_a_vendor_s_own_stream_is_shown_once_it_can_be_stored() -> None:
    request = UnifiedRequest(Operation.CHAT, "v/m", TextPrompt(("x",)), {}, stream=True)
    renderer = ResponsesRenderer(request, AnswerFacts("u", 1, "v/m"))
    events = {
        "response.created": b'{"type":"response.created","sequence_number":0,"response":{"id":"resp_1"}}',
        "response.completed": b'{"type":"response.completed","sequence_number":1,"response":'
        b'{"id":"resp_1","status":"completed","output":[]}}',
    }
    shown = [renderer.chunk(Chunk(native=NativeEvent(name, data))) for name, data in events.items()]
    assert b"response.created" in shown[0]
    assert (shown[1], renderer.stored()) == (b"", None)
    assert b"response.completed" in renderer.end()
    stored = renderer.stored()
    assert stored is not None
    assert stored.id == "resp_1"
