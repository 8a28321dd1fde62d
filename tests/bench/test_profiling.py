"""Samples become shares; and a real gateway is sampled."""

import sys
from pathlib import Path

import pytest

from tests.bench.cases import REQUEST, STREAMS_300, Case
from tests.bench.profiling import Profile, profile_text, profiled, profiled_case, read_stacks
from tests.bench.programs.gateway import Build
from tests.bench.traffic import Ask

TEXT = """\
asyncio/base_events.py:run;proxy/gateway/relay.py:Relay.run;asyncio/selector_events.py:write 6
asyncio/base_events.py:run;proxy/gateway/relay.py:Relay.run 3
asyncio/base_events.py:run;a.py:f;a.py:f 1
"""


def test_a_function_has_its_own_samples_and_those_of_what_it_calls_once() -> None:
    profile = Profile(read_stacks(TEXT), 50.0)
    assert profile.samples == 10
    assert profile.own() == {
        "asyncio/selector_events.py:write": 6,
        "proxy/gateway/relay.py:Relay.run": 3,
        "a.py:f": 1,
    }
    assert profile.below()["asyncio/base_events.py:run"] == 10
    assert profile.below()["proxy/gateway/relay.py:Relay.run"] == 9
    assert profile.below()["a.py:f"] == 1
    assert profile.rooms() == {"asyncio": 6, "proxy/gateway": 3, "a.py": 1}


def test_the_text_has_shares_and_microseconds() -> None:
    text = profile_text(Profile(read_stacks(TEXT), 50.0), profiled_case("chunk"))
    assert text.startswith("chunk, 300 streams: 50.0 µs of CPU a chunk, 10 samples")
    assert "60.0% | 30.0 |" in text
    assert "100.0%" not in text


def test_a_profile_is_of_a_case() -> None:
    assert [profiled_case(word).name for word in ("request", "chunk")] == [REQUEST, STREAMS_300]
    with pytest.raises(ValueError, match="neither request nor chunk"):
        profiled_case("everything")


@pytest.mark.timeout(180)
async def test_a_gateway_is_sampled_under_load(tmp_path: Path) -> None:
    profile = await profiled(Case("small", Ask(), 4), Build(python=sys.executable), tmp_path, seconds=0.5)
    assert profile.samples > 0
    assert profile.microseconds > 0
    assert any("proxy/" in name for name in profile.below())
