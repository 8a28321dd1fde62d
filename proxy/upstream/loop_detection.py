"""Counts the gateways that a request has passed, so that an address that leads back to this gateway ends in an error
instead of a loop. Obvious cases are refused when the configuration is loaded."""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Final

from providers.failure import VERDICTS, Failure, FailureKind, UpstreamError
from providers.target import Target
from proxy.errors import FieldProblem, invalid_request, upstream_failed

HOPS: Final = "x-dragoman-hops"
MOST: Final = 4
"""The most gateways through which a request may have passed. No reasonable setup chains more gateways."""

_COUNT: Final = re.compile(r"[0-9]{1,9}")
_VERDICT: Final = VERDICTS[FailureKind.LOOP]
_LOOP: Final = Failure(
    FailureKind.LOOP,
    f"The request has passed {MOST} gateways in a row: the address of a deployment leads back to one of them.",
)

_passed: ContextVar[int] = ContextVar("hops", default=0)
"""The number of gateways that the request of this task has passed. Each request has its own task."""


def arrive(headers: Mapping[str, str]) -> None:
    """Store the number of gateways from a request's headers. Raises GatewayError if the number is MOST or more, or if
    the header is not a number."""
    text = headers.get(HOPS)
    if text is None:
        return
    if not _COUNT.fullmatch(text):
        raise invalid_request((FieldProblem((HOPS,), f"'{HOPS}' is the gateways' own, and must be a number."),))
    hops = int(text)
    if hops >= MOST:
        raise upstream_failed(_LOOP)
    _passed.set(hops)


def onward() -> str:
    """Return the number of gateways that the calls of this request must send."""
    return str(_passed.get() + 1)


def may_lead_back(target: Target) -> bool:
    """Return whether the operator chose the address of the target, so that it may be the address of a gateway."""
    return target.is_engine or target.base_url != target.profile.base_url


def refuse_loop(status: int, body: bytes) -> None:
    """Raise a final UpstreamError for the error of a gateway that refused a loop. Another deployment would loop
    again."""
    if status == _VERDICT.status and _VERDICT.code.encode() in body:
        raise UpstreamError(replace(_LOOP, status=status))
