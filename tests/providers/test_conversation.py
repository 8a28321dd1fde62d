"""Parts of a conversation: the name of a turn in error messages."""

from providers.conversation import PlainMessage, Reasoning, Text, ToolResult, ToolUse, Turn


def test_a_turn_names_its_message_in_a_refusal() -> None:
    refusal = Turn("user", (Text("x"),), position=3).refusal("makes no sense", "invalid_value")
    assert (refusal.param, refusal.message, refusal.code) == (
        "messages",
        "messages[3] makes no sense.",
        "invalid_value",
    )
    assert Turn("user", (), param="prompt").refusal("is odd").message == "'prompt' is odd."


def test_a_part_that_cannot_be_translated_is_named_by_its_type() -> None:
    message = "messages[0] has a part of type 'video', which cannot be translated."
    assert Turn("user", ()).no_part("video").message == message


def test_a_plain_message_is_a_turn_of_its_parts() -> None:
    call, thought, said = ToolUse("c", "f", {}), Reasoning("Hm."), Text("x")
    turn = PlainMessage("assistant", "x", (call,), thinking=(thought,)).turn("messages", 2)
    assert turn == Turn("assistant", (thought, said, call), position=2)
    assert PlainMessage("user", "").turn("prompt", 0) == Turn("user", (), param="prompt")
    assert PlainMessage("tool", "x", call_id="c").turn("messages", 0) == Turn("tool", (ToolResult("c", (said,)),))
