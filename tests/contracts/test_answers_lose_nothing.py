"""Responses with every field that a vendor's types have (`complete.json`, `complete.sse`): each field arrives in the
client's response, or is listed in `ELSEWHERE` or `LOST` with the reason."""

import re
from collections.abc import Iterator, Mapping

import orjson

from providers.completion import Chunk, StreamEvent
from providers.dialects.openai.read_extras import NOT_PASSED, REQUEST_ONLY_FIELDS
from providers.json_types import JsonObject, JsonValue
from proxy.surfaces.openai import OPENAI
from tests.providers.dialects.openai.kit import DIALECT, FIXTURES, fixture, pieces, played, sent
from tests.proxy.surfaces.kit import FACTS, converse
from tests.support.looped import looped

VENDORS = sorted(path.parent.name for path in FIXTURES.glob("*/complete.json"))
every_vendor = looped("vendor", VENDORS)

MESSAGE = r"choices\.(message|delta)\."
ELSEWHERE: Mapping[str, str] = {
    MESSAGE + r"content\..*": "parts are text, reasoning, images and annotations; the rest goes by its type",
    r"usage\.(cached_tokens|reasoning_tokens)": "among OpenAI's details of the usage",
    r"(choices\.|prompt\.)?logprobs\.(tokens|token_logprobs|top_logprobs\..*|text_offset)": "in chat's form",
    r"choices\.logprobs": "Together's single number is that of the one token",
}
LOST: Mapping[str, str] = {
    MESSAGE + r"function_call\..*": "the older form of the call that `tool_calls` has as well",
    MESSAGE + "reasoning": "where `reasoning_content` says the same, both names have its text",
    MESSAGE + "role": "always the assistant's",
    MESSAGE + r"tool_calls\.index": "calls are numbered from 0 in each choice",
    r"choices\.message\.content": "Perplexity repeats the text so far beside each delta",
    r"choices\.logprobs\..*(token_id|token_ids|sampling_logprob)": "OpenAI's log probabilities have four members",
    **{re.escape(name): reason for name, reason in NOT_PASSED.items()},
    **{MESSAGE + name: reason for name, reason in REQUEST_ONLY_FIELDS.items()},
}
EXPLAINED = re.compile("|".join(f"(?:{pattern})" for pattern in (*ELSEWHERE, *LOST)))


def leaves(value: JsonValue, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and the value of every field that is not empty. List indices are not part of the path."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from leaves(inner, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, path)
    elif value is not None and value != "":
        yield path, str(value)


def missing(said: list[JsonValue], told: list[JsonValue]) -> set[tuple[str, str]]:
    arrived = {leaf for value in told for leaf in leaves(value)}
    return {leaf for value in said for leaf in leaves(value)} - arrived


def unexplained(lost: set[tuple[str, str]]) -> list[tuple[str, str]]:
    return sorted(leaf for leaf in lost if not EXPLAINED.fullmatch(leaf[0]))


def whole_of(vendor: str) -> tuple[JsonObject, JsonObject]:
    """Return the vendor's response and the client's response."""
    data = fixture(f"openai/{vendor}/complete.json")
    renderer = OPENAI.renderer(converse(logprobs=True, top_logprobs=1), FACTS)
    return orjson.loads(data), orjson.loads(renderer.completion(DIALECT.decode(sent(vendor), data)))


def events_of(data: bytes) -> list[JsonValue]:
    lines = [line.removeprefix(b"data: ") for line in data.splitlines() if line]
    return [orjson.loads(line) for line in lines if line != b"[DONE]"]


def rendered(events: list[StreamEvent]) -> bytes:
    request = converse(logprobs=True, top_logprobs=1, stream=True, stream_options={"include_usage": True})
    renderer = OPENAI.renderer(request, FACTS)
    written = [renderer.chunk(event) if isinstance(event, Chunk) else renderer.usage(event) for event in events]
    return b"".join([*written, renderer.end()])


def stream_of(vendor: str) -> tuple[list[JsonValue], list[JsonValue]]:
    """Return the vendor's events and the client's events."""
    data = fixture(f"openai/{vendor}/complete.sse")
    events, failure = played(sent(vendor), *pieces(data, 7))
    assert failure is None
    return events_of(data), events_of(rendered(events))


@every_vendor
def test_every_member_of_a_whole_answer_arrives_or_is_accounted_for(vendor: str) -> None:
    said, told = whole_of(vendor)
    assert unexplained(missing([said], [told])) == []


@every_vendor
def test_every_member_of_a_stream_arrives_or_is_accounted_for(vendor: str) -> None:
    said, told = stream_of(vendor)
    assert unexplained(missing(said, told)) == []


def test_nothing_is_accounted_for_that_arrives() -> None:
    lost = {path for vendor in VENDORS for path, _ in missing([whole_of(vendor)[0]], [whole_of(vendor)[1]])}
    lost |= {path for vendor in VENDORS for path, _ in missing(*stream_of(vendor))}
    unused = {each for each in (*ELSEWHERE, *LOST) if not any(re.fullmatch(each, path) for path in lost)}
    # `object` has the same value in both responses. The other fields are in none of these SDKs.
    assert unused == {"object", "kv_transfer_params", "model_id", "created_at"}
