"""The response that a client must see for each feature, whether the vendor or the gateway provides it.

Written by hand from OpenAI's documentation, not derived from the code.
"""

from collections.abc import Callable, Mapping

from providers.unified_request import Operation
from tests.conformance.engine import LOGPROBS
from tests.conformance.feature_requests import PROMPT
from tests.conformance.read_answer import AnswerView, ChoiceView, read_answer
from tests.proxy.kit.raw_client import Answer

TEXT = "one two END three"
LIKELIER = "one two END four"
TOKENS = ("one", " two", " END", " three")


def plain(seen: AnswerView) -> None:
    """Assert one complete choice and the vendor's own token counts."""
    _whole(seen)
    assert seen.usage is not None
    assert seen.usage[1] == 4


def _whole(seen: AnswerView) -> None:
    assert seen.only == ChoiceView(TEXT, "stop")


def _says(text: str) -> Callable[[AnswerView], None]:
    def check(seen: AnswerView) -> None:
        assert (seen.only.text, seen.only.finish) == (text, "stop")

    return check


def _several(prompts: int, *texts: str) -> Callable[[AnswerView], None]:
    """Assert that the choices are numbered without a gap, that each prompt is counted once, and that all generated
    tokens are counted."""

    def check(seen: AnswerView) -> None:
        assert list(seen.choices) == list(range(len(texts)))
        assert sorted(choice.text for choice in seen.choices.values()) == sorted(texts)
        assert {choice.finish for choice in seen.choices.values()} == {"stop"}
        assert seen.usage == (prompts, 4 * len(texts))

    return check


def _cut(seen: AnswerView) -> None:
    assert (seen.only.text, seen.only.finish) == ("one two END", "length")
    assert seen.usage == (2, 3)


def _best(seen: AnswerView) -> None:
    assert (seen.only.text, seen.only.finish, seen.only.tokens) == (LIKELIER, "stop", None)
    assert seen.usage == (2, 8)


def _stopped(text: str) -> Callable[[AnswerView], None]:
    def check(seen: AnswerView) -> None:
        assert (seen.only.text, seen.only.finish) == (text, "stop")
        assert seen.usage is not None

    return check


def _scored(seen: AnswerView) -> None:
    assert seen.only == ChoiceView(TEXT, "stop", [(token, LOGPROBS[0]) for token in TOKENS])


def _echoed_and_scored(seen: AnswerView) -> None:
    assert seen.only.text == PROMPT + TEXT
    assert seen.only.tokens is not None
    assert "".join(token for token, _ in seen.only.tokens) == PROMPT + TEXT
    assert [number for _, number in seen.only.tokens[2:]] == [LOGPROBS[0]] * 4


def _called(seen: AnswerView) -> None:
    assert seen.only.calls == [("look", "{}")]
    assert seen.only.text == ""


_ANSWERS: Mapping[str, Callable[[AnswerView], None]] = {
    "prompt.batch": _several(5, TEXT, TEXT),
    "prompt.token_batch": _several(3, TEXT, TEXT),
    "max_tokens": _cut,
    "n": _several(2, TEXT, LIKELIER),
    "best_of": _best,
    "stop": _stopped("one two "),
    "stop.blank": _stopped("one"),
    "stop.many": _stopped("one two "),
    "include_stop_str_in_output": _stopped("one two END"),
    "logprobs": _scored,
    "echo": _says(PROMPT + TEXT),
    "echo.logprobs": _echoed_and_scored,
    "response_format.json_object": _says("{}"),
    "response_format.json_schema": _says('{"a":1}'),
    "response_format.grammar": _says("no"),
    "response_format.structural_tag": _says("no"),
    "guided_json": _says('{"a":1}'),
    "guided_regex": _says("123"),
    "guided_choice": _says("no"),
    "guided_grammar": _says("no"),
    "tools": _called,
    "tool_choice.required": _called,
    "tool_choice.named": _called,
    "parallel_tool_calls": _called,
    "stream": _whole,
}
"""The check of each feature. Other features leave no trace in a response of four words."""

ENDLESS = frozenset({"mock"})
"""Profiles without a context window."""


TWO_LIMITS = frozenset({"gemini", "vertex"})
"""Profiles whose prompts and responses have separate limits, so that only a prompt can be too long for the window."""


def check_effect(profile: str, feature: str, operation: Operation, answer: Answer) -> None:
    """Assert that a response shows the effect that the feature promises."""
    if feature == "context_length_exceeded_behavior.error" and profile not in ENDLESS:
        assert answer.status == 400, answer.body
        told = ("invalid_value", "max_tokens") if profile in TWO_LIMITS else ("context_length_exceeded", "prompt")
        assert (answer.code, answer.error()["param"]) == told
        return
    seen = read_answer(answer)
    _ANSWERS.get(feature, plain)(seen)
    if seen.choices[0].calls:
        assert seen.choices[0].finish == ("tool_calls" if operation is Operation.CHAT else "stop")
