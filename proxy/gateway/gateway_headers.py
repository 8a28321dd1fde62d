"""The headers `x-dragoman-*` of responses and errors, which report how a request was answered."""

from collections.abc import Mapping
from functools import lru_cache

from proxy.errors import ErrorFacts
from proxy.listener.buffered_response import header_lines
from proxy.request_outcomes import GuardMarks
from proxy.request_record import VENDOR_ID, RequestRecord
from proxy.surfaces.registry import error_headers
from proxy.surfaces.surface import Surface


def attempt_headers(record: RequestRecord) -> dict[str, str]:
    """Return headers with the deployment that was called last, the number of attempts, the vendor's id of the last
    attempt, and the name to which a budget routed the request, if it did. Return no headers if no deployment was
    called."""
    if record.called is None:
        return {}
    headers = _called(record.called, len(record.attempts))
    if vendor_id := record.vendor_id:
        headers[VENDOR_ID] = vendor_id
    if record.routed is not None:
        headers["x-dragoman-budget-route"] = record.routed
    return headers


def refusal_headers(record: RequestRecord, surface: Surface, facts: ErrorFacts) -> dict[str, str]:
    """Return the headers of an error in the form of a surface."""
    return {**record.passed_on, **error_headers(surface, facts), **attempt_headers(record)}


def answer_headers(record: RequestRecord) -> Mapping[str, str]:
    """Return the headers of a response: the deployment, and the fields that were emulated, dropped or changed."""
    headers = {**record.passed_on, **attempt_headers(record)}
    if record.guarded is not None:
        _add_guarded(headers, record, record.guarded)
    if record.emulated:
        headers["x-dragoman-emulated"] = ", ".join(record.emulated)
    if record.dropped:
        headers["x-dragoman-dropped"] = ", ".join(record.dropped)
    if record.max_tokens is not None:
        headers["x-dragoman-max-tokens"] = str(record.max_tokens)
    if record.cache is not None:
        headers["x-dragoman-cache"] = record.cache.result
        if record.from_cache:
            headers["age"] = str(int(record.cache.age))
    return headers


def answer_lines(record: RequestRecord) -> str:
    """Return `answer_headers` as lines. Most responses name only their deployment, so the lines are cached for each
    deployment."""
    called = record.called
    if called is None or record.emulated or record.dropped or record.guarded is not None or record.cache is not None:
        return header_lines(answer_headers(record))
    if record.max_tokens is not None or record.routed is not None or record.passed:
        return header_lines(answer_headers(record))
    lines = _called_lines(called, len(record.attempts))
    return f"{lines}{VENDOR_ID}: {vendor_id}\r\n" if (vendor_id := record.vendor_id) else lines


@lru_cache(maxsize=1024)  # clients choose the names under `vendor/*`
def _called_lines(called: str, attempts: int) -> str:
    return header_lines(_called(called, attempts))


def _called(called: str, attempts: int) -> dict[str, str]:
    return {"x-dragoman-deployment": called, "x-dragoman-attempts": str(attempts)}


def _add_guarded(headers: dict[str, str], record: RequestRecord, marks: GuardMarks) -> None:
    """Add headers with the plugins that changed the request or the response, and with the fields that they dropped."""
    if marks.names:
        headers["x-dragoman-guarded"] = ", ".join(marks.names)
    record.dropped = (*record.dropped, *(each for each in marks.dropped if each not in record.dropped))
