"""A client's SDK accumulates the whole response from a stream: for each recorded stream and response, on each surface
that streams, in many chunks or in one. The last text is the text shown to a person."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Final, cast

import orjson
import pytest

from providers.completion import Chunk, Completion, StreamEvent
from providers.dialect import UpstreamRequest
from providers.emulation.collect_stream import to_chunks
from providers.failure import UpstreamError
from providers.json_types import JsonObject, JsonValue
from providers.profiles.load_profiles import load_profiles
from providers.unified_request import Operation
from proxy.surfaces.anthropic.renderer import MessagesRenderer
from proxy.surfaces.completion_surface import CompletionSurface
from proxy.surfaces.fireworks import FIREWORKS
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.surface import Renderer
from tests.contracts.fixture_sets import FixtureSet
from tests.providers.dialects.answer_sets import AnswerSet
from tests.providers.dialects.bedrock.kit import framed_lines
from tests.providers.dialects.kit import gathered, pieces, target_of
from tests.proxy.surfaces.anthropic import kit as messages
from tests.proxy.surfaces.kit import FACTS, complete, converse, objects
from tests.proxy.surfaces.responses import kit as responses
from tests.support.dialects import FOLDER, declared, fixture_name
from tests.support.looped import looped
from tests.support.sdk_accumulators import ResponseAccumulator, accumulate_chat, accumulate_message, accumulate_text

CHATS: Final[Mapping[str, tuple[str, str]]] = {
    "anthropic": ("anthropic", "tiny"),
    "bedrock": ("bedrock", "us.anthropic.claude-haiku-4-5-20251001-v1:0"),
    "cohere": ("cohere", "tiny"),
    "gemini": ("gemini", "gemini-3.1-pro-preview"),
    "ollama": ("ollama_native", "tiny"),
    "openai": ("openai", "tiny"),
    "watsonx": ("watsonx", "tiny"),
}
"""The profile and model of the dialects whose recordings answer any call. Recordings of engines answer the calls of
their fixture sets."""

FOLDERS: Final = frozenset({"answers", "streams", "recorded", "checks"})
SUFFIXES: Final = (".json", ".sse", ".ndjson", ".events")
CUTS: Final = (3, 64, 1 << 20)
"""The sizes of a chunk in bytes."""

ONE_AFTER_OTHER: Final = frozenset({"openai/vllm/chat.sse"})
"""Streams with reasoning within their text: a non-streaming response has no order of the two, so only the texts are
compared."""

SUMMED: Final = frozenset({"token_id"})
"""Fields that OpenAI's SDK adds up, because they are numbers."""

REPEATED: Final = frozenset({"format", "mime_type"})
"""Fields that each delta of a block has: OpenAI's SDK concatenates them like texts."""


@dataclass(frozen=True, slots=True)
class Recording:
    """The bytes that a vendor sent, and the call that they answer."""

    name: str
    call: UpstreamRequest
    data: bytes

    @property
    def streamed(self) -> bool:
        return not self.name.endswith(".json")


def recordings() -> Iterator[Recording]:
    for path in sorted(FOLDER.glob("*/fixtures/**/*")):
        name = fixture_name(path)
        dialect, *folders, file = name.split("/")
        known = dialect == "openai" or (folders and folders[0] in FOLDERS)
        if dialect in CHATS and known and path.suffix in SUFFIXES and not file.startswith("error"):
            yield Recording(name, _call(dialect, name, path), _bytes_of(path))
    for sets in (declared("suite_data.py", "FIXTURE_SETS"), declared("suite_data.py", "ANSWER_SETS")):
        yield from (each for case in sets.values() for each in _of_set(case))


def _call(dialect: str, name: str, path: Path) -> UpstreamRequest:
    profile, model = CHATS[dialect]
    if dialect == "openai":
        vendor = name.split("/")[1].split("_")[0] if name.count("/") == 1 else name.split("/")[1]
        profile = vendor if vendor in load_profiles() else profile
    stream = path.suffix != ".json"
    return UpstreamRequest(target_of(profile, model), Operation.CHAT, "http://up", b"{}", stream)


def _bytes_of(path: Path) -> bytes:
    data = path.read_bytes()
    return framed_lines(data) if path.suffix == ".events" else data


def _of_set(case: FixtureSet | AnswerSet) -> Iterator[Recording]:
    """Yield the recordings of engines, which answer their own calls."""
    if isinstance(case, AnswerSet):
        for name in () if case.folder in CHATS else case.streams.split():
            yield Recording(f"{case.folder}/streams/{name}", case.calls[0], case.stream(name))
        return
    for shown, name in case.streams.items():
        if name.split("/")[0] not in CHATS and not shown.startswith("error") and case.whole is not case.streams:
            yield Recording(name, case.call(True), case.stream(shown))


@cache
def played(name: str, cut: int) -> tuple[tuple[StreamEvent, ...], Completion] | None:
    """Return the events of a recording in chunks of `size`, and the non-streaming response; `None` if the recording
    breaks off."""
    recording = RECORDINGS[name]
    for operation in (recording.call.operation, Operation.COMPLETIONS):
        for choices in (recording.call.choices, 2, 3, 4):
            call = replace(recording.call, operation=operation, choices=choices)
            try:
                return _decoded_recording(call, recording, cut)
            except (UpstreamError, ValueError):
                continue
    return None


