"""Records the exchanges between lm-evaluation-harness and a real engine, without a gateway in between.

    python -m tests.support.scoring_record model FOLDER      write the tiny model for an engine that loads such a folder
    python -m tests.support.scoring_record URL MODEL         record every scenario against the engine at http://HOST:PORT

`tests/fixtures/lm_eval/README.md` names the engine and the versions.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypedDict

import aiohttp
import orjson
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.support.engine import client_of
from tests.support.scoring_client import FIXTURES, SCENARIOS, TOKENIZER, Endpoint, Scores, order, score

RECORDED = FIXTURES / "exchanges"
MOVED = {"host", "content-length", "connection"}
"""Headers of the connection, which every hop writes anew."""


class Exchange(TypedDict):
    """A request as the client sent it, without the headers of the connection, and the engine's response."""

    path: str
    headers: dict[str, str]
    body: str
    answer: str


@dataclass(frozen=True, slots=True)
class Recording:
    """One scenario: its completions in the order of their responses, and the scores that the harness computed from
    them."""

    exchanges: list[Exchange]
    scores: Scores


def load(scenario: str) -> Recording:
    text = orjson.loads((RECORDED / f"{scenario}.json").read_bytes())
    pairs = tuple((number, greedy) for number, greedy in text["scores"]["pairs"])
    return Recording(text["exchanges"], Scores(pairs, tuple(text["scores"]["texts"])))


class Relay:
    """A relay that forwards requests to the engine at `http`'s address, and records the requests that succeeded."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http
        self.exchanges: list[Exchange] = []

    async def hand_on(self, request: web.Request) -> web.Response:
        """Return the engine's response to this request. Both are unchanged but for the headers of the connection."""
        body = await request.text()
        json_type = {"content-type": "application/json"}
        async with self._http.request(
            request.method, request.rel_url, data=body or None, headers=json_type
        ) as response:
            answer = await response.text()
        if response.status == 200:
            headers = {name.lower(): value for name, value in request.headers.items() if name.lower() not in MOVED}
            self.exchanges.append(Exchange(path=request.path, headers=headers, body=body, answer=answer))
        return web.Response(status=response.status, text=answer, content_type="application/json")


@asynccontextmanager
async def running_relay(engine: str) -> AsyncIterator[tuple[Relay, str]]:
    """Run a relay to the engine at this URL for the duration of the block. Yield the relay's own URL. Both URLs have no
    path."""
    async with client_of(engine) as http:
        relay, app = Relay(http), web.Application()
        app.router.add_route("*", "/{path:.*}", relay.hand_on)
        async with TestServer(app) as server:
            yield relay, str(server.make_url("")).rstrip("/")


async def record(engine: str, model: str) -> None:
    """Write one file for each scenario."""
    RECORDED.mkdir(parents=True, exist_ok=True)
    for name, scenario in SCENARIOS.items():
        async with running_relay(engine) as (relay, url):
            (scores,) = await score([order(scenario, Endpoint(f"{url}/v1/completions", model))])
        text = json.dumps({"exchanges": relay.exchanges, "scores": asdict(scores)}, indent=1, ensure_ascii=False)
        (RECORDED / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def main() -> None:
    """Record, or write the model. In both cases, write the tokenizer again."""
    from tests.support.scoring_model import write_model, write_tokenizer  # here, because it needs the engine extra

    first, second = sys.argv[1:]
    write_tokenizer(TOKENIZER)
    if first == "model":
        write_tokenizer(Path(second))
        write_model(Path(second))
    else:
        asyncio.run(record(first, second))


if __name__ == "__main__":
    main()
