"""Log probabilities as clients get them."""

import math

import orjson

from providers.completion import ContentLogprobs, LegacyLogprobs, TokenLogprob
from providers.json_types import JsonValue
from proxy.surfaces.response.logprobs import TextLogprobs, chat_logprobs, content_json
from tests.proxy.surfaces.kit import complete, converse
from tests.support.looped import looped
from tests.support.not_none import not_none

CONTENT = ContentLogprobs(
    (TokenLogprob("Hi", -0.1, (72, 105), (TokenLogprob("Hi", -0.1, (72, 105)),)), TokenLogprob("!", -math.inf, None))
)
CONTENT_LIST = [
    {
        "token": "Hi",
        "logprob": -0.1,
        "bytes": [72, 105],
        "top_logprobs": [{"token": "Hi", "logprob": -0.1, "bytes": [72, 105]}],
    },
    {"token": "!", "logprob": -9999.0, "bytes": None, "top_logprobs": []},
]
ARRAYS = {
    "tokens": ["Hi", "!"],
    "token_logprobs": [-0.1, -9999.0],
    "top_logprobs": [{"Hi": -0.1}, {"!": -9999.0}],
    "text_offset": [1, 3],
}


def written(value: object) -> object:
    return orjson.loads(orjson.dumps(value))


def test_a_count_asks_for_the_four_arrays_and_true_for_both_forms_in_one_object() -> None:
    assert written(TextLogprobs(complete(logprobs=1)).render(0, CONTENT)) == ARRAYS
    merged = TextLogprobs(complete(logprobs=True, top_logprobs=1)).render(0, CONTENT)
    assert written(merged) == {"content": CONTENT_LIST, "refusal": None, **ARRAYS}


def test_nothing_is_shown_that_was_not_asked_for_or_given() -> None:
    assert TextLogprobs(complete()).render(0, CONTENT) is None
    assert TextLogprobs(complete(logprobs=1)).render(0, None) is None
    assert chat_logprobs(converse(), CONTENT) is None
    assert chat_logprobs(converse(logprobs=True), None) is None


def test_a_refusals_tokens_are_shown_as_such() -> None:
    refusal = ContentLogprobs((), CONTENT.content)
    assert written(content_json(refusal)) == {"content": None, "refusal": CONTENT_LIST}
    assert written(TextLogprobs(complete(logprobs=1)).render(0, refusal)) == ARRAYS


@looped(
    ("fields", "index", "base"),
    [
        ({"prompt": "Say hi"}, 0, 6),
        ({"prompt": "👋é"}, 0, 2),
        ({"prompt": ["a", "bcd"], "n": 2}, 1, 1),
        ({"prompt": ["a", "bcd"], "n": 2}, 2, 3),
        ({"prompt": "Say hi", "echo": True}, 0, 0),
        ({"prompt": [1, 2, 3]}, 0, 0),
        ({"prompt": "Say hi"}, 7, 0),
    ],
)
def test_offsets_count_from_the_start_of_the_prompt(fields: dict[str, JsonValue], index: int, base: int) -> None:
    assert not_none(TextLogprobs(complete(logprobs=0, **fields)).render(index, CONTENT))["text_offset"] == (
        base,
        base + 2,
    )


def test_each_choice_keeps_its_own_place_across_a_stream() -> None:
    shown = TextLogprobs(complete(prompt="", n=2, logprobs=0))
    offsets = [shown.render(index, CONTENT) for index in (0, 1, 0, 1)]
    assert [arrays["text_offset"] for arrays in offsets if arrays] == [(0, 2), (0, 2), (3, 5), (3, 5)]


def test_a_vendors_own_arrays_pass_but_for_the_floor() -> None:
    native = LegacyLogprobs(("p", "a"), (None, -math.inf), (None, {"a": -math.inf, "b": -1.0}), (0, 1))
    assert written(TextLogprobs(complete(logprobs=1, echo=True)).render(0, native)) == {
        "tokens": ["p", "a"],
        "token_logprobs": [None, -9999.0],
        "top_logprobs": [None, {"a": -9999.0, "b": -1.0}],
        "text_offset": [0, 1],
    }


def test_offsets_a_vendor_left_out_are_counted_in_its_tokens() -> None:
    shown = TextLogprobs(complete(prompt="ab", logprobs=0))
    native = LegacyLogprobs(("é", "👋x"), (-1.0, -2.0), None, None)
    assert written(shown.render(0, native)) == {
        "tokens": ["é", "👋x"],
        "token_logprobs": [-1.0, -2.0],
        "top_logprobs": None,
        "text_offset": [2, 3],
    }
    assert written(shown.render(0, LegacyLogprobs(("z",), (-1.0,), None, None))) == {
        "tokens": ["z"],
        "token_logprobs": [-1.0],
        "top_logprobs": None,
        "text_offset": [5],
    }


def test_arrays_are_listed_for_who_asked_for_the_list() -> None:
    native = LegacyLogprobs(("p", "Hi"), (None, -0.1), (None, {"Hi": -0.1}), (0, 1))
    entry = CONTENT_LIST[0]
    assert written(chat_logprobs(converse(logprobs=True, top_logprobs=1), native)) == {
        "content": [entry],
        "refusal": None,
    }
    merged = not_none(TextLogprobs(complete(logprobs=True, top_logprobs=1)).render(0, native))
    assert written(merged["content"]) == [entry]
    assert merged["token_logprobs"] == [None, -0.1]
