"""Conversations of requests: the fields that identify one, and that no other field does."""

import hashlib
import json
from collections.abc import Mapping

import pytest

from providers.json_types import JsonObject
from providers.unified_request import ChatPrompt, Operation, Params, TextPrompt, UnifiedRequest
from proxy.routing.session_key import BUILT_IN_KEY, LONGEST_ID, SAMPLE_LENGTH, SessionKey, key_names, session_key
from proxy.routing.session_key import session_number as number
from proxy.surfaces.anthropic.surface import ANTHROPIC
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.responses.responses_surface import RESPONSES
from tests.support.looped import looped

HEADERS = (
    *("x-dragoman-session", "x-claude-code-session-id", "session-id", "session_id", "x-session-affinity"),
    *("x-opencode-session", "x-session-id", "x-grok-conv-id"),
)
UUID = "0199c1f2-6f3c-7d3e-9f0f-3b5a1c2d4e5f"
OF_CLAUDE_CODE = json.dumps({"device_id": "d" * 64, "account_uuid": "", "session_id": UUID})
HASH = "a" * 64


def chat(*turns: str, **more: object) -> UnifiedRequest:
    messages = [
        {"role": "user" if place % 2 == 0 else "assistant", "content": said} for place, said in enumerate(turns)
    ]
    body = {"model": "m", "messages": [{"role": "system", "content": "Be brief."}, *messages], **more}
    return OPENAI.parse(Operation.CHAT, json.dumps(body).encode(), None)


def message(**more: object) -> UnifiedRequest:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], **more}
    return ANTHROPIC.parse(Operation.CHAT, json.dumps(body).encode(), None)


def response(**more: object) -> UnifiedRequest:
    body = {"model": "m", "input": "Hi", **more}
    return RESPONSES.parse(Operation.CHAT, json.dumps(body).encode(), None)


def found(request: UnifiedRequest, headers: Mapping[str, str] | None = None, tenant: str = "t") -> SessionKey | None:
    return session_key(tenant, BUILT_IN_KEY, headers or {}, request)


@looped("name", HEADERS)
def test_each_header_of_an_agent_names_its_conversation(name: str) -> None:
    assert found(chat("Hi"), {name: UUID}) == SessionKey(name, number("t", UUID))


def test_the_first_header_that_is_there_counts_and_an_empty_one_is_not_there() -> None:
    for place, name in enumerate(HEADERS):
        assert found(chat("Hi"), dict.fromkeys(HEADERS[place:], "v")) == SessionKey(name, number("t", "v"))
    assert found(chat("Hi", prompt_cache_key="k"), {"session-id": ""}) == SessionKey(
        "prompt_cache_key", number("t", "k")
    )


_TURNS: list[JsonObject] = [
    {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "text", "text": "there"}]},
    {"role": "assistant", "content": "Yes?"},
    {"role": "user", "content": "Go on"},
]
_ITEMS: list[JsonObject] = [
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
    {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "ok"},
]


@looped(
    ("first", "later", "others"),
    [
        (
            message(system="Be brief.", messages=_TURNS[:1]),
            message(system="Be brief.", messages=_TURNS),
            [message(system="Be long.", messages=_TURNS), message(messages=_TURNS), message(messages=_TURNS[2:])],
        ),
        (
            response(instructions="Be brief.", input=_ITEMS[:1]),
            response(instructions="Be brief.", input=_ITEMS),
            [response(instructions="Be long.", input=_ITEMS), response(input=_ITEMS), response()],
        ),
    ],
    ids=["messages", "responses"],
)
def test_a_conversation_in_its_client_s_own_api_is_known_by_its_beginning(
    first: UnifiedRequest, later: UnifiedRequest, others: list[UnifiedRequest]
) -> None:
    assert found(first) == found(later)
    assert found(first) not in [found(other) for other in others]


def test_the_id_of_a_request_names_no_conversation() -> None:
    request = chat("Hi")
    assert found(request, {"x-client-request-id": UUID}) == found(request)
    assert found(request, {"x-request-id": UUID}) == found(request)


@looped(
    ("request_", "source", "value"),
    [
        (message(metadata={"user_id": OF_CLAUDE_CODE}), "metadata.user_id", UUID),
        (message(metadata={"user_id": f"user_{HASH}_account__session_{UUID}"}), "metadata.user_id", UUID),
        (message(metadata={"user_id": f"user_{HASH}_account_{UUID}_session_{UUID}"}), "metadata.user_id", UUID),
        (chat("Hi", prompt_cache_key="k"), "prompt_cache_key", "k"),
        (response(prompt_cache_key="k"), "prompt_cache_key", "k"),
    ],
)
def test_a_field_names_the_conversation_where_no_header_does(request_: UnifiedRequest, source: str, value: str) -> None:
    assert found(request_) == SessionKey(source, number("t", value))
    assert found(request_, {"x-session-id": "h"}) == SessionKey("x-session-id", number("t", "h"))


def test_openai_s_conversation_is_read_as_an_id_or_as_an_object() -> None:
    plain = UnifiedRequest(Operation.CHAT, "m", ChatPrompt(()), Params(), unknown={"conversation": "conv_1"})
    whole = UnifiedRequest(Operation.CHAT, "m", ChatPrompt(()), Params(), unknown={"conversation": {"id": "conv_1"}})
    assert found(plain) == found(whole) == SessionKey("conversation", number("t", "conv_1"))


