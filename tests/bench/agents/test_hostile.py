"""The hostile bodies have the named sizes and are within the gateway's limits."""

import orjson
import pytest

from providers.unified_request import Operation
from proxy.surfaces.anthropic.surface import ANTHROPIC
from tests.bench.agents.bodies import SMALL
from tests.bench.agents.hostile import Hostile, hostile_rows
from tests.support.looped import looped


def test_each_has_a_name_of_its_own() -> None:
    names = [each.name for each in hostile_rows()]
    assert len(names) == len(set(names))


@looped("row", [each for each in hostile_rows() if each.size == SMALL], ids=lambda row: row.name)
def test_a_hostile_body_is_taken(row: Hostile) -> None:
    body = row.body("v/m")
    assert len(body) == pytest.approx(row.size, rel=0.15)
    assert orjson.loads(body)["messages"][1]["content"][0]["input"]["held"]
    assert ANTHROPIC.parse(Operation.CHAT, body, None).model == "v/m"
