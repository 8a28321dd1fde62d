"""Parts of a conversation as Anthropic's blocks."""

from providers.conversation import (
    CLAUDE_FORMAT,
    GEMINI_FORMAT,
    Address,
    Document,
    InlineData,
    OtherPart,
    Part,
    Reasoning,
    RedactedReasoning,
    Text,
    ToolResult,
    ToolUse,
    Turn,
    UploadedFile,
)
from providers.dialects.anthropic.blocks import as_text_or_blocks, block_of, is_lost_thinking, is_thinking
from providers.dialects.anthropic.tools import ToolNames
from providers.json_types import JsonObject
from tests.providers.dialects.kit import chat_request, refusal_for, target_of, user
from tests.providers.kit import refusal_of
from tests.support.looped import looped

TURN = Turn("user", ())
MARK: JsonObject = {"type": "ephemeral"}
PDF = InlineData("application/pdf", "JVBERi0=")


def made(part: Part) -> JsonObject | None:
    return block_of(TURN, part, ToolNames(()))


@looped(
    ("part", "block"),
    [
        (Text(" \n"), None),
        (Text("", MARK), None),
        (Text("a", MARK), {"type": "text", "text": "a", "cache_control": MARK}),
        (Reasoning("a"), None),
        (Reasoning("a", "s", GEMINI_FORMAT), None),
        (Reasoning("a", "s", CLAUDE_FORMAT), {"type": "thinking", "thinking": "a", "signature": "s"}),
        (RedactedReasoning("d", CLAUDE_FORMAT), {"type": "redacted_thinking", "data": "d"}),
        (RedactedReasoning("d", GEMINI_FORMAT), None),
        (
            ToolUse("call:1", "look", {"input": "x"}, custom="x"),
            {
                "type": "tool_use",
                "id": "call_5dd6bfd11b2b30ff5ddc1f4d5c6ba9b8",
                "name": "look",
                "input": {"input": "x"},
            },
        ),
    ],
)
def test_a_part_becomes_its_block_or_none(part: Part, block: JsonObject | None) -> None:
    found = made(part)
    if block is not None and found is not None and "id" in block:
        assert str(found["id"]).startswith("call_")
        block = {**block, "id": found["id"]}
    assert found == block


def test_a_document_says_all_that_is_known_of_it() -> None:
    assert made(Document(PDF, "a.pdf", "For the audit.", citations=True, cache=MARK)) == {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
        "title": "a.pdf",
        "context": "For the audit.",
        "citations": {"enabled": True},
        "cache_control": MARK,
    }


def test_a_result_holds_documents_and_its_own_parts() -> None:
    reference: JsonObject = {"type": "tool_reference", "tool_name": "look"}
    result = ToolResult("c", (Document(UploadedFile("f")), OtherPart("tool_reference", reference)), failed=True)
    assert made(result) == {
        "type": "tool_result",
        "tool_use_id": "c",
        "content": [{"type": "document", "source": {"type": "file", "file_id": "f"}}, reference],
        "is_error": True,
    }


def test_an_error_without_content_says_that_it_is_empty() -> None:
    failed = {"type": "tool_result", "tool_use_id": "c", "content": "(empty)", "is_error": True}
    assert made(ToolResult("c", (), failed=True)) == made(ToolResult("c", (Text(" "),), failed=True)) == failed
    assert made(ToolResult("c", ())) == {"type": "tool_result", "tool_use_id": "c"}


@looped("kind", ["web_search_tool_result", "server_tool_use", "search_result", "mcp_tool_use"])
def test_parts_of_the_vendors_own_pass(kind: str) -> None:
    assert made(OtherPart(kind, {"type": kind, "x": 1})) == {"type": kind, "x": 1}


@looped(
    "part",
    [OtherPart("hologram", {}), Document(Address("gs://a/b.pdf")), Document(InlineData("application/zip", "AA=="))],
)
def test_what_has_no_block_is_refused(part: Part) -> None:
    assert refusal_of(made, part).param == "messages"


def test_thinking_that_no_claude_signed_is_lost_unless_it_says_nothing() -> None:
    for lost in (Reasoning("a", "s", GEMINI_FORMAT), RedactedReasoning("a", GEMINI_FORMAT), Reasoning("a")):
        assert is_lost_thinking(lost)
    kept = (
        Reasoning("a", "s", CLAUDE_FORMAT),
        Reasoning("", "s", CLAUDE_FORMAT),
        RedactedReasoning("a", CLAUDE_FORMAT),
    )
    for other in (*kept, Reasoning(""), Text("a")):
        assert not is_lost_thinking(other)
    assert is_thinking({"type": "redacted_thinking"})
    assert not is_thinking("thinking")


def test_one_plain_text_is_a_string() -> None:
    assert as_text_or_blocks([{"type": "text", "text": "a"}]) == "a"
    marked: JsonObject = {"type": "text", "text": "a", "cache_control": MARK}
    assert as_text_or_blocks([marked]) == [marked]
    assert as_text_or_blocks([]) == []


@looped("profile", ["vertex_anthropic", "bedrock_anthropic"])
@looped(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
        {"type": "file", "file": {"file_id": "file_1"}},
        {"type": "container_upload", "file_id": "file_1"},
    ],
)
def test_clouds_take_media_with_the_call_only(profile: str, part: JsonObject) -> None:
    target = target_of(profile, "claude-haiku-4-5")
    call: JsonObject = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    asked: JsonObject = {"role": "assistant", "content": None, "tool_calls": [call]}
    result: JsonObject = {"role": "tool", "tool_call_id": "c", "content": [part]}
    for messages in ((user([part]),), (user("a"), asked, result)):
        assert refusal_for(chat_request(*messages), target).param == "messages"
