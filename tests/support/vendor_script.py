"""The steps of a fake vendor's script, and the requests that it received.

The steps are the elements of the failure model: bytes and delays, then FIN, RST, silence or an endless loop.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import orjson

from providers.json_types import JsonValue


@dataclass(frozen=True, slots=True)
class Send:
    """A step that writes these bytes and waits until the kernel took them all."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Delay:
    """A step that waits. The wait ends early if the peer leaves."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Until:
    """A step that waits for the test's own event. The wait ends early if the peer leaves."""

    event: asyncio.Event


@dataclass(frozen=True, slots=True)
class Hang:
    """A step that sends nothing and waits for the peer to leave."""


@dataclass(frozen=True, slots=True)
class Fin:
    """A step that closes the connection in good order after the bytes that were sent."""


@dataclass(frozen=True, slots=True)
class Rst:
    """A step that resets the connection after the bytes that were sent."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A step that repeats its steps until the peer leaves."""

    steps: tuple["Step", ...]


Step: TypeAlias = Send | Delay | Until | Hang | Fin | Rst | Loop
Script: TypeAlias = Sequence[Step]


@dataclass(slots=True, eq=False)
class Received:
    """One request as it arrived.

    `connection` counts connections from 0, so equal numbers mean a reused connection. `gone` is set when that
    connection is over, no matter which side ended it.
    """

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    connection: int
    gone: asyncio.Event

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    def json(self) -> JsonValue:
        """Return the body as JSON. Raise `orjson.JSONDecodeError`."""
        parsed: JsonValue = orjson.loads(self.body)
        return parsed

    @property
    def model(self) -> str | None:
        """Return the body's `model`. Return `None` if it has none or is not a JSON object."""
        try:
            body = self.json()
        except orjson.JSONDecodeError:
            return None
        model = body.get("model") if isinstance(body, dict) else None
        return model if isinstance(model, str) else None


Behaviour: TypeAlias = Script | Callable[[Received], Script]
"""A script, or a function that chooses a script by the request."""
