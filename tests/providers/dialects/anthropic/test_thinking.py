"""Reasoning on Anthropic's API: by word, by budget, and in whole agent loops that are checked by the vendor's rules."""

from dataclasses import replace

import orjson
import pytest

from providers.completion import Choice, Extras
from providers.dialect import UpstreamRequest
from providers.emulation.join_extras import GrowingExtras
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import UnifiedRequest
from tests.providers.dialects.anthropic.kit import DIALECT, TARGET, encode
from tests.providers.dialects.anthropic.vendor_rules import VendorRefusal, check_rules
from tests.providers.dialects.kit import chat_request, chunks, refusal_for, streamed, text_of, tool, user
from tests.support.looped import looped

ENABLED: JsonObject = {"type": "enabled", "budget_tokens": 2048}
FOREIGN: JsonObject = {"type": "reasoning.text", "text": "Hm", "signature": "x", "format": "google-gemini-v1"}


def written(model: str, **params: object) -> tuple[JsonValue, JsonValue, tuple[str, ...]]:
    """Return the fields of a call: `thinking`, the effort, and the names of the dropped fields."""
    target = replace(TARGET, model=model, upstream_model=model, max_output_tokens=None)
    sent = encode(chat_request(**params), target)
    body = orjson.loads(sent.body)
    return body.get("thinking"), body.get("output_config", {}).get("effort"), sent.dropped


def budget(tokens: int) -> JsonObject:
    return {"type": "enabled", "budget_tokens": tokens}


SUMMARIZED: JsonObject = {"type": "adaptive", "display": "summarized"}


@looped(
    ("model", "word", "thinking", "effort"),
    [
        ("claude-haiku-4-5", "minimal", budget(1024), None),
        ("claude-haiku-4-5", "low", budget(2048), None),
        ("claude-sonnet-4-5", "medium", budget(10_000), None),
        ("claude-3-7-sonnet", "high", budget(16_384), None),
        ("claude-opus-4-1", "max", budget(30_976), None),
        ("claude-haiku-4-5", 5000, budget(5000), None),
        ("claude-opus-4-5", "xhigh", budget(32_768), "high"),
        ("claude-opus-4-6", "minimal", {"type": "adaptive"}, "low"),
        ("claude-opus-4-6", "xhigh", {"type": "adaptive"}, "max"),
        ("claude-opus-4-7", "xhigh", SUMMARIZED, "xhigh"),
        ("claude-sonnet-5-5", "medium", SUMMARIZED, "medium"),
        ("operators-own", "medium", None, "medium"),
        ("claude-haiku-4-5", "none", {"type": "disabled"}, None),
        ("claude-haiku-4-5", False, {"type": "disabled"}, None),
        ("claude-sonnet-5", "none", {"type": "disabled"}, None),
        ("claude-sonnet-5-5", "none", {"type": "between_tools"}, None),
        ("claude-3-opus-20240229", "none", None, None),
        ("claude-opus-5", None, None, None),
    ],
)
def test_effort_has_the_form_that_the_model_takes(
    model: str, word: object, thinking: JsonValue, effort: str | None
) -> None:
    params = {} if word is None else {"reasoning_effort": word}
    assert written(model, **params) == (thinking, effort, ())


@looped(
    ("model", "params", "emulated"),
    [
        ("claude-fable-5", {"reasoning_effort": "none"}, True),
        ("claude-sonnet-5-5", {"reasoning_effort": "none"}, False),
        ("claude-sonnet-5-5", {"reasoning_effort": "none", "tools": [tool()]}, True),
        ("claude-opus-4-5", {"reasoning_effort": "xhigh"}, True),
        ("claude-opus-4-6", {"reasoning_effort": "minimal"}, True),
        ("claude-opus-4-6", {"reasoning_effort": "max"}, False),
        ("claude-opus-5", {"reasoning_effort": "max", "thinking": {"type": "disabled"}}, True),
        ("claude-haiku-4-5", {"reasoning_effort": "minimal"}, False),
    ],
)
def test_a_word_for_which_another_stands_is_named_as_emulated(
    model: str, params: dict[str, object], emulated: bool
) -> None:
    target = replace(TARGET, model=model, upstream_model=model, max_output_tokens=None)
    sent = encode(chat_request(**params), target)
    assert (sent.emulated, sent.dropped) == (("reasoning_effort",) if emulated else (), ())


def test_what_cannot_be_switched_off_is_as_little_as_possible() -> None:
    assert written("claude-fable-5", reasoning_effort="none") == (None, "low", ())


