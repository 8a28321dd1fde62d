"""The Helm chart produces the objects of deploy/kubernetes, in a form that Kubernetes accepts.

Needs neither Helm nor a cluster. The committed digests show that the rendered files belong to this chart; `--nightly`
renders them anew if Helm is installed.
"""

import shutil
from copy import deepcopy
from ipaddress import IPv6Network, ip_network
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest
import yaml

from providers.json_types import JsonObject
from proxy.version import VERSION
from tests.deploy.kubernetes_judge import NEWEST, OLDEST, complaints
from tests.deploy.rendered import CHART, MARKS, RELEASES, VALUES, committed, digests, objects, render
from tests.support.gateway import ROOT
from tests.support.looped import looped

BASE = ROOT / "deploy" / "kubernetes"
HELMS = {"app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart"}
"""Labels that Helm's tools need. Objects that are applied by hand do not have them."""


def in_yaml(path: Path) -> Any:  # noqa: ANN401 - YAML of other tools
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def named(found: list[JsonObject]) -> dict[tuple[str, str], Any]:
    """Return the objects by kind and name, without the labels that Helm adds."""
    made: dict[tuple[str, str], Any] = {}
    for each in deepcopy(found):
        metadata: Any = each["metadata"]
        metadata["labels"] = {k: v for k, v in metadata.get("labels", {}).items() if k not in HELMS}
        made[str(each["kind"]), metadata["name"]] = each
    return made


def base() -> dict[tuple[str, str], Any]:
    listed = in_yaml(BASE / "kustomization.yaml")["resources"]
    return named([each for name in listed for each in objects((BASE / name).read_text(encoding="utf-8"))])


def only(kind: str, case: str) -> Any:  # noqa: ANN401 - an object of Kubernetes
    (found,) = (each for each in committed(case) if each["kind"] == kind)
    return found


def pod_of(case: str) -> Any:  # noqa: ANN401 - an object of Kubernetes
    return only("StatefulSet" if case == "claim" else "Deployment", case)["spec"]["template"]


def test_what_is_committed_was_rendered_of_this_chart() -> None:
    assert MARKS.read_text(encoding="utf-8") == digests(), "run python -m tests.deploy.rendered"


def test_the_chart_is_of_the_gateway_s_version() -> None:
    chart = in_yaml(CHART / "Chart.yaml")
    assert (chart["version"], chart["appVersion"]) == (VERSION, VERSION)


