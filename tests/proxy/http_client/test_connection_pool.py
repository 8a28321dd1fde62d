"""Connections that are used again, against a vendor on a raw socket: which ones, and what is sent once more."""

import asyncio
from dataclasses import replace
from typing import Literal

import pytest

from providers.failure import VERDICTS, FailureKind, UpstreamError
from providers.target import Retries
from proxy.http_client.http_transport import HttpTransport
from proxy.upstream.transport import FRESH_CONNECTION, RepeatableError, RepeatCause
from tests.proxy.kit.transport_calls import OK, TARGET, call, opened, whole
from tests.support.slow_connect import connections_handed_out_closed
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Rst


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
    monkeypatch.setattr("proxy.http_client.http_transport.ONCE_IDLE", 0.05)
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


async def test_a_call_on_a_connection_that_closed_unanswered_may_have_been_read(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
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
