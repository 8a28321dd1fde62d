"""A fake vendor of a given profile: an engine behind its dialect, with the vendor's behaviour at a full window.

The behaviours are written here from the vendors' documentation independently of `profiles.yaml`, so that a mistake
there shows.
"""

import re
from collections.abc import Mapping
from typing import Literal, cast

from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from tests.conformance.engine import WINDOW, Engine, EngineRequest, prompt_tokens
from tests.conformance.fake_dialect import EngineAnswer, FakeDialect
from tests.support.dialects import declared
from tests.support.http_scripts import LAST_CHUNK, chunk, head, json_answer
from tests.support.vendor_script import Received, Script, Send

Habit = Literal["refuses", "obeys", "answers"]

HABITS: Mapping[str, Habit] = {
    "fireworks": "obeys",
    "vllm": "answers",  # since 0.32 it lowers max_tokens to fit the window
    "llamacpp": "answers",  # generates until the slot's context is full
    "localai": "answers",  # like the engine behind it: cuts the prompt, or ends the response at the end of the window
    "ollama": "answers",  # cuts the prompt to fit
    "llamacpp_native": "answers",  # generates until the slot's context is full
    "ollama_native": "answers",  # if the request forbids cutting, ends the response at the end of the window
    "anthropic": "answers",  # ends the message at the end of the window
    "vertex_anthropic": "answers",  # serves the same models
    "bedrock_anthropic": "answers",  # serves the same models
    "triton": "answers",  # lowers max_tokens to fit the window
    "sagemaker": "answers",  # vLLM in its container
    "mock": "answers",  # has no window
}
"""How each vendor handles a call that is too large for the window. Vendors that are not listed refuse it."""

NEW_CLAUDE = re.compile(r"claude-(haiku-4-5|opus-4-7|sonnet-5-5)")
"""The models of Bedrock that also serve such a call; its other models refuse it."""

COUNT_UNASKED = frozenset({"ai21", "fireworks", "together", "mistral", "perplexity", "databricks", "cohere_compat"})
"""Vendors whose streams end in their usage without `stream_options`."""


STREAMS_ONLY = re.compile(r"qwq")
"""Models that refuse non-streaming requests."""


FAKE_DIALECTS: Mapping[str, FakeDialect] = declared("*fake_server.py", "FAKE_DIALECTS")


def fake_dialect_of(profile: str) -> FakeDialect:
    dialect = load_profiles()[profile].dialect
    assert dialect in FAKE_DIALECTS, f"no fake_server.py in tests/providers/dialects declares {dialect!r} of {profile}"
    return FAKE_DIALECTS[dialect]


class FakeEngine:
    """The behaviour of one vendor, for use as `FakeVendor.default`."""

    def __init__(self, profile: str) -> None:
        self._profile = profile
        self._spoken = fake_dialect_of(profile)
        self._engine = Engine()

    def forget(self) -> None:
        self._engine = Engine()

    def __call__(self, received: Received) -> Script:
        """Return the script that answers one request."""
        path = received.path
        body = cast(JsonObject, received.json()) if received.body else {}
        wire = self._spoken.call(path)
        if wire is None:
            return json_answer(200, self._spoken.answer(path, body))
        if STREAMS_ONLY.search(str(body.get("model"))) and not wire.streams(path, body):
            return json_answer(400, {"error": {"message": "This model only support stream mode", "type": "x"}})
        request = wire.read_request(body)
        if self._too_large(body, request, path):
            return json_answer(*self._spoken.too_large(request))
        choices, generated = self._engine.write(request)
        answered = EngineAnswer(choices, prompt_tokens(request), generated, self._profile in COUNT_UNASKED)
        if not wire.streams(path, body):
            return json_answer(200, wire.whole(body, answered))
        start = head(200, [("content-type", wire.media), ("transfer-encoding", "chunked")])
        return (Send(start), *(Send(chunk(frame)) for frame in wire.frames(body, answered)), Send(LAST_CHUNK))

    def _too_large(self, body: JsonObject, request: EngineRequest, path: str) -> bool:
        if prompt_tokens(request) + (request.limit or 0) <= WINDOW:
            return False
        habit = HABITS.get(self._profile, "refuses")
        if self._profile == "bedrock" and NEW_CLAUDE.search(path):
            habit = HABITS["bedrock_anthropic"]
        if self._profile == "together" and path.endswith("/chat/completions"):
            habit = "obeys"
        return habit == "refuses" or (habit == "obeys" and body.get("context_length_exceeded_behavior") != "truncate")
