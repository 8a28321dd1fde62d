"""Usage in bodies that are no answers otherwise."""

import orjson

from providers.completion import MOST_COUNTED, Usage
from providers.dialects.reported_usage import reported_usage
from providers.json_types import JsonValue
from tests.support.looped import looped


@looped(
    ("body", "usage"),
    [
        ({"usage": {"prompt_tokens": 10, "completion_tokens": 5}}, Usage(10, 5)),
        ({"usage": {"input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 7}}, Usage(10, 2)),
        ({"usage": {"inputTokens": 3, "outputTokens": 2}}, Usage(3, 2)),
        ({"usage": {"tokens": {"input_tokens": 3, "output_tokens": 2}}}, Usage(3, 2)),
        (
            {"usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 2, "thoughtsTokenCount": 4}},
            Usage(3, 6),
        ),
        ({"prompt_eval_count": 3, "eval_count": 2}, Usage(3, 2)),
        ({"meta_info": {"prompt_tokens": 3}}, Usage(3, 0)),
        ({"usage": {"prompt_tokens": 10**18, "completion_tokens": -5}}, Usage(MOST_COUNTED, 0)),
        ({"usage": {"prompt_tokens": True, "completion_tokens": "5"}}, None),
        ({"error": {"message": "no"}}, None),
        ([], None),
    ],
)
def test_the_counts_of_every_api_are_read(body: JsonValue, usage: Usage | None) -> None:
    assert reported_usage(orjson.dumps(body)) == usage


def test_what_is_no_json_reports_nothing() -> None:
    assert reported_usage(b"<html>") is None
