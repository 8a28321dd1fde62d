"""The webhook: signed batches, over sockets, to addresses that may be called."""

import hashlib
import hmac
import re
from collections.abc import Mapping

import orjson
import pytest

from proxy.plugins.api import OptionError
from proxy.plugins.post_json import JsonPoster
from proxy.plugins.shipped.webhook_sink import WebhookSink
from tests.proxy.plugins.test_usage_sinks import ROW
from tests.support.http_scripts import head
from tests.support.looped import looped
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Send

pytestmark = pytest.mark.smoke


SECRET = "0123456789abcdef"
OK = (Send(head(204, [("content-length", "0")])),)


async def test_a_batch_is_posted_as_json_and_signed() -> None:
    async with FakeVendor() as server:
        server.answer(lambda received: OK)
        sink = WebhookSink({"url": f"{server.base_url}/hook?a=b", "secret": SECRET, "allow_private": True})
        await sink.deliver([ROW], JsonPoster())
        (received,) = server.requests
    assert (received.method, received.target) == ("POST", "/hook?a=b")
    assert orjson.loads(received.body)["rows"][0]["request_id"] == "r0"
    found = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", received.header("x-dragoman-signature") or "")
    assert found is not None
    signed = found[1].encode() + b"." + received.body
    assert hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest() == found[2]


async def test_any_other_status_is_a_failure() -> None:
    async with FakeVendor() as server:
        server.answer(lambda received: (Send(head(500, [("content-length", "0")])),))
        sink = WebhookSink({"url": server.base_url, "secret": SECRET, "allow_private": True})
        with pytest.raises(OSError, match="returned 500"):
            await sink.deliver([ROW], JsonPoster())


@looped("host", ["127.0.0.1", "localhost", "10.0.0.1", "169.254.169.254"])
async def test_addresses_inside_are_not_called_unless_that_is_allowed(host: str) -> None:
    sink = WebhookSink({"url": f"https://{host}:1/x", "secret": SECRET})
    with pytest.raises(OSError, match=r"."):
        await sink.deliver([ROW], JsonPoster())


@looped(
    ("options", "path"),
    [
        ({"secret": SECRET}, "url"),
        ({"url": "ftp://x", "secret": SECRET}, "url"),
        ({"url": "http://x", "secret": SECRET}, "url"),
        ({"url": "https://x", "secret": "short"}, "secret"),
        ({"url": "https://x", "secret": [SECRET, "short"]}, "secret"),
        ({"url": "https://x", "secret": []}, "secret"),
        ({"url": "https://x", "secret": [SECRET] * 5}, "secret"),
        ({"url": "https://x", "secret": SECRET, "allow_private": 1}, "allow_private"),
        ({"url": "https://x", "secret": SECRET, "more": 1}, "more"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Mapping[str, object], path: str) -> None:
    with pytest.raises(OptionError) as caught:
        WebhookSink(options)
    assert caught.value.path[0] == path
    assert SECRET not in str(caught.value)
