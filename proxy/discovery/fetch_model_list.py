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
"""The most bytes of one page. OpenRouter's complete list has about one million."""

PARSED_ON_LOOP: Final = 64 * 1024
"""Bytes of a page up to which it is parsed on the event loop; a longer one is parsed in a thread."""

MAX_PAGES: Final = 20
"""The most pages of one list; of the paged lists the longest page has 1,000 models."""

MAX_MODELS: Final = 5000
"""The most models of one list that are stored."""


@dataclass(frozen=True, slots=True)
class FetchedList:
    """A vendor's list: each model once, and the number of entries left out for their names or their number."""

    models: tuple[ListedModel, ...]
    left_out: int = 0


class UnfetchedError(Exception):
    """The failure to fetch a list; `reason` is in the gateway's own words, for the log."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


async def fetch_list(transport: Transport, targets: Sequence[Target]) -> FetchedList:
    """Return the list of the first deployment that provides one. Raises UnfetchedError with the failure of the last
    one."""
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
        # A vendor that leads back to the same page would do so without end.
        if page.next is None or page.next == cursor:
            return FetchedList(tuple(found.values()), left_out)
        cursor = page.next
    raise fail(FailureKind.MALFORMED, f"The list of models has more than {MAX_PAGES} pages.")


def _read(style: ListStyle, data: bytes) -> ListPage:
    try:
        return read_page(style, data)
    except UpstreamError as error:
        # A page is refused in the gateway's own words, which may be logged.
        raise UpstreamError(replace(error.failure, ours=True)) from None


async def _body_of(transport: Transport, sent: UpstreamRequest) -> bytes:
    """Return the body of a 200. Raises UpstreamError for anything else."""
    response = await _open(transport, sent)
    try:
        if response.status == 200:
            return await read_whole(response, unwatched, MAX_BYTES)
        body = await read_error(response)
    except BaseException:
        # Unlike a release, this also ends a body that is still arriving.
        response.close()
        raise
    finally:
        response.release()
    refuse_loop(response.status, body)
    raise UpstreamError(sent.target.dialect.classify(sent, response.status, response.headers, body))


async def _open(transport: Transport, sent: UpstreamRequest) -> UpstreamResponse:
    """Send the call, and send it again if the failure is not the vendor's: reading a list twice does no harm."""
    repeats: Repeats = ()
    while True:
        try:
            return await transport.open(sent, fresh_id(), repeats)
        except RepeatableError as error:
            if not may_repeat_call(error.cause, repeats, "safe"):
                raise
            repeats = (*repeats, error.cause)
