"""Bedrock's InvokeModel: the text models' own bodies, and Anthropic's, whole and in frames.

Shapes: the makers' pages in the service's user guide; `amazon-bedrock-invocationMetrics` as public threads show it.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import cast

import orjson

from providers.framing.parse_sse import SSEParser
from providers.json_types import JsonObject, JsonValue
from tests.conformance.engine import EngineRequest
from tests.conformance.fake_dialect import (
    EngineAnswer,
    FakeDialect,
    FakeEndpoint,
    conversation,
    pieces,
    strings,
    whole_number,
)
from tests.providers.dialects.anthropic.fake_server import ANTHROPIC
from tests.providers.dialects.bedrock.fake_server import MEDIA, frame, streams, too_large

_ACTIONS = ("/invoke", "/invoke-with-response-stream")


def _chunks(events: Iterable[JsonObject], answered: EngineAnswer) -> list[bytes]:
    """Events of a model in the service's frames, its own counts in the last."""
    told = [*events]
    counts: JsonObject = {"inputTokenCount": answered.prompt_tokens, "outputTokenCount": answered.generated}
    told[-1] = {**told[-1], "amazon-bedrock-invocationMetrics": counts}
    return [frame("chunk", {"bytes": b64encode(orjson.dumps(event)).decode()}) for event in told]


@dataclass(frozen=True, slots=True)
class Maker:
    """One maker's shape. `say` writes a text and, at its end, the stop reason. `whole` and `piece` write the body and
    the chunk around it."""

    model: str
    say: Callable[[str, str | None, EngineAnswer], JsonObject]
    whole: Callable[[JsonObject], JsonObject]
    piece: Callable[[JsonObject], JsonObject]

    def wire(self) -> FakeEndpoint:
        """The calls of its model."""
        return FakeEndpoint(
            tuple(f"/{self.model.replace(':', '%3A')}{action}" for action in _ACTIONS),
            _read_request,
            self._answer,
            self._frames,
            streams,
            MEDIA,
        )

    def _answer(self, body: JsonObject, answered: EngineAnswer) -> JsonObject:
        (written,) = answered.choices
        return self.whole(self.say(written.text, written.finish, answered))

    def _frames(self, body: JsonObject, answered: EngineAnswer) -> list[bytes]:
        (written,) = answered.choices
        said = [(text, None) for text in pieces(written)]
        return _chunks([self.piece(self.say(*each, answered)) for each in [*said, ("", written.finish)]], answered)


def _read_request(body: JsonObject) -> EngineRequest:
    settings = body.get("textGenerationConfig")
    settings = settings if isinstance(settings, dict) else body
    return EngineRequest(
        strings(body.get("prompt", body.get("inputText"))),
        stops=strings(body.get("stop", body.get("stop_sequences"))),
        limit=whole_number(settings, "max_tokens", "max_gen_len", "maxTokenCount"),
    )


def _titan(text: str, finish: str | None, answered: EngineAnswer) -> JsonObject:
    reason = None if finish is None else {"stop": "FINISH", "length": "LENGTH"}[finish]
    counts: JsonObject = {"inputTextTokenCount": answered.prompt_tokens, "tokenCount": answered.generated}
    return {"outputText": text, "completionReason": reason, **counts}


def _llama(text: str, finish: str | None, answered: EngineAnswer) -> JsonObject:
    counts: JsonObject = {"prompt_token_count": answered.prompt_tokens, "generation_token_count": answered.generated}
    return {"generation": text, "stop_reason": finish, **counts}


def _plain(text: str, finish: str | None, answered: EngineAnswer) -> JsonObject:
    return {"text": text, "stop_reason": finish}


def _cohere(text: str, finish: str | None, answered: EngineAnswer) -> JsonObject:
    if finish is None:
        return {"text": text, "is_finished": False}
    return {"text": text, "is_finished": True, "finish_reason": {"stop": "COMPLETE", "length": "MAX_TOKENS"}[finish]}


MAKERS = (
    Maker(
        "amazon.titan-text-premier-v1:0",
        _titan,
        lambda said: {"inputTextTokenCount": said["inputTextTokenCount"], "results": [said]},
        lambda said: said,
    ),
    Maker("meta.llama3-1-8b-instruct-v1:0", _llama, lambda said: said, lambda said: said),
    Maker(
        "mistral.mistral-7b-instruct-v0:2", _plain, lambda said: {"outputs": [said]}, lambda said: {"outputs": [said]}
    ),
    Maker("deepseek.r1-v1:0", _plain, lambda said: {"choices": [said]}, lambda said: {"choices": [said]}),
    Maker("cohere.command-text-v14", _cohere, lambda said: {"generations": [said]}, lambda said: said),
)

BEDROCK_INVOKE = FakeDialect(calls=tuple(maker.wire() for maker in MAKERS), too_large=too_large)


# Anthropic's body ---------------------------------------------------------------------------------------------------

(_MESSAGES,) = ANTHROPIC.calls


def _message(body: JsonObject, answered: EngineAnswer) -> JsonValue:
    return _MESSAGES.whole({**body, "model": "claude"}, answered)


def _events(body: JsonObject, answered: EngineAnswer) -> list[bytes]:
    """Anthropic's own events, each in a frame."""
    parser = SSEParser()
    told = [
        payload for data in _MESSAGES.frames({**body, "model": "claude"}, answered) for _, payload in parser.feed(data)
    ]
    return _chunks(map(orjson.loads, told), answered)


def _counted(body: JsonObject) -> JsonValue:
    (given,) = cast(dict[str, dict[str, str]], body["input"]).values()
    return {"inputTokens": len(conversation(orjson.loads(b64decode(given["body"]))).split())}


BEDROCK_ANTHROPIC = FakeDialect(
    calls=(FakeEndpoint(_ACTIONS, _MESSAGES.read_request, _message, _events, streams, MEDIA),),
    too_large=too_large,
    questions={"/count-tokens": _counted},
)

FAKE_DIALECTS = {"bedrock_invoke": BEDROCK_INVOKE, "bedrock_anthropic": BEDROCK_ANTHROPIC}
