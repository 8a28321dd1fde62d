"""Routes as they stand: which targets are passed over, why, and which routes come first."""

from dataclasses import replace

from proxy.admin.route_states import MOST_TARGETS, Health, route_rows
from proxy.admin.status import DeploymentState
from tests.proxy.admin.kit import TABLE, status, table
from tests.proxy.kit.tables import digest_of, snapshot

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


def test_those_of_which_nothing_is_asked_come_first_and_then_those_in_part() -> None:
    rows = route_rows(snapshot(ROUTES), status())
    assert [(row.name, row.team, row.passed, row.down) for row in rows] == [
        ("down", "", 2, True),
        ("well", "search", 1, True),
        ("part", "", 1, False),
        ("round", "", 1, False),
        ("inner", "", 0, False),
        ("well", "", 0, False),
    ]


def test_a_target_is_as_well_as_the_best_of_its_deployments() -> None:
    rows = {(row.name, row.team): row for row in route_rows(snapshot(ROUTES), status())}
    inner = rows["inner", ""].targets
    assert [(each.health, each.up, each.deployments, each.why) for each in inner] == [
        (Health.UP, 1, 2, ""),
        (Health.TRIAL, 1, 1, ""),
    ]
    first, second = rows["down", ""].targets
    assert first.why == "breaker open after server, status 500: it broke, next probe in 12 s"
    assert second.why == "cooling down, next probe in 70 s"
    assert rows["round", ""].targets[1].why == "weight 0: out of service"


def test_the_reasons_of_a_few_deployments_are_told() -> None:
    states = dict.fromkeys(("v/m/a", "v/m/b", "v/m/c", "v/m/d", "mock/echo/default"), DeploymentState.OPEN)
    (row,) = route_rows(table(), replace(status(), states=states))
    assert row.down
    assert row.targets[1].why.count("breaker open") == 3
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
    assert (len(row.targets), row.more, row.passed, row.down) == (MOST_TARGETS, 5, 1, False)


def test_a_deployment_out_of_service_is_told_as_such_whatever_its_state() -> None:
    made = snapshot(ROUTES.replace("a: {}, b: {}", "a: {out_of_service: true}, b: {out_of_service: true}"))
    rows = {(row.name, row.team): row for row in route_rows(made, status())}
    assert [(each.health, each.why) for each in rows["down", ""].targets] == [
        (Health.OUT_OF_SERVICE, "out of service")
    ] * 2
    assert rows["down", ""].down
