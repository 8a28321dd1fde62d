"""The shipped deployment files agree with the gateway: ports, paths, times, config files. No container is started."""

import re
import shutil
import subprocess
import sys
from configparser import ConfigParser
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import yaml
from typing_extensions import override

from config.checks.open_listener import exposure_problems
from config.load_config import Loaded, load_text
from config.sections.server_section import ServerSection
from providers.emulation.plan_calls import CallPlan
from proxy.cli.arguments import argument_parser
from proxy.cli.chosen_table import chosen_table
from proxy.gateway.dry_run import explained
from proxy.gateway.pass_on_task import SPOOLED_BYTES
from proxy.listener.health_endpoints import HEALTH_PATHS
from proxy.process.table_checks.check_max_tokens import needed_limits
from proxy.routing.resolve_model import covered
from proxy.routing.snapshot import build_snapshot
from proxy.version import VERSION
from tests.support.cpu_growth import growth
from tests.support.gateway import running_gateway
from tests.support.looped import looped

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
KUBERNETES = DEPLOY / "kubernetes"
TEMPLATES = DEPLOY / "helm" / "dragoman" / "templates"
YAML_FILES = sorted(path for path in (*DEPLOY.rglob("*.yaml"), *DEPLOY.rglob("*.yml")) if TEMPLATES not in path.parents)

DEFAULTS = ServerSection()
DIGEST = "sha256:" + "a" * 64
"""The content of every secret file in these tests. Every field with a secret accepts a digest."""

UPLOADS = "/tmp"  # noqa: S108 - the container's own
"""The folder for uploads that are too large for memory."""

SLACK = 10
"""Seconds that a stop may take beyond the configured drain: settling, the last log lines, the end of the process."""


def load_shipped(text: str, folder: Path) -> Loaded:
    for name in re.findall(r"\$\{file:([^}]+)\}", text):
        (folder / Path(name).name).write_text(DIGEST, encoding="utf-8")
    moved = re.sub(r"\$\{file:[^}]+/", f"${{file:{folder}/", text)
    table = load_text(moved, "table.yaml", {"TEAM_KEY_DIGEST": DIGEST})
    build_snapshot(table)
    assert exposure_problems(table, None, False) == ()
    return table


def drain_of(server: ServerSection) -> float:
    """Return the longest time that a stop takes, in seconds."""
    return server.drain_grace + server.drain_timeout + SLACK


def one(path: Path) -> Any:  # noqa: ANN401 - YAML of other tools
    (document,) = yaml.safe_load_all(path.read_text(encoding="utf-8"))
    return document


def test_nothing_shipped_here_is_python() -> None:
    assert list(DEPLOY.rglob("*.py")) == []


@looped("path", YAML_FILES, ids=lambda path: path.name)
def test_every_yaml_file_parses(path: Path) -> None:
    assert all(isinstance(document, dict) for document in yaml.safe_load_all(path.read_text(encoding="utf-8")))


# The image ----------------------------------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    pairs = [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]
    last = max(number for number, (keyword, _) in enumerate(pairs) if keyword == "FROM")
    return pairs[last:]


def instruction(keyword: str) -> str:
    (argument,) = (argument for name, argument in instructions() if name == keyword)
    return argument


def copied() -> list[str]:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    lines = re.findall(r"^COPY (?!--from)(.*) \S+$", text, re.MULTILINE)
    return [name for line in lines for name in line.split()]


def health_code() -> str:
    """Return the Python code of the image's health check."""
    command = instruction("HEALTHCHECK").partition("CMD ")[2]
    interpreter, option, code = yaml.safe_load(command)
    assert (interpreter, option) == ("python", "-c")
    return str(code)


def test_the_image_runs_unprivileged_and_safely() -> None:
    assert int(instruction("USER").partition(":")[0]) > 0
    assert instruction("STOPSIGNAL") == "SIGTERM"
    assert "PYTHONSAFEPATH=1" in instruction("ENV").split()
    assert instruction("EXPOSE").split() == [str(DEFAULTS.port), str(DEFAULTS.admin.port)]


def test_the_image_starts_a_command_there_is() -> None:
    assert yaml.safe_load(instruction("ENTRYPOINT")) == ["dragoman"]
    arguments = argument_parser().parse_args(yaml.safe_load(instruction("CMD")))
    named = dict(setting.split("=", 1) for setting in instruction("ENV").split())
    table = Path("/etc/dragoman/table.yaml")
    assert chosen_table(arguments.config, arguments.table, named, Path("/")).path == table


