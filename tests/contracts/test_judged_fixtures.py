"""The vendors' own types accept the fixtures before the tests of our decoders rely on them."""

from collections import Counter

import pytest

from tests.contracts.judged_fixtures import BY_PROFILE, FRAMED, Fixture, fixtures
from tests.contracts.known_refusals import KNOWN_REFUSALS
from tests.contracts.sdk_judges import Judges
from tests.support.dialects import FOLDER, NAMES
from tests.support.looped import looped

FIXTURES = {fixture.name: fixture for fixture in fixtures() if fixture.payloads}
NO_EVENTS = {"gemini/streams/array.sse", "gemini/streams/error_first.sse"}
"""Responses to a streamed request that are not a stream of events: one JSON document."""


@pytest.mark.clients
@pytest.mark.timeout(300)
@looped("fixture", FIXTURES.values(), ids=FIXTURES)
def test_the_vendors_types_read_it(fixture: Fixture, judges: Judges, passed: dict[str, Counter[str]]) -> None:
    fault = judges.fault(fixture.judge, fixture.check, fixture.payloads)
    explained = KNOWN_REFUSALS.get(fixture.name)
    if explained is None:
        assert fault is None
        passed["fixtures"][fixture.judge] += 1
    else:
        assert fault is not None, f"it passes: {explained.why}"
        assert explained.says in fault


def test_nothing_is_explained_that_is_not_there() -> None:
    assert set(KNOWN_REFUSALS) <= FIXTURES.keys()


def test_what_holds_no_events_is_known() -> None:
    assert {fixture.name for fixture in fixtures() if not fixture.payloads} == NO_EVENTS


def test_every_folder_of_fixtures_has_a_judge() -> None:
    judged = {path.parent.name for path in FOLDER.glob("*/sdk_types.py")}
    assert set(NAMES) - {BY_PROFILE, *FRAMED} <= judged
