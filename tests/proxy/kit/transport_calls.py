"""Calls of a fake vendor through the gateway's own transport."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from typing_extensions import override

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind, UpstreamError
from providers.target import Target
from providers.unified_request import Operation
from proxy.http_client.http_transport import HttpTransport
from proxy.upstream.transport import MAX_BODY, Repeats, UpstreamResponse, read_whole, unwatched
from tests.proxy.kit.tables import snapshot
from tests.support.http_scripts import json_answer
from tests.support.vendor import FakeVendor

OK = json_answer(200, {"ok": True})
TABLE = snapshot(
    "vendors: {v: {profile: openai, api_key: sk-operator, headers: {X-Org: acme}}}\n"
    "models: {v/m: {base_url: 'http://127.0.0.1:1', allow_private: true}}"
)
TARGET = TABLE.models["v/m"].targets[0]
HASTY = replace(TARGET, timeouts=replace(TARGET.timeouts, connect=0.1))


class Tidy(HttpTransport):
    """The gateway's own transport, with a list of its responses, so that a test may leave one open."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[UpstreamResponse] = []

    @override
    async def open(self, request: UpstreamRequest, request_id: str, repeats: Repeats = ()) -> UpstreamResponse:
        response = await super().open(request, request_id, repeats)
        self.given.append(response)
        return response


@asynccontextmanager
async def tidy_transport() -> AsyncIterator[HttpTransport]:
    """Yield a transport whose responses are closed at the end."""
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
    """Return a call of a URL as a dialect makes it."""
    return UpstreamRequest(target, Operation.COMPLETIONS, url, body, stream=False, headers=headers or {})


async def opened(transport: HttpTransport, vendor: FakeVendor) -> UpstreamResponse:
    """Return the vendor's response up to its head."""
    return await transport.open(call(vendor.base_url), "req-1")


async def failure(transport: HttpTransport, url: str, target: Target = TARGET) -> FailureKind:
    """Return the kind of failure of a call that fails before its head."""
    with pytest.raises(UpstreamError) as caught:
        await transport.open(call(url, target), "req-1")
    message = caught.value.failure.message
    assert "127.0.0.1" not in message
    assert "sk-operator" not in message
    return caught.value.failure.kind


async def whole(response: UpstreamResponse, limit: int = MAX_BODY) -> bytes:
    return await read_whole(response, unwatched, limit)


async def broken(response: UpstreamResponse) -> FailureKind:
    """Return the kind of failure of a body that breaks off."""
    with pytest.raises(UpstreamError) as caught:
        await whole(response)
    return caught.value.failure.kind
