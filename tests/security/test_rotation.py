"""Keys come and go while requests run: nobody is refused who may ask, and nobody answered who may not any more."""

import asyncio

from tests.proxy.raw_client import connected, exchange, request
from tests.proxy.rig import Rig, ask, rig
from tests.proxy.tables import digest_of
from tests.support import openai_wire
from tests.support.script import Send, Until
from tests.support.wire import LAST_CHUNK, chunk, head, json_answer

OLD, NEW = "dk-old", "dk-new"


def table(*keys: str) -> str:
    """A table whose team has these keys."""
    digests = ", ".join(f'"{digest_of(key)}"' for key in keys)
    return (
        'vendors: {v: {profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}\n'
        f"models: {{v/m: {{completions: true}}}}\nteams: {{search: {{keys: [{digests}], models: [v/m]}}}}\n"
    )


async def status(made: Rig, key: str) -> int:
    """The status of a request with this key."""
    data = request("POST", "/v1/completions", ask(), {"Authorization": f"Bearer {key}"})
    return (await exchange(made.port, data)).status


async def test_a_team_s_keys_are_exchanged_without_a_request_refused() -> None:
    async with rig(table(OLD)) as made:
        made.vendor.default = json_answer(200, openai_wire.completion("a"))
        seen: list[int] = []
        over = asyncio.Event()
        key = OLD

        async def client() -> None:
            while not over.is_set():
                seen.append(await status(made, key))

        clients = [asyncio.create_task(client()) for _ in range(8)]
        for keys, current in (((OLD,), OLD), ((OLD, NEW), OLD), ((OLD, NEW), NEW), ((NEW,), NEW)):
            made.table(table(*keys))
            key = current
            before = len(seen)
            while len(seen) < before + 50:  # noqa: ASYNC110 - a list tells no one
                await asyncio.sleep(0)
        over.set()
        await asyncio.gather(*clients)
        assert set(seen) == {200}
        assert (await status(made, OLD), await status(made, NEW)) == (401, 200)


async def test_a_stream_of_a_revoked_key_runs_on_and_the_next_request_is_refused() -> None:
    async with rig(table(OLD)) as made:
        rest = asyncio.Event()
        first, *others = openai_wire.completion_frames(["a", "b"])
        start = head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
        frames = [Send(chunk(frame)) for frame in others]
        made.vendor.answer((Send(start), Send(chunk(first)), Until(rest), *frames, Send(LAST_CHUNK)))
        async with connected(made.port) as client:
            await client.send(request("POST", "/v1/completions", ask(stream=True), {"x-api-key": OLD}))
            assert (await client.head())[0] == 200
            await client.chunk()
            made.table(table(NEW))
            assert await status(made, OLD) == 401
            rest.set()
            body, whole = await client.chunks()
            assert whole
            assert body.endswith(b"data: [DONE]\n\n")
            await client.send(request("POST", "/v1/completions", ask(), {"x-api-key": OLD}))
            assert (await client.answer()).status == 401
