"""Reuse of connections, against a vendor on a raw socket: which ones are reused, and which calls are sent again."""

import asyncio
import gc
from dataclasses import replace
from typing import Literal

import pytest

from providers.failure import VERDICTS, FailureKind, UpstreamError
from providers.target import Retries
from proxy.http_client.connection_pool import ConnectionPool
from proxy.http_client.http1_connection import Http1Connection
from proxy.http_client.http_transport import HttpTransport
from proxy.upstream.transport import FRESH_CONNECTION, RepeatableError, RepeatCause
from tests.proxy.kit.transport_calls import OK, TARGET, call, opened, whole
from tests.support.slow_connect import connections_handed_out_closed
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Rst


@pytest.mark.smoke
async def test_a_call_on_a_connection_that_the_vendor_just_left_can_be_made_again_on_a_fresh_one(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.answer(OK, (Fin(),), OK)
    await whole(await opened(transport, vendor))
    with pytest.raises(RepeatableError) as caught:
        await opened(transport, vendor)
    assert caught.value.cause is RepeatCause.STALE_CONNECTION
    assert await whole(await transport.open(call(vendor.base_url), "req-1", FRESH_CONNECTION)) == b'{"ok":true}'
    assert [request.connection for request in vendor.requests] == [0, 0, 1]


@pytest.mark.smoke
async def test_a_call_on_a_connection_that_was_just_left_is_no_fault_of_the_vendor_and_may_have_run(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.answer(OK, (Fin(),), OK)
    await whole(await opened(transport, vendor))
    with pytest.raises(UpstreamError) as caught:
        await opened(transport, vendor)
    assert len(vendor.requests) == 2
    assert (caught.value.failure.kind, caught.value.failure.maybe_executed) == (FailureKind.STALE, True)
    assert not VERDICTS[caught.value.failure.kind].counts_against


@pytest.mark.parametrize("safety", ["strict", "off"])
async def test_a_call_that_may_not_run_twice_takes_no_connection_that_was_idle_for_long(
    vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch, safety: Literal["strict", "off"]
) -> None:
    monkeypatch.setattr("proxy.http_client.http_transport.POOL_IDLE_UNREPEATED", 0.05)
    transport = HttpTransport()
    vendor.default = OK
    for target in (replace(TARGET, retries=Retries(3, safety)), TARGET):
        for _ in range(2):
            await whole(await transport.open(call(vendor.base_url, target), "req-1"))
            await asyncio.sleep(0.1)
    await transport.aclose()
    assert [request.connection for request in vendor.requests] == [0, 1, 2, 2]


async def test_a_call_on_a_fresh_connection_is_sent_once(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer((Fin(),), OK)
    with pytest.raises(UpstreamError) as caught:
        await opened(transport, vendor)
    assert caught.value.failure.kind is FailureKind.SERVER
    assert len(vendor.requests) == 1


@pytest.mark.parametrize("ending", [Fin(), Rst()])
async def test_a_call_on_a_connection_that_closed_before_it_was_unsent(
    vendor: FakeVendor, transport: HttpTransport, ending: Fin | Rst
) -> None:
    vendor.at_accept((ending,))
    with connections_handed_out_closed(vendor), pytest.raises(UpstreamError) as caught:
        await opened(transport, vendor)
    assert (caught.value.failure.kind, caught.value.failure.unsent) == (FailureKind.SERVER, True)


async def test_a_call_that_was_not_answered_may_have_been_read(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.at_accept((Fin(),))
    with pytest.raises(UpstreamError) as caught:
        await opened(transport, vendor)
    assert not caught.value.failure.unsent


async def test_a_call_on_a_fresh_connection_cannot_be_made_again(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(OK, (Rst(),), OK)
    await whole(await opened(transport, vendor))
    with pytest.raises(UpstreamError) as caught:
        await transport.open(call(vendor.base_url), "req-1", FRESH_CONNECTION)
    assert not isinstance(caught.value, RepeatableError)
    assert len(vendor.requests) == 2


async def test_a_call_that_the_vendor_had_time_to_begin_is_not_sent_again(
    vendor: FakeVendor, transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.http_client.http_transport.STALE_WITHIN", 0.0)
    vendor.answer(OK, (Fin(),), OK)
    await whole(await opened(transport, vendor))
    with pytest.raises(UpstreamError) as caught:
        await opened(transport, vendor)
    assert not isinstance(caught.value, RepeatableError)
    assert len(vendor.requests) == 2


# The pool alone -------------------------------------------------------------------------------------------------------


async def test_connections_that_were_idle_for_too_long_are_closed_by_one_timer(
    vendor: FakeVendor, transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proxy.http_client.http_transport.POOL_IDLE", 0.05)
    monkeypatch.setattr("proxy.http_client.connection_pool.SWEEP_EVERY", 0.02)
    responses = [await opened(transport, vendor) for _ in range(3)]
    assert transport.pool.in_use == 3
    for response in responses:
        await whole(response)
    assert transport.pool.in_use == 0
    assert vendor.open_connections == 3
    await vendor.connected(0)
    assert transport.pool._timer is None


async def test_room_is_made_by_closing_what_serves_no_call(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.default = OK
    under_way = await opened(transport, vendor)
    await whole(await opened(transport, vendor))
    transport.pool.close_idle()
    assert await whole(under_way) == b'{"ok":true}'
    await whole(await opened(transport, vendor))
    assert [request.connection for request in vendor.requests] == [0, 1, 0]


async def test_the_connection_that_was_used_last_is_taken_first(vendor: FakeVendor, transport: HttpTransport) -> None:
    first, second = [await opened(transport, vendor) for _ in range(2)]
    await whole(second)
    await whole(first)
    for _ in range(3):
        await whole(await opened(transport, vendor))
    assert [request.connection for request in vendor.requests] == [0, 1, 0, 0, 0]


async def test_a_connection_that_comes_about_after_the_end_is_closed(vendor: FakeVendor) -> None:
    pool = ConnectionPool()
    await pool.aclose()
    loop = asyncio.get_running_loop()
    await loop.create_connection(lambda: Http1Connection(pool, "key", 1.0), "127.0.0.1", vendor.port)
    await vendor.connected(0)
    assert pool.in_use == 0


async def test_connections_leave_no_garbage(vendor: FakeVendor, transport: HttpTransport) -> None:
    await whole(await opened(transport, vendor))
    gc.collect()
    gc.disable()
    try:
        for _ in range(5):
            response = await opened(transport, vendor)
            response.close()
            await vendor.connected(0)
        await asyncio.sleep(0)
        left = [each for each in gc.get_objects() if isinstance(each, Http1Connection)]
        assert len(left) <= 1
    finally:
        gc.enable()
