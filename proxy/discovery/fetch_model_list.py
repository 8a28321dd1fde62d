"""Fetches the list of models of one vendor, page after page, within limits of time, bytes, pages and models."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from providers.dialect import UpstreamRequest
from providers.failure import Failure, FailureKind, UpstreamError
from providers.model_lists.read_model_list import STYLES, ListedModel, ListPage, ListStyle, ask_for_page, read_page
from providers.target import Target
from proxy.deployment_health.last_failures import summary
from proxy.request_record import fresh_id
from proxy.upstream.loop_detection import refuse_loop
from proxy.upstream.send_call import may_repeat_call
from proxy.upstream.transport import (
    RepeatableError,
    Repeats,
    Transport,
    UpstreamResponse,
    fail,
    read_error,
    read_whole,
    unwatched,
)

DEADLINE: Final = 15.0
"""Seconds for a complete list, including all deployments that are called for it and all pages."""

MAX_BYTES: Final = 4 * 2**20
"""The maximum size of one page in bytes. OpenRouter's complete list has about one million bytes."""

PARSED_ON_LOOP: Final = 64 * 1024
"""The maximum bytes of a page that is parsed on the event loop. A longer page is parsed in a thread."""

MAX_PAGES: Final = 20
"""The maximum number of pages of one list. The longest page of any vendor has 1,000 models."""

MAX_MODELS: Final = 5000
"""The maximum number of models that are stored for one list."""


@dataclass(frozen=True, slots=True)
class FetchedList:
    """A vendor's list, with each model once. `left_out` is the number of entries that were left out because they have
    no usable name, or because the list has too many models."""

    models: tuple[ListedModel, ...]
    left_out: int = 0


class UnfetchedError(Exception):
    """The failure to fetch a list. `reason` is for the log and contains only the gateway's own words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def fetch_list(transport: Transport, targets: Sequence[Target]) -> FetchedList:
    """Return the list of the first deployment that provides one. If no deployment does, raises UnfetchedError with the
    failure of the last deployment."""
    failure = Failure(FailureKind.NOT_FOUND, "There is no list of models.", ours=True)
    try:
        async with asyncio.timeout(DEADLINE):
            for target in targets:
                try:
                    return await _fetch_from(transport, target)
                except UpstreamError as error:
                    failure = error.failure
    except TimeoutError:
        raise UnfetchedError(f"no whole list within {DEADLINE:g} s") from None
    raise UnfetchedError(summary(failure))


async def _fetch_from(transport: Transport, target: Target) -> FetchedList:
    kind = target.profile.model_list
    if kind is None:
        raise fail(FailureKind.NOT_FOUND, "There is no list of models.")
    style, cursor = STYLES[kind], None
    found: dict[str, ListedModel] = {}
    left_out = 0
    for _ in range(MAX_PAGES):
        data = await _body_of(transport, ask_for_page(style, target, cursor))
        page = _read(style, data) if len(data) <= PARSED_ON_LOOP else await asyncio.to_thread(_read, style, data)
        left_out += page.left_out
        for model in page.models:
            if len(found) < MAX_MODELS:
                found.setdefault(model.name, model)
            else:
                left_out += model.name not in found
        # If the next page is the current one again, following the cursor would never end.
        if page.next is None or page.next == cursor:
            return FetchedList(tuple(found.values()), left_out)
        cursor = page.next
    raise fail(FailureKind.MALFORMED, f"The list of models has more than {MAX_PAGES} pages.")


def _read(style: ListStyle, data: bytes) -> ListPage:
    try:
        return read_page(style, data)
    except UpstreamError as error:
        # The message contains only the gateway's own words, so it may be logged.
        raise UpstreamError(replace(error.failure, ours=True)) from None


async def _body_of(transport: Transport, sent: UpstreamRequest) -> bytes:
    """Return the body of a response with status 200. Raises UpstreamError for any other status."""
    response = await _open(transport, sent)
    try:
        if response.status == 200:
            return await read_whole(response, unwatched, MAX_BYTES)
        body = await read_error(response)
    except BaseException:
        # Close the connection at once, since the rest of the body may still be arriving.
        response.close()
        raise
    finally:
        response.release()
    refuse_loop(response.status, body)
    raise UpstreamError(sent.target.dialect.classify(sent, response.status, response.headers, body))


async def _open(transport: Transport, sent: UpstreamRequest) -> UpstreamResponse:
    """Send the call. Repeat it once for each cause that permits a repeat, because reading a list twice does no harm."""
    repeats: Repeats = ()
    while True:
        try:
            return await transport.open(sent, fresh_id(), repeats)
        except RepeatableError as error:
            if not may_repeat_call(error.cause, repeats, "safe"):
                raise
            repeats = (*repeats, error.cause)
