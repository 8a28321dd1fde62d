"""FailoverBench's sixteen scenarios: the primary's behaviour, the requests, the checks, and the expected verdict.

Seconds are seconds of the bench's full profile. Source: github.com/failoverbench/failoverbench,
scenarios/catalogue.yaml, methodology 0.1 of September 2026.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from tests.faults import failover_wall as wall
from tests.faults.failover_verdicts import (
    ALIVE_AFTER,
    FALLBACK_ATTEMPTED,
    NO_BLIND_RETRY,
    NO_HANG,
    NO_PREFILL_MASKING,
    NO_TRUNCATED_SUCCESS,
    PROBE_DISCIPLINE,
    RECOVERED_IN_PLACE,
    REPORTS_FALLBACK,
    SERVED_DURING_OUTAGE,
    USAGE_OF_FALLBACK,
    USAGE_REPORTED,
    Check,
    Kind,
    Seen,
    Verdict,
    not_hammered,
    recovered_within,
    second_try_after,
    tried_at_least,
    tried_at_most,
    tried_exactly,
    verdict,
    within,
)

RUNS: Final = 7
"""Runs of each scenario. A scenario that ends well only in most of them does not count as good."""

PROMPT: Final = "Say in sixty words why somebody who stands between a question and its answer must be trusted."


@dataclass(frozen=True, slots=True)
class Sequence:
    """A number of requests. One begins every `every` seconds."""

    count: int
    every: float


ONCE: Final = Sequence(1, 0.0)


@dataclass(frozen=True, slots=True)
class Scenario:
    """One fault of the primary, beside a healthy fallback. A request is abandoned after `longest` seconds, which counts
    as a hang. `expected` is the verdict for this gateway, and `why` the reason.

    `without` is the verdict that the bench itself published for a client that calls the primary directly.
    """

    id: str
    title: str
    primary: wall.Model
    longest: float
    checks: tuple[Check, ...]
    expected: Kind
    why: str
    without: Kind
    ideal: Literal["success", "error"] = "success"
    fallback: wall.Model = wall.well
    asked: Sequence = ONCE
    outage: float = 0.0


RETURNED: Final = recovered_within(30.0)

SCENARIOS: Final = (
    Scenario(
        "S01",
        "429 with Retry-After",
        wall.limited_once,
        20.0,
        (tried_at_least("retried", 2), second_try_after(1.8), not_hammered(2, 1.5)),
        "pass",
        "what the vendor asks for is waited for, and then the vendor is asked",
        "safe",
    ),
    Scenario(
        "S02",
        "429 for ever without Retry-After",
        wall.limited,
        40.0,
        (not_hammered(4, 3.0), tried_at_most(6), NO_HANG),
        "pass",
        "the fallback answers after few tries",
        "safe",
    ),
    Scenario(
        "S03",
        "500 once",
        wall.broken_once,
        20.0,
        (NO_HANG, tried_at_least("same_provider_retry", 2)),
        "pass",
        "one failure is tried again where it happened",
        "safe",
    ),
    Scenario(
        "S04",
        "503 for ever",
        wall.overloaded,
        40.0,
        (tried_at_most(6), NO_HANG),
        "pass",
        "the fallback answers after few tries",
        "safe",
    ),
    Scenario(
        "S05",
        "reset before the head",
        wall.reset_once,
        20.0,
        (NO_HANG,),
        "pass",
        "nothing has come, so another may be asked",
        "safe",
    ),
    Scenario(
        "S06",
        "no answer at all",
        wall.silent,
        130.0,
        (within("within_budget", 100.0), NO_HANG, tried_at_most(1, "silent_route_not_retried", "advisory")),
        "pass",
        "who has been silent for too long is not asked again, the fallback is",
        "safe",
    ),
    Scenario(
        "S07",
        "first token after 20 s",
        wall.slow,
        60.0,
        (NO_HANG, within("ttft_limit", 15.0, "advisory", needs_fallback=True)),
        "pass",
        "first_event is over before the first token, and the fallback answers",
        "pass",
    ),
    Scenario(
        "S08",
        "stream cut in the middle",
        wall.cut,
        40.0,
        (NO_TRUNCATED_SUCCESS, NO_HANG),
        "safe",
        "what the client has cannot be taken back: the stream ends in an error",
        "safe",
    ),
    Scenario(
        "S09",
        "stream stalls in the middle",
        wall.stalled,
        70.0,
        (within("bounded", 45.0), NO_TRUNCATED_SUCCESS, ALIVE_AFTER, NO_HANG),
        "safe",
        "idle notices it, and the stream ends in an error",
        "safe",
    ),
    Scenario(
        "S10",
        "an event that is no JSON",
        wall.malformed,
        30.0,
        (ALIVE_AFTER, NO_TRUNCATED_SUCCESS, NO_HANG, RECOVERED_IN_PLACE),
        "safe",
        "nobody knows what was lost with it, so the stream ends in an error",
        "pass",
    ),
    Scenario(
        "S11",
        "stream without [DONE]",
        wall.unterminated,
        30.0,
        (within("prompt_finalise", 8.0), USAGE_REPORTED),
        "pass",
        "the answer was whole, and ends at once with its usage",
        "pass",
    ),
    Scenario(
        "S12",
        "context length exceeded",
        wall.too_long,
        20.0,
        (NO_BLIND_RETRY, tried_at_most(2), NO_HANG),
        "pass",
        "another model may have room for it, the same has not",
        "safe",
    ),
    Scenario(
        "S13",
        "content filter",
        wall.filtered,
        20.0,
        (tried_exactly("no_same_model_retry", 1), NO_HANG, FALLBACK_ATTEMPTED),
        "pass",
        "a refusal of what was asked is not asked again elsewhere",
        "pass",
        ideal="error",
    ),
    Scenario(
        "S14",
        "cut stream, and a fallback that takes no prefill",
        wall.cut,
        40.0,
        (NO_PREFILL_MASKING, NO_TRUNCATED_SUCCESS),
        "safe",
        "no vendor is asked to go on with half an answer: the stream ends in an error of its own",
        "safe",
        fallback=wall.well_without_prefill,
    ),
    Scenario(
        "S15",
        "down for 60 s, then well",
        wall.flapping,
        30.0,
        (NO_HANG, SERVED_DURING_OUTAGE, RETURNED, PROBE_DISCIPLINE),
        "pass",
        "the fallback answers while it is down, and it is asked again soon after",
        "safe",
        asked=Sequence(20, 4.0),
        outage=wall.OUTAGE,
    ),
    Scenario(
        "S16",
        "what a fallback is called",
        wall.overloaded,
        40.0,
        (REPORTS_FALLBACK, USAGE_OF_FALLBACK, tried_at_most(6)),
        "pass",
        "the answer has the model and the usage of who gave it",
        "safe",
    ),
)


def judged(scenario: Scenario, seen: Iterable[Seen]) -> list[Verdict]:
    """Return the verdict on each run."""
    return [verdict(scenario.checks, scenario.ideal, each) for each in seen]
