"""The `Transport` protocol, which sends calls to vendors, and functions that read the bodies of responses within
limits."""

import asyncio
from collections.abc import Callable, Mapping
from enum import StrEnum
from io import BytesIO
from typing import Final, Protocol

from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from providers.vendor_text.vet_message import vet

MAX_ERROR_BODY = 64 * 1024
"""The most bytes of an error body that are read. The rest is dropped with the connection."""

ERROR_BODY_WAIT = 2.0
"""The most seconds in which an error body must arrive."""

MAX_BODY = 32 * 1024 * 1024
"""The most bytes of a non-streaming response."""

SHOWN = 200
"""The most characters that are logged of a web page that arrives instead of a response."""


Take = Callable[[bytes], bool]
"""A function that takes a chunk of a body; the chunk is empty at the body's end. It returns whether it wants the next
chunk, and False at the end."""


class UpstreamResponse(Protocol):
    """A response whose body is still arriving. `headers` has lower-case names."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The response headers. If a header is repeated, its last value counts."""

    @property
    def head(self) -> bytes:
        """The unchanged head; empty for a response without a network connection."""

    def take_all(self) -> bytes | None:
        """Return the body and free the connection if all of it has arrived, else `None`. It must be called before
        `read`."""

    async def read(self) -> bytes:
        """Return the next chunk of the body, empty at its end. Raises UpstreamError if the body broke off."""

    async def each(self, take: "Take") -> None:
        """Call `take` with each chunk that `read` would return, as the chunk arrives, until `take` returns False.
        Raises the exceptions of `read` and `take`. `take` may be called outside the waiting task."""

    def release(self) -> None:
        """Free the connection for another request if the body was read to its end, else close it."""

    def close(self) -> None:
        """Close the connection at once."""


class RepeatCause(StrEnum):
    """The cause of a repeated call within its attempt. The values are in the access log."""

    STALE_CONNECTION = "stale_connection"
    CREDENTIAL_REFRESHED = "credential_refreshed"
    CONTEXT_WINDOW = "context_window"
    STREAM_REFUSED = "stream_refused"
    REASONING_REFUSED = "reasoning_refused"
    EFFORT_REFUSED = "effort_refused"


Repeats = tuple[RepeatCause, ...]
"""The causes of the repeats of one call so far, in order."""

NO_REPEATS: Final[Repeats] = ()
"""The causes for a call that has not been made before."""

FRESH_CONNECTION: Final[Repeats] = (RepeatCause.STALE_CONNECTION,)
"""The causes that are passed for a call that must not be repeated. With them the call does not use a pooled
connection."""


class RepeatableError(UpstreamError):
    """The error of a call that failed for a reason independent of request and deployment, so that it may be repeated at
    once. Nothing was generated, except perhaps after STALE_CONNECTION."""

    def __init__(self, failure: Failure, cause: RepeatCause) -> None:
        super().__init__(failure)
        self.cause = cause


class Transport(Protocol):
    """A sender of calls to deployments. Implementations send each call once. The caller decides on repeats."""

    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        """Send the call with `request_id` as its `x-request-id`, and return the response once its head has arrived.

        `repeats` are the causes of earlier repeats of this call. If STALE_CONNECTION is among them, the call uses a
        fresh connection. Raises RepeatableError, once for each cause, and UpstreamError.
        """

    async def aclose(self) -> None:
        """Close every connection."""


def fail(kind: FailureKind, message: str) -> UpstreamError:
    """Return an UpstreamError whose message is the gateway's own text."""
    return UpstreamError(Failure(kind, message, ours=True))


async def read_each(response: UpstreamResponse, take: Take) -> None:
    """Implement UpstreamResponse.each for responses whose chunks do not arrive by callbacks."""
    while take(await response.read()):
        pass


def unwatched(chunk: bytes) -> None:
    """Ignore a chunk. This function is for bodies whose arrival only the request's deadline limits."""


async def read_whole(response: UpstreamResponse, arrived: Callable[[bytes], None], limit: int = MAX_BODY) -> bytes:
    """Return the body. `arrived` gets each chunk. Raises UpstreamError for more than `limit` bytes, or if the body
    breaks off."""
    # The chunks are not stored in a list, because each chunk of one byte would take a hundred bytes of memory. BytesIO
    # returns its value without a copy. Copying 30 MB would take 15 ms.
    body, received = BytesIO(), 0
    while chunk := await response.read():
        arrived(chunk)
        received += body.write(chunk)
        if received > limit:
            raise fail(FailureKind.MALFORMED, f"The upstream's response is larger than {limit} bytes.")
    return body.getvalue()


async def read_error(response: UpstreamResponse) -> bytes:
    """Return an error body up to MAX_ERROR_BODY bytes. If it breaks off or stalls, return the received part."""
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(ERROR_BODY_WAIT):
            while size < MAX_ERROR_BODY and (chunk := await response.read()):
                chunks.append(chunk)
                size += len(chunk)
    except (TimeoutError, UpstreamError):
        # The status alone shows that the attempt failed. The broken body is not a further error.
        response.close()
    return b"".join(chunks)[:MAX_ERROR_BODY]


def refuse_page(start: bytes) -> None:
    """Raise UpstreamError for an HTML page of any content type, because such a page comes from a proxy in front of the
    vendor."""
    if start[:SHOWN].lstrip()[:1] == b"<":
        # The ellipsis shows `conceal` that a credential may have been cut in two.
        shown = vet(start[: 4 * SHOWN].decode("utf-8", "replace"))[:SHOWN] + "…"
        message = "The upstream answered with a web page."
        raise UpstreamError(Failure(FailureKind.MALFORMED, message, evidence=shown, ours=True))
