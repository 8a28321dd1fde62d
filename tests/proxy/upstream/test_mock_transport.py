"""The mock vendor's responses with their delays, in virtual time."""

import asyncio
from dataclasses import replace

import pytest

from providers.dialect import UpstreamRequest
from providers.failure import FailureKind, UpstreamError
from providers.mock.server import End, SimulatedChunk, SimulatedResponse
from providers.unified_request import Operation
from proxy.errors import GatewayError
from proxy.upstream.mock_transport import CHUNKS_PER_ITERATION, MockResponse, MockTransport
from tests.proxy.kit.tables import snapshot
from tests.proxy.kit.transport_calls import whole
from tests.proxy.kit.virtual_time import in_virtual_time
from tests.support.looped import looped

pytestmark = pytest.mark.smoke


TARGET = snapshot("vendors: {mock: {}}\nmodels: {mock/echo: {}}").models["mock/echo"].targets[0]


def scripted(*pieces: SimulatedChunk, end: End = "eof") -> MockResponse:
    return MockResponse(SimulatedResponse(200, {"a": "b"}, pieces, end))


def now() -> float:
    return asyncio.get_running_loop().time()


@in_virtual_time
async def test_pieces_come_in_order_each_after_its_delay() -> None:
    response = scripted(SimulatedChunk(0, b"one"), SimulatedChunk(1.5, b"two"), SimulatedChunk(2, b"three"))
    assert (response.status, response.headers) == (200, {"a": "b"})
    got = [(await response.read(), now()) for _ in range(5)]
    assert got == [(b"one", 0), (b"two", 1.5), (b"three", 3.5), (b"", 3.5), (b"", 3.5)]


@in_virtual_time
async def test_a_piece_without_bytes_is_only_its_delay() -> None:
    response = scripted(SimulatedChunk(1, b""), SimulatedChunk(1, b"one"), SimulatedChunk(1, b""))
    assert [(await response.read(), now()) for _ in range(2)] == [(b"one", 2), (b"", 3)]


@in_virtual_time
async def test_a_cut_is_a_body_that_broke_off() -> None:
    response = scripted(SimulatedChunk(0, b"one"), end="cut")
    assert await response.read() == b"one"
    with pytest.raises(UpstreamError) as caught:
        await response.read()
    assert caught.value.failure.kind is FailureKind.TRUNCATED


@in_virtual_time
async def test_a_hang_lasts_until_the_reader_gives_up() -> None:
    response = scripted(end="hang")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1e6):
            await response.read()


@looped(
    ("path", "body", "status", "expected"),
    [
        ("/completions", b'{"model":"echo","prompt":"hello there"}', 200, b"hello there"),
        ("/completions?api-version=1", b'{"model":"echo","prompt":"hello there"}', 200, b"hello there"),
        ("/chat/completions", b'{"model":"echo","messages":[{"role":"user","content":"hi"}]}', 200, b"hi"),
        ("/completions", b'{"model":"error-503","prompt":"x"}', 503, b"error"),
        ("/nowhere", b"{}", 404, b"error"),
    ],
)
@in_virtual_time
async def test_a_request_is_answered_by_its_path_and_body(path: str, body: bytes, status: int, expected: bytes) -> None:
    transport = MockTransport()
    sent = UpstreamRequest(TARGET, Operation.COMPLETIONS, TARGET.base_url + path, body, stream=False)
    response = await transport.open(sent, "req-1")
    assert response.status == status
    assert expected in await whole(response)
    response.release()
    response.close()
    await transport.aclose()


@looped(
    ("row", "model", "status"),
    [
        ("mock/*", "anything", 200),
        ("mock/*", "echo+typed", 200),
        ("mock/*", "empty", 200),
        ("mock/*", "echo+slow-1000", 404),
        ("mock/*", "long-9", 404),
        ("mock/*", "overflow", 404),
        ("mock/error-500", "error-500", 500),
        ("mock/mine", "error-500", 500),
    ],
)
@in_virtual_time
async def test_a_row_for_any_model_serves_no_faults_and_their_own_does(row: str, model: str, status: int) -> None:
    made = replace(TARGET, model_key=row, upstream_model=model)
    body = b'{"model":"%s","prompt":"x"}' % model.encode()
    sent = UpstreamRequest(made, Operation.COMPLETIONS, TARGET.base_url + "/completions", body, stream=False)
    try:
        found = (await MockTransport().open(sent, "req-1")).status
    except GatewayError as error:
        found = error.facts.status if error.facts.code == "model_not_found" else 0
    assert found == status


@in_virtual_time
async def test_pieces_without_a_delay_give_others_their_turn() -> None:
    turns: list[int] = []

    async def other() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    beside = asyncio.create_task(other())
    response = scripted(*[SimulatedChunk(0, b"x")] * (4 * CHUNKS_PER_ITERATION))
    while await response.read():
        pass
    beside.cancel()
    assert len(turns) == 4
