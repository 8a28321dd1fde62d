"""Usage in bodies that are not otherwise read as responses."""

import orjson

from providers.completion import Usage
from providers.dialects.usage_in_body import usage_in_body
from providers.json_types import JsonValue
from tests.support.looped import looped


@looped(
    ("body", "usage"),
    [
        ({"usage": {"prompt_tokens": 10, "completion_tokens": 5}}, Usage(10, 5)),
        ({"usage": {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 7}}, Usage(10, 2)),
        ({"usage": {"inputTokens": 3, "outputTokens": 2}}, Usage(3, 2)),
        ({"usage": {"tokens": {"input_tokens": 3, "output_tokens": 2}}}, Usage(3, 2)),
        ({"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "thoughtsTokenCount": 4}}, Usage(3, 6)),
        ({"prompt_eval_count": 3, "eval_count": 2}, Usage(3, 2)),
        ({"meta_info": {"prompt_tokens": 3}}, Usage(3, 0)),
        ({"usage": {"total_tokens": 9}}, Usage(9, 0)),
        ({"usage": {"total_tokens": 9, "completion_tokens": 2}}, Usage(0, 2)),
        ({"meta": {"billed_units": {"input_tokens": 3}}}, Usage(3, 0)),
        ({"meta": {"billed_units": {"search_units": 3}}}, None),
        ({"input_token_count": 3}, Usage(3, 0)),
        ({"inputTextTokenCount": 3, "embedding": []}, Usage(3, 0)),
        ({"usage": {"prompt_tokens": 10**18, "completion_tokens": -5}}, None),
        ({"usage": {"prompt_tokens": True, "completion_tokens": "5"}}, None),
        ({"error": {"message": "no"}}, None),
        ([], None),
    ],
)
def test_the_counts_of_every_api_are_read(body: JsonValue, usage: Usage | None) -> None:
    assert usage_in_body(orjson.dumps(body)) == usage


def test_what_is_no_json_reports_nothing() -> None:
    assert usage_in_body(b"<html>") is None
