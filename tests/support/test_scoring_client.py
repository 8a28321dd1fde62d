"""The harness is locked with hashes, installed whole or not at all, and its failures are told in its own words."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support import scoring_client
from tests.support.scoring_client import LEFT_OUT, LOCK, REQUIREMENTS, SCENARIOS, Endpoint, order, score


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setattr(scoring_client, "CACHE", tmp_path / "cache")
    return tmp_path / "cache"


def test_the_lock_pins_the_harness_with_hashes_leaves_out_its_tasks_and_names_no_host() -> None:
    text = LOCK.read_text(encoding="utf-8")
    pins = re.findall(r"^[a-z0-9._-]+==.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)*", text, re.MULTILINE)
    names = {pin.partition("==")[0] for pin in pins}
    assert [pin.splitlines()[0] for pin in pins if "--hash=" not in pin] == []
    assert REQUIREMENTS[0].replace("_", "-") in {pin.split()[0] for pin in pins}
    assert names.isdisjoint(LEFT_OUT)
    assert re.findall(r"://|^\s*-(?!-hash)|@ ", text, re.MULTILINE) == []


def test_an_interrupted_installation_does_not_count(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = iter((1, 0))
    commands: list[list[str]] = []

    def run(command: list[str], **_: object) -> "subprocess.CompletedProcess[str]":
        commands.append(command)
        Path(command[command.index("--target") + 1]).mkdir()
        return subprocess.CompletedProcess(command, next(codes), "", "no route to it")

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(RuntimeError, match=r"could not install lm_eval.*\n.*no route to it"):
        scoring_client.install()
    assert scoring_client.install() == scoring_client.install()
    assert len(commands) == 2
    assert all("--require-hashes" in command for command in commands)
    assert scoring_client.directory().parent == cache


@pytest.mark.clients
@pytest.mark.timeout(300)
async def test_its_failure_is_told_in_its_own_words() -> None:
    broken = order(SCENARIOS["single"], Endpoint("http://127.0.0.1:9/v1/completions", "m"))
    broken["settings"] = {"tokenizer": 1}
    with pytest.raises(RuntimeError, match=r"lm-evaluation-harness failed:\n(.*\n)*.*Error"):
        await score([broken])
