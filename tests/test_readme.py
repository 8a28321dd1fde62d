"""Everything the README says to type works, and everything it lists is what there is."""

import argparse
import asyncio
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import yaml

from config.load_config import load_text
from providers.profiles.load_profiles import load_profiles
from proxy.cli.arguments import argument_parser
from proxy.gateway.match_path import resolve_path
from proxy.routing.snapshot import build_snapshot
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import MODEL
from tests.support.clients import RECIPES, install
from tests.support.gateway import running_gateway
from tests.support.looped import looped
from tests.support.shell import run_shell

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
READMES = [ROOT / "README.md", *sorted(ROOT.glob("*/README.md")), *sorted(ROOT.glob("proxy/*/README.md"))]

DEMO = (ROOT / "config" / "demo_table.yaml").read_text(encoding="utf-8")
KEYS = {"OPENAI_API_KEY": "sk-a", "ANTHROPIC_API_KEY": "sk-b"}
SDKS = {"openai": "openai3", "scale_gp": "scale_gp"}
"""The SDK that each Python example imports, by the name its environment has in the tests."""


def blocks(language: str) -> list[str]:
    """The README's fenced blocks of one language, in order."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
    return [text for name, text in found if name == language]


def section(title: str) -> str:
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def quoted(text: str) -> list[str]:
    """Everything in backticks."""
    return re.findall(r"`([^`]+)`", text)


def rows(title: str) -> list[list[str]]:
    """The cells of the body of the table in a section."""
    lines = [line for line in section(title).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def commands() -> dict[str, argparse.ArgumentParser]:
    (action,) = (each for each in argument_parser()._actions if isinstance(each, argparse._SubParsersAction))
    return dict(action.choices)


(TABLE,) = blocks("yaml")


def test_the_first_lines_are_one_sentence_and_the_two_commands() -> None:
    title, sentence, code = TEXT.split("\n\n")[:3]
    assert title == "# Dragoman"
    assert sentence.count(".") == 1
    assert code == "```sh\nmake demo\nmake test\n```"


def test_both_commands_are_there() -> None:
    make = blocks("sh")[0].splitlines()
    for line in make:
        done = subprocess.run([*line.split(), "--dry-run"], cwd=ROOT, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def test_no_block_is_of_a_language_that_is_not_run_here() -> None:
    languages = re.findall(r"^```(\w+)$", TEXT, re.MULTILINE)
    assert set(languages) == {"sh", "python", "yaml"}


@pytest.mark.parametrize("script", blocks("sh")[1:], ids=lambda script: script.split()[0])
async def test_every_shell_block_runs(script: str, tmp_path: Path) -> None:
    (tmp_path / "table.yaml").write_text(TABLE, encoding="utf-8")
    # What serves until it is told to end has a test of its own.
    ending = re.sub(r"^dragoman serve", "dragoman check", script, flags=re.MULTILINE)
    async with running_gateway(DEMO, tmp_path) as gateway:
        here = ending.replace("http://127.0.0.1:8080", gateway.url).replace("http://127.0.0.1:9091", gateway.admin_url)
        printed = run_shell(here, tmp_path, KEYS)
    assert printed
    assert '"error"' not in printed
    assert ("[DONE]" in printed) == ('"stream": true' in script)


@pytest.mark.clients
@pytest.mark.timeout(300)
@pytest.mark.parametrize("code", blocks("python"), ids=lambda code: code.split()[1])
async def test_every_python_block_prints_what_it_says(code: str, tmp_path: Path) -> None:
    environment = {"PYTHONPATH": str(install(SDKS[code.split()[1]]))}
    async with running_gateway(DEMO, tmp_path) as gateway:
        command = [sys.executable, "-S", "-c", code.replace("http://127.0.0.1:8080", gateway.url)]
        run = partial(subprocess.run, command, env=environment, capture_output=True, text=True, check=False)
        done = await asyncio.to_thread(run)
    assert done.stderr == ""
    assert done.stdout.splitlines() == re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)


def test_the_table_says_nothing_that_check_would_complain_of() -> None:
    assert TABLE.startswith("# table.yaml\n")
    loaded = load_text(TABLE, "table.yaml", KEYS)
    assert loaded.warnings == ()
    assert set(build_snapshot(loaded).teams) == {"search"}


async def test_the_table_is_served(tmp_path: Path) -> None:
    async with running_gateway(TABLE, tmp_path, KEYS) as gateway:
        assert await gateway.stop() == 0


ALIASES = {"/v1", "/openai/v1", "/openai", "/anthropic"}


def canonical(path: str) -> str:
    """Return a path without the parts of an alias: OpenAI's paths need no `/v1`, fireworks-ai 1.x puts it in twice, and
    some clients put their vendor before it."""
    if MODEL in path:
        return path
    once = re.sub("^/(openai|anthropic)(?=/)", "", path.replace("/v1/v1/", "/v1/"))
    return once if "/v" in once else f"/v1{once}"


def test_the_surfaces_are_those_there_are_at_the_paths_they_have() -> None:
    listed = {
        quoted(name)[0]: {path for path in quoted(paths) if path not in ALIASES} for name, _, paths in rows("Surfaces")
    }
    served: dict[str, set[str]] = {surface.name: set() for surface in SURFACES}
    for surface in SURFACES:
        served[surface.name] |= {canonical(endpoint.path) for endpoint in surface.endpoints}
    assert listed == served


def test_the_base_urls_are_those_that_the_sdks_need() -> None:
    listed = {quoted(name)[0]: quoted(url)[0] for name, url, _ in rows("Surfaces")}
    needed = {"openai": "openai3", "scale": "scale_gp", "fireworks": "fireworks1"}
    for surface, sdk in needed.items():
        assert listed[surface] == "http://127.0.0.1:8080" + RECIPES[sdk].prefix


def test_the_commands_are_those_there_are() -> None:
    assert [quoted(command)[0] for command, _ in rows("Commands")] == [f"dragoman {name}" for name in commands()]


def test_the_profiles_are_those_there_are() -> None:
    listed = re.search(r"^Profiles: (.*?)\.$", TEXT, re.MULTILINE | re.DOTALL)
    assert listed is not None
    assert quoted(listed[1]) == sorted(load_profiles())


def test_what_is_said_to_be_missing_is_missing() -> None:
    missing = quoted(section("Not there yet"))
    assert [path for path in missing if path.startswith("/") and resolve_path(path).methods] == []
    assert [name for name in missing if name.removeprefix("dragoman ") in commands()] == []


@looped("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_between_files_leads_somewhere(readme: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", readme.read_text(encoding="utf-8"))
    assert [link for link in links if not (readme.parent / link).exists()] == []


@looped("readme", READMES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_that_a_readme_names_exists(readme: Path) -> None:
    named = set(re.findall(r"`([\w/]+\.py)`", readme.read_text(encoding="utf-8")))
    folders = (ROOT / folder for folder in ("config", "providers", "proxy", "tests"))
    present = [f"/{path.relative_to(ROOT).as_posix()}" for folder in folders for path in folder.rglob("*.py")]
    assert [name for name in sorted(named) if not any(path.endswith(f"/{name}") for path in present)] == []


GUIDES = [ROOT / "README.md", ROOT / "config" / "README.md", ROOT / "deploy" / "README.md"]


def keys_written_twice(text: str) -> list[str]:
    """The keys that a mapping of a YAML text has more than once."""
    found = []
    pending = [document for document in yaml.compose_all(text, yaml.SafeLoader) if document is not None]
    while pending:
        node = pending.pop()
        if isinstance(node, yaml.MappingNode):
            counts = Counter(str(key.value) for key, _ in node.value)
            found += [key for key, count in counts.items() if count > 1]
            pending += [value for _, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            pending += node.value
    return found


@looped("guide", GUIDES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_config_file_that_is_shown_has_each_key_once(guide: Path) -> None:
    shown = re.findall(r"^```yaml\n(.*?)^```$", guide.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert [key for text in shown for key in keys_written_twice(text)] == []
    assert keys_written_twice("a: {b: 1, b: 2}") == ["b"]


def test_nothing_is_installed_by_a_name_that_is_not_ours_on_an_index() -> None:
    files = [*GUIDES, ROOT / "SECURITY.md", *(ROOT / "proxy").rglob("*.py"), *(ROOT / "config").rglob("*.py")]
    assert [
        path for path in files if re.search(r"pip install[^\n]*dragoman(\[|$|[ '])", path.read_text(encoding="utf-8"))
    ] == []


def test_the_extras_are_those_there_are_and_each_is_installed_as_it_says() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    there = set(project["optional-dependencies"]) - {"dev", "engine"}
    text = (
        (ROOT / "config" / "README.md").read_text(encoding="utf-8").partition("\n## Extras\n")[2].partition("\n## ")[0]
    )
    cells = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    assert {name for cell in cells for name in quoted(cell)} == there
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    locked = set(re.findall(r"--extra (\w+)", makefile))
    assert there - locked == {"prices"}
    assert "\nextras: $(VENV)/.extras\n" in makefile
    assert "--require-hashes -r requirements-clouds.lock" in makefile
