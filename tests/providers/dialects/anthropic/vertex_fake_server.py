"""Anthropic's API at Google's address, whose path holds the model."""

from dataclasses import replace

from providers.json_types import JsonObject, JsonValue
from tests.conformance.fake_dialect import EngineAnswer, FakeDialect
from tests.providers.dialects.anthropic.fake_server import ANTHROPIC

(_MESSAGES,) = ANTHROPIC.calls


def _named(body: JsonObject) -> JsonObject:
    assert "model" not in body
    assert body["anthropic_version"] == "vertex-2023-10-16"
    return {"model": "claude", **body}


def _whole(body: JsonObject, answered: EngineAnswer) -> JsonValue:
    return _MESSAGES.whole(_named(body), answered)


def _frames(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    return _MESSAGES.frames(_named(body), answered)


ANTHROPIC_VERTEX = FakeDialect(
    calls=(replace(_MESSAGES, ends=(":rawPredict", ":streamRawPredict"), whole=_whole, frames=_frames),),
    too_large=ANTHROPIC.too_large,
    questions={"/count-tokens:rawPredict": ANTHROPIC.questions["/messages/count_tokens"]},
)

FAKE_DIALECTS = {"anthropic_vertex": ANTHROPIC_VERTEX}
