"""Requests that came whole are answered within the callback that brought them, all others in aiohttp's way, and a
client cannot tell which."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterator

import pytest
from aiohttp import web
from typing_extensions import override

from proxy.eager_task import EagerTask
from proxy.listener.eager_requests import MAX_AHEAD
from tests.proxy.kit import desk as kit
from tests.proxy.kit.desk import Desk, answered, desk, get, settle
from tests.proxy.kit.eager_tasks import LOOPS
from tests.proxy.kit.raw_client import connected, request

Run = Callable[[Coroutine[object, None, None]], None]
SMALL = 10_000


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Iterator[Run]:
    """Runs a scenario on either loop that the gateway runs on."""
    with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:

        async def within(scenario: Coroutine[object, None, None]) -> None:
            async with asyncio.timeout(55):
                await scenario

        yield lambda scenario: runner.run(within(scenario))


@pytest.mark.smoke
def test_a_request_that_came_whole_is_answered_eagerly(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            for number in range(3):
                await client.send(request("POST", f"/{number}", b"body"))
                assert await answered(client) == (200, b"/%d:body" % number)
            assert made.eager == [True] * 3

    run(scenario())


UNUSUAL = {
    "incomplete body": [request("POST", "/x", b"body")[:-1], b"y"],
    "chunked body in pieces": [
        b"POST /x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nbod",
        b"\r\n1\r\ny\r\n0\r\n\r\n",
    ],
    "several at once": [request("POST", "/x", b"body") + get("/y")],
    "expectation": [request("POST", "/x", b"body", {"Expect": "100-continue"})],
    "in two pieces": [request("POST", "/x", b"body")[:30], request("POST", "/x", b"body")[30:]],
    "byte by byte": [bytes([byte]) for byte in request("POST", "/x", b"body")],
}


@pytest.mark.smoke
@pytest.mark.parametrize("kind", UNUSUAL)
def test_whatever_is_not_plain_is_answered_too_and_the_next_plain_one_eagerly(run: Run, kind: str) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            for _ in range(2):
                for piece in UNUSUAL[kind]:
                    await client.send(piece)
                    await settle(4)
                assert await answered(client) == (200, b"/x:body")
                if kind == "several at once":
                    assert await answered(client) == (200, b"/y:")
                await client.send(get("/plain"))
                assert await answered(client) == (200, b"/plain:")
                assert made.eager[-1]

    run(scenario())


def test_an_offer_to_upgrade_is_answered_and_ends_the_connection(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/plain"))
            await answered(client)
            await client.send(get("/x", Connection="Upgrade", Upgrade="websocket"))
            assert await answered(client) == (200, b"/x:")
            assert await client.closed() == b""

    run(scenario())


def test_requests_that_come_during_an_answer_are_answered_in_order(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/wait"))
            await made.until(lambda: made.begun == ["/wait"])
            for number in range(5):
                await client.send(request("POST", f"/{number}", b"%d" % number))
                await settle()
            assert made.begun == ["/wait"]
            made.opened.set()
            assert await answered(client) == (200, b"/wait:")
            for number in range(5):
                assert await answered(client) == (200, b"/%d:%d" % (number, number))

    run(scenario())


def test_a_request_that_an_answer_cuts_is_read_as_one(run: Run) -> None:
    """Its first bytes come with the request before, the next during that one's answer, the rest after."""
    following = request("POST", "/next", b"body")
    end = len(following)

    async def scenario() -> None:
        async with desk() as made:
            for first in range(0, end, 9):
                for second in range(first, end, 13):
                    made.opened.clear()
                    made.begun.clear()
                    async with connected(made.port) as client:
                        await client.send(get("/wait") + following[:first])
                        await made.until(lambda: made.begun == ["/wait"])
                        await client.send(following[first:second])
                        await settle()
                        made.opened.set()
                        assert await answered(client) == (200, b"/wait:")
                        await client.send(following[second:])
                        assert await answered(client) == (200, b"/next:body")

    run(scenario())


