"""Keys change while requests run: no request with a valid key is refused, and none with an invalid key is served."""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

import pytest

from tests.proxy.kit.gateway_rig import Rig, ask, rig
from tests.proxy.kit.raw_client import connected, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.support import openai_wire
from tests.support.http_scripts import LAST_CHUNK, chunk, head, json_answer
from tests.support.vendor_script import Send, Until

OLD, NEW = "dk-old", "dk-new"


def table(*keys: str, until: str = "") -> str:
    """Return a configuration whose team has these keys. The first may have an expiry time."""
    digests = ", ".join(f'"{digest_of(key)}"' for key in keys)
    if until:
        digests = digests.replace(f'"{digest_of(keys[0])}"', f'{{key: "{digest_of(keys[0])}", not_after: {until}}}')
    return (
        'vendors: {v: {profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}}\n'
        f"models: {{v/m: {{completions: true}}}}\nteams: {{search: {{keys: [{digests}], models: [v/m]}}}}\n"
    )


async def status(made: Rig, key: str) -> int:
    data = request("POST", "/v1/completions", ask(), {"Authorization": f"Bearer {key}"})
    return (await exchange(made.port, data)).status


async def answers(made: Rig, steps: Iterable[Callable[[], str]]) -> set[int]:
    """Return the statuses of clients that send requests continuously, while one step after the other is taken. Each
    step returns the key that they use from then on."""
    seen: list[int] = []
    over = asyncio.Event()
    key = OLD

    async def client() -> None:
        while not over.is_set():
            seen.append(await status(made, key))

    clients = [asyncio.create_task(client()) for _ in range(8)]
    for step in steps:
        key = step()
        before = len(seen)
        while len(seen) < before + 50:  # noqa: ASYNC110 - a list has no event
            await asyncio.sleep(0)
    over.set()
    await asyncio.gather(*clients)
    return set(seen)


async def test_a_team_s_keys_are_exchanged_without_a_request_refused() -> None:
    async with rig(table(OLD)) as made:
        made.vendor.default = json_answer(200, openai_wire.completion("a"))

        def step(keys: tuple[str, ...], current: str) -> str:
            made.table(table(*keys))
            return current

        exchange = (((OLD,), OLD), ((OLD, NEW), OLD), ((OLD, NEW), NEW), ((NEW,), NEW))
        assert await answers(made, (partial(step, keys, current) for keys, current in exchange)) == {200}
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


NEW_YEAR = 1_798_761_600.0
ENDS = [("2026-12-31T12:00:00+01:00", NEW_YEAR - 13 * 3600), ("2026-12-31", NEW_YEAR)]


@pytest.mark.parametrize(("until", "end"), ENDS)
async def test_a_key_ends_by_itself_and_whoever_still_uses_it_guesses_nothing(until: str, end: float) -> None:
    now = end - 1.0
    async with rig(table(OLD, NEW, until=until), wall=lambda: now) as made:
        made.vendor.default = json_answer(200, openai_wire.completion("a"))
        assert (await status(made, OLD), await status(made, NEW)) == (200, 200)
        now = end
        assert (await status(made, OLD), await status(made, NEW)) == (401, 200)
        # Twenty unknown keys may come from one address. A key that was valid before does not count as unknown.
        answers = [(key, await status(made, key)) for key in [OLD, "dk-of-nobody"] * 22]
        assert answers.count((OLD, 401)) == 22
        assert (answers.count(("dk-of-nobody", 401)), answers.count(("dk-of-nobody", 429))) == (20, 2)
        assert await status(made, NEW) == 200


async def test_keys_change_by_their_ends_while_requests_run() -> None:
    now = 0.0

    def step(current: str, moment: float) -> str:
        nonlocal now
        now = moment
        return current

    async with rig(table(OLD, NEW, until="2026-12-31"), wall=lambda: now) as made:
        made.vendor.default = json_answer(200, openai_wire.completion("a"))
        course = ((OLD, 0.0), (NEW, 0.0), (NEW, NEW_YEAR))
        assert await answers(made, (partial(step, current, moment) for current, moment in course)) == {200}
        assert await status(made, OLD) == 401
