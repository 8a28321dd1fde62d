"""LiteLLM's Redis becomes `server.shared`."""

import json
from pathlib import Path

from tests.proxy.cli.imports.kit import imported
from tests.support.looped import looped


@looped(
    ("router", "written", "lost"),
    [
        ({"redis_host": "r.internal"}, "redis://r.internal:6379", ""),
        ({"redis_host": "r.internal", "redis_password": "canary"}, "redis://:${REDIS_PASSWORD}@r.internal:6379", ""),
        ({"redis_host": "os.environ/H", "redis_port": "os.environ/P"}, "redis://${H}:${P}", ""),
        ({"redis_url": "redis://:canary@r:1"}, "${REDIS_URL}", ""),
        ({"redis_host": "r.internal", "redis_port": "99999"}, "", "router_settings.redis_port"),
    ],
)
def test_where_redis_is(router: dict[str, str], written: str, lost: str, tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    models = [{"model_name": "a", "litellm_params": {"model": "openai/a"}}]
    path.write_text(json.dumps({"model_list": models, "router_settings": router}), encoding="utf-8")
    made = imported("litellm", path)
    assert ("shared:" in made.text) == bool(written)
    assert written in made.text
    assert "canary" not in made.text
    assert {problem.path for problem in made.remarks.settings} == ({lost} if lost else set())
