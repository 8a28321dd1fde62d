"""Accumulates streams by the rules of clients' SDKs, for tests that run without the SDKs.

Sources: `openai` 3.54.0 `lib/streaming/_deltas.py` (`accumulate_delta`), `lib/streaming/responses/_responses.py`
(`accumulate_event`), November 2026; `tests/contracts/test_sdk_accumulators.py` compares the first with the package.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, cast

from anthropic._models import construct_type
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import RawMessageStreamEvent

from providers.emulation.join_extras import overlay
from providers.json_types import JsonObject, JsonValue

_REPLACED: Final = frozenset({"index", "type"})


def accumulate_delta(grown: JsonObject, delta: JsonObject) -> JsonObject:
    """Add a delta as OpenAI's SDK does. Raise TypeError or KeyError for a list that it cannot join."""
    for name, value in delta.items():
        held = grown.get(name)
        if held is None:
            if not _is_indexed(value):
                grown[name] = value
                continue
            held = []
        grown[name] = value if name in _REPLACED else _joined(held, value)
    return grown


def _joined(held: JsonValue, value: JsonValue) -> JsonValue:
    if isinstance(held, str) and isinstance(value, str):
        return held + value
    if isinstance(held, int | float) and isinstance(value, int | float):
        return held + value
    if isinstance(held, dict) and isinstance(value, dict):
        return accumulate_delta(held, value)
    if not isinstance(held, list) or not isinstance(value, list):
        return held
    if all(isinstance(each, str | int | float) for each in held) and (held or not _is_indexed(value)):
        return [*held, *value]
    for entry in value:
        if not isinstance(entry, dict) or not isinstance(place := entry["index"], int):
            raise TypeError(f"an entry of a list has no place: {entry}")
        if -len(held) <= place < len(held):
            held[place] = accumulate_delta(cast(JsonObject, held[place]), entry)
        else:
            held.insert(place, entry)
    return held


def _is_indexed(value: JsonValue) -> bool:
    return isinstance(value, list) and any(isinstance(entry, dict) and "index" in entry for entry in value)


def accumulate_chat(events: Iterable[JsonObject]) -> JsonObject:
    """Return the chat completion that results from the chunks. Fields that the SDK does not know are joined like the
    fields of a delta."""
    whole: JsonObject = {}
    choices: dict[int, JsonObject] = {}
    for event in events:
        for choice in cast(list[JsonObject], event["choices"]):
            grown = choices.setdefault(cast(int, choice["index"]), {"message": {}})
            accumulate_delta(cast(JsonObject, grown["message"]), cast(JsonObject, choice["delta"]))
            _add_choice(grown, choice, "delta")
        whole |= {name: value for name, value in event.items() if name != "choices" and value is not None}
    return {**whole, "choices": [choices[index] for index in sorted(choices)]}


def accumulate_text(events: Iterable[JsonObject]) -> JsonObject:
    """Return the text completion that results from the chunks. No SDK joins these; a client joins texts and lists."""
    whole: JsonObject = {}
    choices: dict[int, JsonObject] = {}
    for event in events:
        for choice in cast(list[JsonObject], event["choices"]):
            grown = choices.setdefault(cast(int, choice["index"]), {"text": ""})
            grown["text"] = cast(str, grown["text"]) + cast(str, choice["text"])
            lists = {name: value for name, value in choice.items() if isinstance(value, list)}
            overlay(grown, lists)
            refusal: JsonObject = {"refusal": choice["refusal"]} if "refusal" in choice else {}
            accumulate_delta(grown, refusal)
            rest = {name: value for name, value in choice.items() if name not in {"refusal", *lists}}
            _add_choice(grown, rest, "text")
        whole |= {name: value for name, value in event.items() if name != "choices" and value is not None}
    return {**whole, "choices": [choices[index] for index in sorted(choices)]}


def _add_choice(grown: JsonObject, choice: JsonObject, read: str) -> None:
    for name, value in choice.items():
        if name == "logprobs" and isinstance(value, dict):
            held = cast(JsonObject, grown.setdefault("logprobs", {}) or {})
            for inner, listed in value.items():
                before = held.get(inner)
                held[inner] = [*before, *listed] if isinstance(before, list) and isinstance(listed, list) else listed
            grown["logprobs"] = held
        elif name not in (read, "logprobs") and value is not None:
            grown[name] = value


