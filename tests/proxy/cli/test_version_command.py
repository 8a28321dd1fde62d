"""The printed version is the version of the installed distribution."""

import json
import platform
from importlib import metadata

import pytest

from proxy.cli.version_command import version_json, version_text


def test_the_text_is_name_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert version_text() == 0
    assert capsys.readouterr().out == f"dragoman {metadata.version('dragoman')}\n"


def test_the_json_tells_where_it_runs_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert version_json() == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["version"] == metadata.version("dragoman")
    assert facts["python"] == platform.python_version()
    assert facts["platform"]
