"""How the gateway is shipped and run: without rights that it does not need, and without code that runs before it."""

import re
import subprocess
import sys
import sysconfig
from configparser import ConfigParser
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from proxy.http_client.address_guard import address_allowed
from tests.security.floor import ROOT
from tests.security.test_addresses import forms
from tests.support.forked_program import run_program

DEPLOY = ROOT / "deploy"
KNOWN_HOOKS = {
    "_dragoman.pth",  # this checkout, installed as editable
    "a1_coverage.pth",  # measures processes that tests start
    "distutils-precedence.pth",  # setuptools, in the environments of Python 3.11 and older
    "coverage.pth",
}
"""Files that the interpreter executes when it starts, in an environment for tests. The image has none."""


def one(path: Path) -> Any:  # noqa: ANN401 - YAML of other tools
    return yaml.safe_load(path.read_text("utf-8"))


def hook_check() -> str:
    """Return the shell line with which the image build searches for such files."""
    (line,) = re.findall(r"^RUN (! find .*)$", (DEPLOY / "Dockerfile").read_text("utf-8"), re.MULTILINE)
    return str(line)


@pytest.mark.parametrize(
    ("planted", "passes"),
    [(None, True), ("lib/x.pth", False), ("lib/sitecustomize.py", False), ("usercustomize.pyc", False)],
)
def test_the_image_is_not_built_with_a_file_that_python_runs_by_itself(
    tmp_path: Path, planted: str | None, passes: bool
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "module.py").touch()
    if planted is not None:
        (tmp_path / planted).touch()
    line = hook_check()
    assert "/opt/dragoman" in line
    done = subprocess.run(["sh", "-c", line.replace("/opt/dragoman", str(tmp_path))], capture_output=True, check=False)
    assert (done.returncode == 0) is passes


def test_no_dependency_brings_a_file_that_python_runs_by_itself() -> None:
    folder = Path(sysconfig.get_paths()["purelib"])
    found = {path.name for path in folder.rglob("*.pth")} | {path.name for path in folder.glob("*customize.*")}
    assert found - KNOWN_HOOKS == set()
    for name in found & {"_dragoman.pth"}:
        lines = (folder / name).read_text("utf-8").split("\n")
        assert [line for line in lines if line.startswith("import")] == []


def test_the_same_source_makes_the_same_wheel(tmp_path: Path) -> None:
    for number in ("1", "2"):
        command = [
            sys.executable,
            "-m",
            "hatchling",
            "build",
            "--target",
            "wheel",
            "--directory",
            str(tmp_path / number),
        ]
        subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    (first,), (second,) = (list((tmp_path / number).iterdir()) for number in ("1", "2"))
    assert first.name == second.name
    assert first.read_bytes() == second.read_bytes()


PINNED = re.compile(r"[a-z/]+:[\w.-]+@sha256:[0-9a-f]{64}")
"""An image by its digest, with the tag as a description."""


def test_base_images_are_pinned_by_digest() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    (base,) = re.findall(r"^ARG PYTHON=(.*)$", text, re.MULTILINE)
    assert PINNED.fullmatch(base)
    assert {line.split()[0] for line in re.findall(r"^FROM (.*)$", text, re.MULTILINE)} == {"${PYTHON}"}
    services = one(DEPLOY / "compose.yaml")["services"]
    bought = [service["image"] for service in services.values() if "build" not in service]
    assert [image for image in bought if not PINNED.fullmatch(image)] == []
    assert len(bought) == 2


def test_nothing_that_builds_or_installs_is_left_in_the_image() -> None:
    stages = (DEPLOY / "Dockerfile").read_text("utf-8").split("\nFROM ")
    assert "-r requirements-build.lock" in stages[1]
    assert "/opt/dragoman/bin/python install --no-deps --no-index /wheels" in stages[1]
    assert re.findall(r"requirements|pip install|pip wheel|/wheels", stages[2]) == []
    assert "rm -rf /usr/local/bin/pip*" in stages[2]


def test_the_image_trusts_no_working_directory_and_keeps_its_assertions() -> None:
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    assert "PYTHONSAFEPATH=1" in text
    assert "--require-hashes" in text
    assert not re.search(r"PYTHONOPTIMIZE|python -O|curl|wget|--trusted-host|ADD http", text)
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)


