"""LiteLLM's cache becomes `defaults.cache`, and its Redis `server.shared`."""

import json
from pathlib import Path
from typing import Any

from tests.proxy.cli.imports.kit import Imported, imported
from tests.support.looped import looped


def table(folder: Path, **sections: object) -> Imported:
    path = folder / "config.json"
    models = [{"model_name": "a", "litellm_params": {"model": "openai/a"}}]
    path.write_text(json.dumps({"model_list": models, **sections}), encoding="utf-8")
    return imported("litellm", path)


@looped(
    ("params", "where", "ttl", "lost"),
    [
        ({"type": "local", "ttl": 60}, "memory", 60.0, set()),
        ({"type": "redis", "host": "r.internal", "port": 6380, "password": "canary", "ttl": 60}, "redis", 60.0, set()),
        ({"host": "os.environ/R"}, "redis", 600.0, set()),
        ({}, "memory", 600.0, set()),
        ({"type": "s3", "s3_bucket_name": "b"}, "memory", 600.0, {"type", "s3_bucket_name"}),
        ({"type": "local", "ttl": 0.2, "namespace": "n"}, "memory", 600.0, {"ttl", "namespace"}),
    ],
)
def test_a_cache_that_is_on(params: dict[str, Any], where: str, ttl: float, lost: set[str], tmp_path: Path) -> None:
    made = table(tmp_path, litellm_settings={"cache": True, "cache_params": params})
    cache = made.table.loaded.config.defaults.cache
    assert cache is not None
    assert (cache.where, cache.ttl) == (where, ttl)
    assert {problem.path.rpartition(".")[2] for problem in made.remarks.settings} == lost
    assert "canary" not in made.text
    assert (made.table.loaded.config.server.shared is not None) == (where == "redis")


def test_a_cache_that_is_off_is_not_written(tmp_path: Path) -> None:
    made = table(tmp_path, litellm_settings={"cache": False, "cache_params": {"type": "redis"}})
    assert made.table.loaded.config.defaults.cache is None
    assert made.remarks.is_complete


def test_the_routers_redis_comes_first(tmp_path: Path) -> None:
    settings = {"cache": True, "cache_params": {"type": "redis", "host": "cache.internal"}}
    made = table(tmp_path, litellm_settings=settings, router_settings={"redis_host": "router.internal"})
    assert "router.internal" in made.text
    assert "@cache.internal" not in made.text