@looped(
    ("model", "effort", "code"),
    [
        ("claude-haiku-4-5", True, "invalid_value"),
        ("claude-haiku-4-5", "extreme", "invalid_value"),
        ("claude-opus-4-7", 4096, "invalid_value"),
        ("claude-3-haiku-20240307", "low", "unsupported_parameter"),
    ],
)
def test_what_is_no_effort_there_is_refused(model: str, effort: object, code: str) -> None:
    refusal = refusal_for(chat_request(reasoning_effort=effort), replace(TARGET, upstream_model=model))
    assert (refusal.param, refusal.code) == ("reasoning_effort", code)


@looped(
    ("limit", "thinking", "dropped"),
    [
        (20_000, budget(16_384), ()),
        (5000, budget(3976), ()),
        (3000, budget(1976), ()),
        (1500, budget(1024), ()),
        (1025, budget(1024), ()),
        (1024, None, ("reasoning_effort",)),
        (10, None, ("reasoning_effort",)),
    ],
)
def test_a_budget_stays_below_the_limit(limit: int, thinking: JsonValue, dropped: tuple[str, ...]) -> None:
    given = written("claude-haiku-4-5", reasoning_effort="high", max_tokens=limit)
    assert given == (thinking, None, dropped)


def test_a_limit_that_nobody_gave_leaves_room_behind_the_budget() -> None:
    target = replace(TARGET, upstream_model="claude-sonnet-4-0", max_output_tokens=None)
    for params in ({"reasoning_effort": "high"}, {"thinking": budget(16_384)}):
        body = orjson.loads(encode(chat_request(**params), target).body)
        assert (body["max_tokens"], body["thinking"]) == (16_384 + 4096, budget(16_384))


def test_the_clients_own_thinking_is_sent_as_it_came() -> None:
    own: JsonObject = {"type": "adaptive", "display": "omitted"}
    assert written("claude-opus-5", thinking=own, reasoning_effort="max") == (own, "max", ())
    assert written("claude-haiku-4-5", thinking=ENABLED, reasoning_effort=9000) == (ENABLED, None, ())
    assert written("claude-haiku-4-5", thinking=ENABLED, reasoning_effort="none") == (ENABLED, None, ())
    off: JsonObject = {"type": "disabled"}
    assert written("claude-opus-5", thinking=off, reasoning_effort="max") == (off, "high", ())


@looped(
    ("model", "own", "thinking", "emulated", "dropped"),
    [
        ("claude-opus-4-7", ENABLED, SUMMARIZED, ("thinking",), ()),
        ("claude-opus-4-6", ENABLED, ENABLED, (), ()),
        ("claude-haiku-4-5", {"type": "adaptive"}, budget(10_000), ("thinking",), ()),
        ("claude-fable-5", {"type": "disabled"}, None, ("thinking",), ()),
        ("claude-sonnet-5-5", {"type": "disabled"}, {"type": "between_tools"}, (), ()),
        ("claude-opus-5", {"type": "between_tools"}, {"type": "between_tools"}, (), ()),
        ("operators-own", ENABLED, ENABLED, (), ()),
    ],
)
def test_a_type_of_thinking_that_a_model_lacks_becomes_the_one_it_has(
    model: str, own: JsonObject, thinking: JsonValue, emulated: tuple[str, ...], dropped: tuple[str, ...]
) -> None:
    target = replace(TARGET, model=model, upstream_model=model, max_output_tokens=None)
    sent = encode(chat_request(thinking=own), target)
    assert (orjson.loads(sent.body).get("thinking"), sent.emulated, sent.dropped) == (thinking, emulated, dropped)


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "look"}}])
def test_a_forced_call_means_no_budget_of_thinking(choice: JsonValue) -> None:
    asked = {"tools": [tool()], "tool_choice": choice}
    assert written("claude-haiku-4-5", thinking=ENABLED, **asked) == (None, None, ("thinking",))
    assert written("claude-opus-4-5", reasoning_effort="low", **asked) == (None, "low", ("reasoning_effort",))


@looped("choice", ["required", {"type": "function", "function": {"name": "look"}}])
@looped("model", ["claude-opus-4-6", "claude-sonnet-4-6", "claude-opus-4-7"])
def test_a_forced_call_of_a_model_that_takes_it_alone_means_no_thinking(model: str, choice: JsonValue) -> None:
    asked = {"tools": [tool()], "tool_choice": choice}
    assert written(model, reasoning_effort="low", **asked) == (None, "low", ("reasoning_effort",))
    assert written(model, thinking={"type": "adaptive"}, **asked) == (None, None, ("thinking",))
    assert written("claude-opus-4-8", reasoning_effort="low", **asked) == (SUMMARIZED, "low", ())


# Agent loops --------------------------------------------------------------------------------------------------------


def thought(number: int) -> list[JsonValue]:
    """Return the reasoning of one turn of the model: a signed text, or every other time a redacted block."""
    signed: JsonObject = {"type": "thinking", "thinking": f"Step {number}. ", "signature": f"sig-{number}"}
    return [signed, {"type": "redacted_thinking", "data": f"ZGF0YQ{number}"}] if number % 2 else [signed]


