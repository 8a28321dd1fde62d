"""Every table in config/README.md is one that `dragoman check` has nothing against."""

import re
from pathlib import Path

import pytest
import yaml

from config.load_config import load_file
from tests.support.looped import looped

TEXT = (Path(__file__).parents[2] / "config" / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
PRICE = {"price": {"input": 2.5, "output": 10}}
AROUND = {
    "version": 1,
    "vendors": {
        "openai": {"api_key": "${OPENAI_API_KEY}"},
        "azure": {"api_key": "${OPENAI_API_KEY}", "base_url": "https://r.openai.azure.com/openai/v1"},
        "local": {"profile": "vllm", "base_url": "http://10.0.0.1/v1", "allow_private": True},
    },
    "models": {"openai/gpt-4o": PRICE, "openai/gpt-4o-mini": {"price": {"input": 0.15, "output": 0.6}}},
    "routes": {"fast": {"targets": ["openai/gpt-4o"]}, "small": {"targets": ["openai/gpt-4o-mini"]}},
    "teams": {"search": {"keys": [f"sha256:{'0' * 64}"], "models": ["openai/*", "fast"]}},
}
"""What the blocks leave out. A block's keys stand over these, mapping by mapping."""


def merged(below: object, above: object) -> object:
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return {**below, **above, **{key: merged(below[key], above[key]) for key in below.keys() & above.keys()}}


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: " ".join(block.split()[:3]))
def test_every_example_is_valid_and_doubted_by_nothing(block: str, tmp_path: Path) -> None:
    (tmp_path / "search-keys.yaml").write_text(f'- {{hash: "sha256:{"1" * 64}", name: portal}}\n', encoding="utf-8")
    file = tmp_path / "table.yaml"
    file.write_text(yaml.safe_dump(merged(AROUND, yaml.safe_load(block)), sort_keys=False), encoding="utf-8")
    assert load_file(file, {"OPENAI_API_KEY": "k"}).warnings == ()


@looped("section", ["Keys of teams", "Limits", "Budgets", "The ledger"])
def test_what_teams_may_use_is_shown_by_an_example(section: str) -> None:
    assert "```yaml" in TEXT.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
