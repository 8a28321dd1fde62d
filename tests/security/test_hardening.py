"""How the gateway is shipped and run: with no rights it does not need, and with nothing that runs before it."""

import re
import subprocess
import sys
import sysconfig
from configparser import ConfigParser
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.security.floor import ROOT

DEPLOY = ROOT / "deploy"
KNOWN_HOOKS = {
    "_dragoman.pth",  # this checkout, installed as editable
    "a1_coverage.pth",  # measures processes that tests start
    "distutils-precedence.pth",  # setuptools, in the environments of Python 3.11 and older
    "coverage.pth",
}
"""Files that the interpreter acts on when it starts, in an environment for tests. The image has none."""


def one(path: Path) -> Any:  # noqa: ANN401 - YAML of other tools
    """The only document of a YAML file."""
    return yaml.safe_load(path.read_text("utf-8"))


def hook_check() -> str:
    """The shell line by which the build of the image looks for such files."""
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
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()


def test_the_composed_container_has_none_either() -> None:
    service = one(DEPLOY / "compose.yaml")["services"]["dragoman"]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"mem_limit", "pids_limit"} <= service.keys()
    assert all(mount.endswith(":ro") for mount in service["volumes"])
    assert [port for port in service["ports"] if not port.startswith("127.0.0.1:")] == []


def test_the_service_has_none_either() -> None:
    unit = ConfigParser(interpolation=None, strict=False)
    unit.read(DEPLOY / "systemd" / "dragoman.service", encoding="utf-8")
    service = unit["Service"]
    assert service["CapabilityBoundingSet"] == ""
    assert {service[name] for name in ("DynamicUser", "NoNewPrivileges", "PrivateTmp", "PrivateDevices")} == {"yes"}
    assert service["ProtectSystem"] == "strict"
    assert [name for name in ("MemoryMax", "TasksMax", "SystemCallFilter") if not service.get(name)] == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_the_process_does_not_start_with_an_admin_listener_that_anybody_could_reach(tmp_path: Path, host: str) -> None:
    table = tmp_path / "t.yaml"
    table.write_text(f"version: 1\nserver: {{admin: {{host: '{host}'}}}}\nvendors: {{mock: {{}}}}\n", "utf-8")
    command = [sys.executable, "-m", "proxy", "serve", "-c", str(table), "--port", "0"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert "the admin listener needs a token to listen on another address than loopback" in done.stderr