def _decoded_recording(
    call: UpstreamRequest, recording: Recording, cut: int
) -> tuple[tuple[StreamEvent, ...], Completion]:
    if not recording.streamed:
        whole = replace(call.target.dialect.decode(call, recording.data), native=None)
        return tuple(to_chunks(whole)), whole
    decoder = call.target.dialect.stream(call)
    events = [event for piece in pieces(recording.data, cut) for event in decoder.feed(piece)]
    events += decoder.finish()
    bare = [replace(event, native=None) if isinstance(event, Chunk) else event for event in events]
    return tuple(bare), gathered(bare, call.choices)


RECORDINGS: Final = {each.name: each for each in recordings()}
each_recording = looped("recording", RECORDINGS.values(), ids=RECORDINGS.keys())


def both_ways(recording: Recording) -> Iterator[tuple[tuple[StreamEvent, ...], Completion]]:
    """Yield the non-streaming response with the received events, and with the single event per choice that is made
    from it."""
    for cut in CUTS if recording.streamed else CUTS[-1:]:
        found = played(recording.name, cut)
        if found is not None:
            yield found
        if recording.streamed and found is not None and cut == CUTS[-1]:
            yield tuple(to_chunks(found[1])), found[1]


def stream_of(renderer: Renderer, events: tuple[StreamEvent, ...]) -> bytes:
    shown = [renderer.chunk(event) if isinstance(event, Chunk) else renderer.usage(event) for event in events]
    return b"".join(shown) + renderer.end()


def plain(value: JsonValue) -> JsonValue:
    """Return a value without the traces of accumulators: indices in lists, absent fields, repeated words."""
    if isinstance(value, list):
        return [plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {name: plain(each) for name, each in value.items() if name != "index" and each is not None and each != []}
    for name in kept.keys() & (REPEATED | SUMMED):
        kept[name] = _once(kept[name])
    return kept


def _once(value: JsonValue) -> JsonValue:
    return value[: (value + value).find(value, 1)] if isinstance(value, str) and value else None


def check_same(whole: JsonObject, accumulated: JsonObject) -> None:
    for each in (whole, accumulated):
        each.pop("object", None)
    assert plain(accumulated) == plain(whole)


@pytest.mark.parametrize("row", [OPENAI, FIREWORKS], ids=["openai", "fireworks"])
@each_recording
def test_a_chat(recording: Recording, row: CompletionSurface) -> None:
    for events, completion in both_ways(recording):
        asked: dict[str, JsonValue] = {"logprobs": True, "top_logprobs": 2, "n": len(completion.choices)}
        if row is FIREWORKS:
            asked = {"n": len(completion.choices)}
        whole = orjson.loads(row.renderer(converse(row, **asked), FACTS).completion(completion))
        request = converse(row, stream=True, stream_options={"include_usage": True}, **asked)
        accumulated = accumulate_chat(objects(stream_of(row.renderer(request, FACTS), events)))
        for choice in cast(list[JsonObject], [*whole["choices"], *cast(list[JsonValue], accumulated["choices"])]):
            message = cast(JsonObject, choice["message"])
            message["content"] = message.get("content") or ""
        if completion.usage is None:
            whole.pop("usage")
        check_same(whole, accumulated)


@each_recording
def test_a_text_completion(recording: Recording) -> None:
    for events, completion in both_ways(recording):
        asked: dict[str, JsonValue] = {"logprobs": 2, "n": len(completion.choices)}
        whole = orjson.loads(OPENAI.renderer(complete(**asked), FACTS).completion(completion))
        request = complete(stream=True, stream_options={"include_usage": True}, **asked)
        if completion.usage is None:
            whole.pop("usage")
        check_same(whole, accumulate_text(objects(stream_of(OPENAI.renderer(request, FACTS), events))))


@each_recording
def test_a_message(recording: Recording) -> None:
    for events, completion in both_ways(recording):
        if len(completion.choices) > 1:
            continue
        whole = orjson.loads(MessagesRenderer(messages.parse(), FACTS).completion(completion))
        stream = stream_of(MessagesRenderer(messages.parse(stream=True), FACTS), events)
        accumulated = accumulate_message(messages.objects(stream))
        blocks = cast(list[JsonObject], accumulated["content"])
        check_last([str(block["type"]) for block in blocks], "text", {"tool_use"})
        assert not any(block["type"] == "text" and not block["text"] for block in blocks)
        if recording.name in ONE_AFTER_OTHER:
            assert "".join([str(block.get("text") or "") for block in blocks]) == completion.choices[0].text
        else:
            check_same(whole, accumulated)


@each_recording
def test_a_response(recording: Recording) -> None:
    for events, completion in both_ways(recording):
        if len(completion.choices) > 1:
            continue
        whole = responses.whole(completion)
        made = ResponseAccumulator()
        for event in responses.events(stream_of(responses.rendering(stream=True), events)):
            made.add(event)
        assert made.items == made.final["output"]
        check_last([str(item["type"]) for item in made.items], "message", {"function_call", "custom_tool_call"})
        assert not any(item["type"] == "message" and not item["content"] for item in made.items)
        if recording.name not in ONE_AFTER_OTHER:
            check_same(whole, made.final)


def check_last(kinds: list[str], text: str, calls: set[str]) -> None:
    """Fail if a part that is not shown to a person follows the last text, other than calls and their reasoning."""
    if text in kinds:
        behind = kinds[len(kinds) - kinds[::-1].index(text) :]
        assert not behind or calls.intersection(behind) or "image_generation_call" in behind, kinds
