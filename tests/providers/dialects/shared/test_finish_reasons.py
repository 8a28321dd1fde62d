"""Unknown finish reasons are passed on in every dialect, unless they mean that the response was broken off."""

import pytest

from providers.dialects.shared.finish_reasons import read_finish_reason, vendor_finish_reason
from providers.failure import FailureKind, UpstreamError
from tests.providers.dialects.kit import decoded, fixture, sent_for, target_of, text_request
from tests.support.looped import looped

ANSWERS = {
    "anthropic": ("anthropic", "answers", "unknown.json"),
    "bedrock": ("bedrock", "answers", "unknown.json"),
    "cohere": ("cohere", "answers", "unknown.json"),
    "gemini": ("gemini", "answers", "unknown.json"),
    "llamacpp_native": ("llamacpp", "answers", "unknown.json"),
    "ollama_native": ("ollama", "answers", "unknown.json"),
    "openai": ("openai", "openai", "checks", "unknown.json"),
    "sglang_native": ("sglang", "answers", "unknown.json"),
    "watsonx": ("watsonx", "answers", "new_word.json"),
}


def test_the_vendors_own_reason_is_shown_where_it_says_more() -> None:
    found = [read_finish_reason(word, {"END": "stop"}, {"CUT": "length"}) for word in ("END", "CUT", "pause")]
    assert found == [("stop", None), ("length", "CUT"), ("pause", "pause")]


def failure_of(word: str) -> FailureKind:
    with pytest.raises(UpstreamError) as caught:
        vendor_finish_reason(word)
    return caught.value.failure.kind


@looped("word", ["pause_turn", "never seen", "SUNSET", "function_call_filter: OTHER", "terror", "x" * 64])
def test_a_word_nobody_knows_stays_what_it_is(word: str) -> None:
    assert vendor_finish_reason(word) == word


@looped(
    ("word", "kind"),
    [
        ("cancelled", FailureKind.SERVER),
        ("CANCELED", FailureKind.SERVER),
        ("aborted", FailureKind.SERVER),
        ("internal_error", FailureKind.SERVER),
        ("ERROR: CUDA", FailureKind.SERVER),
        ("failed", FailureKind.SERVER),
        ("timeout", FailureKind.TIMEOUT),
        ("timed_out", FailureKind.TIMEOUT),
        ("overloaded", FailureKind.OVERLOADED),
        ("MALFORMED_THOUGHT", FailureKind.NONCONFORMING),
        ("", FailureKind.MALFORMED),
        ("x" * 65, FailureKind.MALFORMED),
        ("a\nb", FailureKind.MALFORMED),
    ],
)
def test_a_word_for_a_broken_answer_is_a_failure_of_its_kind(word: str, kind: FailureKind) -> None:
    assert failure_of(word) is kind


@looped("profile", ANSWERS)
def test_on_every_dialect_an_unknown_end_is_no_stop_and_a_cancelled_answer_none(profile: str) -> None:
    address = "https://host/projects/p" if profile == "watsonx" else "https://host"
    sent = sent_for(text_request("The sky", max_tokens=9), target_of(profile, base_url=address))
    told = fixture(*ANSWERS[profile])
    (choice,) = decoded(sent, told).choices
    assert choice.finish_reason.lower() == "sunset"
    for word in (b"sunset", b"SUNSET"):
        told = told.replace(word, b"cancelled")
    with pytest.raises(UpstreamError) as caught:
        decoded(sent, told)
    assert caught.value.failure.kind is FailureKind.SERVER
