"""A Redis that evicts keys causes a warning; a Redis that does not evict, or does not respond, causes no warning."""

from pathlib import Path

import pytest

from config.load_config import load_text
from proxy.process.table_checks.check_redis import redis_warnings
from tests.support.redis import real_redis

pytestmark = pytest.mark.smoke


TABLE = "version: 1\nvendors: {mock: {}}\n"


def found(url: str) -> list[str]:
    text = TABLE + (f"server: {{shared: {{redis: '{url}'}}}}\n" if url else "")
    return [str(problem) for problem in redis_warnings(load_text(text, "table.yaml", {}))]


def test_only_a_redis_that_says_so_is_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proxy.shared_state.redis_eviction.OPERATOR_TIMEOUT", 60.0)  # a busy machine
    assert found("") == found("redis://127.0.0.1:1") == []
    with real_redis(tmp_path, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru") as redis:
        (said,) = found(redis.url)
    assert said.startswith("table.yaml:3:")
    assert "server.shared.redis: Redis evicts keys when its memory is full (maxmemory-policy allkeys-lru)" in said
    with real_redis(tmp_path, "--maxmemory", "100mb", "--maxmemory-policy", "noeviction") as redis:
        assert found(redis.url) == []