def message(number: int) -> JsonObject:
    """Return the vendor's response of one turn: reasoning, text and two calls."""
    calls: list[JsonValue] = [
        {"type": "tool_use", "id": f"toolu_{number}_{at}", "name": "look", "input": {"at": f"{number}.{at}"}}
        for at in (0, 1)
    ]
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [*thought(number), {"type": "text", "text": f"Looking {number}. "}, *calls],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def as_stream(whole: JsonObject) -> bytes:
    content = whole["content"]
    assert isinstance(content, list)
    events: list[JsonObject] = [{"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}]
    for index, block in enumerate(content):
        assert isinstance(block, dict)
        empty: dict[JsonValue, JsonObject] = {
            "thinking": {"type": "thinking", "thinking": "", "signature": ""},
            "text": {"type": "text", "text": ""},
            "tool_use": {**block, "input": {}},
        }
        deltas: dict[JsonValue, list[JsonObject]] = {
            "thinking": [
                {"type": "thinking_delta", "thinking": block.get("thinking")},
                {"type": "signature_delta", "signature": block.get("signature")},
            ],
            "text": [{"type": "text_delta", "text": block.get("text")}],
            "tool_use": [{"type": "input_json_delta", "partial_json": orjson.dumps(block.get("input")).decode()}],
        }
        kind = block["type"]
        events.append({"type": "content_block_start", "index": index, "content_block": empty.get(kind, block)})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas.get(kind, [])]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}})
    events.append({"type": "message_stop"})
    return b"".join(b"data: %b\n\n" % orjson.dumps(event) for event in events)


def answered(sent: UpstreamRequest, number: int) -> Choice:
    """Return the response of one turn, decoded in the requested form."""
    whole = message(number)
    decoded = DIALECT.decode(sent, orjson.dumps(whole)).choices[0]
    if not sent.stream:
        return decoded
    events = streamed(sent, as_stream(whole), 7)
    extras = GrowingExtras()
    for chunk in chunks(events):
        extras.add(chunk.extras or Extras())
    assert extras.whole() == decoded.extras
    assert text_of(events) == decoded.text
    return decoded


def as_details(choice: Choice) -> JsonObject:
    assert choice.extras is not None
    return {"reasoning_details": [*choice.extras.reasoning_details]}


def as_blocks(choice: Choice) -> JsonObject:
    assert choice.extras is not None
    return {
        "thinking_blocks": [
            {"type": "redacted_thinking", "data": detail["data"]}
            if detail["type"] == "reasoning.encrypted"
            else {"type": "thinking", "thinking": detail["text"], "signature": detail["signature"]}
            for detail in choice.extras.reasoning_details
        ]
    }


def as_text(choice: Choice) -> JsonObject:
    return {"reasoning_content": choice.reasoning}


def as_nothing(choice: Choice) -> JsonObject:
    return {}


def repeated(choice: Choice, returned: JsonObject) -> list[JsonObject]:
    """The model's turn and its tools' results, as a client sends them."""
    calls: list[JsonValue] = [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in choice.tool_calls
    ]
    said: JsonObject = {"role": "assistant", "content": choice.text, "tool_calls": calls, **returned}
    results: list[JsonObject] = [
        {"role": "tool", "tool_call_id": call.id, "content": "Seen."} for call in choice.tool_calls
    ]
    return [said, *results]


@looped("stream", [False, True])
@looped("returns", [as_details, as_blocks, as_text, as_nothing])
@looped("model", ["claude-haiku-4-5", "claude-opus-4-6", "claude-opus-5-5"])
@looped("params", [{"reasoning_effort": "medium"}, {"thinking": {**ENABLED}}])
def test_five_turns_of_thinking_and_tools_keep_the_vendors_rules(
    model: str, returns: object, stream: bool, params: dict[str, object]
) -> None:
    assert callable(returns)
    target = replace(TARGET, upstream_model=model, max_output_tokens=None)
    messages: list[JsonObject] = [user("go")]
    signatures = frozenset[str]()
    for number in range(5):
        request: UnifiedRequest = replace(chat_request(*messages, tools=[tool()], **params), stream=stream)
        sent = encode(request, target)
        body = orjson.loads(sent.body)
        check_rules(body, signatures, budgets=model == "claude-haiku-4-5")
        keeps = returns in (as_details, as_blocks)
        held = [block for turn in body["messages"] if turn["role"] == "assistant" for block in turn["content"]]
        thinking = [block for block in held if "thinking" in block["type"]]
        assert thinking == ([block for each in range(number) for block in thought(each)] if keeps else [])
        by_budget = isinstance(body.get("thinking"), dict) and body["thinking"]["type"] == "enabled"
        # If the vendor requires the blocks and they are missing, the loop continues without reasoning. This is
        # reported, and so is a reasoning text without a signature.
        stops = not keeps and number > 0 and not by_budget and "adaptive" not in str(body)
        assert bool(sent.dropped) == (stops or (returns is as_text and number > 0))
        choice = answered(sent, number)
        messages += repeated(choice, returns(choice))
        signatures |= {f"sig-{number}"}


