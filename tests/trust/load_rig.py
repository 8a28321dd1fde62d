"""A gateway for a load, its configuration, and fake vendors that respond quickly, slowly, badly or never."""

import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from io import BytesIO
from pathlib import Path

from proxy.dispatch.retry_rules import DeploymentRules
from proxy.process.assemble_app import Addresses, WholeGateway, running
from proxy.process.load_table import Source
from tests.bench.cpu import PROC, pin
from tests.proxy.kit.tables import digest_of
from tests.support.gateway import RunningGateway
from tests.support.http_scripts import LAST_CHUNK, chunk, head, json_answer, sse_answer
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor_script import Delay, Received, Script, Send, Step
from tests.trust.load_client import KEY

PLACES = 60
"""Slots at one deployment, enough for all requests in flight if the load uses many models."""

WHOLE = json_answer(200, completion("hello"))
STREAM = sse_answer(completion_frames(["hello", " world"]))
DEAD = json_answer(500, {"error": {"message": "The engine is dead.", "type": "server_error"}})
UNAVAILABLE = json_answer(503, {"error": {"message": "No replica is up.", "type": "server_error"}})


def table(vendors: Mapping[str, str], models: Iterable[str], more: str = "") -> str:
    """Return a configuration of vendors by their base URLs without a path, these models, and one team that may use
    all."""
    rows = [f'  {name}: {{profile: openai_compatible, base_url: "{url}/v1"}}' for name, url in vendors.items()]
    lines = [
        "version: 1",
        "defaults: {allow_private: true, api_key: sk-of-the-operator}",
        "vendors:",
        *rows,
        "models:",
        *(f"  {model}" for model in models),
        f'teams: {{load: {{keys: ["{digest_of(KEY)}"], models: ["*"]}}}}',
    ]
    return "\n".join(lines) + "\n" + more


def many(vendor: str, requests: int) -> list[str]:
    return [f"{vendor}/m{number}" for number in range(-(-requests // PLACES))]


def quick(received: Received) -> Script:
    """Return a good response at once."""
    return STREAM if streams(received) else WHOLE


def streams(received: Received) -> bool:
    """Return whether a request wants a stream."""
    body = received.json()
    return isinstance(body, dict) and body.get("stream") is True


def slow_stream(seconds: float, texts: int) -> Script:
    """Return a stream of `texts` texts, spread over `seconds` seconds."""
    start = head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")])
    frames = completion_frames(["word"] * texts)
    steps: list[Step] = [Send(start)]
    for number, frame in enumerate(frames):
        steps.append(Send(chunk(frame)))
        if number < texts:
            steps.append(Delay(seconds / texts))
    return (*steps, Send(LAST_CHUNK))


def port_of(gateway: RunningGateway | WholeGateway) -> int:
    return int(gateway.url.rpartition(":")[2])


@contextmanager
def apart(pid: int) -> Iterator[None]:
    """Pin that process to the first core, and this one with the clients and the vendors to the last, for the duration
    of the block.

    On a machine of one core the measurement runs all the same.
    """
    cores = os.sched_getaffinity(0)
    pin(os.getpid(), max(cores))
    pin(pid, min(cores))
    try:
        yield
    finally:
        for thread in (PROC / "self" / "task").iterdir():
            with suppress(ProcessLookupError):  # the process ended meanwhile
                os.sched_setaffinity(int(thread.name), cores)


@asynccontextmanager
async def inside(folder: Path, text: str, rules: DeploymentRules) -> AsyncIterator[WholeGateway]:
    """Run a gateway in this process, with other rules than the built-in ones."""
    path = folder / "gateway.yaml"
    path.write_text("server: {port: 0, admin: {port: 0}, watch: false}\n" + text, encoding="utf-8")
    source = Source(path, {})
    async with running(source, source.load(), Addresses("127.0.0.1", 0, "127.0.0.1", 0), BytesIO(), rules) as app:
        yield app