def test_what_is_kept_of_a_client_that_sends_on_is_bounded_and_all_of_it_is_answered(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/wait"))
            await made.until(lambda: bool(made.begun))
            count = 80
            many = b"".join(request("POST", f"/{number}", b"a" * 100_000) for number in range(count))
            client.writer.write(many)
            for _ in range(50):
                await asyncio.sleep(0.005)
                # One read of the loop may come on top.
                assert len(made.connection._ahead) <= MAX_AHEAD + 262_144
            assert made.connection._buffer_paused
            assert made.begun == ["/wait"]
            made.opened.set()
            assert await answered(client) == (200, b"/wait:")
            for number in range(count):
                status, body = await answered(client)
                assert (status, len(body)) == (200, 100_000 + len(f"/{number}:"))
            assert not made.connection._buffer_paused

    run(scenario())


def test_a_long_row_of_small_requests_does_not_grow_the_stack(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/wait"))
            await made.until(lambda: bool(made.begun))
            client.writer.write(b"".join(get(f"/{number}") for number in range(SMALL)))
            await asyncio.sleep(0.05)
            made.opened.set()
            assert await answered(client) == (200, b"/wait:")
            for number in range(SMALL):
                assert await answered(client) == (200, b"/%d:" % number)
            assert max(made.depths) - min(made.depths) < 60

    run(scenario())


def test_requests_do_not_see_each_other_s_context_variables(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/wait"))
            await made.until(lambda: bool(made.begun))
            await client.send(get("/a"))
            await settle()
            made.opened.set()
            await answered(client)
            await answered(client)
            await client.send(get("/b"))
            await answered(client)
            assert made.carried == ["nothing"] * 3

    run(scenario())


def test_the_keep_alive_limit_does_not_cut_an_answer_but_an_idle_connection(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made:
            made.server._kwargs["keepalive_timeout"] = 0.1
            async with connected(made.port) as client:
                await client.send(get("/plain"))
                assert await answered(client) == (200, b"/plain:")
                await client.send(get("/wait"))
                await made.until(lambda: len(made.begun) == 2)
                await asyncio.sleep(0.4)
                made.opened.set()
                assert await answered(client) == (200, b"/wait:")
                assert await client.closed() == b""

    run(scenario())


def test_a_lost_connection_cancels_the_handler(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made:
            async with connected(made.port) as client:
                await client.send(get("/wait"))
                await made.until(lambda: bool(made.begun))
                await client.send(get("/next"))
                await settle()
                client.writer.transport.abort()
                await made.until(lambda: bool(made.cancelled))
            await settle()
            assert made.begun == ["/wait"]

    run(scenario())


def test_half_closed_clients_get_their_answer(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/wait"))
            client.writer.write_eof()
            await made.until(lambda: bool(made.begun))
            await asyncio.sleep(0.05)
            made.opened.set()
            while (head := await client.head())[0] == 100:
                pass
            assert await client.reader.readexactly(int(head[1]["content-length"])) == b"/wait:"
            assert await client.closed() == b""

    run(scenario())


def test_a_shutdown_waits_for_an_answer(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/wait"))
            await made.until(lambda: bool(made.begun))
            made.server.pre_shutdown()
            stopping = asyncio.get_running_loop().create_task(made.server.shutdown(10))
            await settle()
            assert not stopping.done()
            made.opened.set()
            assert await answered(client) == (200, b"/wait:")
            await stopping
            assert await client.closed() == b""
            assert made.cancelled == []

    run(scenario())


def test_a_shutdown_cancels_what_takes_too_long(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/wait"))
            await made.until(lambda: bool(made.begun))
            made.server.pre_shutdown()
            await made.server.shutdown(0.05)
            assert await client.closed() == b""
            await made.until(lambda: bool(made.cancelled))

    run(scenario())


def test_malformed_bytes_behind_a_good_request_are_refused_after_its_answer(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/wait"))
            await made.until(lambda: bool(made.begun))
            await client.send(b"\0\0\0\r\n\r\n")
            await settle()
            made.opened.set()
            assert await answered(client) == (200, b"/wait:")
            assert (await answered(client))[0] == 400
            assert await client.closed() == b""

    run(scenario())


def test_a_head_that_is_too_long_behind_a_request_is_refused_after_its_answer(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/wait"))
            await made.until(lambda: bool(made.begun))
            await client.send(b"GET /long HTTP/1.1\r\n" + b"A: 1\r\n" * 20_000)
            await settle()
            made.opened.set()
            assert await answered(client) == (200, b"/wait:")
            assert (await answered(client))[0] in (400, 431)

    run(scenario())


def test_a_handler_that_fails_is_answered_for(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/raise"))
            assert (await answered(client))[0] == 500
            assert await client.closed() == b""
            assert made.eager == [True]

    run(scenario())
    assert "a request failed outside its handler" in caplog.text


def test_a_handler_that_raises_what_is_no_exception_loses_its_connection_only(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with desk() as made:
            async with connected(made.port) as client:
                await client.send(get("/abandon"))
                assert await client.closed() == b""
            async with connected(made.port) as client:
                await client.send(get("/plain"))
                assert await answered(client) == (200, b"/plain:")

    run(scenario())
    assert "a request failed outside its handler" in caplog.text


class Stubborn(Desk):
    """A Desk that answers although it was cancelled."""

    @override
    async def __call__(self, http: web.BaseRequest) -> web.StreamResponse:
        try:
            return await super().__call__(http)
        except asyncio.CancelledError:
            return web.Response(text="late")


def test_an_answer_after_the_client_left_harms_nobody(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        monkeypatch.setattr(kit, "Desk", Stubborn)
        async with desk() as made:
            async with connected(made.port) as client:
                await client.send(get("/wait"))
                await made.until(lambda: bool(made.begun))
                client.writer.transport.abort()
                await made.until(lambda: bool(made.cancelled))
            await settle()
            async with connected(made.port) as client:
                await client.send(get("/plain"))
                assert await answered(client) == (200, b"/plain:")

    run(scenario())


def test_connection_close_is_kept_and_what_follows_is_not_read(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            await client.send(get("/wait", Connection="close"))
            await made.until(lambda: bool(made.begun))
            await client.send(get("/next"))
            await settle()
            made.opened.set()
            assert await answered(client) == (200, b"/wait:")
            assert await client.closed() == b""
            assert made.begun == ["/wait"]

    run(scenario())


def kept() -> list[object]:
    """Return the requests, and the tasks that answer them, that there are."""
    return [each for each in gc.get_objects() if type(each) is EagerTask or isinstance(each, web.BaseRequest)]


def test_an_answered_request_leaves_nothing_that_only_the_collector_frees(run: Run) -> None:
    async def scenario() -> None:
        async with desk() as made, connected(made.port) as client:
            for _ in range(3):
                await client.send(get("/plain"))
                await answered(client)
            gc.collect()
            gc.disable()
            others = kept()  # by whatever ran in this process before
            try:
                for _ in range(20):
                    await client.send(get("/plain"))
                    await answered(client)
                assert [each for each in kept() if not any(each is other for other in others)] == []
            finally:
                gc.enable()

    run(scenario())