def test_a_loop_begun_without_thinking_goes_on_without() -> None:
    loop = [user("go"), *repeated(answered(encode(chat_request()), 0), {})]
    sent = encode(chat_request(*loop, tools=[tool()], thinking=ENABLED))
    assert sent.dropped == ("thinking",)
    later = encode(chat_request(*loop, user("and now?"), tools=[tool()], thinking=ENABLED))
    assert later.dropped == ("thinking",)
    over = encode(chat_request(*loop, {"role": "assistant", "content": "Done."}, user("x"), thinking=ENABLED))
    assert (over.dropped, orjson.loads(over.body)["thinking"]) == ((), ENABLED)


def test_a_loop_that_thought_in_its_first_turn_only_keeps_thinking() -> None:
    first, second = (answered(encode(chat_request()), number) for number in (0, 1))
    loop = [user("go"), *repeated(first, as_details(first)), *repeated(second, {})]
    sent = encode(chat_request(*loop, tools=[tool()], thinking=ENABLED))
    assert (sent.dropped, orjson.loads(sent.body)["thinking"]) == ((), ENABLED)


def test_a_text_to_be_continued_means_no_budget_of_thinking() -> None:
    sent = encode(chat_request(user("a"), {"role": "assistant", "content": "It is "}, reasoning_effort="low"))
    assert sent.dropped == ("reasoning_effort",)


@looped(
    ("model", "params", "kept"),
    [
        ("claude-haiku-4-5", {}, False),
        ("claude-opus-4-6", {}, False),
        ("claude-opus-4-6", {"reasoning_effort": "none"}, False),
        ("claude-sonnet-5", {"thinking": {"type": "disabled"}}, False),
        ("claude-sonnet-5", {}, True),
        ("claude-opus-5-5", {}, True),
        ("operators-own", {}, True),
    ],
)
def test_thinking_of_earlier_turns_is_sent_to_models_that_think(
    model: str, params: dict[str, object], kept: bool
) -> None:
    choice = answered(encode(chat_request()), 1)
    request = chat_request(user("go"), *repeated(choice, as_details(choice)), tools=[tool()], **params)
    sent = encode(request, replace(TARGET, model=model, upstream_model=model))
    assert (b"sig-1" in sent.body, b"ZGF0YQ1" in sent.body) == (kept, kept)
    assert sent.dropped == (() if kept else ("thinking",))


def test_thinking_that_no_claude_signed_is_left_out_and_named() -> None:
    said: JsonObject = {"role": "assistant", "content": "b", "reasoning_details": [FOREIGN]}
    sent = encode(chat_request(user("a"), said, user("c")))
    assert sent.dropped == ("thinking",)
    assert b"Hm" not in sent.body
    unsigned: JsonObject = {"role": "assistant", "content": "b", "reasoning_content": "Hm"}
    sent = encode(chat_request(user("a"), unsigned, user("c")))
    assert (sent.dropped, b"Hm" in sent.body) == (("thinking",), False)


def test_an_empty_thought_comes_back_with_its_signature() -> None:
    blank: JsonObject = {"type": "thinking", "thinking": "", "signature": "sig"}
    said: JsonObject = {"role": "assistant", "content": "b", "thinking_blocks": [blank]}
    sent = encode(chat_request(user("a"), said, user("c")), replace(TARGET, upstream_model="claude-opus-5"))
    assert orjson.loads(sent.body)["messages"][1]["content"][0] == blank


def test_the_judge_of_loops_refuses_what_the_vendor_refuses() -> None:
    call: JsonObject = {"type": "tool_use", "id": "t", "name": "look", "input": {}}
    answer: JsonObject = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}
    forged: JsonObject = {"type": "thinking", "thinking": "x", "signature": "forged"}
    for said in ([call], [forged, call]):
        body: JsonObject = {
            "messages": [user("a"), {"role": "assistant", "content": [*said]}, answer],
            "thinking": ENABLED,
            "max_tokens": 9000,
        }
        with pytest.raises(VendorRefusal):
            check_rules(body, frozenset(), budgets=True)


def test_a_limit_above_the_models_is_lowered_and_named() -> None:
    sent = encode(chat_request(max_tokens=200_000))
    assert (orjson.loads(sent.body)["max_tokens"], sent.emulated) == (64_000, ("max_tokens",))
    assert encode(chat_request(max_tokens=64_000)).emulated == ()
