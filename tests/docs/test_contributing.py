"""The examples of CONTRIBUTING.md work in a copy of the source."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from tests.docs.marked_pages import ROOT
from tests.docs.pages import text_of

pytestmark = pytest.mark.smoke

TEXT: Final = text_of(ROOT / "CONTRIBUTING.md")

STEP: Final = re.compile(
    r"^(?:In `(?P<file>[\w/.]+)`, "
    r"(?:(?P<where>after|before) `(?P<line>[^`]+)`:|`(?P<old>[^`]+)` becomes `(?P<new>[^`]+)`\.)"
    r"|At the end of `(?P<last>[\w/.]+)`:|A new file `(?P<made>[\w/.]+)`:)\n"
    r"(?:\n```\w+\n(?P<block>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
"""A step of an example: its position, and the lines that follow in a block."""

CHECK: Final = """
import json
from config.load_config import load_text
from config.table.table_json_schema import json_schema
from providers.capabilities import FEATURES
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation, Params
from proxy.errors import closed_for_maintenance
from proxy.gateway.match_path import resolve_path
from proxy.routing.snapshot import build_snapshot
from proxy.surfaces.request.field_rules import FIELDS
from proxy.telemetry.metrics import Metrics

vendors = {"acme": {"api_key": "k", "url_params": {"region": "eu"}, "nickname": "ours"}}
table = {"version": 1, "vendors": vendors, "models": {"acme/one": {}, "acme/two": {"nickname": "other"}}}
acme = load_profiles()["acme"]
metrics = Metrics()
metrics.rerouted("search")
print(acme.base_url)
print("warmth" in acme.wires[Operation.CHAT].accepts, "warmth" in FEATURES, "warmth" in Params.__annotations__)
print(FIELDS[Operation.CHAT]["warmth"](0.5))
print(json_schema()["$defs"]["DeploymentSettings"]["properties"]["nickname"]["description"])
print(*[target.nickname for target in build_snapshot(load_text(json.dumps(table), "table.yaml", {})).targets()])
print("dragoman_budget_reroutes" in [family.name for family in metrics.families()])
print(closed_for_maintenance().facts.code)
print(resolve_path("/acme/v1/chat/completions").surface.name)
"""


def apply(step: re.Match[str], folder: Path) -> None:
    """Apply one step to a copy of the source. Raises AssertionError if its position is not there exactly once."""
    path = folder / str(step["file"] or step["last"] or step["made"])
    if step["made"]:
        assert not path.exists(), path
        path.write_text(step["block"], encoding="utf-8")
        return
    text = path.read_text(encoding="utf-8")
    if step["last"]:
        path.write_text(text + step["block"], encoding="utf-8")
    elif step["old"]:
        assert text.count(step["old"]) == 1, step[0]
        path.write_text(text.replace(step["old"], step["new"]), encoding="utf-8")
    else:
        lines = text.splitlines(keepends=True)
        (place,) = [number for number, line in enumerate(lines) if line.strip() == step["line"]]
        place += step["where"] == "after"
        path.write_text("".join([*lines[:place], step["block"], *lines[place:]]), encoding="utf-8")


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the source with every example applied."""
    folder = tmp_path_factory.mktemp("contributing")
    for package in ("config", "providers", "proxy"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    for step in STEP.finditer(TEXT):
        apply(step, folder)
    return folder


def run(folder: Path, *arguments: str) -> str:
    command = [sys.executable, *arguments]
    environment = {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_has_its_steps() -> None:
    steps = [step for step in STEP.finditer(TEXT)]
    parts = {part.partition("\n")[0]: part for part in TEXT.split("\n## ")}
    for title, least in {
        "A vendor": 1,
        "A request field": 4,
        "A setting": 2,
        "A metric": 2,
        "An error code": 1,
        "A surface": 3,
        "A command": 4,
    }.items():
        assert sum(step[0] in parts[title] for step in steps) == least, title
    assert len(steps) == 17


def test_the_examples_do_what_the_text_says(changed: Path) -> None:
    assert run(changed, "-c", CHECK).splitlines() == [
        "https://{region}.acme.example/v1",
        "True True True",
        "0.5",
        "A short name of the deployment for reports. Built in: unnamed.",
        "ours other",
        "True",
        "maintenance",
        "acme",
    ]


def test_the_commands_of_the_program_know_the_examples(changed: Path) -> None:
    assert run(changed, "-m", "proxy", "hello", "Ada") == "Hello, Ada.\n"
    assert re.search(r"^warmth +steering +native +native", run(changed, "-m", "proxy", "vendors", "acme"), re.MULTILINE)


def test_every_file_that_is_named_is_there() -> None:
    made = {step["made"] for step in STEP.finditer(TEXT)} | {"tests/conformance/golden/acme.json"}
    for page in (TEXT, text_of(ROOT / "ARCHITECTURE.md")):
        named = set(re.findall(r"`((?:config|providers|proxy|tests|deploy|docs|\.ci)/[\w./-]+)`", page)) - made
        assert named
        assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
