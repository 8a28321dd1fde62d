"""A gateway that listens beyond loopback, with and without teams."""

from config.checks.open_listener import exposure_problems, exposure_warnings
from tests.config.tables import load


def test_a_gateway_beyond_loopback_needs_teams_or_the_operators_consent() -> None:
    closed, wide = load("version: 1"), load("version: 1\nserver:\n  host: 0.0.0.0\n")
    with_teams = load(f"version: 1\nteams: {{t: {{keys: ['sha256:{'a' * 64}']}}}}\n")
    assert exposure_problems(closed, None, False) == ()
    assert exposure_problems(wide, None, True) == ()
    assert exposure_problems(wide, "127.0.0.1", False) == ()
    assert exposure_problems(with_teams, "0.0.0.0", False) == ()
    (problem,) = exposure_problems(wide, None, False)
    assert str(problem).startswith("t.yaml:3:9 server.host: without teams anyone who reaches this address")
    assert len(exposure_problems(closed, "0.0.0.0", False)) == 1
    (warning,) = exposure_warnings(wide, None, True)
    assert str(warning).startswith("t.yaml:3:9 server.host: there are no teams: anyone who reaches this address can")
    assert exposure_warnings(wide, None, False) == exposure_warnings(wide, "127.0.0.1", True) == ()
    assert exposure_warnings(with_teams, "0.0.0.0", True) == ()
    (problem,) = exposure_problems(closed, "0.0.0.0", False)
    assert str(problem) == (
        "the command line, --host: without teams anyone who reaches this address could use the keys: add teams, or "
        "listen on 127.0.0.1; --insecure-open accepts this"
    )
