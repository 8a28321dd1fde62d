"""Starts LiteLLM's proxy in its own virtual environment, with one worker, a key, and one model of the OpenAI family.

`general_settings` and `model_list` follow LiteLLM's documentation of its proxy (1.106, November 2026).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson

from tests.bench.programs.environments import installed
from tests.bench.programs.program import Other, Program, Target, running_process, said
from tests.bench.traffic import KEY, MODEL
from tests.bench.upstream import RunningUpstream
from tests.support.gateway import free_ports

VERSION = "import importlib.metadata as m; print(m.version('litellm'))"


def litellm() -> Program | None:
    """Return LiteLLM, if `make bench-peers` has installed it."""
    path = installed("litellm", "litellm")
    if path is None:
        return None

    @contextmanager
    def start(folder: Path, upstream: RunningUpstream) -> Iterator[Target]:
        (port,) = free_ports(1)
        written = folder / "litellm.yaml"
        written.write_bytes(orjson.dumps(config(upstream.port)))
        with running_process([str(path), "--config", str(written), "--port", str(port)], folder, port) as pid:
            yield Other("LiteLLM", port, pid)

    return Program("LiteLLM", said([str(path.with_name("python")), "-c", VERSION]), start)


def config(upstream: int) -> dict[str, object]:
    """Return the configuration as JSON, which is also YAML."""
    called = {"model": "openai/bench", "api_base": f"http://127.0.0.1:{upstream}/v1", "api_key": "sk-up"}
    return {
        "model_list": [{"model_name": MODEL, "litellm_params": called}],
        "litellm_settings": {"telemetry": False},
        "general_settings": {"master_key": KEY},
    }