@looped("user", ["alice", "", "_session_", '{"session_id": 5}', "user_x_account_y", "x" * 100_000])
def test_a_user_without_a_session_names_no_conversation(user: str) -> None:
    key = found(message(metadata={"user_id": user}))
    assert key is not None
    assert key.source == "prompt"


def test_the_turns_of_a_conversation_have_one_digest_and_another_beginning_has_another() -> None:
    tools = [{"type": "function", "function": {"name": "read", "parameters": {}}}]
    turns = [chat("Hi"), chat("Hi", "Hello.", "More"), chat("Hi", "Hello.", "More", "Yes.", "Now?")]
    assert len({found(turn) for turn in turns}) == 1
    others = [chat("Ho"), chat("Hi", tools=tools), message(), chat("Hi" * 5000), chat("Hi" * 5001)]
    assert len({found(each) for each in [turns[0], *others]}) == 6


def test_the_last_part_of_a_first_turn_counts_behind_what_an_agent_puts_before_it() -> None:
    reminder = {"type": "text", "text": "<system-reminder>" + "rules " * 2000}
    first, second = (
        message(messages=[{"role": "user", "content": [reminder, {"type": "text", "text": said}]}])
        for said in ("Fix the bug", "Write a test")
    )
    assert found(first) != found(second)


@looped(
    "prompt",
    [TextPrompt(("a" * 9000,)), ChatPrompt(())],
)
def test_a_prompt_without_turns_has_no_conversation(prompt: TextPrompt | ChatPrompt) -> None:
    assert found(UnifiedRequest(Operation.COMPLETIONS, "m", prompt, Params())) is None


def test_two_teams_with_one_id_have_two_conversations() -> None:
    for request, headers in (
        (chat("Hi"), {"session-id": UUID}),
        (chat("Hi", prompt_cache_key="k"), {}),
        (chat("Hi"), {}),
    ):
        keys = {tenant: found(request, headers, tenant) for tenant in ("a", "b", "")}
        assert len(set(keys.values())) == 3
    assert number("a", "b") != number("", "a\0b")


def test_the_number_of_a_conversation_is_the_same_everywhere() -> None:
    assert number("search", UUID) == 0x71F1A52E8352D083


def test_an_operator_s_key_is_looked_for_in_headers_and_then_in_the_body() -> None:
    key = key_names(["x-own", "user", "metadata.thread", "deep.a.b"])
    assert key.names == ("x-own", "user", "metadata.thread", "deep.a.b")
    rows: list[tuple[UnifiedRequest, Mapping[str, str], SessionKey | None]] = [
        (chat("Hi", user="u"), {"x-own": "h"}, SessionKey("x-own", number("t", "h"))),
        (chat("Hi", user="u"), {}, SessionKey("user", number("t", "u"))),
        (chat("Hi", metadata={"thread": "7"}), {}, SessionKey("metadata.thread", number("t", "7"))),
        (chat("Hi", deep={"a": {"b": 7}}), {}, SessionKey("deep.a.b", number("t", "7"))),
        (chat("Hi", deep={"a": [1]}, session="s"), {"session-id": "s"}, None),
    ]
    for request, headers, expected in rows:
        assert session_key("t", key, headers, request) == expected
    with_prompt = session_key("t", key_names(["x-own", "prompt"]), {}, chat("Hi"))
    assert with_prompt == found(chat("Hi"))


HUGE = "x" * 1_000_000


@looped(
    ("request_", "headers"),
    [
        (chat("Hi"), {"session-id": HUGE}),
        (chat("Hi"), {"session-id": "\udc80" * 70_000}),
        (chat("Hi"), {"session-id": "\0"}),
        (chat(HUGE), {}),
        (chat("\N{GRINNING FACE}" * 100_000), {}),
        (message(metadata={"user_id": "_session_" * 100_000}), {}),
        (message(messages=[{"role": "user", "content": [{"type": "text", "text": "a"}] * 20_000}]), {}),
        (UnifiedRequest(Operation.CHAT, "m", ChatPrompt(({"role": "user", "content": 5},)), Params()), {}),
        (UnifiedRequest(Operation.CHAT, "m", ChatPrompt(({"role": "user", "content": [7]},)), Params()), {}),
    ],
)
def test_hostile_requests_are_read_like_others(request_: UnifiedRequest, headers: Mapping[str, str]) -> None:
    key = found(request_, headers)
    assert key is None or 0 <= key.number < 2**64


def test_no_more_of_an_id_or_a_text_is_digested_than_its_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    digested: list[int] = []

    def counting(data: bytes) -> object:
        digested.append(len(data))
        return real(data)

    real = hashlib.sha256
    monkeypatch.setattr("proxy.routing.session_key.sha256", counting)
    tools: list[JsonObject] = [{"type": "function", "function": {"name": "n" * 10_000}}] * 128
    system: JsonObject = {"role": "system", "content": HUGE}
    user: JsonObject = {"role": "user", "content": HUGE}
    whole = UnifiedRequest(Operation.CHAT, "m", ChatPrompt((*[system] * 7, user)), Params(tools=tools))
    found(whole)
    found(whole, {"session-id": HUGE})
    assert digested[0] <= 4 * SAMPLE_LENGTH
    assert digested[1] <= LONGEST_ID + 2
