"""The shipped files for Prometheus and Grafana, read as values: rules, alerts, dashboards and their expressions."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

DEPLOY: Final = Path(__file__).resolve().parents[2] / "deploy"
RULES: Final = DEPLOY / "prometheus" / "rules.yaml"
RULES_TEST: Final = DEPLOY / "prometheus" / "rules_test.yaml"
RUNBOOK: Final = DEPLOY.parent / "docs" / "runbook.md"
GRAFANA: Final = DEPLOY / "grafana"

GRAFANA_DURATIONS: Final = {"$__rate_interval": "5m", "$__range": "1h", "$__interval": "1m"}
"""The durations that stand in for Grafana's time variables."""


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert as written. `hold` is how long its expression must be true."""

    name: str
    expression: str
    hold: str
    labels: dict[str, str]
    annotations: dict[str, str]


@dataclass(frozen=True, slots=True)
class Expression:
    """A PromQL expression and its location."""

    where: str
    text: str


def rule_groups() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return groups


def alerts() -> dict[str, Alert]:
    """Return every alert by its name."""
    rules = [rule for group in rule_groups() for rule in group["rules"] if "alert" in rule]
    made = [
        Alert(rule["alert"], rule["expr"], rule.get("for", "0s"), rule["labels"], rule["annotations"]) for rule in rules
    ]
    return {alert.name: alert for alert in made}


def recorded() -> dict[str, str]:
    """Return the expression of every recording rule by the name of its series."""
    rules = [rule for group in rule_groups() for rule in group["rules"]]
    return {rule["record"]: rule["expr"] for rule in rules if "record" in rule}


def dashboards() -> dict[str, dict[str, Any]]:
    """Return every dashboard by the name of its file."""
    return {path.name: orjson.loads(path.read_bytes()) for path in sorted(GRAFANA.glob("*.json"))}


def panels(dashboard: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every panel, including the panels in collapsed rows, without the rows."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def dashboard_expressions(dashboard: dict[str, Any]) -> Iterator[Expression]:
    """Yield the PromQL of panels and annotations as written."""
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield Expression(f"{dashboard['title']}: {panel['title']} {target['refId']}", target["expr"])
    for annotation in dashboard["annotations"]["list"]:
        if "expr" in annotation:
            yield Expression(f"{dashboard['title']}: annotation {annotation['name']}", annotation["expr"])


def with_values(text: str) -> str:
    """Return a dashboard expression as Grafana sends it, with All chosen in every variable."""
    for name, duration in GRAFANA_DURATIONS.items():
        text = text.replace(name, duration)
    return re.sub(r"\$(\w+)|\$\{(\w+)\}", ".*", text)


def every_expression() -> list[Expression]:
    """Return every shipped expression as Prometheus receives it."""
    found = [Expression(f"record {name}", text) for name, text in recorded().items()]
    found += [Expression(f"alert {alert.name}", alert.expression) for alert in alerts().values()]
    for dashboard in dashboards().values():
        found += [Expression(each.where, with_values(each.text)) for each in dashboard_expressions(dashboard)]
    return found
