"""All commands of the README and of the first page of the documentation work, and everything that they list exists."""

import re
import subprocess
from pathlib import Path

import pytest

from config.load_config import load_text
from proxy.gateway.match_path import resolve_path
from proxy.routing.snapshot import build_snapshot
from proxy.surfaces.registry import SURFACES
from tests.docs.marked_pages import ROOT
from tests.docs.pages import blocks, quoted, rows, section, text_of
from tests.docs.run_examples import KEYS, printed_by, python_output
from tests.support.clients import RECIPES
from tests.support.gateway import running_gateway

TEXT = text_of(ROOT / "README.md")
START = text_of(ROOT / "docs" / "getting-started.md")

(TABLE,) = blocks(TEXT, "yaml")
SCRIPTS = [each for each in (*blocks(TEXT, "sh"), *blocks(START, "sh")) if not each.startswith("make ")]
PYTHON = [*blocks(TEXT, "python"), *blocks(START, "python")]


def test_the_first_lines_are_one_sentence_and_the_two_commands() -> None:
    title, sentence, code = TEXT.split("\n\n")[:3]
    assert title == "# Dragoman"
    assert "LLM gateway" in sentence
    assert sentence.count(".") == 1
    assert code == "```sh\nmake demo\nmake test\n```"


def test_both_commands_are_there() -> None:
    for line in blocks(TEXT, "sh")[0].splitlines():
        done = subprocess.run([*line.split(), "--dry-run"], cwd=ROOT, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr


def test_no_block_is_of_a_language_that_is_not_run_here() -> None:
    languages = re.findall(r"^```(\w+)$", TEXT, re.MULTILINE)
    assert set(languages) == {"sh", "python", "yaml"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.split()[0])
async def test_every_shell_block_runs(script: str, tmp_path: Path) -> None:
    (tmp_path / "table.yaml").write_text(TABLE, encoding="utf-8")
    printed = await printed_by(script, tmp_path)
    assert printed
    assert '"error"' not in printed
    assert ("[DONE]" in printed) == ('"stream": true' in script)


@pytest.mark.clients
@pytest.mark.timeout(300)
@pytest.mark.parametrize("code", PYTHON, ids=lambda code: code.split()[1])
async def test_every_python_block_prints_what_it_says(code: str, tmp_path: Path) -> None:
    assert await python_output(code, tmp_path) == re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)


def test_the_config_file_has_nothing_that_check_warns_of() -> None:
    assert TABLE.startswith("# table.yaml\n")
    loaded = load_text(TABLE, "table.yaml", KEYS)
    assert loaded.warnings == ()
    assert set(build_snapshot(loaded).teams) == {"search"}


async def test_the_config_file_is_served(tmp_path: Path) -> None:
    async with running_gateway(TABLE, tmp_path, KEYS) as gateway:
        assert await gateway.stop() == 0


def test_the_ways_to_install_are_there() -> None:
    commands = [command for _, cell in rows(section(TEXT, "Install")) for command in quoted(cell)]
    makefile = text_of(ROOT / "Makefile")
    for command in commands:
        program, *words = command.split()
        match program:
            case "make":
                assert f"\n{words[0]}:" in makefile
            case "pip":
                assert words[0] == "install"
                assert words[1].strip("'").startswith(".")
            case "docker":
                assert (ROOT / words[words.index("-f") + 1]).is_file()
            case _:
                assert program == ".venv"


def test_the_endpoints_are_of_every_api_and_are_served() -> None:
    listed = {quoted(name)[0]: quoted(paths) for name, _, paths in rows(section(TEXT, "Endpoints"))}
    assert listed.keys() == {surface.name for surface in SURFACES}
    for name, paths in listed.items():
        assert [path for path in paths if not resolve_path(path).methods] == []
        assert {resolve_path(path).surface.name for path in paths} == {name}


def test_the_base_urls_are_those_that_the_sdks_need() -> None:
    listed = {quoted(name)[0]: quoted(url)[0] for name, url, _ in rows(section(TEXT, "Endpoints"))}
    needed = {"openai": "openai3", "scale": "scale_gp", "fireworks": "fireworks1"}
    for surface, sdk in needed.items():
        assert listed[surface] == "http://127.0.0.1:8080" + RECIPES[sdk].prefix


def test_the_three_numbers_are_measured() -> None:
    results = text_of(ROOT / "tests" / "bench" / "RESULTS.md")
    added, chunk, stream = (row[1] for row in rows(section(TEXT, "Three numbers"))[-3:])
    (times,) = re.findall(r"^\| gateway +\| +([\d,]+) \| ([\d.]+) \|", results, re.MULTILINE)
    assert (times[1], f"{times[0]} requests a second" in TEXT) == (added.removesuffix(" ms"), True)
    assert re.search(rf"^\| streamed chunk, 20 ms, 300 streams .* {re.escape(chunk)} \|", results, re.MULTILINE)
    memory = re.search(
        r"^\| gateway +\|(?: +[\d.]+ \|){2} +([\d.]+) \|", results.partition("KB an idle stream")[2], re.MULTILINE
    )
    assert memory is not None
    assert stream == f"{memory[1]} KB"
