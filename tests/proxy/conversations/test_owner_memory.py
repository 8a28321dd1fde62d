"""The memory of owners, local and shared: the order of lookups, and the guarantees of a deletion."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from proxy.conversations import owner_memory
from proxy.conversations.owner_memory import FoundEntries, OwnerMemory, owner_of
from proxy.conversations.stored_entries import StoredEntries
from proxy.request_record import NO_TEAM, UNKNOWN_TEAM, RequestRecord


@dataclass
class Others:
    """A memory shared with other processes, which may be unreachable, and may never confirm a write."""

    data: dict[tuple[str, str], bytes] = field(default_factory=dict)
    asked: list[tuple[Sequence[str], Sequence[str]]] = field(default_factory=list)
    away: bool = False
    result: bool | None = True

    def put(self, owner: str, entries: Mapping[str, bytes]) -> "asyncio.Future[bool] | None":
        if self.away:
            return None
        self.data |= {(owner, key): data for key, data in entries.items()}
        written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        if self.result is not None:
            written.set_result(self.result)
        return written

    async def take(self, owner: str, wanted: Sequence[str], held: Sequence[str] = ()) -> dict[str, bytes] | None:
        self.asked.append((list(wanted), list(held)))
        if self.away:
            return None
        there = {key: data for key in wanted if (data := self.data.get((owner, key))) is not None}
        return {**there, **{key: b"" for key in held if self.data.get((owner, key)) == b""}}


def memory(others: Others | None = None) -> OwnerMemory:
    return OwnerMemory(lambda: 0.0, StoredEntries(1_000_000, 10.0), others)


async def test_alone_it_knows_what_it_was_given_and_nothing_of_other_owners() -> None:
    alone = memory()
    await alone.put_and_wait("a", {"k": b"1"})
    assert await alone.find("a", ["k", "x"]) == {"k": b"1"}
    assert await alone.find_undeleted("a", ["k", "x"]) == FoundEntries({"k": b"1"})
    assert await alone.find_undeleted("b", ["k"]) == FoundEntries({})
    assert await alone.delete("a", "k")
    assert await alone.find("a", ["k"]) == {}


async def test_others_are_asked_for_what_is_not_known_here_and_it_is_known_from_then_on() -> None:
    others = Others()
    one, two = memory(others), memory(others)
    one.put("a", {"k": b"1"})
    assert await one.find("a", ["k"]) == {"k": b"1"}
    assert others.asked == []
    assert await two.find("a", ["k"]) == {"k": b"1"}
    assert await two.find("a", ["k"]) == {"k": b"1"}
    assert len(others.asked) == 1


async def test_what_was_deleted_elsewhere_is_gone_here() -> None:
    others = Others()
    one, two = memory(others), memory(others)
    await one.put_and_wait("a", {"k": b"1", "l": b"2"})
    assert (await two.find_undeleted("a", ["k"])).entries == {"k": b"1"}
    assert await one.delete("a", "k")
    assert await two.find_undeleted("a", ["k", "l"]) == FoundEntries({"l": b"2"})
    assert others.asked[-1] == (["l"], ["k"])
    assert two.kept.take("a", ["k"], 0.0) == {}
    assert await one.find_undeleted("a", ["k"]) == FoundEntries({})


async def test_while_others_are_away_it_goes_on_with_what_it_has_and_says_what_is_not_certain() -> None:
    others = Others(away=True)
    alone = memory(others)
    await alone.put_and_wait("a", {"k": b"1"})
    assert await alone.find_undeleted("a", ["k"]) == FoundEntries({"k": b"1"}, certain=True)
    assert await alone.find_undeleted("a", ["k", "l"]) == FoundEntries({"k": b"1"}, certain=False)
    assert await alone.find("a", ["l"]) == {}
    assert not await alone.delete("a", "k")
    assert await alone.find("a", ["k"]) == {}


@pytest.mark.parametrize("result", [None, False])
async def test_a_deletion_that_may_not_have_come_is_none(monkeypatch: pytest.MonkeyPatch, result: bool | None) -> None:
    monkeypatch.setattr(owner_memory, "DELETE_WAIT", 0.01)
    assert not await memory(Others(result=result)).delete("a", "k")


async def test_an_answer_does_not_wait_long_for_others_to_know() -> None:
    others = Others(result=None)
    async with asyncio.timeout(30):
        await memory(others).put_and_wait("a", {"k": b"1"})
    assert others.data == {("a", "k"): b"1"}


def test_stored_data_are_a_team_s_or_without_teams_an_address_s() -> None:
    of = [owner_of(RequestRecord("r", 0.0, "openai", "/", "10.0.0.1", team)) for team in ("a", NO_TEAM, UNKNOWN_TEAM)]
    assert of == ["team a", "client 10.0.0.1", "team unknown"]
