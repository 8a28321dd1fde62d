"""Which models of InvokeModel take a prompt as it is."""

from providers.dialects.bedrock.invoke_models import FAMILIES, family_of
from tests.support.looped import looped


@looped(
    ("name", "prompt", "text"),
    [
        ("amazon.titan-text-premier-v1:0", "inputText", "outputText"),
        ("amazon.titan-tg1-large", "inputText", "outputText"),
        ("us.meta.llama3-1-8b-instruct-v1:0", "prompt", "generation"),
        ("arn:aws:bedrock:us-east-1::foundation-model/meta.llama3-8b-instruct-v1:0", "prompt", "generation"),
        ("mistral.mistral-7b-instruct-v0:2", "prompt", "text"),
        ("mistral.mixtral-8x7b-instruct-v0:1", "prompt", "text"),
        ("mistral.mistral-large-2402-v1:0", "prompt", "text"),
        ("us.deepseek.r1-v1:0", "prompt", "text"),
        ("cohere.command-text-v14", "prompt", "text"),
        ("cohere.command-light-text-v14:7:4k", "prompt", "text"),
    ],
)
def test_a_model_is_known_by_its_id(name: str, prompt: str, text: str) -> None:
    family = family_of(name)
    assert family is not None
    assert (family.prompt, family.text) == (prompt, text)


@looped(
    "name",
    [
        "amazon.nova-pro-v1:0",
        "amazon.titan-embed-text-v2:0",
        "anthropic.claude-haiku-4-5-20251001-v1:0",
        "cohere.command-r-v1:0",
        "mistral.mistral-large-2407-v1:0",
        "mistral.pixtral-large-2502-v1:0",
        "deepseek.v3-v1:0",
        "openai.gpt-oss-20b-1:0",
        "arn:aws:bedrock:us-east-1:123456789012:imported-model/abc",
    ],
)
def test_models_that_are_asked_by_chat_are_none_of_them(name: str) -> None:
    assert family_of(name) is None


def test_who_counts_in_a_whole_answer() -> None:
    assert [family.streams_only for family in FAMILIES] == [False, False, True, True, True]


def test_any_of_a_model_s_names_tells() -> None:
    assert family_of("arn:aws:bedrock:us-east-1:123456789012:imported-model/abc", "meta.llama3-mine") is FAMILIES[1]
