"""R11: after requests of every outcome, there are as many objects of the gateway's own classes as before."""

import asyncio
import gc
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from itertools import chain
from typing import Final

import pytest

from proxy.http_client.http_transport import HttpTransport
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, Rig, ask, rig
from tests.proxy.kit.raw_client import connected, request
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import chunk, head, json_answer, sse_answer
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Fin, Hang, Script, Send

EACH: Final = 250
"""Requests of each outcome. A leak of every request shows in far fewer."""

AT_ONCE: Final = 25
WITHIN: Final = 10.0
"""Seconds after which everything must be gone. Only a failure takes that long."""

OURS: Final = ("config", "providers", "proxy")

FRAMES: Final = completion_frames(["one", "two"])
STREAM: Final = sse_answer(FRAMES)
START: Final = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))
WHOLE: Final = json_answer(200, completion("hi"))
BAD: Final = json_answer(500, {"error": {"message": "no", "type": "server_error", "code": None}})

Way = Callable[[Rig], Awaitable[None]]

TABLE: Final = """
defaults: {retries: {attempts: 1}, api_key: sk-up, allow_private: true}
vendors:
  v: {profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1"}
models:
  v/m: {}
  v/hidden: {}
  v/short: {timeouts: {total: 50ms}, circuit_breaker: {failures: 1000}}
teams:
  search: {keys: ["DIGEST"], models: [v/m, v/short]}
""".replace("DIGEST", digest_of(CLIENT_KEY))


def posts(script: Script, status: int, model: str = "v/m", stream: bool = False) -> Way:
    """Send a request whose vendor runs this script, and check the status of its response."""

    async def way(made: Rig) -> None:
        made.vendor.answer(script)
        answer = await made.post("/v1/completions", ask(model, stream=stream))
        assert answer.status == status

    return way


def refused(body: bytes, status: int, headers: Mapping[str, str] = AUTH) -> Way:
    async def way(made: Rig) -> None:
        assert (await made.post("/v1/completions", body, headers)).status == status

    return way


async def leaves(made: Rig) -> None:
    made.vendor.answer((START, Send(chunk(FRAMES[0])), Hang()))
    async with connected(made.port) as client:
        await client.send(request("POST", "/v1/completions", ask(stream=True), AUTH))
        await client.head()
        await client.chunk()


async def shed(made: Rig) -> None:
    """Send a request that is refused for lack of memory, with an id of its own, so that it is parsed before the
    refusal."""
    made.memory.share = 0.99
    assert (await made.post("/v1/completions", ask(), {"x-request-id": "mine"})).status == 503
    made.memory.share = 0.0


WAYS: Final[Mapping[str, tuple[str, Way]]] = {
    "whole": ("ok", posts(WHOLE, 200)),
    "streamed": ("ok", posts(STREAM, 200, stream=True)),
    "bad body": ("client_error", refused(b"{", 400)),
    "not allowed": ("denied", refused(b'{"model":"v/hidden","prompt":"hi"}', 404)),
    "upstream error": ("upstream_error", posts(BAD, 502)),
    "deadline": ("timeout", posts((Hang(),), 504, "v/short")),
    "broken stream": ("truncated", posts((START, Send(chunk(FRAMES[0])), Fin()), 200, stream=True)),
    "departure": ("client_gone", leaves),
    "overload": ("shed", shed),
}
"""The ways to end a request, each with the expected outcome in the record."""

ALIKE: Final = ("bad body", "not allowed", "deadline")


def objects() -> Counter[str]:
    gc.collect()
    names = Counter((str(kind.__module__), kind.__qualname__) for kind in map(type, gc.get_objects()))
    return Counter({f"{module}.{name}": count for (module, name), count in names.items() if module.startswith(OURS)})


async def rounds(made: Rig, way: Way, count: int, at_once: int) -> None:
    slots = asyncio.Semaphore(at_once)

    async def one() -> None:
        async with slots:
            # Without this, the deployment's circuit would be open after so many failures.
            made.gateway._dispatcher.deployments.breakers._known.clear()
            await way(made)

    before = len(made.records)
    await asyncio.gather(*(one() for _ in range(count)))
    await made.finished(before + count)


async def quiet(made: Rig) -> Counter[str]:
    """Return the objects that exist when no request is in flight."""
    await made.gateway.idle.wait()
    made.records.clear()
    made.vendor.requests.clear()
    # A deadline may pass before the vendor is called: the next way's requests must not get a response that is left.
    made.vendor.forget_answers()
    made.gateway._dispatcher.deployments.breakers._known.clear()
    # The number of idle connections may differ by one.
    http = made.gateway._dispatcher.calls._http
    assert isinstance(http, HttpTransport)
    for connection in chain.from_iterable(http.pool._idle.values()):
        connection.abort()
    http.pool._idle.clear()
    await asyncio.sleep(0)
    return objects()


async def added(made: Rig, before: Counter[str]) -> Counter[str]:
    """Return the objects that exist beyond `before`. Repeat until there are none, or until the time is up: a connection
    ends a moment after its client."""
    loop = asyncio.get_running_loop()
    end = loop.time() + WITHIN
    while (more := await quiet(made) - before) and loop.time() < end:  # noqa: ASYNC110 - no event
        await asyncio.sleep(0.02)
    return more


@pytest.fixture
def little_to_collect() -> None:
    """Exclude the objects of other tests from garbage collection, which would walk over all of them each time."""
    gc.collect()
    gc.freeze()


@pytest.mark.usefixtures("little_to_collect")
async def test_requests_of_every_outcome_leave_no_object_behind() -> None:
    async with rig(TABLE) as made:
        for _, way in WAYS.values():
            await rounds(made, way, AT_ONCE, 1)
        await asyncio.sleep(0.1)
        before = await quiet(made)
        # There may be more than 1, because other tests of the process may have frozen objects.
        assert before["proxy.gateway.handle_request.Gateway"] >= 1
        for name, (outcome, way) in WAYS.items():
            # Two ways must run one request at a time: a vendor's queued response goes to the next request, and a lack
            # of memory affects all.
            await rounds(made, way, EACH, AT_ONCE if name in ALIKE else 1)
            assert [record.outcome for record in made.records] == [outcome] * EACH, name
            if more := await added(made, before):
                # A deadline cuts off different work on different machines, and each new label has a row of metrics. A
                # leak would grow a second time.
                before += more
                await rounds(made, way, EACH, AT_ONCE if name in ALIKE else 1)
                assert await added(made, before) == Counter(), name


async def test_requests_that_are_refused_unread_leave_no_object_behind() -> None:
    async with rig(TABLE) as made:
        made.memory.share = 0.99
        for _ in range(AT_ONCE):
            assert (await made.post("/v1/completions", ask())).status == 503
        made.door.look()
        before = await quiet(made)
        for _ in range(EACH):
            assert (await made.post("/v1/completions", ask())).status == 503
        made.door.look()
        assert await added(made, before) == Counter()
        assert sum(count for _, _, count in made.turned_away) >= EACH
