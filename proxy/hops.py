"""How many gateways of this kind a request has passed: counted from one to the next, so that an address that leads back
here ends in an error instead of a crowd.

Never which addresses do; the plain ones are found before a table is served.
"""

import re
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Final

from providers.dialect import Target
from providers.failure import VERDICTS, Failure, FailureKind, UpstreamError
from proxy.errors import Problem, invalid_request, upstream_failed

HOPS: Final = "x-dragoman-hops"
MOST: Final = 4
"""Gateways that a request may have passed; nobody stacks more of them on purpose."""

_COUNT: Final = re.compile(r"[0-9]{1,9}")
_VERDICT: Final = VERDICTS[FailureKind.LOOP]
_LOOP: Final = Failure(
    FailureKind.LOOP,
    f"The request has passed {MOST} gateways in a row: the address of a deployment leads back to one of them.",
)


_passed: ContextVar[int] = ContextVar("hops", default=0)
"""Gateways that the request of this task has passed. Each request has a task of its own."""


def arrive(headers: Mapping[str, str]) -> None:
    """Note for the calls of this request how many gateways it has passed. Raises GatewayError where that is enough, or
    no number."""
    text = headers.get(HOPS)
    if text is None:
        return
    if not _COUNT.fullmatch(text):
        raise invalid_request((Problem((HOPS,), f"'{HOPS}' is the gateways' own, and must be a number."),))
    hops = int(text)
    if hops >= MOST:
        raise upstream_failed(_LOOP)
    _passed.set(hops)


def onward() -> str:
    """The count that the calls of this request carry."""
    return str(_passed.get() + 1)


def may_lead_back(target: Target) -> bool:
    """Whether the operator chose the address, so that it may be any server's."""
    return target.is_engine or target.base_url != target.profile.base_url


def refuse_loop(status: int, body: bytes) -> None:
    """Raises UpstreamError where an error answer is that of a gateway which was passed too often. It goes back to the
    client as it is: another try would go round as often again."""
    if status == _VERDICT.status and _VERDICT.code.encode() in body:
        raise UpstreamError(replace(_LOOP, status=status))
