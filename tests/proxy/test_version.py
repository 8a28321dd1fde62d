"""The version equals the version of the installed distribution."""

import tomllib
from pathlib import Path

from proxy.version import USER_AGENT, VERSION

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"


def test_the_version_is_that_of_the_project_file() -> None:
    assert tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["version"] == VERSION


def test_vendors_see_name_and_version() -> None:
    assert f"dragoman/{VERSION}" == USER_AGENT
