"""FailoverBench's scenarios at the bench's real times (R40), under the built-in rules."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import uvloop

from tests.faults.failover_runs import repeated
from tests.faults.failover_scenarios import RUNS, SCENARIOS, judged
from tests.faults.failover_verdicts import Verdict
from tests.trust.figure_types import Result


def r40(folder: Path) -> Result:
    """Return the figure: seven runs of each scenario, as long as the bench's own."""
    seen = uvloop.run(repeated(folder, SCENARIOS, RUNS, 1.0))
    return told({scenario.id: judged(scenario, seen[scenario.id]) for scenario in SCENARIOS})


def told(found: Mapping[str, Sequence[Verdict]]) -> Result:
    """Return how many scenarios have each verdict, and the scenarios that differ from the expected verdict in any
    run."""
    kinds = Counter("/".join(sorted({verdict.kind for verdict in found[each.id]})) for each in SCENARIOS)
    other = [
        f"{each.id} {verdict.kind} ({verdict.why})"
        for each in SCENARIOS
        for verdict in dict.fromkeys(found[each.id])
        if verdict.kind != each.expected
    ]
    value = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    return Result("; ".join([value, *other]), not other)
