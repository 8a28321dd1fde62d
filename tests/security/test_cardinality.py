"""No metric series is made of a name that a client chose: of 10,000 names of models and 10,000 paths none."""

import asyncio
from random import Random

from proxy.telemetry.metrics import MAX_LABEL_SETS
from tests.proxy.kit.gateway_rig import AUTH, Rig, ask, rig
from tests.proxy.kit.raw_client import connected, request
from tests.security.hostile import PIECES
from tests.support import openai_wire
from tests.support.http_scripts import json_answer

NAMES = PATHS = 10_000
CLIENTS = 8


def words(draw: Random) -> str:
    return f"{draw.getrandbits(64):x}{draw.choice(PIECES)}"


def target(draw: Random) -> str:
    """Return a path. Some paths are below the paths of the surfaces."""
    below = draw.choice(
        ("/", "/v1/", "/v1/models/", "/v5/", "/inference/v1/", "/metrics/", "/health/", "/v1/completions/")
    )
    return below + "".join(
        mark if mark.isascii() and mark.isprintable() and mark != " " else "x" for mark in words(draw)
    )


def attempts(seed: int) -> list[bytes]:
    """Return requests that each have a unique name in every position that a client controls."""
    draw = Random(seed)
    made = []
    for _ in range(NAMES // CLIENTS):
        word = words(draw)
        model = draw.choice(("", "v/", "v/m/", "local/", "fast/")) + word
        body = ask(model, user=word, stream=draw.random() < 0.2)
        made.append(request("POST", "/v1/completions", body, {**AUTH, "x-request-id": f"{draw.getrandbits(64):x}"}))
    for _ in range(PATHS // CLIENTS):
        method = draw.choice(("GET", "POST", "PUT", "DELETE", "PROPFIND"))
        key = f"Bearer {draw.getrandbits(64):x}" if draw.random() < 0.2 else AUTH["Authorization"]
        made.append(
            request(method, target(draw), None, {"Authorization": key, "User-Agent": f"{draw.getrandbits(64)}"})
        )
    return made


def guesses(path: str) -> list[bytes]:
    return [request("POST", path, {}, {"Authorization": f"Bearer {number}"}) for number in range(30)]


async def ask_all(made: Rig, sent: list[bytes]) -> None:
    left = iter(sent)
    data = next(left, None)
    while data is not None:
        async with connected(made.port) as client:
            while data is not None:
                await client.send(data)
                answer = await client.answer()
                data = next(left, None)
                if answer.headers.get("connection") == "close":
                    break


async def test_names_and_paths_of_clients_make_no_series() -> None:
    async with rig() as made:
        made.vendor.default = json_answer(200, openai_wire.completion("a"))
        await asyncio.gather(
            *(
                ask_all(made, guesses(path))
                for path in ("/v1/completions", "/v5/completions", "/inference/v1/completions")
            )
        )
        for first in (-1, -2):
            await asyncio.gather(
                *(ask_all(made, attempts(CLIENTS * first + number)[::40]) for number in range(CLIENTS))
            )
        before = made.series("").keys()
        await asyncio.gather(*(ask_all(made, attempts(number)) for number in range(CLIENTS)))
        after = made.series("").keys()
        assert after == before
        assert len(made.records) > NAMES + PATHS * 0.9
        assert len(after) < MAX_LABEL_SETS
