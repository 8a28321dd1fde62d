"""Token counts and log probabilities of Gemini's responses."""

import orjson

from providers.completion import ContentLogprobs, TokenLogprob, Usage
from providers.dialects.gemini.usage import logprobs_of, usage_of
from providers.json_types import JsonObject, JsonValue
from tests.support.looped import looped


@looped("raw", [{}, {"totalTokenCount": 3}, {"promptTokenCount": "3"}, {"promptTokenCount": True}])
def test_usage_without_a_prompt_is_none(raw: JsonObject) -> None:
    assert usage_of(raw) is None


@looped("value", [-5, True, 2.5, "7", 10**15, 4])
def test_what_is_no_count_or_above_its_whole_is_taken_as_absent(value: JsonValue) -> None:
    raw: JsonObject = {"promptTokenCount": 3, "candidatesTokenCount": 2, "cachedContentTokenCount": value}
    assert usage_of(raw) == Usage(3, 2)


@looped("raw", [None, {}, {"chosenCandidates": []}, {"chosenCandidates": 3}, []])
def test_log_probabilities_that_say_nothing_are_none(raw: JsonValue) -> None:
    assert logprobs_of(raw) is None


def test_log_probabilities_without_their_parts_are_read_as_far_as_they_go() -> None:
    raw: JsonValue = orjson.loads(b'{"chosenCandidates":[{},{"token":"a","logProbability":"x"}],"topCandidates":[3]}')
    assert logprobs_of(raw) == ContentLogprobs((TokenLogprob("", 0.0), TokenLogprob("a", 0.0)))


def test_tokens_are_told_apart_by_modality_where_not_all_are_text() -> None:
    text: JsonValue = {"modality": "TEXT", "tokenCount": 9}
    raw: JsonObject = {
        "promptTokenCount": 267,
        "candidatesTokenCount": 1290,
        "totalTokenCount": 1557,
        "promptTokensDetails": [text, {"modality": "IMAGE", "tokenCount": 258}, {"modality": "SMELL"}, 3],
        "candidatesTokensDetails": [{"modality": "IMAGE", "tokenCount": 1290}],
    }
    assert usage_of(raw) == Usage(267, 1290, {"text_tokens": 9, "image_tokens": 258}, {"image_tokens": 1290})
    assert usage_of({"promptTokenCount": 9, "totalTokenCount": 9, "promptTokensDetails": [text]}) == Usage(9, 0)


def test_thoughts_are_counted_once_beside_the_tokens_of_tools() -> None:
    raw: JsonObject = {
        "promptTokenCount": 10,
        "toolUsePromptTokenCount": 100,
        "candidatesTokenCount": 7,
        "thoughtsTokenCount": 5,
        "totalTokenCount": 122,
    }
    expected = Usage(110, 12, {"tool_use_prompt_tokens": 100}, {"reasoning_tokens": 5})
    assert usage_of(raw) == expected
    searched = usage_of(raw, 2)
    assert searched is not None
    assert searched.completion_details == {"reasoning_tokens": 5, "web_search_requests": 2}
