"""The access log: one line for each request, as JSON or as text. It contains no prompt, no response and no key."""

from collections import Counter
from collections.abc import Callable, Mapping

from providers.completion import Usage
from proxy.receipt.request_parts import milliseconds_of_parts, tokens_per_second
from proxy.request_outcomes import RefusingLimit
from proxy.request_record import Attempt, RequestRecord
from proxy.telemetry.log_format import json_line, timestamp
from proxy.telemetry.log_writer import MAX_LINE

UNAUTHORIZED = 401
"""The status of a request whose key is refused. Such a request has no team; only its address identifies the client."""

SHOWN_WAIT = 0.001
"""The shortest wait for the client, in seconds, that is logged."""


def request_line(record: RequestRecord, cost: float | None) -> bytes:
    """Return the log line of a request with this cost in USD (`None` if unknown) as JSON: times in milliseconds, names
    of the configuration, no content."""
    fields: dict[str, object] = {
        "time": timestamp(),
        "level": "info",
        "message": "request",
        "request_id": record.request_id,
        **_names(record),
        **_figures(record, cost),
    }
    line = json_line(fields)
    return line if len(line) <= MAX_LINE else _shortened_line(fields, record)


def _names(record: RequestRecord) -> dict[str, object]:
    """Return the fields whose values many requests share."""
    return {
        "team": record.team,
        "surface": record.surface,
        "path": record.path[:256],
        "client": record.client,
        "model": record.asked[:256],
        "deployment": record.answered_by,
        "stream": record.stream,
        "status": record.status,
        "outcome": record.outcome,
    }


def _figures(record: RequestRecord, cost: float | None) -> dict[str, object]:
    """Return the fields of a line that follow `_names`, with this cost in USD (`None` if unknown)."""
    # These expressions repeat `_milliseconds`, because calls of it would take longer.
    fields: dict[str, object] = {
        "duration_ms": int((record.finished - record.started) * 100_000 + 0.5) / 100,
        "upstream_ms": int(record.waited * 100_000 + 0.5) / 100,
    }
    if record.key:
        fields["key"] = record.key
    if record.trace is not None:
        fields["trace_id"] = record.trace.hex_id
    if vendor_id := record.vendor_id:
        fields["upstream_request_id"] = vendor_id
    if record.code is not None:
        _add_refusal(fields, record)
    if record.sample is not None:
        fields["sample"] = record.sample
    if record.outcome == "shed":
        return fields
    _add_response(fields, record, cost)
    if record.receipt is not None:
        _add_receipt(fields, record)
    for attempt in record.attempts:
        if attempt.outcome != "ok" or attempt.repeats:
            _add_failures(fields, record)
            break
    return fields


def _add_refusal(fields: dict[str, object], record: RequestRecord) -> None:
    fields["code"] = record.code
    if record.guarded is not None and record.guarded.plugin:
        fields["plugin"], fields["reason"] = record.guarded.plugin, record.guarded.reason
    if record.limit is not None and record.outcome == "limited":
        fields["limit"] = _limit(record.limit)


def _limit(limit: RefusingLimit) -> dict[str, object]:
    period = {"period": limit.period} if limit.period else {}
    return {"scope": limit.scope, "kind": limit.kind, "unit": limit.unit, **period, "limit": limit.limit}


def _add_response(fields: dict[str, object], record: RequestRecord, cost: float | None) -> None:
    _add_times(fields, record)
    if (usage := record.counted) is not None:
        _add_usage(fields, usage)
    _add_cost(fields, record, cost)
    if record.cache is not None:
        fields["cache"] = record.cache.result
    if (affinity := record.affinity) is not None:
        fields["affinity"] = affinity
    if record.hedge is not None:
        fields["hedge"] = record.hedge
    if record.emulated:
        fields["emulated"] = record.emulated
    if record.dropped:
        fields["dropped"] = record.dropped


def _add_receipt(fields: dict[str, object], record: RequestRecord) -> None:
    """Add the parts of the duration, and the figures of a stream, as in the client's receipt."""
    fields["parts_ms"] = milliseconds_of_parts(record, record.finished)
    if (pace := tokens_per_second(record, record.finished)) is not None:
        fields["tokens_per_second"] = int(pace * 100 + 0.5) / 100
    if record.marks is not None and record.marks.stalls:
        fields["stalls"], fields["stalled_ms"] = record.marks.stalls, _milliseconds(record.marks.stalled)


