"""OpenAI's own SDK accumulates the streams of all recordings to the same result as the rules of `sdk_accumulators`."""

from collections.abc import Iterator
from typing import cast

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.openai import OPENAI
from tests.contracts.test_streamed_responses import CUTS, RECORDINGS, plain, played, stream_of
from tests.proxy.surfaces.kit import FACTS, converse, objects
from tests.proxy.surfaces.responses import kit as responses
from tests.support.clients import environment
from tests.support.environments import LineProcess
from tests.support.looped import looped
from tests.support.sdk_accumulators import accumulate_chat

pytestmark = [pytest.mark.clients, pytest.mark.timeout(300)]

EACH = looped("name", RECORDINGS)


@pytest.fixture(scope="module")
def sdk() -> Iterator[LineProcess]:
    with LineProcess(environment("openai3"), "tests.contracts.accumulate_process") as process:
        yield process


def accumulated(sdk: LineProcess, kind: str, events: list[JsonObject]) -> JsonObject:
    answer = orjson.loads(sdk.exchange(orjson.dumps({"kind": kind, "events": events}).decode()))
    assert "raised" not in answer, answer["raised"]
    return cast(JsonObject, answer)


@EACH
def test_chats(sdk: LineProcess, name: str) -> None:
    found = played(name, CUTS[-1])
    if found is None or len(found[1].choices) > 1:
        return  # the SDK requires choices to begin in their order
    events, completion = found
    request = converse(stream=True, stream_options={"include_usage": True}, n=len(completion.choices))
    chunks = objects(stream_of(OPENAI.renderer(request, FACTS), events))
    made = accumulated(sdk, "chat", chunks)
    expected = accumulate_chat(chunks)
    for ours, theirs in zip(
        cast(list[JsonObject], expected["choices"]), cast(list[JsonObject], made["choices"]), strict=True
    ):
        assert plain(theirs["message"]) == plain(ours["message"])
        assert theirs["finish_reason"] == ours["finish_reason"]


@EACH
def test_responses(sdk: LineProcess, name: str) -> None:
    found = played(name, CUTS[-1])
    if found is None or len(found[1].choices) > 1:
        return
    events = responses.events(stream_of(responses.rendering(stream=True), found[0]))
    made = cast(list[JsonValue], plain(accumulated(sdk, "response", events)["output"]))
    assert made == plain(responses.final(events)["output"])
