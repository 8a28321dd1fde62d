"""Names that teams and routes must not have."""

import pytest

from config.reserved_names import RESERVED_ROUTES, RESERVED_TEAMS
from proxy.request_record import NO_TEAM, OTHER, UNKNOWN_TEAM, RequestRecord
from proxy.telemetry.request_counts import NO_DEPLOYMENT
from tests.config.tables import BASE, complaints
from tests.support.looped import looped

KEY = "sha256:" + "a" * 64


def test_they_are_the_label_values_that_the_gateway_uses() -> None:
    assert {NO_TEAM, OTHER, UNKNOWN_TEAM} == RESERVED_TEAMS
    assert {OTHER, NO_DEPLOYMENT} == RESERVED_ROUTES
    blank = RequestRecord("", 0.0, "", "")
    assert (blank.team, blank.model) == (UNKNOWN_TEAM, OTHER)


@looped("name", sorted(RESERVED_TEAMS))
def test_a_team_cannot_have_one(name: str) -> None:
    (told,) = complaints(f"{BASE}teams:\n  {name}: {{keys: ['{KEY}'], models: ['*']}}\n")
    words = "this name is reserved: metrics and the log use anonymous, other, unknown for requests without a team"
    assert told.endswith(f":3 teams.{name}: {words}; choose another")


@pytest.mark.parametrize("name", sorted(RESERVED_ROUTES))
def test_nor_can_a_route_of_everybody_or_of_a_team(name: str) -> None:
    route = f"routes: {{{name}: local/x}}"
    everybody, teams = complaints(f"{BASE}{route}\nteams: {{t: {{keys: ['{KEY}'], models: ['*'], {route}}}}}\n")
    assert everybody.partition(" ")[2].startswith(
        f"routes.{name}: this name is reserved: metrics and the log use none, other for"
    )
    assert f" teams.t.routes.{name}: this name is reserved: " in teams


def test_models_and_vendors_and_deployments_may_have_them() -> None:
    text = "version: 1\nvendors: {other: {profile: mock}}\nmodels: {other/none: {deployments: {unknown: {}}}}\n"
    assert complaints(text) == []
