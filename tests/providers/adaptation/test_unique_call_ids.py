"""Ids of calls are unique in requests to vendors, and each result has the id of its own call."""

from collections.abc import Iterator

import orjson

from providers.adaptation.unique_call_ids import CallMark, bare_id, marks_of, unique_ids, unused_id, with_unique_ids
from providers.emulation.plan_calls import plan_calls
from providers.json_types import JsonObject, JsonValue
from providers.target import Target
from tests.providers.dialects.anthropic import kit as anthropic
from tests.providers.dialects.bedrock.kit import HAIKU
from tests.providers.dialects.gemini import kit as gemini
from tests.providers.dialects.kit import chat_request, target_of, tool, user
from tests.providers.dialects.openai.kit import target
from tests.support.looped import looped


def called(*ids: str) -> JsonObject:
    calls: list[JsonValue] = [
        {"id": each, "type": "function", "function": {"name": "look", "arguments": "{}"}} for each in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def result(identity: str, text: str) -> JsonObject:
    return {"role": "tool", "tool_call_id": identity, "content": text}


AGAIN = (user("go"), called("call_0"), result("call_0", "r1"), called("call_0"), result("call_0", "r2"))
TWICE = (user("go"), called("c", "c"), result("c", "r1"), result("c", "r2"))

SIGNED = "call_0__vertex__thought__AAAA"


@looped(
    ("messages", "pairs"),
    [
        (AGAIN, [0, 1]),
        (TWICE, [0, 1]),
        ((*AGAIN, user("more"), called("call_0", "x"), result("x", "r3"), result("call_0", "r4")), [0, 1, 3, 2]),
        # The first call has no result.
        ((called("a"), user("stop"), called("a"), result("a", "r")), [1]),
        ((called("a"), called("a"), result("a", "r1"), result("a", "r2")), [0, 1]),
        # One more result than calls.
        ((called("a"), result("a", "r1"), called("a"), result("a", "r2"), result("a", "r3")), [0, 1, 1]),
    ],
)
def test_the_nth_result_has_the_id_of_the_nth_call(messages: tuple[JsonObject, ...], pairs: list[int]) -> None:
    marks = [*marks_of(with_unique_ids(messages))]
    calls = [mark.id for mark in marks if not mark.is_result]
    assert len({*calls}) == len(calls)
    assert [calls.index(mark.id) for mark in marks if mark.is_result] == pairs
    assert calls[0] == next(marks_of(messages)).id


def test_ids_that_are_unique_stay_and_those_of_a_longer_conversation_begin_alike() -> None:
    for messages in ((user("go"),), (called("a", "b"), result("b", "r"), called("c")), (called(""), result("", "r"))):
        assert with_unique_ids(messages) is messages
    longer = with_unique_ids((*AGAIN, *AGAIN))
    assert longer[: len(AGAIN)] == with_unique_ids(AGAIN)


@looped(
    ("given", "taken", "made"),
    [
        ("a", {"b"}, "a"),
        ("functions.look:0", {"functions.look:0", "functions.jump:1"}, "functions.look:2"),
        ("functions.look:0", {"functions.look:0", "functions.look:2"}, "functions.look:3"),
    ],
)
def test_an_unused_id_stays_and_kimi_s_keep_their_form(given: str, taken: set[str], made: str) -> None:
    assert unused_id(given, taken) == made
    assert made in taken


def test_another_id_carries_the_signature_on_and_fits_every_vendor() -> None:
    made = unused_id(SIGNED, {"call_0"})
    assert made.endswith("__vertex__thought__AAAA")
    assert (bare_id(SIGNED), bare_id("call__0")) == ("call_0", "call__0")
    assert len(bare_id(made)) <= 40
    assert bare_id(made).replace("_", "").isalnum()
    ids = unique_ids([CallMark(SIGNED, 0), CallMark("call_0__thought__BBBB", 1)])
    assert ids is not None
    assert len({bare_id(each) for each in ids}) == 2


PLACES = {
    ("type", "tool_use", "id"): "call",
    ("type", "function", "id"): "call",
    ("toolUse", None, "toolUseId"): "call",
    ("functionCall", None, "id"): "call",
    ("type", "tool_result", "tool_use_id"): "result",
    ("role", "tool", "tool_call_id"): "result",
    ("toolResult", None, "toolUseId"): "result",
    ("functionResponse", None, "id"): "result",
}
"""The objects that have an id: the value of a field, or an object that has this value in the field."""


def ids_in(value: JsonValue) -> Iterator[tuple[str, str]]:
    """Yield all ids of calls and of results in a vendor's body."""
    if isinstance(value, list):
        for held in value:
            yield from ids_in(held)
    if not isinstance(value, dict):
        return
    for (name, kind, identity), wanted in PLACES.items():
        held = value.get(name) if kind is None else value if value.get(name) == kind else None
        if isinstance(held, dict) and isinstance(found := held.get(identity), str):
            yield wanted, found
    for held in value.values():
        yield from ids_in(held)


@looped(
    "to",
    [
        *(target(name) for name in ("openai", "mistral", "vllm", "deepseek", "openrouter", "moonshot", "databricks")),
        *(anthropic.TARGET, gemini.TARGET, target_of("bedrock", HAIKU, base_url="https://host"), target_of("cohere")),
    ],
    ids=lambda to: to.profile.name,
)
def test_every_vendor_gets_unique_ids(to: Target) -> None:
    for history in (AGAIN, TWICE):
        plan = plan_calls(chat_request(*history, tools=[tool("look")]), to)
        found = [*ids_in(orjson.loads(plan.calls[0].sent.body))]
        calls = [identity for kind, identity in found if kind == "call"]
        assert len({*calls}) == len(calls) == 2
        assert [identity for kind, identity in found if kind == "result"] == calls
