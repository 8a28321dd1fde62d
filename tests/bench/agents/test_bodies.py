"""The bodies have the named sizes, are the same each time, and can be read by the surfaces."""

import orjson
import pytest

from tests.bench.agents.bodies import LARGE, SMALL, SURFACES, TOOLS, TURNS, Surface, body, chat, conversation
from tests.bench.agents.bodies import messages as messages_body
from tests.bench.agents.bodies import responses as responses_body
from tests.support.looped import looped


@looped("surface", SURFACES)
def test_a_body_is_as_large_as_it_is_named_and_the_same_each_time(surface: Surface) -> None:
    for size in (SMALL, LARGE):
        compact = body(surface, size, "v/m", spaced=False)
        assert len(compact) == pytest.approx(size, rel=0.01)
        assert compact == body(surface, size, "v/m", spaced=False)


@looped("surface", SURFACES)
def test_spaces_change_nothing_but_the_bytes(surface: Surface) -> None:
    compact, spaced = (body(surface, SMALL, "v/m", spaced=each) for each in (False, True))
    assert len(spaced) > len(compact)
    assert orjson.loads(spaced) == orjson.loads(compact)
    assert orjson.dumps(orjson.loads(compact)) == compact


def test_each_body_has_every_tool_and_turn() -> None:
    held = conversation(TURNS[SMALL], 10)
    assert len(chat(held, "m")["messages"]) == 2 + 2 * TURNS[SMALL]  # type: ignore[arg-type]  # lists
    assert len(messages_body(held, "m")["messages"]) == 1 + 2 * TURNS[SMALL]  # type: ignore[arg-type]
    assert len(responses_body(held, "m")["input"]) == 1 + 3 * TURNS[SMALL]  # type: ignore[arg-type]
    for write in (chat, messages_body, responses_body):
        assert len(write(held, "m")["tools"]) == TOOLS  # type: ignore[arg-type]