def test_the_chart_without_values_makes_the_objects_of_the_base() -> None:
    made = named(committed("default"))
    assert made.pop(("Pod", "dragoman-test"))["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert made == base()


@pytest.mark.parametrize("version", [pytest.param(OLDEST, marks=pytest.mark.nightly), NEWEST])
def test_kubernetes_takes_every_object(version: str, tmp_path: Path) -> None:
    routes = [in_yaml(path) for path in sorted((ROOT / "deploy" / "gateway-api").iterdir())]
    assert complaints([*routes, *(each for case in RELEASES for each in committed(case))], version, tmp_path) == ""
    wrong: Any = deepcopy(only("Deployment", "default"))
    wrong["spec"]["strategy"]["rollingUpdate"]["maxUnavailableX"] = 0
    assert "maxUnavailableX" in complaints([wrong], version, tmp_path)


@pytest.mark.parametrize("case", ["default", "everything"])
def test_the_network_policy_names_blocks_that_the_api_takes(case: str) -> None:
    """Only the API server, not its schema, requires that exceptions are parts of their block, and refuses IPv4 within
    IPv6."""
    peers = [peer for rule in only("NetworkPolicy", case)["spec"]["egress"] for peer in rule["to"]]
    for block in (peer["ipBlock"] for peer in peers if "ipBlock" in peer):
        whole = ip_network(block["cidr"])
        for part in map(ip_network, block.get("except", [])):
            assert part != whole
            assert part.version == whole.version
            assert part.subnet_of(whole)  # type: ignore[arg-type] # of one version
            assert not isinstance(part, IPv6Network) or part.network_address.ipv4_mapped is None


# Values -------------------------------------------------------------------------------------------------------------


def schema() -> Any:  # noqa: ANN401 - a schema
    return orjson.loads((CHART / "values.schema.json").read_bytes())


def refused(values: JsonObject) -> bool:
    return not jsonschema.Draft7Validator(schema()).is_valid(values)


def test_every_value_has_a_schema_and_every_schema_a_value() -> None:
    values = in_yaml(CHART / "values.yaml")
    assert values.keys() == schema()["properties"].keys() - {"global"}
    jsonschema.Draft7Validator.check_schema(schema())
    assert not refused(values)
    for name, section in schema()["properties"].items():
        if section.get("additionalProperties") is False and name != "resources":
            assert values[name].keys() == section["properties"].keys(), name
    for path in VALUES.glob("*.yaml"):
        assert not refused(in_yaml(path))


@looped(
    "values",
    [
        {"replica": 3},
        {"replicas": "3"},
        {"table": "vendors: {}"},
        {"image": {"repository": "dragoman", "digest": "latest"}},
        {"journal": {"kind": "disk"}},
        {"podMonitor": {"enabled": "yes"}},
        {"autoscaling": {"cpu": "much"}},
        {"secrets": {"a/b": "x"}},
        {"secrets": {"openai": ""}},
        {"httpRoute": {"timeouts": {"request": "forever"}}},
        {"extraEnv": [{"value": "x"}]},
        {"terminationGracePeriodSeconds": 5},
    ],
    ids=lambda values: next(iter(values)),
)
def test_values_that_mean_nothing_are_refused(values: JsonObject) -> None:
    assert refused(values)


# Optional objects ----- -----------------------------------------------------------------------------------------------


def test_the_autoscaler_asks_for_requests_in_flight_and_leaves_the_number_of_pods_to_nobody_else() -> None:
    spec = only("HorizontalPodAutoscaler", "everything")["spec"]
    deployment = only("Deployment", "everything")
    assert spec["scaleTargetRef"]["name"] == deployment["metadata"]["name"]
    assert "replicas" not in deployment["spec"]
    assert [metric["type"] for metric in spec["metrics"]] == ["Pods", "Resource"]
    name = spec["metrics"][0]["pods"]["metric"]["name"]
    assert f"| `{name}` | gauge |" in (ROOT / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8")
    told = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    assert f"seriesQuery: '{name}{{" in told


def test_monitors_show_the_token_of_the_secret_to_the_port_of_the_pods() -> None:
    ports = {port["name"] for port in pod_of("everything")["spec"]["containers"][0]["ports"]}
    (of_pods,) = only("PodMonitor", "everything")["spec"]["podMetricsEndpoints"]
    (of_service,) = only("ServiceMonitor", "everything")["spec"]["endpoints"]
    for endpoint in (of_pods, of_service):
        assert endpoint["port"] in ports
        assert endpoint["authorization"]["credentials"] == {"name": "gateway-secrets", "key": "admin-token"}


@looped("case", RELEASES)
def test_services_select_the_pods_and_never_the_test(case: str) -> None:
    labels = pod_of(case)["metadata"]["labels"].items()
    asking = only("Pod", case)["metadata"]["labels"].items()
    selectors = [
        each["spec"]["selector"].items() for each in named(committed(case)).values() if each["kind"] == "Service"
    ]
    assert len(selectors) == 2
    assert all(selector <= labels and not selector <= asking for selector in selectors)


@looped("case", RELEASES)
def test_every_pod_is_held_to_the_restricted_standard(case: str) -> None:
    for spec in (pod_of(case)["spec"], only("Pod", case)["spec"]):
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert spec["automountServiceAccountToken"] is False
        (container,) = spec["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_the_test_runs_python_that_compiles() -> None:
    python, option, code, name, port, scheme = only("Pod", "claim")["spec"]["containers"][0]["command"]
    assert (python, option) == ("python", "-c")
    compile(code, "ask.py", "exec")
    (service,) = (each for key, each in named(committed("claim")).items() if key == ("Service", name))
    assert [str(each["port"]) for each in service["spec"]["ports"]] == [port]
    assert scheme == pod_of("claim")["spec"]["containers"][0]["readinessProbe"]["httpGet"]["scheme"]


def test_a_journal_that_loses_nothing_is_a_volume_of_each_pod() -> None:
    stateful = only("StatefulSet", "claim")["spec"]
    (claim,) = stateful["volumeClaimTemplates"]
    assert stateful["persistentVolumeClaimRetentionPolicy"] == {"whenDeleted": "Retain", "whenScaled": "Retain"}
    for case in ("claim", "everything"):
        spec = pod_of(case)["spec"]
        places = {each["name"]: each["mountPath"] for each in spec["containers"][0]["volumeMounts"]}
        assert places["journal"] == "/var/lib/dragoman"
        assert ("journal" in {each["name"] for each in spec["volumes"]}) is (case == "everything")
    assert claim["metadata"]["name"] == "journal"


def test_the_route_is_that_of_the_chart() -> None:
    alone = in_yaml(ROOT / "deploy" / "gateway-api" / "route.yaml")
    charts = only("HTTPRoute", "everything")
    (rule,), (of_chart,) = alone["spec"]["rules"], charts["spec"]["rules"]
    assert of_chart["backendRefs"][0].pop("name") == charts["metadata"]["name"]
    assert ("Service", rule["backendRefs"][0].pop("name")) in base()
    assert alone["spec"] == charts["spec"]


@pytest.mark.nightly
@pytest.mark.parametrize("case", RELEASES)
def test_helm_renders_what_is_committed(case: str) -> None:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("helm is not installed")
    assert objects(render(helm, case)) == committed(case)
