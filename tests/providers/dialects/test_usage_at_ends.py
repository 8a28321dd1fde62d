"""The usage of a response that is relayed unread."""

import pytest

from providers.completion import Usage
from providers.dialects.usage_in_body import UsageWatch
from tests.support.looped import looped

IMAGE = b'{"created": 1, "data": [{"b64_json": "%b"}], "usage": {"total_tokens": 9, "input_tokens": 4, ' % (
    b"QUJD" * 9000
)
IMAGE += b'"output_tokens": 5, "input_tokens_details": {"text_tokens": 1, "image_tokens": 3}}}'
EARLY = b'{"usage" : {"input_tokens": 4, "output_tokens": 5}, "data": [{"b64_json": "%b"}]}' % (b"QUJD" * 9000)
SPOKEN = b'{"text": "\\"usage\\": {\\"input_tokens\\": 1, \\"output_tokens\\": 1}"%b}'
TOKENS = b', "usage": {"type": "tokens", "input_tokens": 4, "output_tokens": 5, "total_tokens": 9}'
SECONDS = b', "usage": {"type": "duration", "seconds": 3}'
DONE = b'data: {"type":"speech.audio.done","usage":{"input_tokens":4,"output_tokens":5}}\n\n'
EVENTS = b'data: {"type":"speech.audio.delta"}\n\n' + DONE
JSON, EVENT_STREAM = "application/json; charset=utf-8", "text/event-stream"


@looped(
    ("kind", "body", "reported"),
    [
        pytest.param(JSON, IMAGE, Usage(4, 5), id="an image"),
        pytest.param(JSON, EARLY, Usage(4, 5), id="before the data"),
        pytest.param(JSON, SPOKEN % TOKENS, Usage(4, 5), id="a transcription"),
        pytest.param(JSON, SPOKEN % SECONDS, None, id="a duration"),
        pytest.param(JSON, SPOKEN % b"", None, id="a text that names a usage"),
        pytest.param(EVENT_STREAM, EVENTS, Usage(4, 5), id="the last event"),
        pytest.param("text/plain", b'"usage": {"input_tokens": 4, "output_tokens": 5}', None, id="plain text"),
        pytest.param(JSON, b'{"usage": {"input_tokens": {"a": {}}}}' + b'"usage":{' * 9000, None, id="hostile"),
    ],
)
def test_the_usage_of_a_response_is_read_in_pieces_of_any_size(kind: str, body: bytes, reported: Usage | None) -> None:
    for size in (7, 4096, len(body)):
        watch = UsageWatch(kind)
        for start in range(0, len(body), size):
            watch.see(body[start : start + size])
        assert watch.usage() == reported
