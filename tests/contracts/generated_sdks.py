"""SDKs that are generated from their vendors' descriptions, all in one layout: a TypedDict for a request, and a model
for a response and for each event of a stream. Only for a process of its own: see `strict_types`.

Versions: see sdks.lock. These types accept words that they list only as examples (`str | Literal`), and numbers beyond
a vendor's ranges.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any  # types of SDKs that are not installed in the type-checking environment

from pydantic import TypeAdapter

from tests.contracts.strict_types import strict_adapter


@dataclass(frozen=True, slots=True)
class Generated:
    """One operation of one SDK: the module of its request's types, and as `module:name` the types of a non-streaming
    response and of a stream's event."""

    body: str
    answer: str
    event: str

    def check_body(self, operation: str, body: bytes) -> None:
        """Raise for anything in the body that the SDK's types do not allow."""
        _body(self.body, json.loads(body).get("stream") is True).validate_json(body, strict=True)

    def check_answer(self, body: bytes) -> None:
        """Raise unless the SDK reads every field with its declared type."""
        _model(self.answer).validate_json(body)

    def check_events(self, payloads: list[bytes]) -> None:
        """Raise unless the SDK reads every event of a stream.

        An error inside a stream has no type. If the type of a non-streaming response also serves its events, it has no
        value for a choice that has not ended.
        """
        for payload in payloads:
            event = json.loads(payload)
            if "choices" not in event and "error" in event:
                continue
            for choice in event["choices"] if self.event == self.answer else ():
                choice["finish_reason"] = choice["finish_reason"] or "stop"
            _model(self.event).validate_python(event)


@cache
def _body(module: str, streamed: bool) -> TypeAdapter[Any]:
    types = import_module(module)
    ends = "Streaming" if streamed else "NonStreaming"
    for name in (f"CompletionCreateParams{ends}", f"MessageCreateParams{ends}", "CompletionCreateParams"):
        if hasattr(types, name):
            return strict_adapter(getattr(types, name))
    raise LookupError(f"{module} has no type of a request")


@cache
def _model(place: str) -> TypeAdapter[Any]:
    module, _, name = place.partition(":")
    return TypeAdapter(getattr(import_module(module), name))


def _types(package: str, completions: tuple[str, str] | None, chat: tuple[str, str]) -> Iterator[tuple[str, Generated]]:
    """Yield the types of an SDK's operations: always in the same modules, but under different names (of a response,
    of an event)."""
    name, types = package.split(".")[0], f"{package}.types{_BELOW.get(package, '')}"
    yield f"{name}:chat", Generated(f"{types}.chat.{_CREATE}", *(f"{types}.chat:{each}" for each in chat))
    if completions:
        yield f"{name}:completions", Generated(f"{types}.{_CREATE}", *(f"{types}:{each}" for each in completions))


_CREATE = "completion_create_params"
_BELOW = {"scale_gp": ".beta"}

SDKS: Mapping[str, Generated] = dict(
    pair
    for package, completions, chat in (
        ("openai", ("Completion", "Completion"), ("ChatCompletion", "ChatCompletionChunk")),
        (
            "fireworks",
            ("CompletionCreateResponse", "CompletionChunk"),
            ("CompletionCreateResponse", "ChatCompletionChunk"),
        ),
        ("together", ("Completion", "CompletionChunk"), ("ChatCompletion", "ChatCompletionChunk")),
        ("groq", None, ("ChatCompletion", "ChatCompletionChunk")),
        ("cerebras.cloud.sdk", ("Completion", "Completion"), ("ChatCompletion", "ChatCompletion")),
        (
            "sambanova",
            ("CompletionResponse", "CompletionStreamResponse"),
            ("ChatCompletionResponse", "ChatCompletionStreamResponse"),
        ),
        ("scale_gp_beta", ("Completion", "Completion"), ("ChatCompletion", "ChatCompletionChunk")),
        ("scale_gp", ("CompletionV5", "CompletionV5"), ("CompletionCreateResponse", "ChatCompletionChunkV5")),
    )
    for pair in _types(package, completions, chat)
)
"""The operations, by `sdk:operation`."""
