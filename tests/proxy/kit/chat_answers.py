"""The content of a chat response, streamed or not, in one form."""

from collections.abc import Iterator
from typing import cast

import orjson

from providers.json_types import JsonObject, JsonValue
from tests.proxy.kit.raw_client import Answer


def frames(answer: Answer) -> Iterator[JsonObject]:
    for event in answer.events():
        if event != b"[DONE]":
            yield cast(JsonObject, orjson.loads(event))


def listed(holder: JsonObject, name: str) -> list[JsonObject]:
    return cast(list[JsonObject], holder.get(name) or [])


def joined(answer: Answer) -> JsonObject:
    """Return the choice that a stream's chunks make, and its usage."""
    texts: dict[str, str] = {"content": "", "reasoning_content": ""}
    lists: dict[str, list[JsonValue]] = {"reasoning_details": [], "annotations": []}
    calls: dict[JsonValue, JsonObject] = {}
    made: JsonObject = {}
    for frame in frames(answer):
        made["usage"] = frame.get("usage") or made.get("usage")
        for choice in listed(frame, "choices"):
            delta = cast(JsonObject, choice["delta"])
            made["finish"] = choice.get("finish_reason") or made.get("finish")
            for name in texts:
                texts[name] += str(delta.get(name) or "")
            for name in lists:
                lists[name] += listed(delta, name)
            for call in listed(delta, "tool_calls"):
                held = calls.setdefault(call["index"], {"arguments": ""})
                function = cast(JsonObject, call["function"])
                held["id"] = call.get("id") or held.get("id")
                held["arguments"] = str(held["arguments"]) + str(function.get("arguments") or "")
    return {**made, **texts, **lists, "calls": [*calls.values()]}


def only_choice(answer: Answer) -> JsonObject:
    """Return the choice and usage of a non-streaming response."""
    choice = listed(answer.json(), "choices")[0]
    message = cast(JsonObject, choice["message"])
    names = ("content", "reasoning_content", "reasoning_details", "annotations")
    calls: list[JsonValue] = [
        {"id": call["id"], "arguments": cast(JsonObject, call["function"])["arguments"]}
        for call in listed(message, "tool_calls")
    ]
    own = {name: message.get(name) for name in names}
    return {**own, "calls": calls, "finish": choice["finish_reason"], "usage": answer.json()["usage"]}
