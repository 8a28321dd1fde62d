"""The bench's verdict rules on made-up runs: each verdict can result, and each check can fail."""

from dataclasses import replace
from typing import Final

from tests.faults.failover_scenarios import SCENARIOS, Scenario
from tests.faults.failover_verdicts import Check, Got, Kind, Seen, Tried, verdict
from tests.support.looped import looped

BY_ID: Final = {scenario.id: scenario for scenario in SCENARIOS}

ANSWER: Final = Got(0.0, 1.0, "success", complete=True, model="vendor/spare", usage=True)
SHORT: Final = replace(ANSWER, complete=False)
ERROR: Final = Got(0.0, 1.0, "error", error="503 overloaded")
HANG: Final = Got(0.0, 140.0, "hang", error="no end")


def tries(*times: float, size: int = 10, answered: bool = False) -> tuple[Tried, ...]:
    """Return requests of one size that a vendor received at these times."""
    return tuple(Tried(at, size, answered) for at in times)


def run(got: Got = ANSWER, primary: tuple[Tried, ...] = (Tried(0.0, 10, True),), *, fallback: int = 1) -> Seen:
    """Return a run of one request, with its attempts on the primary and on the fallback."""
    return Seen((got,), primary, tries(*[1.0] * fallback, answered=True), "spare")


def outage(down: Got, back: float | None, probes: int = 3) -> Seen:
    """Return a run of twenty requests, of which fifteen come while the primary is down. The primary serves again at
    `back`."""
    got = [replace(down if number < 15 else ANSWER, at=4.0 * number) for number in range(20)]
    primary = tries(*[1.0] * probes) + (() if back is None else tries(back, answered=True))
    return Seen(tuple(got), primary, tries(1.0, answered=True), "spare", 60.0)


UNFIT: Final = replace(run(ERROR), fallback=(Tried(1.0, 10, False, unfit=True),))
DEAD_AFTER: Final = replace(run(ERROR), alive=False)

