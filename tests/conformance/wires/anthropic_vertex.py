"""Anthropic's wire at Google's address, where the model stands in the path."""

from dataclasses import replace

from providers.unified import JsonObject, JsonValue
from tests.conformance.wires.anthropic import ANTHROPIC
from tests.conformance.wires.wire import Answered, Spoken

(_MESSAGES,) = ANTHROPIC.calls


def _named(body: JsonObject) -> JsonObject:
    assert "model" not in body
    assert body["anthropic_version"] == "vertex-2023-10-16"
    return {"model": "claude", **body}


def _whole(body: JsonObject, answered: Answered) -> JsonValue:
    return _MESSAGES.whole(_named(body), answered)


def _frames(body: JsonObject, answered: Answered) -> list[bytes]:
    return _MESSAGES.frames(_named(body), answered)


ANTHROPIC_VERTEX = Spoken(
    calls=(replace(_MESSAGES, ends=(":rawPredict", ":streamRawPredict"), whole=_whole, frames=_frames),),
    too_large=ANTHROPIC.too_large,
    questions={"/count-tokens:rawPredict": ANTHROPIC.questions["/messages/count_tokens"]},
)
