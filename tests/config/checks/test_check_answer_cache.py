"""Checks of response cache settings against the rest of the config file."""

import pytest

from config.load_config import load_text
from config.problem import ConfigError
from tests.support.looped import looped

BASE = """version: 1
vendors: {v: {profile: openai_compatible, base_url: "http://127.0.0.1:1/v1", allow_private: true}}
"""
REDIS = "cache: {where: redis, secret: a-secret-of-sixteen}"


def problems(rest: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load_text(BASE + rest, "t.yaml", {})
    return [str(each) for each in refused.value.problems]


@looped(
    ("rest", "path"),
    [
        (f"models: {{v/m: {{{REDIS}}}}}", "models.v/m.cache.where"),
        (f"defaults: {{{REDIS}}}\nmodels: {{v/m: {{}}}}", "defaults.cache.where"),
        (f"models: {{v/m: {{}}}}\nroutes: {{fast: {{targets: [v/m], {REDIS}}}}}", "routes.fast.cache.where"),
    ],
)
def test_a_cache_at_redis_needs_one(rest: str, path: str) -> None:
    (problem,) = problems(rest)
    assert path in problem
    assert "needs server.shared" in problem
    load_text(BASE + rest + "\nserver: {shared: {redis: 'redis://127.0.0.1:1'}}\n", "t.yaml", {})


def test_a_team_s_own_route_is_looked_at_too() -> None:
    digest = "sha256:" + "0" * 64
    own = f"{{keys: ['{digest}'], models: [], routes: {{mine: {{targets: [v/m], {REDIS}}}}}}}"
    (problem,) = problems(f"models: {{v/m: {{}}}}\nteams: {{a: {own}}}")
    assert "teams.a.routes.mine.cache.where" in problem


def test_a_deployment_has_no_cache_of_its_own() -> None:
    (problem,) = problems("models: {v/m: {deployments: {eu: {cache: {}}}}}")
    assert "models.v/m.deployments.eu.cache has no effect" in problem.replace(": has", " has")


def test_every_mistake_is_told_at_once_each_where_it_is_written() -> None:
    found = problems(
        "defaults:\n"
        "  cache: {ttl: 0s, max_bytes: 2MiB, secret: short, where: redis, stale: 25h, scop: x, scope: all}\n"
        "models:\n"
        "  v/m: {cache: {where: redis, ttl: 10ms}}\n"
        "routes:\n"
        "  fast: {targets: [v/m], cache: {where: nowhere, max_bytes: 1}}\n"
    )
    assert [each.removeprefix("t.yaml:").split(": ")[0] for each in found] == [
        "4:16 defaults.cache.ttl",
        "4:31 defaults.cache.max_bytes",
        "4:45 defaults.cache.secret",
        "4:59 defaults.cache.where",
        "4:73 defaults.cache.stale",
        "4:78 defaults.cache.scop",
        "4:94 defaults.cache.scope",
        "6:24 models.v/m.cache.where",
        "6:24 models.v/m.cache.where",
        "6:36 models.v/m.cache.ttl",
        "8:41 routes.fast.cache.where",
        "8:61 routes.fast.cache.max_bytes",
    ]
    assert "redis needs a secret" in "".join(found)
