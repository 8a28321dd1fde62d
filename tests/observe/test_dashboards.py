"""The dashboards are valid for Grafana, are readable, and send only queries that Prometheus accepts."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.observe.grafana_schema import ENVIRONMENT, unknown_members
from tests.observe.promtool import promtool
from tests.observe.shipped import (
    DEPLOY,
    GRAFANA,
    Expression,
    dashboard_expressions,
    dashboards,
    panels,
    recorded,
    with_values,
)
from tests.support.environments import LineProcess
from tests.support.looped import looped

BOARDS = dashboards()

BEYOND_THE_SCHEMA = frozenset({".annotations.list[0].titleFormat is unknown"})
"""Fields of the Prometheus data source's annotations, which the dashboard model leaves open."""


@pytest.fixture(scope="module")
def grafana() -> Iterator[LineProcess]:
    with LineProcess(ENVIRONMENT, "tests.observe.grafana_schema") as process:
        yield process


def test_there_are_the_three_dashboards_with_addresses_of_their_own() -> None:
    assert set(BOARDS) == {"overview.json", "deployments.json", "teams-and-cost.json"}
    assert {board["uid"] for board in BOARDS.values()} == {f"dragoman-{name.removesuffix('.json')}" for name in BOARDS}
    assert {board["id"] for board in BOARDS.values()} == {None}


@looped("name", BOARDS)
def test_grafana_s_own_model_knows_every_member(name: str, grafana: LineProcess) -> None:
    read = json.loads(grafana.exchange(json.dumps(BOARDS[name])))
    assert set(unknown_members(BOARDS[name], read)) <= BEYOND_THE_SCHEMA


def test_a_member_that_grafana_does_not_know_is_found(grafana: LineProcess) -> None:
    board: dict[str, Any] = json.loads((GRAFANA / "overview.json").read_bytes())
    first = next(panels(board))
    first["options"]["colourMode"] = "value"
    first["fieldConfig"]["defaults"]["units"] = "s"
    read = json.loads(grafana.exchange(json.dumps(board)))
    found = {line.rpartition(".")[2] for line in unknown_members(board, read)}
    assert {"colourMode is unknown", "units is unknown"} <= found


@looped("name", BOARDS)
def test_every_panel_says_what_it_shows_in_which_unit_from_the_chosen_source(name: str) -> None:
    board = BOARDS[name]
    every = list(panels(board))
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert len({panel["title"] for panel in every}) == len(every)
    for panel in every:
        assert panel["description"].endswith("."), panel["title"]
        assert panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert {target["datasource"]["uid"] for target in panel["targets"]} == {"${datasource}"}
        assert panel["targets"][0]["expr"]


@looped("name", BOARDS)
def test_panels_stand_in_rows_and_not_on_each_other(name: str) -> None:
    board = BOARDS[name]
    assert board["panels"][0]["type"] == "row"
    places = [panel["gridPos"] for panel in board["panels"]]
    assert all(place["x"] + place["w"] <= 24 for place in places)
    for one, other in combinations(places, 2):
        across = one["x"] < other["x"] + other["w"] and other["x"] < one["x"] + one["w"]
        along = one["y"] < other["y"] + other["h"] and other["y"] < one["y"] + one["h"]
        assert not (across and along), (one, other)


@looped("name", BOARDS)
def test_every_variable_is_used_and_every_one_used_is_there(name: str) -> None:
    board = BOARDS[name]
    names = {variable["name"] for variable in board["templating"]["list"]}
    used = {
        word
        for expression in dashboard_expressions(board)
        for word in re.findall(r"\$(\w+)", re.sub(r"\$__\w+", "", expression.text))
    }
    assert names - {"datasource"} == used
    assert board["templating"]["list"][0]["type"] == "datasource"
    assert all(
        "instance" in each.text or "job" in each.text for each in dashboard_expressions(board) if "up" in each.where
    )


@looped("name", BOARDS)
def test_a_new_table_is_marked_on_every_dashboard(name: str) -> None:
    (mark,) = BOARDS[name]["annotations"]["list"]
    assert "dragoman_config_info" in mark["expr"]
    assert mark["enable"] is True


@looped(
    ("metric", "by"),
    [("dragoman_affinity_total", "outcome"), ("dragoman_hedges_total", "outcome")]
    + [(f"dragoman_{kind}_tokens_total", "deployment") for kind in ("cached", "prompt")],
)
def test_the_work_of_affinity_and_of_second_attempts_is_on_the_dashboard_of_deployments(metric: str, by: str) -> None:
    found = [each.text for each in dashboard_expressions(BOARDS["deployments.json"]) if f"rate({metric}{{" in each.text]
    assert len(found) == 1
    assert f"sum by ({by}) (rate({metric}{{" in found[0]


def test_prometheus_reads_every_expression_of_the_dashboards(tmp_path: Path) -> None:
    found = [each for board in BOARDS.values() for each in dashboard_expressions(board)]
    assert len(found) > 50
    assert promtool("check", "rules", as_rules(found, tmp_path)).returncode == 0
    broken = promtool("check", "rules", as_rules([Expression("broken", "sum by (job (up)")], tmp_path))
    assert broken.returncode != 0


def as_rules(expressions: list[Expression], folder: Path) -> str:
    """Write a rules file with the expressions, for promtool to parse, and return its path."""
    rules = [{"record": f"e:{number}", "expr": with_values(each.text)} for number, each in enumerate(expressions)]
    path = folder / "expressions.yaml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "expressions", "rules": rules}]}), encoding="utf-8")
    return str(path)


def test_what_a_panel_takes_from_the_rules_is_recorded_there() -> None:
    used = {
        name
        for board in BOARDS.values()
        for each in dashboard_expressions(board)
        for name in re.findall(r"\b\w+:\w+:\w+", each.text)
    }
    assert used
    assert used <= recorded().keys()


def test_compose_provisions_grafana_with_prometheus_and_the_dashboards() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    mounts = dict(mount.removesuffix(":ro").split(":") for mount in services["grafana"]["volumes"])
    provisioning = GRAFANA / "provisioning"
    assert mounts["./grafana/provisioning"] == "/etc/grafana/provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources" / "dragoman.yaml").read_text("utf-8"))["datasources"]
    assert source["url"] == "http://prometheus:9090"
    (folder,) = yaml.safe_load((provisioning / "dashboards" / "dragoman.yaml").read_text("utf-8"))["providers"]
    assert {f"{folder['options']['path']}/{name}" for name in BOARDS} == {
        inside for outside, inside in mounts.items() if outside.endswith(".json")
    }
    assert all((DEPLOY / outside).exists() for outside in mounts)


def test_compose_gives_prometheus_the_rules_that_its_configuration_names(tmp_path: Path) -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    mounts = {
        inside: outside
        for outside, inside in (m.removesuffix(":ro").split(":") for m in services["prometheus"]["volumes"])
    }
    text = (DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8")
    (rules,) = yaml.safe_load(text)["rule_files"]
    assert (DEPLOY / mounts[f"/etc/prometheus/{rules}"]).is_file()
    # promtool also looks for the token's file.
    token = tmp_path / "token"
    token.touch()
    (tmp_path / rules).write_text((DEPLOY / "prometheus" / rules).read_text("utf-8"), encoding="utf-8")
    (tmp_path / "prometheus.yml").write_text(text.replace("/run/secrets/admin_token", str(token)), encoding="utf-8")
    done = promtool("check", "config", str(tmp_path / "prometheus.yml"))
    assert done.returncode == 0, done.stdout.decode()
