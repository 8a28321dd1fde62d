"""Configurations of vendors whose missing features the gateway emulates, and readers of its responses."""

from collections.abc import Mapping, Sequence

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.gateway_rig import CLIENT_KEY, Rig
from tests.proxy.kit.raw_client import Answer
from tests.proxy.kit.tables import digest_of
from tests.support.http_scripts import chunk, head
from tests.support.openai_wire import chat_frames
from tests.support.vendor_script import Behaviour, Received, Script, Send

AT = 'api_key: k, base_url: "http://127.0.0.1:PORT/v1", allow_private: true'
TABLE = f"""
defaults: {{retries: {{attempts: 1}}}}
vendors:
  chats: {{profile: groq, {AT}}}
  scored: {{profile: deepseek, {AT}}}
  engine: {{profile: llamacpp, {AT}}}
  whole: {{profile: openai_compatible, {AT}}}
models:
  chats/m: {{}}
  chats/hasty: {{timeouts: {{first_event: 300ms, idle: 300ms, total: 20s}}}}
  scored/m: {{}}
  engine/m: {{}}
  whole/m: {{}}
teams:
  search:
    keys: ["{digest_of(CLIENT_KEY)}"]
    models: ["chats/*", "scored/*", "engine/*", "whole/*"]
"""
WINDOW = "context_length_exceeded_behavior"
START = Send(head(200, [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]))
FIRST = (START, Send(chunk(chat_frames(["one"])[1])))
"""The first content of a stream."""


def prompt_of(received: Received) -> str:
    """Return the prompt of a call."""
    body = received.json()
    assert isinstance(body, dict)
    match body:
        case {"messages": [{"content": str(text)}]} | {"prompt": str(text)}:
            return text
        case _:
            raise AssertionError(body)


def each(scripts: Mapping[str, Script]) -> Behaviour:
    """Return the behaviour of a vendor with a script for each prompt."""
    return lambda received: scripts[prompt_of(received)]


def choices_of(answer: Answer) -> list[tuple[object, object, object]]:
    """Return index, text and finish reason of each choice of a text completion."""
    choices = answer.json()["choices"]
    assert isinstance(choices, list)
    return [
        (choice["index"], choice["text"], choice["finish_reason"]) for choice in choices if isinstance(choice, dict)
    ]


def frames_of(answer: Answer) -> list[JsonObject]:
    """Return the objects of a stream that ended successfully."""
    assert (answer.status, answer.whole, answer.events()[-1]) == (200, True, b"[DONE]"), answer
    return [orjson.loads(data) for data in answer.events()[:-1]]


def texts_of(frames: Sequence[JsonObject]) -> dict[int, str]:
    """Return the text of each choice of a stream."""
    texts: dict[int, str] = {}
    for frame in frames:
        for choice in frame["choices"] if isinstance(frame["choices"], list) else ():
            assert isinstance(choice, dict)
            index, delta = choice["index"], choice.get("delta", choice)
            assert isinstance(index, int)
            assert isinstance(delta, dict)
            texts[index] = texts.get(index, "") + str(delta.get("text") or delta.get("content") or "")
    return texts


def asking(model: str = "chats/m", prompt: JsonValue = "hi", **fields: JsonValue) -> JsonObject:
    """Return a text completion's body."""
    return {"model": model, "prompt": prompt, **fields}


async def gone(served: Rig, count: int) -> None:
    """Wait until the gateway has closed every hanging call."""
    hanging = [received for received in served.vendor.requests if prompt_of(received) != "bad"]
    assert len(hanging) == count
    for received in hanging:
        await received.gone.wait()
