"""The last requests that failed, with their attempts and causes, for the operator's page.

They hold names, numbers and causes in our own words: a vendor's may quote a request, and are in the access log alone.
At most 400 KB.
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
"""Requests that a vendor or the gateway failed, and those that were refused for what the client did. They are kept
apart, so that a client with a wrong key does not push out what the operator looks for."""

MOST_ATTEMPTS: Final = 8
MOST_NAME: Final = 160
MOST_MESSAGE: Final = 300
"""Attempts of a request that are kept, and characters of a name and of a message."""

_WORDS: Final[Mapping[str, str]] = {kind.value: words for kind, words in GATEWAY_MESSAGES.items()}


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """One attempt of a request that failed; it may have succeeded itself. `message` says why not."""

    deployment: str
    outcome: str
    status: int | None
    milliseconds: int
    message: str


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """One request that failed. `when` is its end in unix seconds, `model` what the client asked for, `more` how many
    attempts are left out, `plugin` the one that ended it, if one did, and `reason` why; `limit` the limit that refused
    it, in words, if one did; `client` the client's address if its key was refused."""

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
    """Keeps the last failed requests of a process. `wall` returns unix seconds."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._failed: deque[FailedRequest] = deque(maxlen=MOST_FAILED)
        self._refused: deque[FailedRequest] = deque(maxlen=MOST_REFUSED)

    def add(self, record: RequestRecord, cost: float | None) -> None:
        """Keep a finished request if it failed."""
        if record.outcome in FAILED:
            self._failed.append(_kept(record, self._wall()))
        elif record.outcome in REFUSED:
            self._refused.append(_kept(record, self._wall()))

    def newest(self) -> tuple[FailedRequest, ...]:
        """Return what is kept, the newest first."""
        return newest_of([[*self._failed, *self._refused]])


def newest_of(several: Iterable[Iterable[FailedRequest]]) -> tuple[FailedRequest, ...]:
    """Return the newest of what several processes keep, as many as one of them would."""
    every = [request for those in several for request in those]
    failed = nlargest(MOST_FAILED, (each for each in every if each.outcome in FAILED), key=_when)
    refused = nlargest(MOST_REFUSED, (each for each in every if each.outcome in REFUSED), key=_when)
    return tuple(sorted((*failed, *refused), key=_when, reverse=True))


def _when(request: FailedRequest) -> float:
    return request.when


def _kept(record: RequestRecord, when: float) -> FailedRequest:
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
        tuple(_kept_attempt(attempt, record.finished) for attempt in record.attempts[:MOST_ATTEMPTS]),
        max(0, len(record.attempts) - MOST_ATTEMPTS),
        "" if record.guarded is None else clipped(record.guarded.plugin, MOST_NAME),
        "" if record.guarded is None else clipped(record.guarded.reason, MOST_MESSAGE),
        clipped(record.limit.words, MOST_NAME) if record.limit is not None and record.outcome == "limited" else "",
        clipped(record.client, MOST_NAME) if record.status == UNAUTHORIZED else "",
    )


def _kept_attempt(attempt: Attempt, finished: float) -> FailedAttempt:
    # Without a connection there was no vendor to word the message.
    message = f"{attempt.cause}: {attempt.message}" if attempt.cause else _WORDS.get(attempt.outcome, "")
    milliseconds = round(1000 * ((attempt.finished or finished) - attempt.started))
    name = clipped(attempt.full_name, MOST_NAME)
    return FailedAttempt(name, attempt.outcome, attempt.status, milliseconds, clipped(message, MOST_MESSAGE))


def clipped(text: str, most: int) -> str:
    """Return a text that JSON can hold, of so many characters at most: an ellipsis stands for what is cut. A client's
    bytes that were not UTF-8 become question marks."""
    cut = text if len(text) <= most else text[: most - 1] + "…"
    return cut if cut.isascii() else cut.encode("utf-8", "replace").decode()
