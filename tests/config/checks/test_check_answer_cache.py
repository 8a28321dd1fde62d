"""Answer caches against the rest of the table."""

import pytest

from config.load_config import load_text
from config.problem import ConfigError

BASE = """version: 1
vendors: {v: {profile: openai_compatible, base_url: "http://127.0.0.1:1/v1", allow_private: true}}
"""
REDIS = "cache: {where: redis, secret: a-secret-of-sixteen}"


def problems(rest: str) -> list[str]:
    with pytest.raises(ConfigError) as refused:
        load_text(BASE + rest, "t.yaml", {})
    return [str(each) for each in refused.value.problems]


@pytest.mark.parametrize(
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
