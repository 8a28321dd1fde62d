"""Instructions and turns as messages of a chat."""

from hypothesis import given
from hypothesis import strategies as st

from providers.dialects.shared.read_conversation import read_conversation
from providers.json_types import JsonObject, JsonValue
from providers.unified_request import ChatPrompt
from proxy.errors import ErrorFacts, GatewayError
from proxy.surfaces.anthropic.conversation import BILLING_HEADER, ROLES
from proxy.surfaces.request.chat_messages import MAX_MESSAGES, messages
from proxy.surfaces.thinking_envelope import seal
from tests.providers.dialects.anthropic.random_turns import ODD, USUAL
from tests.proxy.surfaces.anthropic.kit import chat, parse, refused, turn
from tests.support.looped import looped
from tests.support.not_none import not_none

MARK: JsonObject = {"cache_control": {"type": "ephemeral"}}
SEALED: list[JsonObject] = [
    {"type": "reasoning.text", "text": "hm", "format": "google-gemini-v1", "index": 3},
    {"type": "reasoning.encrypted", "data": "x", "format": "google-gemini-v1", "index": 3, "id": "c"},
]


def test_instructions_come_first_as_one_message() -> None:
    assert chat([{"role": "user", "content": "hi"}], system="S") == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "hi"},
    ]
    assert chat([{"role": "user", "content": "hi"}], system="")[0]["role"] == "user"
    blocks: JsonValue = [{"type": "text", "text": "a", **MARK}, {"type": "text", "text": "b"}]
    assert chat([{"role": "user", "content": "hi"}], system=blocks)[0] == {"role": "system", "content": blocks}


def test_the_billing_header_of_claude_code_is_left_out_and_named() -> None:
    request = parse(system=[{"type": "text", "text": f"{BILLING_HEADER}: cc=1"}, {"type": "text", "text": "S"}])
    assert not_none(request.losses).left_out == (BILLING_HEADER,)
    assert str(not_none(request.native).body["system"]).count(BILLING_HEADER) == 1
    assert chat([{"role": "user", "content": "x"}], system=[{"type": "text", "text": BILLING_HEADER}]) == [
        {"role": "user", "content": "x"}
    ]


def test_instructions_within_the_conversation_stay_in_their_place() -> None:
    messages: JsonValue = [
        {"role": "user", "content": "a"},
        {"role": "system", "content": [{"type": "text", "text": "b"}]},
        {"role": "user", "content": "c"},
    ]
    assert [(it["role"], it["content"]) for it in chat(messages)] == [("user", "a"), ("system", "b"), ("user", "c")]


def test_each_result_is_a_message_before_the_rest_of_its_turn() -> None:
    assert turn(
        {"type": "text", "text": "reminder"},
        {"type": "tool_result", "tool_use_id": "a", "content": "A", **MARK},
        {"type": "tool_result", "tool_use_id": "b", "is_error": True},
        {"type": "tool_result", "tool_use_id": "c", "is_error": False, "content": [{"type": "text", "text": "C"}]},
    ) == [
        {"role": "tool", "tool_call_id": "a", "content": "A", **MARK},
        {"role": "tool", "tool_call_id": "b", "content": "", "is_error": True},
        {"role": "tool", "tool_call_id": "c", "content": "C"},
        {"role": "user", "content": "reminder"},
    ]


@looped(
    ("content", "said"),
    [
        ([{"type": "tool_reference", "tool_name": "mcp__x__y"}], "Loaded tools: mcp__x__y"),
        (
            [{"type": "tool_reference", "tool_name": "a"}, {"type": "tool_reference", "tool_name": "b"}],
            "Loaded tools: a, b",
        ),
        (
            [{"type": "tool_reference", "tool_name": "a"}, {"type": "text", "text": "one"}],
            [{"type": "text", "text": "Loaded tools: a"}, {"type": "text", "text": "one"}],
        ),
    ],
)
def test_tools_that_a_search_has_found_are_named_by_text(content: list[JsonValue], said: JsonValue) -> None:
    result: JsonObject = {"type": "tool_result", "tool_use_id": "a", "content": content}
    assert turn(result) == [{"role": "tool", "tool_call_id": "a", "content": said}]
    assert parse(messages=[{"role": "user", "content": [result]}]).losses is None


def test_results_keep_their_media() -> None:
    image: JsonObject = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    (message,) = turn({"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "x"}, image]})
    assert message["content"] == [
        {"type": "text", "text": "x"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]


def test_a_turn_of_the_model_is_one_message() -> None:
    assert turn(
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "redacted_thinking", "data": "red"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "a", "name": "f", "input": {"x": "é"}, **MARK},
        {"type": "tool_use", "id": "b", "name": "g"},
        role="assistant",
    ) == [
        {
            "role": "assistant",
            "content": "I look.",
            "reasoning_details": [
                {
                    "type": "reasoning.text",
                    "text": "hm",
                    "signature": "sig",
                    "format": "anthropic-claude-v1",
                    "index": 0,
                },
                {"type": "reasoning.encrypted", "data": "red", "format": "anthropic-claude-v1", "index": 1},
            ],
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":"é"}'}, **MARK},
                {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}},
            ],
        }
    ]


