"""Every body of the capability matrix matches the vendor's own types."""

from collections import Counter

import orjson
import pytest

from providers.profiles.load_profiles import load_profiles
from tests.contracts.judged_by import JudgedBy
from tests.contracts.sdk_judges import Judges
from tests.contracts.sent_bodies import Body, bodies
from tests.contracts.vendor_judges import JUDGES, UNJUDGED, judged_by
from tests.support.vendor_kinds import others_nightly

ROWS = [row for row in load_profiles() if row not in UNJUDGED]


def faults(judges: Judges, judged: JudgedBy, body: Body) -> str | None:
    """Return the fault that a row's judge, or the judge of its vendor's Responses API, finds in a body; else `None`."""
    if body.path.endswith("/responses"):
        fault = judges.fault("responses.sdk_types", "body", [orjson.dumps(body.body)], "responses")
        return fault and f"{body.path} {', '.join(body.features)}: {fault}"
    operation = judged.operation(body.body)
    shown = orjson.dumps(judged.shown(operation, body.body))
    fault = judges.fault(judged.judge(operation), "body", [shown], operation)
    return fault and f"{body.path} {', '.join(body.features)}: {fault}"


def test_no_judge_waits_for_a_row_that_is_gone() -> None:
    assert set(JUDGES) <= set(ROWS)


@pytest.mark.clients
@pytest.mark.timeout(300)
@pytest.mark.parametrize("row", others_nightly(ROWS))
def test_what_goes_out_is_what_the_vendor_takes(row: str, judges: Judges, passed: dict[str, Counter[str]]) -> None:
    every = bodies(row)
    found = [fault for judged in judged_by(row) for body in every if (fault := faults(judges, judged, body))]
    assert found == [], "\n".join(found)
    passed["bodies"][row] += len(every)


@pytest.mark.parametrize("row", others_nightly(JUDGES))
def test_nothing_is_said_to_be_beyond_a_judge_that_is_never_sent(row: str) -> None:
    for judged in judged_by(row):
        sent = {(judged.operation(body.body), name) for body in bodies(row) for name in body.body}
        for operation, more in (("chat", judged.chat_beyond), ("completions", judged.completions_beyond)):
            for name in more:
                assert (operation, name) in sent, name
        for name in judged.beyond:
            assert any(name == other for _, other in sent), name
