"""The JSON status has the same facts as the page."""

import orjson

from config.problem import Problem
from proxy.admin.recent_requests import RecentUse, RecentUses
from proxy.admin.status_json import recent_json, status_json, tokens_per_second
from tests.proxy.admin.kit import HOSTILE, RELOADS, view


def test_the_facts_of_the_page_are_there_as_values() -> None:
    facts = orjson.loads(orjson.dumps(status_json(view(), RELOADS, [Problem("t.yaml", 1, 2, "teams", "careful")])))
    assert facts["uptime_s"] == 90_061
    assert facts["ledger_rows_waiting"] == 3
    assert facts["states"] == {"v/m/a": "open", "v/m/b": "cooling", "v/m/c": "half_open"}
    assert facts["recent"]["seconds"] == 300
    assert facts["recent"]["whole"]["requests"] == facts["recent"]["deployments"]["v/m/a"]["requests"] == 20
    assert facts["recent"]["whole"]["tokens_per_second"] == 2.0
    called = facts["recent"]["deployments"]["v/m/a"]
    assert (called["prompt_tokens"], called["cached_tokens"]) == (800, 300)
    first = facts["failed_requests"][0]
    assert (first["request_id"], first["status"], first["duration_ms"]) == ("req-1", 502, 1500)
    assert first["attempts"][0] == {
        "deployment": "v/m/a",
        "outcome": "server",
        "status": 500,
        "duration_ms": 120,
        "message": "it broke",
    }
    assert [each["result"] for each in facts["reloads"]] == ["refused", "taken"]
    assert facts["warnings"] == ["t.yaml:1:2 teams: careful"]
    assert facts["state"] == "troubled"
    assert facts["config_refused"] == ["t.yaml:2:3 models: no vendor named v"]
    assert facts["failing_names"] == []
    assert facts["state_reasons"][0] == "the config file on disk is refused: a restart would fail"
    (route,) = facts["route_targets"]
    assert route["state"] == "up"
    assert (route["route"], route["team"], route["policy"], route["more"]) == ("fast", None, "priority", 0)
    assert route["targets"][1] == {
        **{"name": "v/m", "share": None, "state": "limited", "deployments": 4, "available": 2, "skipped": None}
    }
    assert len(facts["workers"]) == 2
    assert "workers" not in status_json(view(workers=None), (), ())


def test_a_window_without_length_divides_by_nothing() -> None:
    assert tokens_per_second(RecentUse(tokens=5), 0.0) == 5.0
    assert recent_json(RecentUses())["seconds"] == 0


def test_what_clients_word_can_be_written() -> None:
    text = HOSTILE.encode("utf-8", "replace").decode()
    assert b"alert(1)" in orjson.dumps(status_json(view(text), (), ()))