def test_a_turn_that_only_calls_has_null_content_and_an_empty_one_an_empty_text() -> None:
    (called,) = turn({"type": "tool_use", "id": "a", "name": "f", "input": {}}, role="assistant")
    assert called["content"] is None
    (silent,) = turn({"type": "text", "text": ""}, role="assistant")
    assert silent == {"role": "assistant", "content": ""}


def test_unsigned_thinking_is_plain_text_and_another_vendor_s_comes_back_as_it_was_sealed() -> None:
    (message,) = turn({"type": "thinking", "thinking": "hm", "signature": ""}, role="assistant")
    assert message["reasoning_details"] == [{"type": "reasoning.text", "text": "hm", "format": "unknown", "index": 0}]
    (empty,) = turn({"type": "thinking", "thinking": ""}, role="assistant")
    assert "reasoning_details" not in empty
    (message,) = turn({"type": "thinking", "thinking": "hm", "signature": seal(SEALED)}, role="assistant")
    assert message["reasoning_details"] == SEALED


def test_thinking_beside_an_envelope_without_its_text_is_kept() -> None:
    (message,) = turn({"type": "thinking", "thinking": "hm", "signature": seal(SEALED[1:])}, role="assistant")
    assert message["reasoning_details"] == [
        {"type": "reasoning.text", "text": "hm", "format": "unknown", "index": 0},
        *SEALED[1:],
    ]


def test_a_spoilt_envelope_is_left_out_and_named() -> None:
    spoilt = seal(SEALED)[:-5]
    thought: JsonObject = {"type": "thinking", "thinking": "hm", "signature": spoilt}
    request = parse(messages=[{"role": "user", "content": "x"}, {"role": "assistant", "content": [thought]}])
    assert not_none(request.losses).left_out == ("thinking",)


_FOUND_NONE: JsonObject = {"type": "tool_result", "tool_use_id": "t"}
_ABSENT = ("server_tool_use", "web_search_tool_result", "tool_search_tool_result")


def test_blocks_of_server_tools_are_left_out_and_named() -> None:
    blocks: list[JsonValue] = [
        {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
        {"type": "web_search_tool_result", "tool_use_id": "s", "content": []},
        {"type": "tool_search_tool_result", "tool_use_id": "t", "content": {}},
        {"type": "text", "text": "It is sunny."},
    ]
    request = parse(messages=[{"role": "user", "content": "x"}, {"role": "assistant", "content": blocks}])
    assert not_none(request.losses).left_out == tuple([f"messages.{kind}" for kind in _ABSENT])
    assert chat(messages=[{"role": "assistant", "content": blocks}])[-1]["content"] == "It is sunny."


@looped(
    ("message", "param"),
    [
        (1, "messages.0"),
        ({"role": "tool", "content": "x"}, "messages.0.role"),
        ({"role": "user"}, "messages.0.content"),
        ({"role": "user", "content": 1}, "messages.0.content"),
        ({"role": "user", "content": [{"type": "text", "text": 1}]}, "messages.0.content.0.text"),
        ({"role": "user", "content": [{"type": "tool_result"}]}, "messages.0.content.0.tool_use_id"),
        (
            {"role": "user", "content": [{**_FOUND_NONE, "content": [{"type": "tool_reference"}]}]},
            "messages.0.content.0.content.0.tool_name",
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text"}]}]},
            "messages.0.content.0.content.0.text",
        ),
        (
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "is_error": "x"}]},
            "messages.0.content.0.is_error",
        ),
        ({"role": "assistant", "content": [{"type": "tool_use", "id": "a"}]}, "messages.0.content.0.name"),
        (
            {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}]},
            "messages.0.content.0.input",
        ),
        ({"role": "assistant", "content": [{"type": "thinking"}]}, "messages.0.content.0.thinking"),
        ({"role": "system", "content": [{"type": "image"}]}, "messages.0.content.0.type"),
    ],
)
def test_a_turn_that_makes_no_sense_is_refused_at_its_place(message: JsonValue, param: str) -> None:
    assert refused(messages=[message]).param == param


@looped("messages", [[], "x", {}])
def test_there_has_to_be_a_list_of_messages(messages: JsonValue) -> None:
    assert refused(messages=messages).param == "messages"


def test_every_role_of_the_api_is_taken() -> None:
    for role in ROLES:
        assert chat([{"role": role, "content": "x"}]) == [{"role": role, "content": "x"}]


