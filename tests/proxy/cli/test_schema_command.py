"""The printed schema is the committed one."""

import json
from pathlib import Path

import pytest

from providers.profiles.load_profiles import load_profiles
from proxy.cli.schema_command import schema

COMMITTED = Path(__file__).resolve().parents[3] / "config" / "schema.json"


def test_the_schema_is_printed_as_it_is_committed(capsys: pytest.CaptureFixture[str]) -> None:
    assert schema() == 0
    assert capsys.readouterr().out == COMMITTED.read_text(encoding="utf-8")


def test_the_schema_knows_every_profile_and_no_other() -> None:
    offered = json.loads(COMMITTED.read_text(encoding="utf-8"))["$defs"]["Vendor"]["properties"]["profile"]["anyOf"][0]
    assert offered == {"enum": sorted(load_profiles())}
