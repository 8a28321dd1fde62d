"""Every field of the log's JSON lines: the type of its value, its unit, the condition for it, and an example.

`docs/reference/log.md` is generated from this module, and tests compare this module with the lines that are written.
"""

from typing import Final, Literal, NamedTuple

FieldKind = Literal["text", "number", "integer", "true", "true or false", "list of texts", "list", "object"]

ALWAYS: Final = "always"


class LineField(NamedTuple):
    """One field of a line. `unit` is empty if the value has no unit; `when` is the condition under which the line has
    the field; `example` is JSON."""

    name: str
    kind: FieldKind
    unit: str
    when: str
    text: str
    example: str


_BILLED: Final = "The sum of all calls of the request, as billed."

TIME: Final = LineField(
    "time", "text", "RFC 3339, UTC", ALWAYS, "When the line was written.", '"2026-11-23T06:00:00.125Z"'
)

REQUEST_FIELDS: Final = (
    TIME,
    LineField("level", "text", "", ALWAYS, "`info`, whatever the outcome of the request.", '"info"'),
    LineField("message", "text", "", ALWAYS, "`request`, which identifies this kind of line.", '"request"'),
    LineField(
        "request_id", "text", "", ALWAYS, "The client's `x-request-id`, or the gateway's.", '"5f0c3a8d1be24c7790aa61d2"'
    ),
    LineField(
        "team", "text", "", ALWAYS, "`anonymous` without teams, `unknown` if the key belongs to no team.", '"search"'
    ),
    LineField("surface", "text", "", ALWAYS, "The API that the client speaks.", '"openai"'),
    LineField("path", "text", "", ALWAYS, "The path of the request, at most 256 characters.", '"/v1/chat/completions"'),
    LineField("client", "text", "", ALWAYS, "The address of the client's side of the connection.", '"192.0.2.7"'),
    LineField(
        "model", "text", "", ALWAYS, "The requested name, at most 256 characters; empty if there is none.", '"fast"'
    ),
    LineField(
        "deployment",
        "text",
        "",
        ALWAYS,
        "The deployment of the last attempt or of the cached response; `null` before the first attempt.",
        '"openai/gpt-4o-mini/default"',
    ),
    LineField("stream", "true or false", "", ALWAYS, "Whether a stream was requested.", "true"),
    LineField(
        "status",
        "integer",
        "HTTP status",
        ALWAYS,
        "The status of the response; 499 if the client left before its head was sent.",
        "200",
    ),
    LineField(
        "outcome",
        "text",
        "",
        ALWAYS,
        "`ok`, `client_error`, `upstream_error`, `timeout`, `truncated`, `client_gone`, `denied`, `limited`, `shed` or "
        "`error`.",
        '"ok"',
    ),
    LineField("duration_ms", "number", "ms", ALWAYS, "From the first byte read to the last one written.", "1500.0"),
    LineField("upstream_ms", "number", "ms", ALWAYS, "The part of it spent waiting for vendors.", "1250.0"),
    LineField("key", "text", "", "the configuration names the key", "The name of the team's key.", '"ci"'),
    LineField(
        "trace_id",
        "text",
        "hex",
        "requests are traced",
        "The trace that the request is part of, sampled or not.",
        '"0af7651916cd43dd8448eb211c80319c"',
    ),
    LineField(
        "upstream_request_id",
        "text",
        "",
        "the vendor named one",
        "The vendor's own id of the last attempt, for the vendor's support; at most 128 characters.",
        '"req_011CVXyZ"',
    ),
    LineField("code", "text", "", "the client got an error", "The code of the error.", '"upstream_error"'),
    LineField(
        "limit",
        "object",
        "",
        "a limit or budget refused the request",
        "Its owner (`scope`), its `kind` (`rate`, `quota`, `concurrent`, `budget`, or `unpriced`: a budget in USD, "
        "for a model without a price) and `unit`, its `period` unless it limits concurrent requests, and its amount.",
        '{"scope":"team search","kind":"budget","unit":"usd","period":"month","limit":"500.00 USD"}',
    ),
    LineField("plugin", "text", "", "a plugin ended the request", "The plugin that refused it, or failed.", '"redact"'),
    LineField(
        "reason", "text", "", "a plugin ended the request", "The plugin's reason, or how it failed.", '"a number"'
    ),
    LineField(
        "sample",
        "number",
        "share",
        "`server.log.sample` is less than 100%, and the request was good",
        "The share of good requests that have a line: the line stands for 1 divided by it.",
        "0.1",
    ),
    LineField(
        "client_ms", "number", "ms", "1 ms or more", "Waiting for the client to send its body or to read.", "12.5"
    ),
    LineField("limit_ms", "number", "ms", "1 ms or more", "Waiting for a limit.", "250.0"),
    LineField("first_content_ms", "number", "ms", "a stream has begun", "Until the first content.", "310.25"),
    LineField(
        "parts_ms",
        "object",
        "ms",
        "`server.receipt` is on",
        "The parts of the duration, as in the client's `Server-Timing` header: `gateway`, `client`, `queue`, `cache`, "
        "`guards`, `attempt1` and so on, `attempts`, `backoff`, `connect`, `vendor`, `body`, `stream`. Together they "
        "are `duration_ms`.",
        '{"gateway":0.42,"attempt1":250.0,"vendor":812.04,"stream":437.54}',
    ),
    LineField(
        "tokens_per_second",
        "number",
        "tokens/s",
        "`server.receipt` is on, and a stream had content for 20 ms or longer",
        "Tokens of the response per second, from its first content to its end.",
        "41.7",
    ),
    LineField(
        "stalls",
        "integer",
        "",
        "`server.receipt` is on, and there were some",
        "How often the vendor sent nothing for longer than a second after the first content.",
        "1",
    ),
    LineField("stalled_ms", "number", "ms", "there are `stalls`", "Their total duration.", "1500.2"),
    LineField(
        "keep_alives",
        "integer",
        "",
        "there were some",
        "Keep-alives sent while the vendor was silent; one before any content has set the status to 200.",
        "2",
    ),
    LineField("prompt_tokens", "integer", "tokens", "known or estimated", _BILLED, "6"),
    LineField("completion_tokens", "integer", "tokens", "known or estimated", _BILLED, "2"),
    LineField(
        "cached_tokens",
        "integer",
        "tokens",
        "the vendor reported it",
        "Prompt tokens from the vendor's cache.",
        "4",
    ),
    LineField(
        "cache_write_tokens",
        "integer",
        "tokens",
        "the vendor reported it",
        "Prompt tokens that the vendor wrote to its cache.",
        "2",
    ),
    LineField(
        "cache_write_1h_tokens",
        "integer",
        "tokens",
        "there are some",
        "The part of them that the vendor caches for an hour.",
        "1",
    ),
    LineField("usage_estimated", "true", "", "the vendor did not report everything", "Tokens are estimates.", "true"),
    LineField("cost_usd", "number", "USD", "price and usage are known", "The cost of the request.", "0.00042"),
    LineField(
        "unpriced",
        "list of texts",
        "",
        "there is some",
        "Items whose price is unknown: `tokens` and `web_search` are not in `cost_usd`; `service_tier` and `audio` are "
        "in it at the price of standard text.",
        '["web_search"]',
    ),
    LineField(
        "cache",
        "text",
        "",
        "the request used the response cache",
        "`hit`, `stale` (in place of an error) or `miss` (a deployment was called).",
        '"hit"',
    ),
    LineField(
        "affinity",
        "text",
        "",
        "the name has affinity, and a deployment was called",
        "`kept` if the deployment of its conversation served it; `spilled_load` if that had too many requests in "
        "flight; `spilled_health` if it was out of service, unhealthy, at a limit, failed, or cannot honour the "
        "request; `short` if the prompt is shorter than `least`; `none` if nothing names a conversation.",
        '"kept"',
    ),
    LineField(
        "hedge",
        "text",
        "",
        "its name has second attempts, and the first was late",
        "`won` if the second attempt responded first; `lost` if the first did; `failed` if the second failed; "
        "`cancelled` if the request ended before. If there was no second attempt: `refused_share` if too many requests "
        "had one; `refused_cap` if cancelled calls cost enough in this hour; `refused_busy` if no other deployment had "
        "a slot and room in its limits; `refused_target` if none was healthy or could honour the request; `closed` if "
        "half of the deployments are late.",
        '"won"',
    ),
    LineField(
        "emulated",
        "list of texts",
        "",
        "there are some",
        "Fields that were emulated.",
        '["guided_choice"]',
    ),
    LineField("dropped", "list of texts", "", "there are some", "Fields that were left out.", '["metadata"]'),
    LineField(
        "attempts",
        "list",
        "",
        "an attempt failed or was superseded",
        "The attempts that failed, or that ended because another responded (`superseded`), in order; their "
        "fields are below.",
        '[{"deployment":"a/m/eu","outcome":"server","status":500,"message":"The upstream failed."}]',
    ),
    LineField(
        "repeated",
        "object",
        "",
        "there are some",
        "Calls that were made again within an attempt, by their cause.",
        '{"stale_connection":1}',
    ),
    LineField(
        "cut",
        "true",
        "",
        "the line would have been longer than 4096 bytes",
        "Lists are missing, names are shorter, and only the first of the failed attempts are there.",
        "true",
    ),
)
"""The fields of the line of a request."""