def _add_times(fields: dict[str, object], record: RequestRecord) -> None:
    if record.client_waited >= SHOWN_WAIT:
        fields["client_ms"] = _milliseconds(record.client_waited)
    if record.limit_waited >= SHOWN_WAIT:
        fields["limit_ms"] = _milliseconds(record.limit_waited)
    if record.first_content is not None:
        fields["first_content_ms"] = _milliseconds(record.first_content - record.started)
    if record.keep_alives:
        fields["keep_alives"] = record.keep_alives


def _add_cost(fields: dict[str, object], record: RequestRecord, cost: float | None) -> None:
    if cost is not None:
        fields["cost_usd"] = round(cost, 12)
    if unpriced := record.unpriced:
        fields["unpriced"] = unpriced


def _add_usage(fields: dict[str, object], usage: Usage) -> None:
    fields["prompt_tokens"] = usage.prompt_tokens
    fields["completion_tokens"] = usage.completion_tokens
    if usage.prompt_details:
        fields.update(cache_counts(usage.prompt_details))
    if usage.estimated:
        fields["usage_estimated"] = True


def cache_counts(details: Mapping[str, int]) -> dict[str, int]:
    """Return the parts of a prompt that have their own prices, as far as the vendor reported them. Without these counts
    a reader of the log cannot recompute the cost."""
    counts = {name: details[name] for name in ("cached_tokens", "cache_write_tokens") if name in details}
    if hour := details.get("ephemeral_1h_input_tokens"):
        counts["cache_write_1h_tokens"] = hour
    return counts


def _add_failures(fields: dict[str, object], record: RequestRecord) -> None:
    failed = [_attempt(attempt) for attempt in record.attempts if attempt.outcome != "ok"]
    if failed:
        fields["attempts"] = failed
    if repeats := record.repeats:
        fields["repeated"] = Counter(repeats)


def _milliseconds(seconds: float) -> float:
    """Return milliseconds, rounded to two decimals; `round` takes three times as long."""
    return int(seconds * 100_000 + 0.5) / 100


def _attempt(attempt: Attempt) -> dict[str, object]:
    fields: dict[str, object] = {
        "deployment": attempt.full_name,
        "outcome": attempt.outcome,
        "status": attempt.status,
        "message": attempt.message,
    }
    if attempt.vendor_id:
        fields["upstream_request_id"] = attempt.vendor_id
    if attempt.cause is not None:
        fields["cause"] = attempt.cause
    if attempt.hedge:
        fields["hedge"] = True
    if attempt.maybe_executed:
        fields["maybe_executed"] = True
    return fields


def _shortened_line(fields: Mapping[str, object], record: RequestRecord) -> bytes:
    """Return a line within MAX_LINE: without lists, with shorter values from the client, and with as many of the first
    failed attempts as fit."""
    scalars = {name: value for name, value in fields.items() if not isinstance(value, list | tuple)}
    deployment = record.called[:64] if record.from_cache and record.called else record.deployment
    short = {"path": record.path[:64], "model": record.asked[:64], "deployment": deployment, "cut": True}
    failed = [attempt for attempt in record.attempts if attempt.outcome != "ok"][:SHOWN_ATTEMPTS]
    for most in range(len(failed), 0, -1):
        line = json_line({**scalars, **short, "attempts": [_short_attempt(attempt) for attempt in failed[:most]]})
        if len(line) <= MAX_LINE:
            return line
    return json_line({**scalars, **short})


def _short_attempt(attempt: Attempt) -> dict[str, object]:
    message = None if attempt.message is None else _shown(attempt.message, SHOWN_MESSAGE)
    return {**_attempt(attempt), "deployment": attempt.deployment, "message": message}


SHOWN_NAME, SHOWN_MESSAGE, SHOWN_ATTEMPTS = 256, 160, 5
"""The most characters of a name, the most characters of a message, and the most failed attempts in a line of text. With
a few dozen bytes for each other field, such a line stays within MAX_LINE."""