def accumulate_message(events: Iterable[JsonObject]) -> JsonObject:
    """Return the message that results from the events under the rules of Anthropic's SDK, plus the further fields of
    `message_delta`, which the SDK ignores."""
    buffers: dict[int, bytes] = {}
    message: Any = None
    rest: JsonObject = {}
    for each in events:
        if each["type"] == "message_delta":
            rest |= {name: value for name, value in each.items() if name not in ("type", "delta", "usage")}
            rest |= {**cast(JsonObject, each["delta"]), "usage": each["usage"]}
        if each["type"] != "message_stop":
            event: Any = construct_type(value=each, type_=RawMessageStreamEvent)
            message = accumulate_event(event=event, current_snapshot=message, json_bufs=buffers)
    return {**message.to_dict(warnings=False), **rest}


class ResponseAccumulator:
    """The output of a response, built from all events but the last one. It raises AssertionError for an event whose
    item or part is not open."""

    def __init__(self) -> None:
        self.items: list[JsonObject] = []
        self.final: JsonObject = {}

    def add(self, event: JsonObject) -> None:
        """Add the next event."""
        kind = cast(str, event["type"]).removeprefix("response.")
        if kind in ("completed", "incomplete", "failed"):
            self.final = cast(JsonObject, event["response"])
        elif kind == "output_item.added":
            assert event["output_index"] == len(self.items)
            self.items.append(cast(JsonObject, event["item"]))
        elif kind == "output_item.done":
            self._end(self.items[cast(int, event["output_index"])], cast(JsonObject, event["item"]))
        elif (grow := _GROWN.get(kind)) is not None:
            grow(self.items[cast(int, event["output_index"])], event)

    def _end(self, grown: JsonObject, done: JsonObject) -> None:
        """Check that a finished item equals the sum of its deltas, and store its other fields."""
        for name in ("content", "summary", "arguments", "input"):
            assert grown.get(name) == done.get(name) or (not grown.get(name) and not done.get(name)), name
        grown.update(done)


def _parts(item: JsonObject, event: JsonObject) -> list[JsonObject]:
    name = "summary" if "summary_index" in event else "content"
    return cast(list[JsonObject], item.setdefault(name, []))


def _part(item: JsonObject, event: JsonObject) -> JsonObject:
    return _parts(item, event)[cast(int, event.get("content_index", event.get("summary_index")))]


def _begin(item: JsonObject, event: JsonObject) -> None:
    _parts(item, event).append(cast(JsonObject, event["part"]))


def _grow(member: str) -> Callable[[JsonObject, JsonObject], None]:
    def grow(item: JsonObject, event: JsonObject) -> None:
        part = _part(item, event)
        part[member] = cast(str, part[member]) + cast(str, event["delta"])
        if event.get("logprobs"):
            part["logprobs"] = [*cast(list[Any], part["logprobs"]), *cast(list[Any], event["logprobs"])]

    return grow


def _annotate(item: JsonObject, event: JsonObject) -> None:
    annotations = cast(list[JsonValue], _part(item, event)["annotations"])
    assert event["annotation_index"] == len(annotations)
    annotations.append(event["annotation"])


def _argue(member: str) -> Callable[[JsonObject, JsonObject], None]:
    def argue(item: JsonObject, event: JsonObject) -> None:
        item[member] = cast(str, item[member]) + cast(str, event["delta"])

    return argue


_GROWN: Final[Mapping[str, Callable[[JsonObject, JsonObject], None]]] = {
    "content_part.added": _begin,
    "reasoning_summary_part.added": _begin,
    "output_text.delta": _grow("text"),
    "refusal.delta": _grow("refusal"),
    "reasoning_text.delta": _grow("text"),
    "reasoning_summary_text.delta": _grow("text"),
    "output_text.annotation.added": _annotate,
    "function_call_arguments.delta": _argue("arguments"),
    "custom_tool_call_input.delta": _argue("input"),
}
