"""The bench of limits: its configurations, and its lines of figures."""

from pathlib import Path

from config.load_config import load_text
from proxy.limits.limit import UNLIMITED
from proxy.routing.snapshot import build_snapshot
from tests.bench.programs.gateway import gateway_table
from tests.bench.readings import Reading
from tests.bench.team_limits import PRICED, TEAMS, lines
from tests.bench.upstream import RunningUpstream


def test_the_last_table_has_every_kind_of_limit_and_the_first_none() -> None:
    upstream = RunningUpstream(1234, 1235, 1, Path("/ca.pem"))
    written = [gateway_table(upstream, "", team, PRICED) for team in TEAMS.values()]
    tables = [table.replace(', ca_file: "/ca.pem"', "") for table in written]
    built = [build_snapshot(load_text(table, "table.yaml", {})) for table in tables]
    teams = [snapshot.teams["load"] for snapshot in built]
    assert teams[0].limits.own is UNLIMITED
    own = teams[-1].limits.own
    assert ({rate.unit.value for rate in own.rates}, own.concurrent) == ({"requests", "tokens"}, 1000)
    assert len(built[-1].budgets["team load"]) == 1


def test_each_figure_is_said_beside_the_one_without_limits() -> None:
    taken = {"none": [Reading(2.0, 1.0, 10_000), Reading(9.0, 1.0, 10_000)], "all": [Reading(2.1, 1.0, 10_000)]}
    assert lines(taken) == ["none: 200.0 µs of CPU a request", "all: 210.0 µs of CPU a request, +5.0%"]