def test_the_bytecode_in_the_image_has_no_times() -> None:
    """With times, two builds would be different images, and an image whose files have other times would compile at
    every start."""
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    build, final = text.split("\nFROM ")[1:]
    assert "PIP_NO_COMPILE=1" in build
    (compiled,) = re.findall(r"-m compileall (.*)$", build, re.MULTILINE)
    assert "--invalidation-mode unchecked-hash" in compiled
    assert all("ARG SOURCE_DATE_EPOCH\n" in stage for stage in (build, final))


def test_the_image_is_built_of_what_the_builder_is_sent() -> None:
    ignore = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    sent = {line.removeprefix("!") for line in ignore if line.startswith("!")}
    assert set(copied()) == sent
    assert [name for name in sent if not (ROOT / name).exists()] == []


def test_the_wheel_can_be_built_of_that_alone(tmp_path: Path) -> None:
    for name in copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert any(fnmatch(path.name, f"dragoman-{VERSION}-*.whl") for path in (tmp_path / "dist").iterdir())


async def test_the_image_asks_the_gateway_for_its_health(tmp_path: Path) -> None:
    code = health_code()
    address = f"http://127.0.0.1:{DEFAULTS.admin.port}"
    assert code.partition(address)[2].partition("'")[0] in HEALTH_PATHS

    def ask(url: str) -> int:
        return subprocess.run(
            [sys.executable, "-c", code.replace(address, url)], capture_output=True, check=False
        ).returncode

    async with running_gateway("version: 1\nvendors: {mock: {}}\nmodels: {mock/*: {}}\n", tmp_path) as gateway:
        assert ask(gateway.admin_url) == 0
        assert await gateway.stop() == 0
        assert ask(gateway.admin_url) != 0


# Compose and Prometheus ---------------------------------------------------------------------------------------------


def test_the_tables_of_compose_and_kubernetes_are_sound(tmp_path: Path) -> None:
    for text in ((DEPLOY / "table.yaml").read_text("utf-8"), one(KUBERNETES / "configmap.yaml")["data"]["table.yaml"]):
        loaded = load_shipped(text, tmp_path)
        assert needed_limits(loaded, build_snapshot(loaded)) == ()
        server = loaded.config.server
        assert (server.port, server.admin.port) == (DEFAULTS.port, DEFAULTS.admin.port)


def test_every_target_of_the_shipped_tables_serves_clients_that_send_no_max_tokens(tmp_path: Path) -> None:
    for text in ((DEPLOY / "table.yaml").read_text("utf-8"), one(KUBERNETES / "configmap.yaml")["data"]["table.yaml"]):
        snapshot = build_snapshot(load_shipped(text, tmp_path))
        asked = {name.replace("*", "any") for name in (*snapshot.models, *snapshot.routes)}
        for team in snapshot.teams.values():
            granted = [name for name in asked if covered(team, name)]
            assert granted
            for name in granted:
                body = orjson.dumps({"model": name, "messages": [{"role": "user", "content": "Hi"}]})
                found = explained(snapshot, team, "/v1/chat/completions", body)
                assert found.error is None, found.error
                assert all(isinstance(trial.outcome, CallPlan) for trial in found.trials), found.trials


def mounts_of(service: dict[str, Any]) -> dict[str, str]:  # Any: YAML of other tools
    """Return the mounts of a compose service: file, folder or volume, and mount point."""
    return dict(mount.removesuffix(":ro").split(":") for mount in service["volumes"])


def test_compose_starts_the_gateway_on_its_table(tmp_path: Path) -> None:
    compose = one(DEPLOY / "compose.yaml")
    service = compose["services"]["dragoman"]
    arguments = argument_parser().parse_args(service["command"])
    (shipped,) = [source for source, place in mounts_of(service).items() if place == str(arguments.config)]
    assert (DEPLOY / shipped).is_file()
    assert service["ports"] == [f"127.0.0.1:{DEFAULTS.port}:{DEFAULTS.port}"]
    assert (ROOT / service["build"]["dockerfile"]).is_file()
    server = load_shipped((DEPLOY / "table.yaml").read_text("utf-8"), tmp_path).config.server
    assert int(service["stop_grace_period"].removesuffix("s")) > drain_of(server)


