"""Every field of the payload log's lines, in the form of `proxy.telemetry.line_fields`."""

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
        "The client's body: JSON, or text if it is not JSON.",
        '{"model":"fast","messages":[{"role":"user","content":"Hi"}]}',
    ),
    LineField(
        "answer",
        "object",
        "",
        "the response was not streamed, or an error",
        "The body that the client received: JSON, or text if it is not JSON.",
        '{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello."}}]}',
    ),
    LineField(
        "streamed",
        "list",
        "",
        "the response was a stream",
        "Its choices, put together: `index`, `text`, and if present `reasoning`, `refusal`, `tool_calls` and "
        "`finish_reason`; a stream without the last one was interrupted.",
        '[{"index":0,"text":"Hello.","finish_reason":"stop"}]',
    ),
    LineField(
        "cut",
        "list of texts",
        "",
        "longer than `max_bytes`",
        "The names of the fields `request`, `answer` and `streamed` that were cut.",
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
"""The fields of an entry: one line of JSON."""