ATTEMPT_FIELDS: Final = (
    LineField("deployment", "text", "", ALWAYS, "The deployment that was called.", '"a/m/eu"'),
    LineField("outcome", "text", "", ALWAYS, "The kind of the failure.", '"server"'),
    LineField("status", "integer", "HTTP status", ALWAYS, "The vendor's status; `null` without a response.", "500"),
    LineField(
        "upstream_request_id",
        "text",
        "",
        "the vendor named one",
        "The vendor's own id of the attempt.",
        '"req_011CVXyZ"',
    ),
    LineField(
        "message",
        "text",
        "",
        ALWAYS,
        "The message for the client, then the vendor's own words if the client does not get them; may be `null`.",
        '"The upstream failed."',
    ),
    LineField("cause", "text", "", "there was no connection", "Why there was no connection.", '"refused"'),
    LineField(
        "hedge", "true", "", "it was a second attempt", "A second attempt, made because the first was late.", "true"
    ),
    LineField(
        "maybe_executed", "true", "", "the vendor may bill it", "The vendor may have generated a response.", "true"
    ),
)
"""The fields of an entry of `attempts`."""

REFUSAL_FIELDS: Final = (
    TIME,
    LineField("level", "text", "", ALWAYS, "`warning`.", '"warning"'),
    LineField("message", "text", "", ALWAYS, "`refused at the door`.", '"refused at the door"'),
    LineField("surface", "text", "", ALWAYS, "The API that the clients speak.", '"openai"'),
    LineField("reason", "text", "", ALWAYS, "The kind of overload.", '"queue"'),
    LineField("status", "integer", "HTTP status", ALWAYS, "503; on Anthropic's surface 529.", "503"),
    LineField("code", "text", "", ALWAYS, "`overloaded`.", '"overloaded"'),
    LineField("outcome", "text", "", ALWAYS, "`shed`.", '"shed"'),
    LineField("count", "integer", "requests", ALWAYS, "Requests of this second.", "12"),
)
"""The fields of the line for the requests of one second that were refused before they were read."""

