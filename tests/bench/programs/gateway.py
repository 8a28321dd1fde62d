"""This gateway with a key, metrics and the JSON log on. It may come from this checkout or another, under any
interpreter."""

import hashlib
import os
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.cases import Case
from tests.bench.programs.program import PATIENCE, Program, Target, running_process, said
from tests.bench.traffic import KEY, MODEL, chat_request
from tests.bench.upstream import RunningUpstream
from tests.bench.vendors import ANTHROPIC, CLAUDE, OPENAI, Wire, messages_request
from tests.support.gateway import ROOT, free_ports

MODELS = {
    "openai": MODEL,
    "openai_tls": "bench_tls/model",
    "anthropic": "anthropic/claude-haiku-4-5",
    "anthropic_tls": "anthropic_tls/claude-haiku-4-5",
    "bedrock": f"bedrock/{CLAUDE}",
    "bedrock_tls": f"bedrock_tls/{CLAUDE}",
}
"""The model of each dialect, in plain HTTP and over TLS to the vendor."""

AGENT_MODELS = {"openai": "openai/gpt-4o", "anthropic": MODELS["anthropic"], "gemini": "gemini/gemini-2.5-pro"}
"""The model of each vendor for coding agents' requests."""

_PROFILES = {
    "bench": ("openai_compatible", "/v1"),
    "openai": ("openai", "/v1"),
    "gemini": ("gemini", ""),
    "anthropic": ("anthropic", "/v1"),
    "bedrock": ("bedrock", ""),
}


MODEL_SETTINGS = "max_output_tokens: 8192"


def gateway_table(upstream: RunningUpstream, server: str = "", team: str = "", model: str = MODEL_SETTINGS) -> str:
    """Return the configuration: one team with a key and the settings `team`; each dialect's vendor at the fake
    upstream, in plain HTTP and over TLS, with models of the settings `model`."""
    vendors = []
    for name, (profile, path) in _PROFILES.items():
        plain, secure = f"http://127.0.0.1:{upstream.port}{path}", f"https://localhost:{upstream.tls_port}{path}"
        vendors.append(f'  {name}: {{profile: {profile}, base_url: "{plain}"}}')
        vendors.append(f'  {name}_tls: {{profile: {profile}, base_url: "{secure}", ca_file: "{upstream.authority}"}}')
    models = [f'  "{name}": {{{model}}}' for name in dict.fromkeys((*MODELS.values(), *AGENT_MODELS.values()))]
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    return "\n".join(
        [
            "version: 1",
            "defaults: {allow_private: true, api_key: sk-up, timeouts: {idle: 3600s, total: 3600s}}",
            "vendors:",
            *vendors,
            "models:",
            *models,
            f'teams: {{load: {{keys: ["sha256:{digest}"], models: ["*"]{team and ", " + team}}}}}',
            server,
        ]
    )


@dataclass(frozen=True, slots=True)
class Gateway(Target):
    """This gateway. It serves every case in the dialect of the surface."""

    def request(self, case: Case) -> bytes | None:
        model = MODELS[case.dialect + ("_tls" if case.tls else "")]
        return messages_request(case.ask, model) if case.surface == "messages" else chat_request(case.ask, model)

    def wire(self, case: Case) -> Wire:
        return ANTHROPIC if case.surface == "messages" else OPENAI

    def agents_model(self, surface: str, vendor: str) -> str | None:
        return AGENT_MODELS.get(vendor)


@dataclass(frozen=True, slots=True)
class Build:
    """A build of the gateway: its name in the tables, the folder of the checkout, the interpreter, the number of
    workers, `server.limits`, further settings of the team and of the models, further environment variables, and the
    module that runs the command."""

    name: str = "gateway"
    checkout: Path = ROOT
    python: str = sys.executable
    workers: int = 1
    limits: str = "{}"
    team: str = ""
    model: str = MODEL_SETTINGS
    variables: Mapping[str, str] = field(default_factory=dict)
    module: Sequence[str] = ("proxy",)

    def program(self) -> Program:
        """Return the gateway as a program. Its version is the commit, with `-dirty` if the checkout has other
        changes."""
        told = said(["git", "-C", str(self.checkout), "describe", "--always", "--dirty", "--abbrev=12"])
        return Program(self.name, told if " " not in told else "of no commit", self.start)

    @contextmanager
    def start(self, folder: Path, upstream: RunningUpstream) -> Iterator[Target]:
        """Run it until the block ends. Raise RuntimeError with its output if it does not become ready."""
        port, admin = free_ports(2)
        table = folder / "gateway.yaml"
        sections = f"watch: false, workers: {self.workers}, limits: {self.limits}, admin: {{port: {admin}}}"
        server = f"server: {{port: {port}, {sections}}}"
        table.write_text(gateway_table(upstream, server, self.team, self.model), encoding="utf-8")
        environment = {"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(self.checkout), **self.variables}
        command = [self.python, "-m", *self.module, "serve", "-c", str(table)]
        with running_process(command, folder, admin, environment) as pid:
            wait_until_ready(f"http://127.0.0.1:{admin}/health/ready", folder / "output")
            yield Gateway(self.name, port, pid)


def wait_until_ready(url: str, output: Path) -> None:
    """Wait until an address returns 200. Raise RuntimeError with the end of the output if it takes too long."""
    started = time.monotonic()
    while time.monotonic() - started < PATIENCE:
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own loopback address
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.01)
    raise RuntimeError(f"{url} is not ready: {output.read_text(encoding='utf-8', errors='replace')[-2000:]}")
