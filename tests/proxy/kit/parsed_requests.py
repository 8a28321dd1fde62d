"""The requests that aiohttp's parser reads with the listener's own settings, for parsers that must agree with it."""

import asyncio
from functools import cache
from unittest import mock

from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_parser import HttpRequestParser, RawRequestMessage
from aiohttp.streams import StreamReader

from proxy.listener.http_connection import MAX_FIELDS


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop: asyncio.AbstractEventLoop = mock.create_autospec(asyncio.AbstractEventLoop, instance=True)
    return loop


def parsed(data: bytes) -> list[tuple[RawRequestMessage, StreamReader]]:
    """Return the requests in these bytes."""
    parser = HttpRequestParser(
        BaseProtocol(_loop()),
        _loop(),
        2**16,
        max_line_size=8190,
        max_field_size=8190,
        max_headers=MAX_FIELDS,
        auto_decompress=False,
    )
    messages, upgraded, tail = parser.feed_data(data)
    assert (upgraded, tail) == (False, b"")
    return list(messages)
