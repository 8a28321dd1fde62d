"""Every field of the payload log's lines, as `proxy.telemetry.line_fields` has those of the log."""

from typing import Final

from proxy.telemetry.line_fields import REQUEST_FIELDS, LineField

_SHARED: Final = frozenset(
    {
        *("time", "request_id", "team", "surface", "path", "model", "deployment", "stream", "status", "outcome"),
        *("duration_ms", "key", "code", "prompt_tokens", "completion_tokens", "trace_id"),
    }
)

PAYLOAD_FIELDS: Final = (
    *(field for field in REQUEST_FIELDS if field.name in _SHARED),
    LineField(
        "request",
        "object",
        "",
        "its body was read",
        "The client's body: JSON, or text where it is none.",
        '{"model":"fast","messages":[{"role":"user","content":"Hi"}]}',
    ),
    LineField(
        "answer",
        "object",
        "",
        "the answer was whole, or an error",
        "The body as the client got it: JSON, or text where it is none.",
        '{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello."}}]}',
    ),
    LineField(
        "streamed",
        "list",
        "",
        "the answer was a stream",
        "Its choices, put together: `index`, `text`, and where there are some `reasoning`, `refusal`, `tool_calls` and "
        "`finish_reason`; without the last it broke off.",
        '[{"index":0,"text":"Hello.","finish_reason":"stop"}]',
    ),
    LineField(
        "cut",
        "list of texts",
        "",
        "longer than `max_bytes`",
        "Which of `request`, `answer` and `streamed` are not whole.",
        '["request"]',
    ),
    LineField(
        "withheld",
        "text",
        "",
        "it was not redacted in time, or in memory",
        "Why the entry is without its texts.",
        '"the redaction took too long"',
    ),
)
"""Of an entry: one line of JSON."""