def test_compose_hands_over_every_secret_and_variable_of_its_table() -> None:
    table = (DEPLOY / "table.yaml").read_text(encoding="utf-8")
    service = one(DEPLOY / "compose.yaml")["services"]["dragoman"]
    assert set(re.findall(r"\$\{([A-Z_]+)", table)) == set(service["environment"])
    assert set(re.findall(r"\$\{file:/run/secrets/([^}]+)\}", table)) == set(service["secrets"])


def test_what_has_a_read_only_root_may_write_uploads_to_a_disk_that_holds_them() -> None:
    compose = one(DEPLOY / "compose.yaml")
    service = compose["services"]["dragoman"]
    assert service["read_only"]
    assert [source for source, place in mounts_of(service).items() if place == UPLOADS] == ["uploads"]
    assert "uploads" in compose["volumes"]
    pod = one(KUBERNETES / "deployment.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    (name,) = [mount["name"] for mount in container["volumeMounts"] if mount["mountPath"] == UPLOADS]
    (disk,) = [volume["emptyDir"] for volume in pod["volumes"] if volume["name"] == name]
    assert "medium" not in disk
    assert int(disk["sizeLimit"].removesuffix("Mi")) * 2**20 > SPOOLED_BYTES


def test_prometheus_scrapes_the_admin_listener_with_its_token() -> None:
    compose = one(DEPLOY / "compose.yaml")
    prometheus = compose["services"]["prometheus"]
    shipped = next(name for name in mounts_of(prometheus) if name.endswith("prometheus.yml"))
    (scrape,) = one(DEPLOY / shipped)["scrape_configs"]
    assert scrape["static_configs"] == [{"targets": [f"dragoman:{DEFAULTS.admin.port}"]}]
    assert scrape["metrics_path"] == "/metrics"
    secret = Path(scrape["authorization"]["credentials_file"])
    assert secret.parent == Path("/run/secrets")
    assert secret.name in prometheus["secrets"]
    assert secret.name in compose["secrets"]


# Kubernetes ---------------------------------------------------------------------------------------------------------


def test_kustomize_lists_every_manifest() -> None:
    listed = set(one(KUBERNETES / "kustomization.yaml")["resources"])
    assert listed == {path.name for path in KUBERNETES.iterdir()} - {"kustomization.yaml"}


def test_the_pods_listen_probe_and_drain_as_the_gateway_does(tmp_path: Path) -> None:
    pod = one(KUBERNETES / "deployment.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": DEFAULTS.port, "admin": DEFAULTS.admin.port}
    probes = {name: container[name]["httpGet"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert {probe["port"] for probe in probes.values()} == {"http"}
    assert {probe["path"] for probe in probes.values()} <= HEALTH_PATHS
    assert probes["readinessProbe"]["path"] == "/health/ready"
    table = one(KUBERNETES / "configmap.yaml")["data"]["table.yaml"]
    assert pod["terminationGracePeriodSeconds"] > drain_of(load_shipped(table, tmp_path).config.server)
    assert container["image"] == f"dragoman:{VERSION}"


def test_the_pods_find_their_table_and_secrets_where_they_look() -> None:
    pod = one(KUBERNETES / "deployment.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    assert all("subPath" not in mount for mount in container["volumeMounts"])
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    table = argument_parser().parse_args(container["args"]).config
    config = one(KUBERNETES / "configmap.yaml")
    assert table.name in config["data"]
    assert volumes[mounts[str(table.parent)]]["configMap"]["name"] == config["metadata"]["name"]
    folders = {str(Path(name).parent) for name in re.findall(r"\$\{file:([^}]+)\}", config["data"][table.name])}
    assert folders <= mounts.keys()


def test_services_and_budget_select_the_pods_and_ports_there_are() -> None:
    deployment = one(KUBERNETES / "deployment.yaml")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    names = {port["name"] for port in container["ports"]}
    services = list(yaml.safe_load_all((KUBERNETES / "service.yaml").read_text(encoding="utf-8")))
    assert [service["spec"]["selector"] for service in services] == [labels] * len(services)
    assert {port["targetPort"] for service in services for port in service["spec"]["ports"]} == names
    budget = one(KUBERNETES / "poddisruptionbudget.yaml")
    assert budget["spec"]["selector"] == deployment["spec"]["selector"] == {"matchLabels": labels}


# systemd ------------------------------------------------------------------------------------------------------------


class UnitFile(ConfigParser):
    """A parser of unit files, whose keys are case-sensitive."""

    @override
    def optionxform(self, optionstr: str) -> str:
        return optionstr


def test_the_unit_starts_reloads_and_stops_as_the_gateway_does() -> None:
    unit = UnitFile(interpolation=None, strict=False)
    unit.read(DEPLOY / "systemd" / "dragoman.service", encoding="utf-8")
    service = unit["Service"]
    program, *arguments = service["ExecStart"].split()
    assert Path(program).name == "dragoman"
    assert argument_parser().parse_args(arguments).config == Path("/etc/dragoman/table.yaml")
    assert service["ExecReload"].split()[1:] == ["-HUP", "$MAINPID"]
    assert int(service["TimeoutStopSec"]) > drain_of(DEFAULTS)
    assert service["Environment"] == "PYTHONSAFEPATH=1"


# Shared state of gateways ----- ---------------------------------------------------------------------------------------

SHARED = DEPLOY / "shared"


def test_the_shared_tables_are_sound_and_keep_their_journals_where_they_may_write(tmp_path: Path) -> None:
    env = {"REDIS_URL": "redis://redis:6379/0", "LEDGER_URL": "postgresql://me:p@postgres/ledger"}
    config = one(SHARED / "kubernetes" / "configmap.yaml")["data"]["table.yaml"]
    for text in ((SHARED / "table.yaml").read_text("utf-8"), config):
        written = re.sub(r"\$\{file:[^}]*redis-url\}", "${REDIS_URL}", text)
        written = re.sub(r"\$\{file:[^}]*ledger-url\}", "${LEDGER_URL}", written)
        for name, value in env.items():
            written = written.replace(f"${{{name}}}", value)
        table = load_shipped(written, tmp_path)
        assert table.ledger is not None
        assert table.ledger.postgres is not None
        assert table.ledger.journals == Path("/var/lib/dragoman/journal")
    service = one(SHARED / "compose.yaml")["services"]["dragoman"]
    assert [mount.split(":")[1] for mount in service["volumes"] if not mount.endswith(":ro")] == ["/var/lib/dragoman"]
    pod = one(SHARED / "kubernetes" / "deployment.yaml")["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert [m["mountPath"] for m in container["volumeMounts"] if not m.get("readOnly")] == ["/var/lib/dragoman"]
    assert "/var/lib/dragoman" in (DEPLOY / "Dockerfile").read_text("utf-8")


def test_the_tables_of_what_has_no_disk_have_no_ledger(tmp_path: Path) -> None:
    for text in ((DEPLOY / "table.yaml").read_text("utf-8"), one(KUBERNETES / "configmap.yaml")["data"]["table.yaml"]):
        assert load_shipped(text, tmp_path).ledger is None


def test_the_shared_services_are_named_as_they_are_asked_for() -> None:
    services = one(SHARED / "compose.yaml")["services"]
    environment = services["dragoman"]["environment"]
    assert {"redis", "postgres"} <= services.keys()
    assert environment["REDIS_URL"].startswith("redis://redis:")
    assert "@postgres:5432/" in environment["LEDGER_URL"]
    listed = one(SHARED / "kubernetes" / "kustomization.yaml")
    named = {*listed["resources"][1:], *(patch["path"] for patch in listed["patches"] if "path" in patch)}
    assert named == {path.name for path in (SHARED / "kubernetes").iterdir()} - {"kustomization.yaml"}
    made = [
        each["metadata"]["name"]
        for name in ("redis.yaml", "postgres.yaml")
        for each in yaml.safe_load_all((SHARED / "kubernetes" / name).read_text("utf-8"))
        if each["kind"] == "Service"
    ]
    assert made == ["dragoman-redis", "dragoman-postgres"]


def test_the_pattern_shown_for_the_payload_log_finds_addresses_and_is_quick_on_long_words() -> None:
    written = re.findall(r"^redact: .*", (DEPLOY.parent / "docs" / "operate.md").read_text("utf-8"), re.MULTILINE)
    (pattern,) = yaml.safe_load(*written)["redact"]
    shown = re.sub(pattern, "[redacted]", "Ask jo.doe+x@mail.example-one.org, or a_b@c.de. Not x@y.")
    assert shown == "Ask [redacted], or [redacted]. Not x@y."
    for word in ("x", "x.", "x@", "@", "x-"):
        assert re.search(pattern, word * 300_000) is None
        small, large = (partial(re.search, pattern, word * count) for count in (75_000, 300_000))
        assert growth(small, large) == "", word
