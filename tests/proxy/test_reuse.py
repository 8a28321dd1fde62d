"""Connections that are used again, against a vendor on a raw socket: which ones, and what is sent once more."""

import asyncio
from dataclasses import replace
from typing import Literal

import aiohttp
import pytest
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from providers.dialect import Retries
from providers.failure import VERDICTS, FailureKind, UpstreamError
from proxy import upstream
from proxy.upstream import HttpTransport
from tests.proxy.door import OK, TARGET, call, opened, whole
from tests.support.script import Fin, Rst
from tests.support.vendor import FakeVendor


async def test_a_call_on_a_connection_that_the_vendor_just_left_is_sent_once_more_on_a_fresh_one(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.answer(OK, (Fin(),), OK)
    await whole(await opened(transport, vendor))
    assert await whole(await opened(transport, vendor)) == b'{"ok":true}'
    assert [request.connection for request in vendor.requests] == [0, 0, 1]


@pytest.mark.parametrize("safety", ["strict", "off"])
async def test_a_call_that_may_not_run_twice_is_not_sent_once_more(
    vendor: FakeVendor, transport: HttpTransport, safety: Literal["strict", "off"]
) -> None:
    once = replace(TARGET, retries=Retries(safety=safety))
    vendor.answer(OK, (Fin(),), OK)
    await whole(await transport.open(call(vendor.base_url, once), "req-1"))
    with pytest.raises(UpstreamError) as caught:
        await transport.open(call(vendor.base_url, once), "req-2")
    assert len(vendor.requests) == 2
    assert (caught.value.failure.kind, caught.value.failure.maybe_executed) == (FailureKind.STALE, True)
    assert not VERDICTS[caught.value.failure.kind].counts_against


@pytest.mark.parametrize("safety", ["strict", "off"])
async def test_a_call_that_may_not_run_twice_takes_no_connection_that_was_idle_for_long(
    vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch, safety: Literal["strict", "off"]
) -> None:
    monkeypatch.setattr(upstream, "ONCE_IDLE", 0.05)
    transport = HttpTransport()
    vendor.default = OK
    for target in (replace(TARGET, retries=Retries(safety=safety)), TARGET):
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
    vendor: FakeVendor, transport: HttpTransport, monkeypatch: pytest.MonkeyPatch, ending: Fin | Rst
) -> None:
    connect = aiohttp.TCPConnector.connect

    async def slowly(
        self: aiohttp.TCPConnector,
        req: aiohttp.ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> Connection:
        connection = await connect(self, req, traces, timeout)
        while vendor.open_connections:
            await vendor.connected(0)
        return connection

    monkeypatch.setattr(aiohttp.TCPConnector, "connect", slowly)
    vendor.at_accept((ending,))
    with pytest.raises(UpstreamError) as caught:
        await opened(transport, vendor)
    assert (caught.value.failure.kind, caught.value.failure.unsent) == (FailureKind.SERVER, True)


async def test_a_call_on_a_connection_that_closed_unanswered_may_have_been_read(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    vendor.at_accept((Fin(),))
    with pytest.raises(UpstreamError) as caught:
        await opened(transport, vendor)
    assert not caught.value.failure.unsent


async def test_a_call_is_sent_no_third_time(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(OK, (Rst(),), (Fin(),), OK)
    await whole(await opened(transport, vendor))
    with pytest.raises(UpstreamError):
        await opened(transport, vendor)
    assert len(vendor.requests) == 3


async def test_a_call_that_the_vendor_had_time_to_begin_is_not_sent_again(
    vendor: FakeVendor, transport: HttpTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upstream, "REPLAY_WITHIN", 0.0)
    vendor.answer(OK, (Fin(),), OK)
    await whole(await opened(transport, vendor))
    with pytest.raises(UpstreamError):
        await opened(transport, vendor)
    assert len(vendor.requests) == 2
