"""The last requests that failed, with their attempts and causes, for the operator's page.

They hold names, numbers and messages of the gateway. Messages of vendors may quote a request and are only in the access
log. All of them together take at most 400 KB.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import Final

from providers.failure import GATEWAY_MESSAGES
from proxy.admin.recent_requests import FAILED, REFUSED
from proxy.request_record import Attempt, Outcome, RequestRecord
from proxy.telemetry.access_log import UNAUTHORIZED

MOST_FAILED: Final = 75
MOST_REFUSED: Final = 25
"""The most requests that failed because of a vendor or the gateway, and the most that were refused because of the
client. The two are stored separately, so that a client with a wrong key does not displace the failures that the
operator looks for."""

MOST_ATTEMPTS: Final = 8
MOST_NAME: Final = 160
MOST_MESSAGE: Final = 300
"""The most attempts of a request that are stored, and the most characters of a name and of a message."""

_MESSAGES: Final[Mapping[str, str]] = {kind.value: words for kind, words in GATEWAY_MESSAGES.items()}


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One attempt of a request that failed; the attempt itself may have succeeded. `message` says why it failed."""

    deployment: str
    outcome: str
    status: int | None
    milliseconds: int
    message: str


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """One request that failed. `when` is its end in unix seconds, `model` the name that the client requested, `more`
    the number of attempts that are left out. `plugin` is the plugin that ended the request, and `reason` why, both
    empty if no plugin did. `limit` describes the limit that refused it, `client` is the client's address if its key was
    refused; each is empty otherwise."""

    when: float
    request_id: str
    team: str
    model: str
    surface: str
    status: int
    outcome: Outcome
    code: str
    milliseconds: int
    attempts: tuple[FailedAttempt, ...] = ()
    more: int = 0
    plugin: str = ""
    reason: str = ""
    limit: str = ""
    client: str = ""


class FailedRequests:
    """Stores the last failed requests of a process. `wall` returns unix seconds."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._failed: deque[FailedRequest] = deque(maxlen=MOST_FAILED)
        self._refused: deque[FailedRequest] = deque(maxlen=MOST_REFUSED)

    def add(self, record: RequestRecord, cost: float | None) -> None:
        """Store a finished request if it failed."""
        if record.outcome in FAILED:
            self._failed.append(_failed_request(record, self._wall()))
        elif record.outcome in REFUSED:
            self._refused.append(_failed_request(record, self._wall()))

    def newest(self) -> tuple[FailedRequest, ...]:
        """Return the stored requests, the newest first."""
        return newest_of([[*self._failed, *self._refused]])


def newest_of(several: Iterable[Iterable[FailedRequest]]) -> tuple[FailedRequest, ...]:
    """Return the newest of the requests that several processes store, as many as one process would store."""
    every = [request for those in several for request in those]
    failed = nlargest(MOST_FAILED, (each for each in every if each.outcome in FAILED), key=_when)
    refused = nlargest(MOST_REFUSED, (each for each in every if each.outcome in REFUSED), key=_when)
    return tuple(sorted((*failed, *refused), key=_when, reverse=True))


def _when(request: FailedRequest) -> float:
    return request.when


def _failed_request(record: RequestRecord, when: float) -> FailedRequest:
    return FailedRequest(
        when,
        clipped(record.request_id, MOST_NAME),
        record.team,
        clipped(record.asked, MOST_NAME),
        record.surface,
        record.status,
        record.outcome,
        clipped(record.code or "", MOST_NAME),
        round(1000 * record.duration),
        tuple(_failed_attempt(attempt, record.finished) for attempt in record.attempts[:MOST_ATTEMPTS]),
        max(0, len(record.attempts) - MOST_ATTEMPTS),
        "" if record.guarded is None else clipped(record.guarded.plugin, MOST_NAME),
        "" if record.guarded is None else clipped(record.guarded.reason, MOST_MESSAGE),
        clipped(record.limit.words, MOST_NAME) if record.limit is not None and record.outcome == "limited" else "",
        clipped(record.client, MOST_NAME) if record.status == UNAUTHORIZED else "",
    )


def _failed_attempt(attempt: Attempt, finished: float) -> FailedAttempt:
    # If there was no connection, the message cannot be the vendor's.
    message = f"{attempt.cause}: {attempt.message}" if attempt.cause else _MESSAGES.get(attempt.outcome, "")
    milliseconds = round(1000 * ((attempt.finished or finished) - attempt.started))
    name = clipped(attempt.full_name, MOST_NAME)
    return FailedAttempt(name, attempt.outcome, attempt.status, milliseconds, clipped(message, MOST_MESSAGE))


def clipped(text: str, most: int) -> str:
    """Return a text of at most `most` characters that JSON can hold; an ellipsis replaces the cut part. Bytes of a
    client that are not UTF-8 become question marks."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return cut if cut.isascii() else cut.encode("utf-8", "replace").decode()
