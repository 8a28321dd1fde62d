"""The tables of coding agents' requests."""

from collections.abc import Mapping, Sequence

from tests.bench.agents.beside import Beside
from tests.bench.agents.measure import Cost, growth_of
from tests.bench.agents.rows import GROWTH, LIGHT, MEMORY, SAME, TRANSLATED
from tests.bench.tables import table

HEAD = ("request", "bytes", "CPU ms", "× its JSON", "must", "aim", "verdict")

METHOD = f"""\
30 tools with schemas, a system text of 12 KB, and 60 or 600 turns with calls and results, one request at a time.
"× its JSON" is CPU beside that of `orjson.loads` and `orjson.dumps` of the same body, measured in the same run under
the gateway's Python: at most {SAME.must:g} within one family (aim {SAME.aim:g}), {TRANSLATED.must:g} where the
request is translated (aim {TRANSLATED.aim:g})."""


def cost_row(cost: Cost) -> list[str]:
    """Return the row of one request of one program."""
    bound = cost.row.bound
    limits = [f"{bound.must:g}", f"{bound.aim:g}"]
    if not cost.turns:
        return [cost.row.name, f"{cost.size:,}", "–", "–", *limits, f"no result: {cost.failure.splitlines()[0][:60]}"]
    figures = [f"{cost.milliseconds:.2f}", f"{cost.times_floor:.1f}"]
    return [cost.row.name, f"{cost.size:,}", *figures, *limits, bound.verdict(cost.times_floor)]


def growth_rows(costs: Sequence[Cost]) -> list[list[str]]:
    """Return how the CPU of each way grows with the body."""
    found = growth_of(costs).items()
    return [[name, f"{value:.1f}", f"{GROWTH.must:g}", GROWTH.verdict(value)] for name, value in found]


BESIDE_HEAD = ("beside ten of", "p99 wait ms", "must", "aim", "verdict", "memory × bodies", "must", "aim", "verdict")


def beside_row(found: Beside) -> list[str]:
    """Return the row about ten large requests in flight."""
    wait, memory = found.wait, found.memory
    limits = [[f"{bound.must:g}", f"{bound.aim:g}"] for bound in (LIGHT, MEMORY)]
    if found.failure:
        return [found.row.name, "–", *limits[0], f"no result: {found.failure[:60]}", "–", *limits[1], ""]
    shown = ["–" if each is None else f"{each:.1f}" for each in (wait, memory)]
    verdicts = [LIGHT.verdict(wait), MEMORY.verdict(memory)]
    return [found.row.name, shown[0], *limits[0], verdicts[0], shown[1], *limits[1], verdicts[1]]


def agents_section(found: Mapping[str, Sequence[Cost]], beside: Sequence[Beside]) -> list[str]:
    """Return the section of a report."""
    lines = ["", "## Agents' requests", "", METHOD]
    for program, costs in found.items():
        lines += ["", f"### {program}", "", *table(HEAD, [cost_row(cost) for cost in costs])]
        if grown := growth_rows(costs):
            lines += ["", *table(("growth, ten times the bytes", "× the CPU", "must", "verdict"), grown)]
    if beside:
        lines += ["", *table(BESIDE_HEAD, [beside_row(each) for each in beside])]
    return lines
