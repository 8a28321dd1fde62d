"""The teams for which a failure counts: one team's outcomes against the outcomes of the others."""

from providers.failure import Failure, FailureKind
from proxy.deployment_health.recent_failures import Ruling, Witnesses
from tests.support.looped import looped

BROKEN = Failure(FailureKind.SERVER, "broken", 500)


def witnesses_of(*outcomes: tuple[str, float, bool]) -> Witnesses:
    """Return witnesses of outcomes, each with its team and time."""
    witnesses = Witnesses(30.0)
    for team, at, well in outcomes:
        if well:
            witnesses.succeeded(team, at)
        else:
            witnesses.failed(team, BROKEN, at)
    return witnesses


@looped(
    ("before", "ruling"),
    [
        ([], Ruling.TEAM),
        ([("a", 99.0, True)], Ruling.TEAM),
        ([("b", 99.0, True)], Ruling.NOBODY),
        ([("b", 99.0, True), ("c", 99.0, True)], Ruling.NOBODY),
        ([("b", 99.0, False)], Ruling.ALL),
        ([("b", 99.0, True), ("c", 99.0, False)], Ruling.ALL),
        ([("b", 98.0, False), ("b", 99.0, True)], Ruling.NOBODY),
        ([("b", 98.0, True), ("b", 99.0, False)], Ruling.ALL),
        ([("b", 69.0, True)], Ruling.TEAM),
        ([("b", 69.0, False)], Ruling.TEAM),
    ],
)
def test_a_team_s_failure_counts_for_all_who_saw_one(before: list[tuple[str, float, bool]], ruling: Ruling) -> None:
    assert witnesses_of(*before).failed("a", BROKEN, 100.0) is ruling


@looped(
    ("failure", "ruling"),
    [
        (Failure(FailureKind.CONNECT, "x"), Ruling.ALL),
        (Failure(FailureKind.TLS, "x"), Ruling.ALL),
        (Failure(FailureKind.AUTH, "x", 401), Ruling.NOBODY),
        (Failure(FailureKind.AUTH, "x", 403), Ruling.NOBODY),
        (Failure(FailureKind.TIMEOUT, "x"), Ruling.NOBODY),
    ],
)
def test_what_no_request_can_bring_about_counts_for_all(failure: Failure, ruling: Ruling) -> None:
    assert witnesses_of(("b", 99.0, True)).failed("a", failure, 100.0) is ruling


def test_without_teams_a_failure_counts_for_all() -> None:
    assert witnesses_of(("", 99.0, True)).failed("", BROKEN, 100.0) is Ruling.ALL