MALFORMED_FIELDS: Final = (
    TIME,
    LineField("level", "text", "", ALWAYS, "`warning`.", '"warning"'),
    LineField("message", "text", "", ALWAYS, "`malformed HTTP`.", '"malformed HTTP"'),
    LineField("count", "integer", "requests", ALWAYS, "Inputs of this second.", "3"),
    LineField("statuses", "object", "", ALWAYS, "The same counts by the status of the response.", '{"400":2,"431":1}'),
)
"""The fields of the line for one second's input that was not HTTP."""

PROCESS_FIELDS: Final = (
    TIME,
    LineField("level", "text", "", ALWAYS, "`info`, `warning`, `error` or `critical`.", '"warning"'),
    LineField("logger", "text", "", ALWAYS, "`dragoman`, or the library that logged.", '"dragoman"'),
    LineField("message", "text", "", ALWAYS, "The message, for people.", '"configuration 5f0c3a8d1be2 is current"'),
    LineField(
        "traceback",
        "text",
        "",
        "a fault of the gateway's own",
        "Frames and names of exceptions, not their text.",
        '"…"',
    ),
    LineField("cut", "true", "", "the line would have been longer than 4096 bytes", "The message is shorter.", "true"),
)
"""The fields of a line on standard error, which concerns the process itself."""
