"""A configuration with one of everything, and a fixture that writes config files. No test here runs a gateway."""

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from proxy.process.load_table import Source

CANARY = "sk-canary-5f0c2d"

TABLE = f"""\
version: 1
vendors:
  openai: {{api_key: {CANARY}}}
  anthropic: {{api_key: {CANARY}, headers: {{X-Org: {CANARY}}}}}
  azure-eu: {{profile: azure, api_key: {CANARY}}}
  gpu: {{profile: vllm, base_url: "http://10.0.0.1:8000/v1", allow_private: true}}
  mock: {{}}
  fireworks: {{api_key: {CANARY}}}
models:
  openai/gpt-4o-mini: {{context_window: 128000}}
  azure-eu/gpt-4o:
    policy: weighted
    deployments:
      sweden: {{base_url: "https://swe.example.com", upstream_model: gpt4o-prod, weight: 3}}
      france: {{base_url: "https://fra.example.com", upstream_model: gpt4o-prod}}
  anthropic/claude-haiku-4-5: {{max_output_tokens: 8192}}
  gpu/llama: {{upstream_model: meta-llama/Llama-3.3-70B-Instruct}}
  mock/*: {{}}
  fireworks/*: {{}}
routes:
  fast: {{targets: [openai/gpt-4o-mini, anthropic/claude-haiku-4-5]}}
  long: {{targets: [openai/gpt-4o-mini], fallbacks: {{context_window: [anthropic/claude-haiku-4-5, gpu/llama]}}}}
  any: {{policy: weighted, targets: [{{target: fast, weight: 2}}, gpu/llama]}}
teams:
  search:
    keys: ["sha256:{"1" * 64}"]
    models: [fast, azure-eu/gpt-4o/sweden, mock/echo]
    routes: {{fast: azure-eu/gpt-4o, cheap: gpu/llama}}
  data:
    keys: ["sha256:{"2" * 64}"]
    models: ["openai/*"]
"""


@pytest.fixture
def source(tmp_path: Path) -> Callable[[str], Source]:
    """Return a function that writes a config file and returns it as a source with an empty environment."""

    def write(text: str) -> Source:
        path = tmp_path / "t.yaml"
        path.write_text(dedent(text), encoding="utf-8")
        return Source(path, {})

    return write
