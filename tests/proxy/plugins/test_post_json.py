"""The POST requests of plugins."""

import pytest

from proxy.plugins.post_json import JsonPoster
from tests.support.http_scripts import head
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Send

pytestmark = pytest.mark.smoke


async def test_a_header_cannot_become_two() -> None:
    async with FakeVendor() as server:
        poster = JsonPoster()
        with pytest.raises(OSError, match="line break"):
            await poster.post_inside(server.base_url, b"", {"x": "a\r\ny: b"})
        assert server.requests == []
        await poster.aclose()


async def test_redirects_are_not_followed_and_connections_not_kept() -> None:
    async with FakeVendor() as server:
        moved = head(302, [("location", f"{server.base_url}/other"), ("content-length", "0")])
        server.answer(lambda received: (Send(moved),))
        poster = JsonPoster()
        assert await poster.post_inside(f"{server.base_url}/x", b"{}", {}) == 302
        await server.connected(0)
        assert len(server.requests) == 1
        await poster.aclose()


async def test_a_server_that_hangs_up_is_an_error() -> None:
    async with FakeVendor() as server:
        server.answer(lambda received: (Fin(),))
        with pytest.raises(OSError, match="no response"):
            await JsonPoster().post_inside(server.base_url, b"{}", {})


async def test_only_https_leads_out() -> None:
    with pytest.raises(OSError, match="the URL"):
        await JsonPoster().post("http://example.com", b"{}", {})
