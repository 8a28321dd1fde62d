"""Parts of a conversation: how a turn names itself in errors."""

from providers.conversation import Text, Turn


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
