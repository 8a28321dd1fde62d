"""The current state of routes: the skipped targets with their reasons, and the order of the routes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from proxy.admin.recent_requests import NO_USES, RecentUse, RecentUses
from proxy.admin.reload_history import PastReload
from proxy.admin.route_states import (
    MOST_TARGETS,
    GatewayState,
    Health,
    Level,
    RouteState,
    failing_names,
    gateway_state,
    health_of,
    route_rows,
)
from proxy.admin.status import DeploymentState, ProcessStatus
from tests.proxy.admin.kit import NOW, RELOADS, TABLE, status, table, view
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.looped import looped

ROUTES = (
    TABLE.replace("routes: {fast: {targets: [mock/echo, v/m]}}\n", "")
    + f"""\
routes:
  well: {{targets: [mock/echo]}}
  part: {{targets: [v/m/a, mock/echo]}}
  down: {{targets: [v/m/a, v/m/b]}}
  round: {{policy: round_robin, targets: [mock/echo, {{target: v/m/d, weight: 0}}]}}
  inner: {{targets: [part, v/m/c]}}
teams:
  search: {{keys: ["{digest_of("k")}"], models: [], routes: {{well: {{targets: [v/m/b]}}}}}}
"""
)


def test_the_worst_come_first() -> None:
    rows = route_rows(snapshot(ROUTES), status())
    assert [(row.name, row.team, row.skipped, row.up, row.state) for row in rows] == [
        ("down", "", 2, 0, RouteState.DOWN),
        ("well", "search", 1, 0, RouteState.DOWN),
        ("inner", "", 0, 1, RouteState.IN_PART),
        ("part", "", 1, 1, RouteState.IN_PART),
        ("round", "", 1, 1, RouteState.IN_PART),
        ("well", "", 0, 1, RouteState.UP),
    ]


FAILING = RecentUse(10, 6)
STATES = {
    "half-open": {"states": dict.fromkeys(("v/m/a", "v/m/b"), DeploymentState.HALF_OPEN)},
    "half-open and open": {"states": {"v/m/a": DeploymentState.HALF_OPEN, "v/m/b": DeploymentState.OPEN}},
    "mostly failing": {"recent": RecentUses(300, FAILING, {"v/m/a": FAILING, "v/m/b": FAILING})},
    "mostly failing and in cooldown": {
        "states": {"v/m/b": DeploymentState.COOLING},
        "recent": RecentUses(300, FAILING, {"v/m/a": FAILING}),
    },
}


@looped("targets", STATES.values(), ids=STATES)
def test_a_route_without_a_target_that_is_up_is_not_up(targets: Mapping[str, Any]) -> None:
    made, now = snapshot(ROUTES), replace(ProcessStatus(True, 0, 0, {}), **targets)
    rows = {(row.name, row.team): row for row in route_rows(made, now)}
    assert rows["down", ""].state is RouteState.FAILING
    assert rows["part", ""].state is RouteState.IN_PART
    assert "down" in failing_names(made, now, rows.values())
    assert "part" not in failing_names(made, now, rows.values())


def test_a_model_without_a_deployment_that_is_up_fails_under_its_name() -> None:
    made, every = snapshot(ROUTES), dict.fromkeys(("v/m/a", "v/m/b", "v/m/c", "v/m/d"), DeploymentState.HALF_OPEN)
    now = replace(status(), states=every, limited={})
    assert failing_names(made, now, route_rows(made, now)) == ["down", "v/m", "well of team search"]
    assert failing_names(made, replace(now, states={}, limited={}), route_rows(made, replace(now, states={}))) == []


@looped(
    ("use", "health"),
    [
        (RecentUse(4, 4), Health.UP),
        (RecentUse(5, 3), Health.FAILING),
        (RecentUse(10, 5), Health.UP),
        (RecentUse(10, 0, 10), Health.UP),
    ],
)
def test_a_deployment_fails_mostly_if_more_than_half_of_enough_calls_failed(use: RecentUse, health: Health) -> None:
    made = snapshot(ROUTES)
    now = replace(ProcessStatus(True, 0, 0, {}), recent=RecentUses(300, use, {"mock/echo/default": use}))
    (target,) = made.models["mock/echo"].targets
    assert health_of(now, target) is health


def test_a_target_is_as_well_as_the_best_of_its_deployments() -> None:
    rows = {(row.name, row.team): row for row in route_rows(snapshot(ROUTES), status())}
    inner = rows["inner", ""].targets
    assert [(each.health, each.up, each.deployments, each.why) for each in inner] == [
        (Health.UP, 1, 2, ""),
        (Health.HALF_OPEN, 1, 1, ""),
    ]
    first, second = rows["down", ""].targets
    assert first.why == "circuit open after server, status 500: it broke, next probe in 12 s"
    assert second.why == "cooldown, next probe in 70 s"
    assert rows["round", ""].targets[1].why == "weight 0: out of service"


def test_the_reasons_of_a_few_deployments_are_shown() -> None:
    states = dict.fromkeys(("v/m/a", "v/m/b", "v/m/c", "v/m/d", "mock/echo/default"), DeploymentState.OPEN)
    (row,) = route_rows(table(), replace(status(), states=states))
    assert row.state is RouteState.DOWN
    assert row.targets[1].why.count("circuit open") == 3
    assert row.targets[1].why.endswith("; and 1 more")


def test_a_share_is_told_where_weights_decide_it() -> None:
    split = ROUTES.replace(
        "{targets: [v/m/a, v/m/b]}", "{policy: POLICY, targets: [{target: v/m/a, weight: 3}, v/m/b]}"
    )
    shares = {
        policy: [each.share for row in rows if row.name == "down" for each in row.targets]
        for policy in ("weighted", "least_busy", "round_robin", "fastest", "priority")
        if (rows := route_rows(snapshot(split.replace("POLICY", policy)), status()))
    }
    assert shares["weighted"] == shares["least_busy"] == [0.75, 0.25]
    assert {each for policy in ("round_robin", "fastest", "priority") for each in shares[policy]} == {None}


def test_of_a_long_route_the_first_targets_are_shown_and_all_counted() -> None:
    names = [f"mock/m{number}" for number in range(MOST_TARGETS + 5)]
    models = "".join(f"  {name}: {{}}\n" for name in names)
    made = snapshot(f"vendors: {{mock: {{}}}}\nmodels:\n{models}routes: {{all: {{targets: [{', '.join(names)}]}}}}\n")
    last = replace(status(), states={f"{names[-1]}/default": DeploymentState.OPEN})
    (row,) = route_rows(made, last)
    assert (len(row.targets), row.more, row.skipped, row.state) == (MOST_TARGETS, 5, 1, RouteState.IN_PART)


def test_a_name_for_a_route_is_as_that_route_is() -> None:
    names = "  alias: part\n  deep: {targets: [alias], policy: weighted}\n  alias_down: down\n  alias_well: well\n"
    made = snapshot(ROUTES.replace("teams:", f"{names}teams:").replace("{well: {", "{mine: well, well: {"))
    rows = {(row.name, row.team): row for row in route_rows(made, status())}

    def told(name: str, team: str = "") -> tuple[int, int, int, RouteState]:
        row = rows[name, team]
        return row.count, row.skipped, row.up, row.state

    assert told("alias") == told("deep") == told("part") == (2, 1, 1, RouteState.IN_PART)
    assert told("alias_down") == told("down") == (2, 2, 0, RouteState.DOWN)
    assert told("alias_well") == told("well") == (1, 0, 1, RouteState.UP)
    assert told("mine", "search") == told("well", "search") == (1, 1, 0, RouteState.DOWN)
    assert [target.name for target in rows["alias", ""].targets] == ["part"]


def test_a_deployment_out_of_service_is_told_as_such_whatever_its_state() -> None:
    made = snapshot(ROUTES.replace("a: {}, b: {}", "a: {out_of_service: true}, b: {out_of_service: true}"))
    rows = {(row.name, row.team): row for row in route_rows(made, status())}
    assert [(each.health, each.why) for each in rows["down", ""].targets] == [
        (Health.OUT_OF_SERVICE, "out of service")
    ] * 2
    assert rows["down", ""].state is RouteState.DOWN


WELL = replace(status(), states={}, limited={}, recent=NO_USES)
EVERY = ("mock/echo/default", "v/m/a", "v/m/b", "v/m/c", "v/m/d")


def state_of(now: ProcessStatus, reloads: tuple[PastReload, ...] = ()) -> GatewayState:
    made = view(status=now)
    health = {target.label: health_of(now, target) for target in made.snapshot.targets()}
    return gateway_state(made, health, route_rows(made.snapshot, now), reloads)


def test_a_gateway_without_trouble_is_well() -> None:
    for reloads in ((), RELOADS[1:]):
        assert state_of(WELL, reloads) == GatewayState(Level.WELL, [], [], ())


def test_a_refused_config_file_is_trouble_until_a_reload_takes_one() -> None:
    refused = state_of(WELL, RELOADS)
    assert (refused.level, refused.reasons) == (
        Level.TROUBLED,
        ["the config file on disk is refused: a restart would fail"],
    )
    assert refused.refused == ("t.yaml:2:3 models: no vendor named v",)
    assert state_of(WELL, (PastReload(NOW, "abc"), *RELOADS)).level is Level.WELL


@looped("state", [*DeploymentState])
def test_a_name_without_a_target_that_is_up_is_trouble(state: DeploymentState) -> None:
    found = state_of(replace(WELL, states=dict.fromkeys(EVERY, state)))
    assert found.level is Level.TROUBLED
    assert found.failing == ["fast", "mock/echo", "v/m"]
    assert found.reasons == ["no target is up of fast, mock/echo, v/m", "5 of 5 deployments not up"]


def test_a_gateway_that_takes_no_requests_says_what_else_is_wrong() -> None:
    found = state_of(replace(WELL, ready=False), RELOADS)
    assert found.level is Level.NOT_READY
    assert [reason.partition(":")[0] for reason in found.reasons] == [
        "it takes no requests now",
        "the config file on disk is refused",
    ]
