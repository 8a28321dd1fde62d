"""Every surface's rows are measured, and the number of Python calls for a chunk. No test checks a time."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from tests.bench.readings import Reading
from tests.bench.surfaces import BODIES, CHUNK_LIMIT, CHUNKS, line, measure, stream, works


def calls(run: Callable[[], None]) -> int:
    """Return the number of function calls, of Python and of C, in one run. It is the same each time."""
    run()
    count = 0

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in BODIES if name != "chat"])
def test_a_chunk_calls_no_more_than_a_little_above_what_a_chat_s_does(name: str) -> None:
    assert calls(stream(name)) <= CHUNK_LIMIT * calls(stream("chat"))


def test_every_surface_that_chats_has_its_rows() -> None:
    found = {work.name: measure(work).count for work in works()}
    assert found == {
        **{f"{name} request": 1 for name in BODIES},
        **{f"{name} chunk": CHUNKS for name in BODIES},
        "embeddings request": 1,
    }


def test_a_row_is_held_against_chat_s_where_there_is_one() -> None:
    own, chat = [Reading(0.0004, 1, 200), Reading(0.0002, 1, 200)], [Reading(0.0001, 1, 200)]
    assert line("messages chunk", own, chat).split() == ["messages", "chunk", "1.00", "2.00"]
    assert line("embeddings request", own, None).split() == ["embeddings", "request", "1.00"]
