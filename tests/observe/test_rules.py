"""Prometheus accepts the rules, their names exist in the gateway, and each alert has a test and a runbook paragraph."""

import re
from pathlib import Path

import aiohttp
import yaml

from proxy.telemetry.merged_metrics import MetricFamily, of_worker
from tests.observe.metric_list import FILE, every_instrument, metric_list, metric_rows
from tests.observe.promql_names import promql_names
from tests.observe.promtool import promtool
from tests.observe.shipped import RULES, RULES_TEST, RUNBOOK, Alert, alerts, every_expression, recorded
from tests.support.gateway import FRESH, running_gateway
from tests.support.looped import looped
from tests.support.source_files import texts

ALERTS = alerts()
ENDINGS = {"counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
SCRAPED = frozenset({"job", "instance"})
"""Labels that Prometheus adds to everything it scrapes."""


def known_series() -> dict[str, frozenset[str]]:
    """Return the labels of every series that the gateway exports, and of `up`."""
    rows = list(metric_rows(of_worker(1, every_instrument().families())))
    found = {
        f"{row.name}{ending}": frozenset(row.labels) | ({"le"} if ending == "_bucket" else frozenset())
        for row in rows
        for ending in ENDINGS[row.kind]
    }
    return {"up": frozenset(), **found}


def labels_of(name: str) -> frozenset[str]:
    """Return the labels of a scraped or recorded series. A recorded series has the labels that its name begins with."""
    if ":" in name:
        return frozenset(name.partition(":")[0].split("_")) - {"dragoman"}
    return known_series()[name] | SCRAPED


def test_promtool_takes_the_rules() -> None:
    done = promtool("check", "rules", str(RULES))
    assert done.returncode == 0, done.stdout.decode()
    assert f"{len(ALERTS) + len(recorded())} rules found" in done.stdout.decode()


def test_each_alert_fires_where_it_must_and_nowhere_else() -> None:
    done = promtool("test", "rules", str(RULES_TEST))
    assert done.returncode == 0, done.stdout.decode()


def test_each_alert_has_a_test_in_which_it_fires_and_a_time_at_which_it_does_not() -> None:
    tests = {test["name"]: test for test in yaml.safe_load(RULES_TEST.read_text(encoding="utf-8"))["tests"]}
    assert tests.keys() == ALERTS.keys()
    for name, test in tests.items():
        looks = [[each["labels"] for each in look["exp_samples"]] for look in test["promql_expr_test"]]
        fires = [any(f'alertname="{name}"' in labels for labels in look) for look in looks]
        assert set(fires) == {True, False}, name


@looped("alert", ALERTS.values(), ids=ALERTS)
def test_what_an_alert_says_has_its_labels_and_stays_short(alert: Alert) -> None:
    assert alert.labels.keys() == {"severity"}
    assert alert.labels["severity"] in {"critical", "warning"}
    assert alert.annotations.keys() == {"summary", "description", "runbook_url"}
    assert len(alert.annotations["summary"]) < 120
    used = {label for text in alert.annotations.values() for label in re.findall(r"\$labels\.(\w+)", text)}
    test = next(each for each in yaml.safe_load(RULES_TEST.read_text("utf-8"))["tests"] if each["name"] == alert.name)
    firing = str([look["exp_samples"] for look in test["promql_expr_test"]])
    fired = re.findall(r"ALERTS\{([^}]*" + alert.name + r"[^}]*)\}", firing)
    assert used <= set(re.findall(r"(\w+)=", fired[0])), fired


def test_each_alert_has_a_paragraph_and_each_paragraph_an_alert() -> None:
    headings = re.findall(r"^### (\w+)\n(.+?)(?=\n#|\Z)", RUNBOOK.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert [name for name, _ in headings] == list(ALERTS)
    for name, text in headings:
        assert ALERTS[name].annotations["runbook_url"] == f"docs/runbook.md#{name.lower()}"
        assert len(text.split()) > 40, name


def test_what_the_runbook_names_is_there() -> None:
    text = RUNBOOK.read_text(encoding="utf-8")
    histograms = {name.removesuffix("_count") for name in known_series()}
    assert set(re.findall(r"(?<![\w:])(?:dragoman|process)_\w+", text)) - known_series().keys() - histograms == set()
    assert set(re.findall(r"\bDragoman[A-Z]\w+", text)) == ALERTS.keys()
    assert set(re.findall(r"\bjob\w*:[\w:]+", text)) - recorded().keys() == set()


LOGGED = (
    *("the event loop has stood still", "has stood still", "idle connections of clients were closed"),
    *("no connection can be accepted", "the response is not affected", "reload refused"),
)
"""Parts of log messages that the runbook quotes."""


def test_each_log_line_that_the_runbook_quotes_is_written() -> None:
    source = " ".join(texts("proxy").values())
    assert [words for words in LOGGED if words not in source] == []
    quoted = " ".join(RUNBOOK.read_text(encoding="utf-8").split())
    assert [words for words in LOGGED if words not in quoted] == []


def test_every_name_in_a_rule_or_a_panel_is_one_that_the_gateway_shows() -> None:
    known = known_series().keys() | recorded().keys()
    for expression in every_expression():
        names = promql_names(expression.text)
        assert names.metrics.keys() <= known, expression
        for metric, selected in names.metrics.items():
            assert selected <= labels_of(metric), (expression, metric)
        every = frozenset().union(*(labels_of(metric) for metric in names.metrics)) if names.metrics else frozenset()
        assert names.grouped <= every, expression


def test_a_recorded_series_has_the_labels_that_its_name_begins_with() -> None:
    for name, text in recorded().items():
        assert promql_names(text).grouped - {"le"} == labels_of(name), name


def test_the_list_of_metrics_is_current() -> None:
    assert FILE.read_text(encoding="utf-8") == metric_list()


def test_the_list_has_what_plugins_and_the_answer_cache_count_by_their_labels() -> None:
    known = known_series()
    for word in ("calls", "seconds", "failures", "refusals", "dropped_rows"):
        assert known[f"dragoman_plugin_{word}_total"] == {"plugin"}
    for word in ("hits", "misses", "stored", "stale"):
        assert known[f"dragoman_cache_{word}_total"] == {"model"}


async def test_a_running_gateway_shows_what_the_list_has_and_nothing_that_it_lacks(tmp_path: Path) -> None:
    table = """
version: 1
vendors: {mock: {}}
models: {mock/echo: {}}
teams: {us: {keys: [{hash: "sha256:%s", expires: 2035-01-01}], models: ["*"], budget: {usd: 1, per: day}}}
"""
    async with running_gateway(table % ("0" * 64), tmp_path) as gateway:
        shown = set(await gateway.metrics())
        text = await exposition_of(gateway.admin_url)
    done = promtool("check", "metrics", given=text)
    assert done.returncode == 0, done.stdout.decode()
    known = known_series()
    found = {name.partition("{")[0]: set(re.findall(r'(\w+)="', name)) for name in shown}
    assert {"dragoman_targets_available", "dragoman_ledger_trouble", "dragoman_memory_used_ratio"} <= found.keys()
    for name, labels in found.items():
        assert labels <= known[name], name


async def exposition_of(url: str) -> bytes:
    async with aiohttp.ClientSession(headers=FRESH) as http, http.get(f"{url}/metrics") as answer:
        return await answer.read()


def test_every_metric_that_there_can_be_passes_promtool_and_has_a_unit() -> None:
    text = every_instrument().render()
    done = promtool("check", "metrics", given=text)
    assert done.returncode == 0, done.stdout.decode()
    assert not done.stdout, done.stdout.decode()
    for family in every_instrument().families():
        assert isinstance(family, MetricFamily)
        if family.kind == "histogram":  # promtool does not require this of histograms
            assert family.name.endswith("_seconds"), family.name
