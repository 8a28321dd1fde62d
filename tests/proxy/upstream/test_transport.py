"""Bodies of responses read within limits, from a vendor on a raw socket."""

import pytest

from providers.failure import FailureKind, UpstreamError
from proxy.http_client.http_transport import HttpTransport
from proxy.upstream.transport import MAX_ERROR_BODY, read_error
from tests.proxy.kit.transport_calls import opened, whole
from tests.support.http_scripts import chunk, head, json_answer, sse_unterminated
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Hang, Loop, Send

pytestmark = pytest.mark.smoke


@pytest.mark.parametrize("pieces", [1, 4])
async def test_a_body_may_be_as_large_as_the_limit(vendor: FakeVendor, transport: HttpTransport, pieces: int) -> None:
    framing = head(200, [("transfer-encoding", "chunked")])
    vendor.default = (Send(framing), *[Send(chunk(b"x" * (1000 // pieces)))] * pieces, Send(b"0\r\n\r\n"))
    assert len(await whole(await opened(transport, vendor), 1000)) == 1000
    with pytest.raises(UpstreamError) as caught:
        await whole(await opened(transport, vendor), 999)
    assert caught.value.failure.kind is FailureKind.MALFORMED


ENDLESS = (Send(head(500, [("transfer-encoding", "chunked")])), Loop((Send(chunk(b"x" * 5000)),)))


async def test_an_endless_error_body_is_read_to_its_limit_alone(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(ENDLESS)
    response = await opened(transport, vendor)
    assert await read_error(response) == b"x" * MAX_ERROR_BODY
    response.release()
    await vendor.requests[0].gone.wait()


async def test_an_error_body_that_stalls_is_not_waited_for(
    vendor: FakeVendor, transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.upstream.transport.ERROR_BODY_WAIT", 0.05)
    vendor.answer((Send(head(500, [("content-length", "10")]) + b"abc"), Hang()))
    assert await read_error(await opened(transport, vendor)) == b"abc"
    await vendor.requests[0].gone.wait()


async def test_what_came_of_a_broken_error_body_is_kept(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(sse_unterminated(b"no more", Fin()))
    assert await read_error(await opened(transport, vendor)) == b"no more"


async def test_after_an_error_was_read_its_connection_serves(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.default = json_answer(500, {"error": "x"})
    for _ in range(3):
        response = await opened(transport, vendor)
        await read_error(response)
        response.release()
    assert vendor.connections == 1
