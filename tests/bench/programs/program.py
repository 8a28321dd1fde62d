"""The interface of measured programs: a program that runs, listens, and accepts one form of requests."""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench.cases import Case
from tests.bench.traffic import KEY, MODEL, chat_body, request_bytes
from tests.bench.upstream import RunningUpstream
from tests.bench.vendors import OPENAI, WIRES, Wire

PATIENCE = 90.0
"""Seconds within which a program listens."""


@dataclass(frozen=True, slots=True)
class Target:
    """A program that runs: its name, its ports, and the process whose CPU counts, with its children."""

    name: str
    port: int
    pid: int

    def request(self, case: Case) -> bytes | None:
        """Return the request of a case to this program. Return `None` if it does not support the case."""
        raise NotImplementedError

    def agents_model(self, surface: str, vendor: str) -> str | None:
        """Return the model that a coding agent's request names on a surface to reach a vendor. Return `None` if there
        is none."""
        raise NotImplementedError

    @property
    def client_key(self) -> str:
        return KEY

    def port_of(self, case: Case) -> int:
        return self.port

    def wire(self, case: Case) -> Wire:
        """Return the dialect of its responses."""
        return OPENAI


@dataclass(frozen=True, slots=True)
class Forwarder(Target):
    """A plain proxy: the client speaks the vendor's own dialect. A port of its own leads to the vendor over TLS."""

    tls_port: int

    def request(self, case: Case) -> bytes | None:
        # The surface matters to gateways only.
        return WIRES[case.dialect].request(case.ask) if case.surface == "chat" else None

    def agents_model(self, surface: str, vendor: str) -> str | None:
        return {("chat", "openai"): "gpt-4o", ("messages", "anthropic"): "claude-haiku-4-5"}.get((surface, vendor))

    def port_of(self, case: Case) -> int:
        return self.tls_port if case.tls else self.port

    def wire(self, case: Case) -> Wire:
        return WIRES[case.dialect]


@dataclass(frozen=True, slots=True)
class Other(Target):
    """Another gateway, which serves chat completions of a vendor of the OpenAI family."""

    model: str = MODEL
    key: str = KEY

    @property
    def client_key(self) -> str:
        return self.key

    def agents_model(self, surface: str, vendor: str) -> str | None:
        return self.model if (surface, vendor) == ("chat", "openai") else None

    def request(self, case: Case) -> bytes | None:
        if case.tls or case.dialect != OPENAI.name:
            return None
        return request_bytes("/v1/chat/completions", chat_body(case.ask, self.model), self.key)


@dataclass(frozen=True, slots=True)
class Program:
    """A program that can be started in front of the fake upstream: its name, its version, and its start function."""

    name: str
    version: str
    start: Callable[[Path, RunningUpstream], AbstractContextManager[Target]]


@contextmanager
def running_process(
    command: list[str], folder: Path, port: int, environment: Mapping[str, str] | None = None
) -> Iterator[int]:
    """Run a process that listens on a port, for the duration of the block, and yield its id. Its output goes into
    `output` in the folder.

    Raise RuntimeError with the end of the output if it does not listen in time.
    """
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
    try:
        wait_for_port(port, process, folder / "output")
        yield process.pid
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for_port(port: int, process: "subprocess.Popen[bytes]", output: Path) -> None:
    """Wait until a port accepts connections. Raise RuntimeError if the process ends instead, or takes too long."""
    started = time.monotonic()
    while process.poll() is None and time.monotonic() - started < PATIENCE:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except ConnectionRefusedError:
            time.sleep(0.01)
        else:
            return
    said = output.read_text(encoding="utf-8", errors="replace")[-2000:]
    raise RuntimeError(f"{process.args!r} does not listen on {port} ({process.returncode}): {said}")


def said(command: list[str]) -> str:
    """Return the output of a program's version command, on either stream. Return an empty text if it cannot be run."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except OSError:
        return ""
    return (done.stdout + done.stderr).strip()
