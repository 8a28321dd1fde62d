"""One exposition serves all scrapes within a second."""

import asyncio

import pytest

from proxy.telemetry.cached_exposition import CACHE_SECONDS, CachedExposition


async def test_scrapes_at_once_and_within_a_second_share_a_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    now, rendered = 10.0, 0

    async def render() -> bytes:
        nonlocal rendered
        rendered += 1
        await asyncio.sleep(0)
        return b"%d" % rendered

    monkeypatch.setattr("proxy.telemetry.cached_exposition.time.monotonic", lambda: now)
    cached = CachedExposition(render)
    assert await asyncio.gather(*(cached.recent() for _ in range(3))) == [b"1"] * 3
    now += CACHE_SECONDS / 2
    assert await cached.recent() == b"1"
    assert await cached.fresh() == b"2"
    now += CACHE_SECONDS
    assert await cached.recent() == b"3"
