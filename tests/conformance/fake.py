"""A vendor of a given profile: an engine behind its dialect's wire, and what it does when the window is full.

Never decides what a test should see. The habits are written down here from the vendors' documentation a second time, so
that a row of `profiles.yaml` that is wrong about them shows.
"""

import re
from collections.abc import Mapping
from typing import Literal, cast

from providers.profiles import load_profiles
from providers.unified import JsonObject
from tests.conformance.engine import WINDOW, Ask, Engine, prompt_tokens
from tests.conformance.wires.registry import SPOKEN
from tests.conformance.wires.wire import Answered, Spoken
from tests.support.script import Received, Script, Send
from tests.support.wire import LAST_CHUNK, chunk, head, json_answer

Habit = Literal["refuses", "obeys", "answers"]

HABITS: Mapping[str, Habit] = {
    "fireworks": "obeys",
    "vllm": "answers",  # from 0.32 it lowers max_tokens to what fits
    "llamacpp": "answers",  # generates until the slot is full
    "localai": "answers",  # as the engine behind it: cuts the prompt or ends where the window ends
    "ollama": "answers",  # cuts the prompt to fit
    "llamacpp_native": "answers",  # generates until the slot is full
    "ollama_native": "answers",  # told not to cut, ends the answer where the window ends
    "anthropic": "answers",  # ends the message where the window ends
    "vertex_anthropic": "answers",  # the same models
    "bedrock_anthropic": "answers",  # the same again
    "triton": "answers",  # lowers max_tokens to what fits
    "sagemaker": "answers",  # vLLM in its container
    "mock": "answers",  # has no window
}
"""What becomes of a call that is too large for the window. Vendors that are not here refuse it."""

NEW_CLAUDE = re.compile(r"claude-(haiku-4-5|opus-4-7|sonnet-5-5)")
"""The models of Bedrock that answer too; its others refuse."""

COUNT_UNASKED = frozenset({"ai21", "fireworks", "together", "mistral", "perplexity", "databricks", "cohere_compat"})
"""Vendors whose streams end in their usage whatever `stream_options` says."""


STREAMS_ONLY = re.compile(r"qwq")
"""Models that refuse to answer in one piece."""


def spoken(profile: str) -> Spoken:
    """The wire of a profile's dialect."""
    dialect = load_profiles()[profile].dialect
    assert dialect in SPOKEN, f"no fake speaks the dialect {dialect!r} of {profile}: tests/conformance/wires needs it"
    return SPOKEN[dialect]


class FakeEngine:
    """The behaviour of one vendor, for `FakeVendor.default`."""

    def __init__(self, profile: str) -> None:
        self._profile = profile
        self._spoken = spoken(profile)
        self._engine = Engine()

    def forget(self) -> None:
        """The next prompt is new again."""
        self._engine = Engine()

    def __call__(self, received: Received) -> Script:
        """The answer to one request."""
        path = received.path
        body = cast(JsonObject, received.json()) if received.body else {}
        wire = self._spoken.call(path)
        if wire is None:
            return json_answer(200, self._spoken.answer(path, body))
        if STREAMS_ONLY.search(str(body.get("model"))) and not wire.streams(path, body):
            return json_answer(400, {"error": {"message": "This model only support stream mode", "type": "x"}})
        ask = wire.ask(body)
        if self._too_large(body, ask, path):
            return json_answer(*self._spoken.too_large(ask))
        choices, generated = self._engine.write(ask)
        answered = Answered(choices, prompt_tokens(ask), generated, self._profile in COUNT_UNASKED)
        if not wire.streams(path, body):
            return json_answer(200, wire.whole(body, answered))
        start = head(200, [("content-type", wire.media), ("transfer-encoding", "chunked")])
        return (Send(start), *(Send(chunk(frame)) for frame in wire.frames(body, answered)), Send(LAST_CHUNK))

    def _too_large(self, body: JsonObject, ask: Ask, path: str) -> bool:
        if prompt_tokens(ask) + (ask.limit or 0) <= WINDOW:
            return False
        habit = HABITS.get(self._profile, "refuses")
        if self._profile == "bedrock" and NEW_CLAUDE.search(path):
            habit = HABITS["bedrock_anthropic"]
        if self._profile == "together" and path.endswith("/chat/completions"):
            habit = "obeys"
        return habit == "refuses" or (habit == "obeys" and body.get("context_length_exceeded_behavior") != "truncate")
