"""The vendors' own SDKs, unmodified, each from its hashed lock in a directory of its own, and a process that runs them.

python -m tests.support.clients        install all of them
python -m tests.support.clients lock   choose their dependencies anew (needs uv)
"""

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict

import orjson
import pytest

from providers.json_types import JsonValue
from tests.support.environments import LOCKS, Environment, LineProcess


@dataclass(frozen=True, slots=True)
class Recipe:
    """One SDK: what to install, how the driver connects it, and what to append to a server's root for it.

    The prefix is the SDK's own habit: fireworks-ai 1.x appends `/v1/completions` to any base it is given, 0.x appends
    `/completions`; both Scale SDKs append `/v4/beta/...` and `/v5/...` (tried in November 2026).
    """

    requirement: str
    sdk: str
    prefix: str


RECIPES: Mapping[str, Recipe] = {
    "openai2": Recipe("openai==2.54.0", "openai", "/v1"),
    "openai3": Recipe("openai==3.54.0", "openai", "/v1"),
    "scale_gp_a58": Recipe("scale-gp==0.1.0a58", "scale_gp", ""),
    "scale_gp": Recipe("scale-gp==0.1.0a62", "scale_gp", ""),
    "scale_gp_beta": Recipe("scale-gp-beta==0.7.0", "scale_gp_beta", ""),
    "fireworks0": Recipe("fireworks-ai==0.19.20", "fireworks0", "/inference/v1"),
    "fireworks1": Recipe("fireworks-ai==1.2.28", "fireworks1", "/inference"),
}
"""a58 is the last scale-gp with the first request schema; 1.2.28 the newest fireworks-ai that resolved."""


class Raised(TypedDict):
    """An exception of an SDK: its class's name and what it carries, None where it carries no such thing.

    `cause` is the `repr` of what it was raised from, for instance the transport's own error.
    """

    kind: str
    message: str
    cause: str | None
    status_code: int | None
    code: str | int | None
    param: str | None
    type: str | None
    body: Any  # whatever the SDK made of the error's body


class Outcome(TypedDict):
    """The result that an SDK gave its caller; fields that the server did not send are absent, not None.

    `text` and `finish_reason` are those of choice 0, whole or put together; `chunks` also holds what came before an
    error.
    """

    result: Any  # an SDK's own shape
    chunks: list[Any]  # the same
    text: str
    finish_reason: str | None
    usage: dict[str, Any] | None  # the same
    request_id: str | None
    error: Raised | None


def environment(name: str) -> Environment:
    """Return the environment that an SDK is installed in."""
    lock = LOCKS / f"{name}.lock"
    return Environment(name, lock, (RECIPES[name].requirement,), "python -m tests.support.clients lock")


def install(name: str) -> Path:
    """The directory of an SDK, filled first if need be."""
    return environment(name).install()


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of an SDK for one call.

    `prefix` replaces the usual one after the server's root; a stream is closed after `leave_after` chunks.
    """

    api_key: str = "sk-test"
    prefix: str | None = None
    max_retries: int = 0
    leave_after: int | None = None


USUAL = Options()


class Client(LineProcess):
    """An SDK in a process of its own, which serves one order after the other. Safe to use from several event loops."""

    def __init__(self, name: str) -> None:
        super().__init__(environment(name), "tests.e2e.clients.driver", RECIPES[name].sdk)

    async def run(
        self, scenario: str, server: str, fields: Mapping[str, JsonValue], options: Options = USUAL
    ) -> Outcome:
        """Let the SDK do one thing: `completion`, `completion_stream`, `chat`, `chat_stream`, `models`, `model`, and
        openai's also `response`, `response_stream`, `response_retrieve`, `response_delete` and `response_items`.

        `server` is the root, such as `http://127.0.0.1:8080`; `fields` are the arguments of the SDK's method (all but
        fireworks-ai 0.x take what they do not know in `extra_body`). Raises `RuntimeError` when the driver broke.
        """
        prefix = RECIPES[self.name].prefix if options.prefix is None else options.prefix
        order = {"scenario": scenario, "url": server + prefix, "fields": dict(fields), **asdict(options)}
        answer = await asyncio.to_thread(self.exchange, orjson.dumps(order).decode())
        outcome: Outcome = orjson.loads(answer)
        return outcome


@contextmanager
def running_clients() -> Iterator[Callable[[str], Client]]:
    """A function from name to client that starts each at its first use; all end with the block."""
    started: dict[str, Client] = {}
    with ExitStack() as stack:

        def client(name: str) -> Client:
            if name not in started:
                started[name] = stack.enter_context(Client(name))
            return started[name]

        yield client


@pytest.fixture(scope="session")
def clients() -> Iterator[Callable[[str], Client]]:
    """One process per SDK for the whole run. A folder that wants it imports this name in its conftest.py.

    Tests with it are marked `clients`, and get time for the first installation: `timeout(300)`.
    """
    with running_clients() as client:
        yield client


def main() -> None:
    step = {"install": Environment.install, "lock": Environment.write_lock}[sys.argv[1] if sys.argv[1:] else "install"]
    for name in RECIPES:
        step(environment(name))


if __name__ == "__main__":
    main()
