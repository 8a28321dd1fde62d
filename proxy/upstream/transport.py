"""How a call reaches a vendor: the `Transport` protocol, and reading the bodies of answers within limits."""

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from io import BytesIO
from typing import Final, Protocol

from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from providers.vendor_text.vet_message import vet

MAX_ERROR_BODY = 64 * 1024
"""Bytes of an error body that are read; the rest is dropped with the connection."""

ERROR_BODY_WAIT = 2.0
"""Seconds an error body may take."""

MAX_BODY = 32 * 1024 * 1024
"""Bytes of an answer that is not streamed."""

SHOWN = 200
"""Characters of a web page in place of an answer that the log shows."""


Take = Callable[[bytes], bool]
"""Takes a piece of a body, empty at its end. Returns whether it is to get the next one; False at the end."""


class UpstreamResponse(Protocol):
    """A response whose body is still coming. `headers` has lower-case names."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers; the last of repeated ones."""

    @property
    def head(self) -> bytes:
        """The head unchanged, empty if the response came over no network."""

    def take_all(self) -> bytes | None:
        """Return the body and free the connection, where all of it has come; else None. To be called before `read`."""

    async def read(self) -> bytes:
        """Return the next piece of the body, empty at its end. Raises UpstreamError when the body broke off."""

    async def each(self, take: "Take") -> None:
        """Give `take` what `read` would return, each piece as it comes, until it returns False. Raises what either of
        them raises. `take` may be called outside the task that waits."""

    def release(self) -> None:
        """Free the connection for another request if the body was read to its end, else close it."""

    def close(self) -> None:
        """Close the connection at once."""


class RepeatCause(StrEnum):
    """Why a call was made again within its attempt. The values stand in the access log."""

    STALE_CONNECTION = "stale_connection"
    CREDENTIAL_REFRESHED = "credential_refreshed"
    CONTEXT_WINDOW = "context_window"
    STREAM_REFUSED = "stream_refused"
    REASONING_REFUSED = "reasoning_refused"
    EFFORT_REFUSED = "effort_refused"


Repeats = tuple[RepeatCause, ...]
"""Why one call has been repeated so far, in order."""

NO_REPEATS: Final[Repeats] = ()
"""Of a call that has not been made before."""

FRESH_CONNECTION: Final[Repeats] = (RepeatCause.STALE_CONNECTION,)
"""For calls that are not repeated and therefore take no pooled connection."""


class RepeatableError(UpstreamError):
    """A call failed for a reason that says nothing about the request or the deployment: the same call may be made again
    at once. Nothing was generated, except perhaps after STALE_CONNECTION."""

    def __init__(self, failure: Failure, cause: RepeatCause) -> None:
        super().__init__(failure)
        self.cause = cause


class Transport(Protocol):
    """Sends calls to deployments. Implementations send each call once; the caller decides on repeats."""

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        """Send the call with `request_id` as its `x-request-id`, and return the response once its head has come.

        `repeats` says why this call has been made before: it goes over a fresh connection after STALE_CONNECTION.
        Raises RepeatableError, once for each cause, and UpstreamError.
        """

    async def aclose(self) -> None:
        """Close every connection."""


def fail(kind: FailureKind, message: str) -> UpstreamError:
    """Return an UpstreamError whose message is our own."""
    return UpstreamError(Failure(kind, message, ours=True))


async def read_each(response: UpstreamResponse, take: Take) -> None:
    """See UpstreamResponse.each: for responses whose pieces are brought by no callback."""
    while take(await response.read()):
        pass


def unwatched(piece: bytes) -> None:
    """Ignore a piece: for bodies whose silence only the request's deadline limits."""


async def read_whole(response: UpstreamResponse, arrived: Callable[[bytes], None], limit: int = MAX_BODY) -> bytes:
    """Return the body; `arrived` gets each piece. Raises UpstreamError above `limit` bytes or where it breaks off."""
    # Not a list of pieces: byte by byte, each would take a hundred bytes of memory. The value of BytesIO is no copy:
    # copying 30 MB takes 15 ms.
    body, received = BytesIO(), 0
    while piece := await response.read():
        arrived(piece)
        received += body.write(piece)
        if received > limit:
            raise fail(FailureKind.MALFORMED, f"The upstream's answer is larger than {limit} bytes.")
    return body.getvalue()


async def read_error(response: UpstreamResponse) -> bytes:
    """Return an error body up to MAX_ERROR_BODY bytes; what came before it broke off or stalled is kept."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(ERROR_BODY_WAIT):
            while size < MAX_ERROR_BODY and (piece := await response.read()):
                pieces.append(piece)
                size += len(piece)
    except (TimeoutError, UpstreamError):
        # The status alone says that the attempt failed; the broken body is no further error.
        response.close()
    return b"".join(pieces)[:MAX_ERROR_BODY]


def refuse_page(start: bytes) -> None:
    """Raise UpstreamError for an HTML page, whatever its content type: it is from a proxy before the vendor."""
    if start[:SHOWN].lstrip()[:1] == b"<":
        # The ellipsis tells `conceal` that a credential may have been cut in two.
        shown = vet(start[: 4 * SHOWN].decode("utf-8", "replace"))[:SHOWN] + "…"
        message = "The upstream answered with a web page."
        raise UpstreamError(Failure(FailureKind.MALFORMED, message, evidence=shown, ours=True))
