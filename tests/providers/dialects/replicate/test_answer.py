"""Replicate's predictions as responses."""

from providers.completion import Choice, Usage
from providers.failure import FailureKind
from tests.providers.dialects.kit import (
    decode_failure,
    decoded,
    fixture,
    gathered,
    names_in,
    only,
    sent_for,
    stream_failure,
    streamed,
    target_of,
    text_request,
)
from tests.providers.kit import failure_of
from tests.support.looped import looped

TARGET = target_of("replicate", "meta/llama")
SENT = sent_for(text_request("The sky", max_tokens=16), TARGET)
ANSWERS = {
    "text": (Choice(0, " is blue: 3 °C 👋.", "stop"), Usage(3, 7)),
    "length": (Choice(0, " is it", "length"), Usage(3, 16)),
    "string": (Choice(0, " is blue.", "stop"), None),
    "empty": (Choice(0, "", "stop"), None),
}
FAILED = {
    "waiting": FailureKind.TIMEOUT,
    "starting": FailureKind.TIMEOUT,
    "failed": FailureKind.SERVER,
    "too_long": FailureKind.CONTEXT_LENGTH,
    "canceled": FailureKind.SERVER,
}


def test_the_errors_are_all_here() -> None:
    assert {name for name in names_in("replicate", "errors") if not name.startswith("error_")} == {
        f"{name}.json" for name in FAILED
    }


@looped("name", ANSWERS)
def test_a_prediction_is_one_choice(name: str) -> None:
    body = fixture("replicate", "answers", f"{name}.json")
    for completion in (decoded(SENT, body), gathered(streamed(SENT, body))):
        assert (only(completion), completion.usage) == ANSWERS[name]


@looped("name", FAILED)
def test_a_prediction_that_failed_or_is_not_ready_is_an_error(name: str) -> None:
    body = fixture("replicate", "errors", f"{name}.json")
    failure = failure_of(decoded, SENT, body)
    assert failure.kind is FAILED[name]
    assert "10.0.0.7" not in failure.message
    assert stream_failure(SENT, body)[1].failure.kind is FAILED[name]


def test_without_a_limit_nothing_says_that_one_ended_it() -> None:
    sent = sent_for(text_request("The sky"), TARGET)
    assert only(decoded(sent, fixture("replicate", "answers", "length.json"))).finish_reason == "stop"


@looped(
    "body", [b"", b"<html>", b"3", b'{"status": "succeeded", "output": 3}', b'{"status": "succeeded", "output": [3]}']
)
def test_a_body_that_makes_no_sense_is_malformed(body: bytes) -> None:
    assert decode_failure(SENT, body) is FailureKind.MALFORMED


@looped("body", [b'{"status": ["starting"]}', b'{"status": {}}', b'{"status": 3}', b"{}"])
def test_a_status_that_is_no_text_is_none_that_succeeded(body: bytes) -> None:
    assert decode_failure(SENT, body) is FailureKind.SERVER
