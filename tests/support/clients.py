"""The vendors' own SDKs, unmodified. Each is installed from its hashed lock and runs in a process of its own.

python -m tests.support.clients install all of them python -m tests.support.clients lock choose their dependencies anew
(needs uv)
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
    """One SDK: the requirement to install, its name in the driver, and the path prefix to append to a server's root.

    The prefix follows from the SDK's paths: fireworks-ai 1.x appends `/v1/completions` to any base URL, 0.x appends
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
    """An exception that an SDK raised: the name of its class and its attributes. An attribute is `None` if the
    exception lacks it.

    `cause` is the `repr` of the exception's cause, for instance the transport's own error.
    """

    kind: str
    message: str
    cause: str | None
    status_code: int | None
    code: str | int | None
    param: str | None
    type: str | None
    body: Any  # the SDK's form of the error body


class Outcome(TypedDict):
    """The result that an SDK gave its caller. Fields that the server did not send are absent, not `None`.

    `text` and `finish_reason` come from choice 0, from the response or from the joined chunks. `chunks` also holds the
    chunks that came before an error.
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
    """Return the directory of an SDK. Install the SDK first if it is absent."""
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
    """An SDK in a process of its own, which carries out one order after the other. Several event loops may use it."""

    def __init__(self, name: str) -> None:
        super().__init__(environment(name), "tests.e2e.clients.driver", RECIPES[name].sdk)

    async def run(
        self, scenario: str, server: str, fields: Mapping[str, JsonValue], options: Options = USUAL
    ) -> Outcome:
        """Make one call with the SDK: `completion`, `completion_stream`, `chat`, `chat_stream`, `models`, `model`, and
        openai's also `response`, `response_stream`, `response_retrieve`, `response_delete` and `response_items`.

        `server` is the root, such as `http://127.0.0.1:8080`; `fields` are the arguments of the SDK's method (all SDKs
        but fireworks-ai 0.x take unknown fields in `extra_body`). Raises `RuntimeError` if the driver broke.
        """
        prefix = RECIPES[self.name].prefix if options.prefix is None else options.prefix
        order = {"scenario": scenario, "url": server + prefix, "fields": dict(fields), **asdict(options)}
        answer = await asyncio.to_thread(self.exchange, orjson.dumps(order).decode())
        outcome: Outcome = orjson.loads(answer)
        return outcome


@contextmanager
def running_clients() -> Iterator[Callable[[str], Client]]:
    """Yield a function that returns the client with a given name. It starts each client at its first use. All clients
    end with the block."""
    started: dict[str, Client] = {}
    with ExitStack() as stack:

        def client(name: str) -> Client:
            if name not in started:
                started[name] = stack.enter_context(Client(name))
            return started[name]

        yield client


@pytest.fixture(scope="session")
def clients() -> Iterator[Callable[[str], Client]]:
    """One process per SDK for the whole run. A folder that needs it imports this name in its conftest.py.

    Its tests are marked `clients`, and `timeout(300)` leaves time for the first installation.
    """
    with running_clients() as client:
        yield client


def main() -> None:
    step = {"install": Environment.install, "lock": Environment.write_lock}[sys.argv[1] if sys.argv[1:] else "install"]
    for name in RECIPES:
        step(environment(name))


if __name__ == "__main__":
    main()
