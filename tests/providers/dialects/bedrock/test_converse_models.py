"""Which facts belong to which model on Converse."""

from providers.dialects.bedrock.converse_models import UNKNOWN_MODEL, converse_model
from tests.support.looped import looped


@looped(
    ("name", "claude", "may_start", "status", "limit"),
    [
        ("us.anthropic.claude-opus-4-7", True, True, True, None),
        ("us.amazon.nova-2-lite-v1:0", False, False, True, None),
        ("us.meta.llama3-3-70b-instruct-v1:0", False, False, True, 2048),
        ("us.meta.llama4-maverick-17b-instruct-v1:0", False, False, True, 8192),
        ("mistral.mistral-7b-instruct-v0:2", False, False, True, 4096),
        ("writer.palmyra-x5-v1:0", False, False, False, None),
        ("qwen.qwen3-32b-v1:0", False, True, True, None),
        ("moonshotai.kimi-k2.5", False, True, True, None),
        ("zai.glm-5", False, True, True, None),
    ],
)
def test_a_model_has_the_facts_of_its_family(
    name: str, claude: bool, may_start: bool, status: bool, limit: int | None
) -> None:
    facts = converse_model(name, "table")
    assert (facts.claude, facts.may_start, facts.result_status, facts.usual_output) == (
        claude,
        may_start,
        status,
        limit,
    )


def test_the_name_in_the_table_tells_the_family_that_an_id_hides() -> None:
    arn = "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2c3"
    assert converse_model(arn, "claude-haiku-4-5").claude
    assert converse_model(arn, "mine") is UNKNOWN_MODEL


@looped(
    ("name", "structured"),
    [
        ("mistral.magistral-small-2509", True),
        ("mistral.mistral-large-3-675b-instruct", True),
        ("mistral.mistral-large-2402-v1:0", False),
        ("qwen.qwen3-32b-v1:0", True),
        ("xai.grok-4.6", False),
        ("google.gemma-3-27b-it", None),
    ],
)
def test_models_that_can_be_held_to_a_schema_are_known(name: str, structured: bool | None) -> None:
    assert converse_model(name).structured is structured


def test_a_result_of_nova_s_holds_texts_and_tables_and_no_other_documents() -> None:
    nova = converse_model("amazon.nova-pro-v1:0")
    assert nova.holds("image", "png")
    assert nova.holds("document", "csv")
    assert not nova.holds("document", "pdf")
    assert UNKNOWN_MODEL.holds("video", "mp4")