def test_ten_thousand_blocks_are_read() -> None:
    blocks: list[JsonObject] = [{"type": "text", "text": "x"}] * 10_000
    (message,) = turn(*blocks)
    content = message["content"]
    assert isinstance(content, list)
    assert len(content) == 10_000
    system: JsonValue = [{"type": "text", "text": "x"}] * 10_000
    assert len(str(chat([{"role": "user", "content": "x"}], system=system)[0]["content"])) > 10_000


def test_thinking_between_calls_keeps_its_place() -> None:
    def block(kind: str, **members: JsonValue) -> JsonObject:
        return {"type": kind, **members}

    blocks = [
        block("thinking", thinking="a", signature="S1"),
        block("text", text="first"),
        block("tool_use", id="ta", name="f", input={}),
        block("redacted_thinking", data="R"),
        block("text", text="second"),
        block("tool_use", id="tb", name="f", input={}),
    ]
    (read,) = read_conversation(turn(*blocks, role="assistant"))
    assert [type(part).__name__ for part in read.parts] == [
        *("Reasoning", "Text", "ToolUse"),
        *("RedactedReasoning", "Text", "ToolUse"),
    ]


def test_citations_of_an_earlier_answer_are_left_out_and_named() -> None:
    cited: JsonObject = {"type": "char_location", "cited_text": "a", "document_index": 0}
    rows: list[tuple[JsonValue, tuple[str, ...] | None]] = [([cited], ("citations",)), ([], None), (None, None)]
    for citations, named in rows:
        said: JsonObject = {"type": "text", "text": "a", "citations": citations}
        asked: JsonObject = {"role": "user", "content": "q"}
        request = parse(messages=[asked, {"role": "assistant", "content": [said]}, asked])
        assert (request.losses and request.losses.left_out) == named
        assert "citations" in str(not_none(request.native).body["messages"])


def with_null_markers(value: JsonValue) -> JsonValue:
    """Return the turns with a null marker in each block. Such a marker means nothing, but excludes the block from the
    shortcuts."""
    if isinstance(value, list):
        return [with_null_markers(each) for each in value]
    if not isinstance(value, dict):
        return value
    marked = {name: with_null_markers(member) if name == "content" else member for name, member in value.items()}
    return marked if "role" in value else {**marked, "cache_control": value.get("cache_control")}


def outcome(turns: JsonValue) -> tuple[ChatPrompt, bool] | ErrorFacts:
    try:
        prompt = parse(messages=turns).prompt
    except GatewayError as error:
        return error.facts
    assert isinstance(prompt, ChatPrompt)
    return prompt, prompt.plain


@given(st.lists(USUAL | USUAL | ODD, min_size=1, max_size=4))
def test_usual_blocks_are_read_as_all_others_and_refused_as_they_are(turns: list[JsonValue]) -> None:
    assert outcome(turns) == outcome(with_null_markers(turns))


@given(st.lists(USUAL, min_size=1, max_size=4))
def test_a_translated_conversation_is_as_the_check_of_every_conversation_has_it(turns: list[JsonValue]) -> None:
    read = outcome(turns)
    if isinstance(read, tuple):
        prompt, plain = read
        again = messages([*prompt.messages])
        assert (again, again.plain) == (prompt, plain)


def test_a_conversation_of_texts_alone_is_plain() -> None:
    hi: JsonObject = {"role": "user", "content": "hi"}
    said: JsonObject = {"role": "assistant", "content": [{"type": "text", "text": "a"}]}
    call: JsonObject = {"type": "tool_use", "id": "c", "name": "f", "input": {}}
    called: JsonObject = {"role": "assistant", "content": [{"type": "text", "text": "a"}, call]}
    rows: list[tuple[list[JsonValue], bool]] = [
        ([hi, said, hi], True),
        ([hi, {"role": "user", "content": ""}], False),
        ([hi, called], False),
    ]
    for turns, plain in rows:
        assert outcome(turns) == (ChatPrompt(tuple(chat(turns))), plain)


def test_a_marked_text_stays_a_part_wherever_it_stands() -> None:
    marked: JsonObject = {"type": "text", "text": "a", **MARK}
    result: JsonObject = {"type": "tool_result", "tool_use_id": "c", "content": [marked]}
    for message in (*turn(marked), *turn(result), *turn(marked, role="assistant")):
        assert message["content"] == [marked]


def test_an_image_without_an_address_is_refused() -> None:
    image: JsonObject = {"type": "image", "source": {"type": "url", "url": ""}}
    facts = refused(messages=[{"role": "user", "content": [image]}])
    assert [problem.loc for problem in facts.problems] == [("messages", 0, "content", 0, "image_url", "url")]


def test_a_conversation_has_at_most_so_many_messages_with_its_instructions() -> None:
    turns: JsonValue = [{"role": "user", "content": "hi"}] * MAX_MESSAGES
    assert len(chat(turns)) == MAX_MESSAGES
    assert str(MAX_MESSAGES) in refused(messages=turns, system="S").problems[0].message
