"""A real inference engine on loopback: the llama.cpp server from `xllamacpp`, serving the tiny random model.

The model's text is noise: a test must expect no particular text.

The server's behaviour (xllamacpp 2026.10.11549, tried in November 2026; `test_engine.py` checks it):
- ready about 0.1 s after the process starts; 4 requests at once, 4096 tokens each, 0.15 to 1.3 ms a token;
- greedy and seeded responses repeat; a token id prompt and a list of prompts are accepted, but usage counts the first
  prompt only; the model's name in a request is ignored;
- completions give log probabilities as chat's `content` list; streams give usage on the finish frame of completions
  even unasked, and as a frame without choices on chat when asked; both end with `[DONE]`;
- chat honours `response_format`; completions silently ignore it and honour only `json_schema` and `grammar`; given
  both, the grammar wins; `echo`, `suffix` and `best_of` are ignored; `max_tokens: 0` generates one token;
- an over-long prompt is a 400 with type `exceed_context_size_error`, `n_prompt_tokens` and `n_ctx`;
- when the client of a stream leaves, generation stops within a few tokens; a non-streaming response is generated
  to its end regardless, after FIN and RST alike. `generated_tokens` shows it: it changes when a request ends;
- after a stream, and after 100 requests, it closes the connection although it promised `Keep-Alive: timeout=5,
  max=100`; a reused connection then breaks under the next request (`client_of` reuses none).
"""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

ROOT = Path(__file__).resolve().parents[2]
MODEL = "tiny"


@dataclass(frozen=True, slots=True)
class Engine:
    """A running server. `base_url` has no path: callers append `/v1/completions` and the other paths."""

    base_url: str
    model: str = MODEL

    async def generated_tokens(self) -> int:
        """Return the number of tokens generated since the start, for requests that have ended or were cancelled."""
        return int(await self._metric("llamacpp:tokens_predicted_total"))

    async def quiet(self) -> None:
        """Wait until the server works on no request, looking every 10 ms."""
        while await self._metric("llamacpp:requests_processing"):  # noqa: ASYNC110
            await asyncio.sleep(0.01)

    async def _metric(self, name: str) -> float:
        async with aiohttp.ClientSession(self.base_url) as http, http.get("/metrics") as answer:
            text = await answer.text()
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(name + " "))


def client_of(base_url: str) -> aiohttp.ClientSession:
    """Return a client of the engine at this URL. It opens a new connection for each request."""
    return aiohttp.ClientSession(base_url, connector=aiohttp.TCPConnector(force_close=True))


@contextmanager
def running_engine(folder: Path, *modes: str) -> Iterator[Engine]:
    """Write the model into `folder` and serve it for the duration of the block. With `embeddings` the server computes
    embeddings only. Skip the test without xllamacpp."""
    pytest.importorskip("xllamacpp", reason="the engine extra is not installed", exc_type=ModuleNotFoundError)
    from tests.support.tiny_model import write_tiny_model  # here, because it needs the same extra

    path = folder / "tiny.gguf"
    write_tiny_model(path)
    command = [sys.executable, "-m", "tests.support.engine_server", str(path), MODEL, *modes]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address, "the llama.cpp server did not start; its words are above"
        yield Engine(address)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One server for the whole run. A folder that needs it imports this name in its conftest.py."""
    with running_engine(tmp_path_factory.mktemp("engine")) as running:
        yield running