def request_text(record: RequestRecord) -> bytes:
    """Return the log line of a request as text: time, status, team and model, deployment, duration, and failures."""
    code = f" {record.code}" if record.code else ""
    sender = f" from {record.client}" if record.status == UNAUTHORIZED and record.client else ""
    owner = f"{record.team}/{record.key}" if record.key else record.team
    target = f" -> {_shown(record.answered_by, SHOWN_NAME)}" if record.answered_by else ""
    model = _shown(record.asked or record.path, SHOWN_NAME)
    line = (
        f"{timestamp()} {record.status}{code} {record.surface} {owner} {model}{target} "
        f"{record.outcome}{sender} {record.duration * 1000:.1f} ms {record.request_id}"
    )
    failed = [attempt for attempt in record.attempts if attempt.outcome != "ok"]
    parts = "".join(f"; {_attempt_text(attempt)}" for attempt in failed[:SHOWN_ATTEMPTS])
    more = f"; {len(failed) - SHOWN_ATTEMPTS} more failed" if len(failed) > SHOWN_ATTEMPTS else ""
    sampled = "" if record.sample is None else f" (sampled {record.sample:.6g})"
    repeated = "".join(f"; repeated {count}x: {cause}" for cause, count in Counter(record.repeats).items())
    causes = f"{_cache_text(record)}{_limit_text(record)}{_plugin_text(record)}"
    return f"{line}{sampled}{causes}{parts}{more}{repeated}".encode()


def _limit_text(record: RequestRecord) -> str:
    """Return for example `; budget of team search: 500.00 USD per month`; empty if no limit refused the request."""
    return f"; {record.limit.words}" if record.limit is not None and record.outcome == "limited" else ""


def _plugin_text(record: RequestRecord) -> str:
    """Return for example `; plugin redact: it holds a number`; empty if no plugin ended the request."""
    marks = record.guarded
    if marks is None or not marks.plugin:
        return ""
    return f"; plugin {marks.plugin}: {_shown(marks.reason, SHOWN_MESSAGE)}"


def _cache_text(record: RequestRecord) -> str:
    """Return for example `; prompt_tokens 4000, cached_tokens 3000`; empty if the vendor's cache was not used."""
    if (usage := record.counted) is None or not usage.prompt_details:
        return ""
    counts = [f", {name} {count}" for name, count in cache_counts(usage.prompt_details).items() if count]
    return f"; prompt_tokens {usage.prompt_tokens}{''.join(counts)}" if counts else ""


def _attempt_text(attempt: Attempt) -> str:
    """Return for example `a/m/eu: server 500: The upstream failed.`, with the cause if there was no connection, and a
    note if the vendor may still have generated a response."""
    cause = f" ({attempt.cause})" if attempt.cause is not None else ""
    marks = " (hedge)" if attempt.hedge else ""
    marks += " (maybe executed)" if attempt.maybe_executed else ""
    status = f" {attempt.status}" if attempt.status is not None else ""
    message = f": {_shown(attempt.message, SHOWN_MESSAGE)}" if attempt.message else ""
    vendor_id = f" [{attempt.vendor_id}]" if attempt.vendor_id else ""
    return f"{_shown(attempt.full_name, SHOWN_NAME)}: {attempt.outcome}{cause}{status}{marks}{message}{vendor_id}"


def _shown(text: str, most: int) -> str:
    """Return a text in printable ASCII, cut to `most` characters."""
    clean = ascii(text[:most])[1:-1]
    return clean if len(clean) <= most and len(text) <= most else clean[: most - 3] + "..."


def refusal_line(surface: str, status: int, reason: str, count: int) -> bytes:
    """Return, as JSON, the line for all requests of one second that were refused before they were parsed."""
    return json_line(
        {
            "time": timestamp(),
            "level": "warning",
            "message": "refused at the door",
            "surface": surface,
            "reason": reason,
            "status": status,
            "code": "overloaded",
            "outcome": "shed",
            "count": count,
        }
    )


def refusal_text(surface: str, status: int, reason: str, count: int) -> bytes:
    """Return the line of `refusal_line` as text."""
    return f"{timestamp()} {status} overloaded {surface} refused {count} at the door: {reason}".encode()


def malformed_line(counts: Mapping[int, int]) -> bytes:
    """Return, as JSON, the line for all input of one second that was not HTTP, counted by the status of the
    response."""
    return json_line(
        {
            "time": timestamp(),
            "level": "warning",
            "message": "malformed HTTP",
            "count": sum(counts.values()),
            "statuses": {str(status): counts[status] for status in sorted(counts)},
        }
    )


def malformed_text(counts: Mapping[int, int]) -> bytes:
    """Return the line of `malformed_line` as text."""
    parts = ", ".join(f"{counts[status]} with {status}" for status in sorted(counts))
    return f"{timestamp()} malformed HTTP refused: {parts}".encode()


MALFORMED_LINES: Mapping[str, Callable[[Mapping[int, int]], bytes]] = {"json": malformed_line, "text": malformed_text}
EARLY_REFUSAL_LINES: Mapping[str, Callable[[str, int, str, int], bytes]] = {"json": refusal_line, "text": refusal_text}
"""The writer of a line that counts early refusals, for each log format of the setting `server.log`."""
