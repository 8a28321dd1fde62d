"""Limits that are guesses: limits of unknown models, at vendors that require a number."""

import orjson

from providers.dialects.guessed_limits import guessed_limit
from providers.profiles.load_profiles import load_profiles
from tests.providers.dialects.kit import chat_request, target_of
from tests.support.looped import looped

CLAUDE = [
    name
    for name, profile in load_profiles().items()
    if profile.dialect in ("anthropic", "anthropic_vertex", "bedrock_anthropic")
]


@looped("profile", CLAUDE)
@looped("model", ["claude-haiku-4-5", "claude-opus-4-1@20250805", "us.anthropic.claude-sonnet-4-6"])
def test_the_limit_of_a_known_model_is_no_guess(profile: str, model: str) -> None:
    assert guessed_limit(target_of(profile, model)) is None


@looped("profile", CLAUDE)
def test_the_limit_of_an_unknown_model_is_the_one_that_is_sent(profile: str) -> None:
    target = target_of(profile, "claude-of-tomorrow")
    sent = orjson.loads(target.dialect.encode(chat_request(), target).body)
    assert guessed_limit(target) == sent["max_tokens"]


@looped("profile", CLAUDE)
def test_the_tables_name_counts_where_the_vendors_hides_the_model(profile: str) -> None:
    assert guessed_limit(target_of(profile, "claude-haiku-4-5", upstream_model="ours")) is None


@looped("profile", CLAUDE)
def test_the_tables_number_is_no_guess(profile: str) -> None:
    assert guessed_limit(target_of(profile, "claude-of-tomorrow", max_output_tokens=1)) is None


@looped("profile", ["openai", "gemini", "bedrock", "vllm"])
def test_vendors_that_demand_no_limit_get_none(profile: str) -> None:
    assert guessed_limit(target_of(profile, "claude-of-tomorrow")) is None