CASES: Final[list[tuple[str, Seen, Kind, str]]] = [
    ("S01", run(primary=tries(0.0, 2.1)), "pass", "rescued"),
    ("S01", run(primary=tries(0.0)), "partial", "retried, retry_after_honoured"),
    ("S01", run(primary=tries(0.0, 1.7)), "partial", "retry_after_honoured"),
    ("S01", run(primary=(Tried(0.0, 10, False, late=0.5), Tried(1.7, 10, True, late=0.7))), "pass", "rescued"),
    ("S01", run(primary=tries(0.0, 0.1, 0.2)), "fail", "no_hammer"),
    ("S01", run(ERROR), "safe", "503 overloaded"),
    ("S02", run(primary=tries(0.0, 1.0, 2.0, 2.9)), "pass", "rescued"),
    ("S02", run(primary=tries(0.0, 0.5, 1.0, 2.0, 2.9)), "fail", "no_hammer"),
    ("S02", run(ERROR, tries(*[3.5 * number for number in range(7)])), "fail", "bounded_attempts"),
    ("S02", run(HANG), "fail", "hang"),
    ("S03", run(primary=tries(0.0, 0.2)), "pass", "rescued"),
    ("S03", run(primary=tries(0.0)), "partial", "same_provider_retry"),
    ("S03", run(HANG), "fail", "hang"),
    ("S04", run(), "pass", "rescued"),
    ("S04", run(primary=tries(*[1.0] * 7)), "fail", "bounded_attempts"),
    ("S04", run(HANG), "fail", "hang"),
    ("S05", run(), "pass", "rescued"),
    ("S05", run(SHORT), "fail", "a truncated answer presented as a success"),
    ("S05", run(HANG), "fail", "hang"),
    ("S06", run(replace(ANSWER, elapsed=31.0)), "pass", "rescued"),
    ("S06", run(replace(ANSWER, elapsed=92.0), tries(0.0, 30.0, 60.0)), "partial", "silent_route_not_retried"),
    ("S06", run(replace(ANSWER, elapsed=101.0)), "fail", "within_budget"),
    ("S06", run(replace(ERROR, elapsed=30.0)), "safe", "503 overloaded"),
    ("S06", run(HANG), "fail", "hang"),
    ("S07", run(replace(ANSWER, elapsed=11.0)), "pass", "rescued"),
    ("S07", run(replace(ANSWER, elapsed=21.0)), "partial", "ttft_limit"),
    ("S07", replace(run(replace(ANSWER, elapsed=21.0)), spare=None), "pass", "rescued"),
    ("S07", run(HANG), "fail", "hang"),
    ("S08", run(ERROR), "safe", "503 overloaded"),
    ("S08", run(SHORT), "fail", "a truncated answer presented as a success"),
    ("S08", run(), "pass", "rescued"),
    ("S08", run(HANG), "fail", "hang"),
    ("S09", run(replace(ERROR, elapsed=30.0)), "safe", "503 overloaded"),
    ("S09", run(replace(ERROR, elapsed=46.0)), "fail", "bounded"),
    ("S09", DEAD_AFTER, "fail", "alive_after"),
    ("S09", run(SHORT), "fail", "a truncated answer presented as a success"),
    ("S09", run(HANG), "fail", "hang"),
    ("S10", run(), "pass", "rescued"),
    ("S10", run(ERROR), "safe", "503 overloaded"),
    ("S10", DEAD_AFTER, "fail", "alive_after"),
    ("S10", run(SHORT), "fail", "a truncated answer presented as a success"),
    ("S10", run(HANG), "fail", "hang"),
    ("S11", run(), "pass", "rescued"),
    ("S11", run(replace(ANSWER, usage=False)), "partial", "usage_reported"),
    ("S11", run(replace(ANSWER, elapsed=8.5)), "fail", "prompt_finalise"),
    ("S12", run(), "pass", "rescued"),
    ("S12", run(ERROR), "safe", "503 overloaded"),
    ("S12", run(primary=(*tries(0.0, size=10), *tries(1.0, size=9))), "pass", "rescued"),
    ("S12", run(primary=tries(0.0, 1.0)), "fail", "no_blind_retry"),
    ("S12", run(primary=tuple(Tried(0.0, size, False) for size in (10, 9, 8))), "fail", "bounded_attempts"),
    ("S12", run(HANG), "fail", "hang"),
    ("S13", run(ERROR, fallback=0), "pass", "503 overloaded"),
    ("S13", run(), "partial", "answered around the refusal"),
    ("S13", run(ERROR, tries(0.0, 1.0)), "fail", "no_same_model_retry"),
    ("S13", run(HANG), "fail", "hang"),
    ("S14", run(ERROR), "safe", "503 overloaded"),
    ("S14", run(SHORT), "fail", "a truncated answer presented as a success"),
    ("S14", UNFIT, "fail", "no_prefill_masking"),
    ("S15", outage(ANSWER, 64.0), "pass", "rescued"),
    ("S15", outage(ANSWER, 64.0, probes=16), "pass", "rescued"),
    ("S15", outage(ANSWER, 90.1), "fail", "recovered"),
    ("S15", outage(ANSWER, None), "fail", "recovered"),
    ("S15", outage(ERROR, 64.0), "fail", "served_during_outage"),
    ("S15", outage(SHORT, 64.0), "fail", "a truncated answer presented as a success"),
    ("S15", outage(HANG, 64.0), "fail", "hang"),
    ("S15", replace(outage(ERROR, None), spare=None), "safe", "503 overloaded"),
    ("S16", run(), "pass", "rescued"),
    ("S16", run(replace(ANSWER, model="vendor/asked")), "fail", "reports_fallback_model"),
    ("S16", run(replace(ANSWER, model="vendor/asked"), fallback=0), "pass", "rescued"),
    ("S16", run(replace(ANSWER, usage=False)), "partial", "usage_present"),
    ("S16", run(primary=tries(*[1.0] * 7)), "fail", "bounded_attempts"),
]
"""A scenario, a run, and the expected verdict."""


@looped(("name", "seen", "kind", "why"), CASES)
def test_a_run_is_judged_by_the_rules_of_its_scenario(name: str, seen: Seen, kind: Kind, why: str) -> None:
    scenario = BY_ID[name]
    found = verdict(scenario.checks, scenario.ideal, seen)
    assert (found.kind, found.why) == (kind, why)


CHECKS: Final = [(scenario, check) for scenario in SCENARIOS for check in scenario.checks]


@looped(("scenario", "check"), CHECKS, ids=lambda each: getattr(each, "name", None) or each.id)
def test_every_check_of_every_scenario_can_fail_and_can_hold(scenario: Scenario, check: Check) -> None:
    assert {check.rule(seen) for name, seen, _, _ in CASES if name == scenario.id} == {True, False}
