"""Calls of a fake vendor through the gateway's own transport. Never an answer's meaning."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from typing_extensions import override

from providers.dialect import Target, UpstreamRequest
from providers.failure import FailureKind, UpstreamError
from providers.unified import Operation
from proxy.upstream import MAX_BODY, HttpTransport, UpstreamResponse, read_whole, unwatched
from tests.proxy.tables import snapshot
from tests.support.vendor import FakeVendor
from tests.support.wire import json_answer

OK = json_answer(200, {"ok": True})
TABLE = snapshot(
    "vendors: {v: {profile: openai, api_key: sk-operator, headers: {X-Org: acme}}}\n"
    "models: {v/m: {base_url: 'http://127.0.0.1:1', allow_private: true}}"
)
TARGET = TABLE.models["v/m"].targets[0]
HASTY = replace(TARGET, timeouts=replace(TARGET.timeouts, connect=0.1))


class Tidy(HttpTransport):
    """The gateway's own transport, and what it gave, for who leaves an answer open."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[UpstreamResponse] = []

    @override
    async def open(self, request: UpstreamRequest, request_id: str) -> UpstreamResponse:
        response = await super().open(request, request_id)
        self.given.append(response)
        return response


@asynccontextmanager
async def tidy_transport() -> AsyncIterator[HttpTransport]:
    """A transport whose answers are closed at the end."""
    made = Tidy()
    try:
        yield made
    finally:
        for response in made.given:
            response.close()
        await made.aclose()


def call(
    url: str, target: Target = TARGET, headers: Mapping[str, str] | None = None, body: bytes = b"{}"
) -> UpstreamRequest:
    """A call of an URL as a dialect makes it."""
    return UpstreamRequest(target, Operation.COMPLETIONS, url, body, stream=False, headers=headers or {})


async def opened(transport: HttpTransport, vendor: FakeVendor) -> UpstreamResponse:
    """The vendor's answer up to its head."""
    return await transport.open(call(vendor.base_url), "req-1")


async def failure(transport: HttpTransport, url: str, target: Target = TARGET) -> FailureKind:
    """What a call that fails before its head is called."""
    with pytest.raises(UpstreamError) as caught:
        await transport.open(call(url, target), "req-1")
    message = caught.value.failure.message
    assert "127.0.0.1" not in message
    assert "sk-operator" not in message
    return caught.value.failure.kind


async def whole(response: UpstreamResponse, limit: int = MAX_BODY) -> bytes:
    """The body of an answer."""
    return await read_whole(response, unwatched, limit)


async def broken(response: UpstreamResponse) -> FailureKind:
    """What a body that breaks off is called."""
    with pytest.raises(UpstreamError) as caught:
        await whole(response)
    return caught.value.failure.kind