def test_the_pods_have_no_rights_to_lose() -> None:
    pod = one(DEPLOY / "kubernetes" / "deployment.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert "memory" in container["resources"]["limits"]
    # Uploads beyond the memory limit go into a volume of bounded size.
    (written,) = (mount for mount in container["volumeMounts"] if not mount.get("readOnly"))
    assert written == {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 - a path in the pod
    assert {"name": "tmp", "emptyDir": {"sizeLimit": "1100Mi"}} in pod["volumes"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


def test_the_composed_container_has_none_either() -> None:
    service = one(DEPLOY / "compose.yaml")["services"]["dragoman"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"mem_limit", "pids_limit"} <= service.keys()
    assert [mount for mount in service["volumes"] if not mount.endswith(":ro")] == ["uploads:/tmp"]
    assert [port for port in service["ports"] if not port.startswith("127.0.0.1:")] == []


def test_prometheus_has_none_either_and_takes_no_more_than_a_gateway_says() -> None:
    service = one(DEPLOY / "compose.yaml")["services"]["prometheus"]
    assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"mem_limit", "pids_limit"} <= service.keys()
    assert all(mount.endswith(":ro") for mount in service["volumes"])
    assert [port for port in service["ports"] if not port.startswith("127.0.0.1:")] == []
    (scrape,) = one(DEPLOY / "prometheus" / "prometheus.yml")["scrape_configs"]
    limits = {"body_size_limit", "sample_limit", "label_limit", "label_name_length_limit", "label_value_length_limit"}
    assert limits <= scrape.keys()
    assert scrape["follow_redirects"] is False
    assert "basic_auth" not in scrape
    assert scrape["authorization"].keys() == {"credentials_file"}


def policy() -> dict[str, Any]:
    """Return the network policy of the pods."""
    found: dict[str, Any] = one(DEPLOY / "kubernetes" / "networkpolicy.yaml")["spec"]
    return found


def may_call(address: str, port: int) -> bool:
    """Return whether the policy lets the pods call an address outside the cluster."""
    for rule in policy()["egress"]:
        ports = {each["port"] for each in rule["ports"]}
        for peer in rule["to"]:
            block = peer.get("ipBlock")
            if block is None or port not in ports:
                continue
            inside = [ip_network(block["cidr"]), *map(ip_network, block.get("except", []))]
            if [network for network in inside if ip_address(address) in network] == inside[:1]:
                return True
    return False


def test_the_pods_may_call_vendors_and_no_metadata_and_nobody_inside() -> None:
    pods = one(DEPLOY / "kubernetes" / "deployment.yaml")["spec"]["template"]["metadata"]["labels"]
    assert policy()["podSelector"] == {"matchLabels": pods}
    assert policy()["policyTypes"] == ["Ingress", "Egress"]
    for vendor in ("104.18.7.192", "2606:4700::6812:7c0", "64:ff9b::8.8.8.8"):
        assert may_call(vendor, 443)
        assert not may_call(vendor, 80)
        assert not may_call(vendor, 6379)
    for inner in ("169.254.169.254", "168.63.129.16"):
        assert [form for form in forms(inner).values() if may_call(form, 443) and address_allowed(form, True)] == []
        assert not may_call(inner, 443)
        assert not may_call(f"64:ff9b::{inner}", 443)
    for inside in ("10.0.0.1", "172.20.0.1", "192.168.1.1", "100.64.0.1", "127.0.0.1", "fd00:ec2::254", "fe80::1"):
        assert not may_call(inside, 443)


def test_nobody_but_prometheus_reaches_the_admin_port_of_the_pods() -> None:
    open_ports = [port["port"] for rule in policy()["ingress"] if "from" not in rule for port in rule["ports"]]
    assert open_ports == ["http"]
    (admin,) = [rule for rule in policy()["ingress"] if "from" in rule]
    assert [port["port"] for port in admin["ports"]] == ["admin"]
    # One peer with both selectors: two peers would each match alone.
    (peer,) = admin["from"]
    assert peer.keys() == {"namespaceSelector", "podSelector"}
    (container,) = one(DEPLOY / "kubernetes" / "deployment.yaml")["spec"]["template"]["spec"]["containers"]
    assert {port["name"] for port in container["ports"]} == {"http", "admin"}


HARDENED = (
    "DynamicUser",
    "LockPersonality",
    "MemoryDenyWriteExecute",
    "NoNewPrivileges",
    "PrivateDevices",
    "PrivateIPC",
    "PrivateTmp",
    "PrivateUsers",
    "ProtectClock",
    "ProtectControlGroups",
    "ProtectHome",
    "ProtectHostname",
    "ProtectKernelLogs",
    "ProtectKernelModules",
    "ProtectKernelTunables",
    "RemoveIPC",
    "RestrictNamespaces",
    "RestrictRealtime",
    "RestrictSUIDSGID",
)


def test_the_service_has_none_either() -> None:
    unit = ConfigParser(interpolation=None, strict=False)
    unit.read(DEPLOY / "systemd" / "dragoman.service", encoding="utf-8")
    service = unit["Service"]
    assert service["CapabilityBoundingSet"] == ""
    assert [name for name in HARDENED if service.get(name) != "yes"] == []
    assert (service["ProtectSystem"], service["ProtectProc"], service["ProcSubset"]) == ("strict", "invisible", "pid")
    assert (service["UMask"], service["SystemCallArchitectures"]) == ("0077", "native")
    assert [name for name in ("MemoryMax", "TasksMax", "SystemCallFilter") if not service.get(name)] == []
    text = (DEPLOY / "systemd" / "dragoman.service").read_text("utf-8")
    denied = {address for line in re.findall(r"^IPAddressDeny=(.*)$", text, re.MULTILINE) for address in line.split()}
    assert {"169.254.169.254", "fd00:ec2::254", "fd20:ce::254", "100.100.100.200"} <= denied
    assert [address for address in denied if address_allowed(address, True)] == []


@pytest.mark.skipif(sys.platform != "linux", reason="memory that cannot be written and run is Linux's")
def test_the_gateway_runs_where_memory_is_never_both_written_and_run() -> None:
    # This is the effect of MemoryDenyWriteExecute. Kernels before 6.3 do not support it and allow everything.
    deny = "import ctypes, os, sys; ctypes.CDLL(None).prctl(65, 1, 0, 0, 0); os.execv(sys.executable, sys.argv[1:])"
    demo = [sys.executable, "-m", "proxy", "demo", "--once"]
    done = subprocess.run([sys.executable, "-c", deny, *demo], cwd=ROOT, capture_output=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_the_process_does_not_start_with_an_admin_listener_that_anybody_could_reach(tmp_path: Path, host: str) -> None:
    table = tmp_path / "t.yaml"
    table.write_text(f"version: 1\nserver: {{admin: {{host: '{host}'}}}}\nvendors: {{mock: {{}}}}\n", "utf-8")
    done = run_program(("-m", "proxy", "serve", "-c", str(table), "--port", "0"))
    assert done.returncode == 1
    assert b"the admin listener needs a token to listen on an address other than loopback" in done.stderr
