"""The fuzzed parsers of external bytes, with their seeds and the errors that they may raise."""

import struct
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, product
from math import isfinite
from pathlib import Path
from zlib import crc32

from multidict import CIMultiDict

from config.load_config import load_text
from config.problem import ConfigError
from providers.dialect import UpstreamRequest
from providers.emulation.plan_calls import plan_calls
from providers.failure import Refusal, UpstreamError
from providers.framing.parse_aws_eventstream import Frame, FrameParser, FramingError, encode
from providers.framing.parse_ndjson import NDJSONParser
from providers.framing.parse_sse import EventTooLarge, SSEParser
from providers.profiles.load_profiles import load_profiles
from providers.target import Target as Deployment
from providers.unified_request import Operation
from providers.vendor_text.read_retry_after import read_rate_limit_wait, read_retry_after
from proxy.errors import GatewayError
from proxy.forms.parse_multipart import MultipartParser, NotMultipart
from proxy.forms.part_heads import BadHead, PartHead, boundary_of
from proxy.routing.snapshot import Snapshot
from proxy.surfaces.openai import OPENAI
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.request.parse_json import load
from proxy.teams.client_keys import identify
from tests.providers.dialects.kit import target_of
from tests.proxy.kit.tables import digest_of, snapshot
from tests.support.dialects import FOLDER, NAMES, fixture_path

EXAMPLES = Path(__file__).resolve().parents[2] / "config"
CAP = 32 * 1024
"""The byte limit of one event, small enough that inputs exceed it."""

LONGEST_SEED = 16 * 1024
PIECE = 1024
"""Bytes of a stream in one read."""

KEY = "dk-fuzzed"
ACTED_ON = frozenset({"model", "stream", "messages", "prompt"})


class Broken(Exception):
    """A parser returned an invalid result."""


@dataclass(frozen=True, slots=True)
class Target:
    """One parser. `run` raises for an input that the parser handles incorrectly. A slow parser gets a share of the
    runs."""

    name: str
    run: Callable[[bytes], None]
    seeds: Sequence[bytes]
    tokens: Sequence[bytes] = ()
    share: float = 1.0


def fixtures(*suffixes: str) -> list[bytes]:
    found = [path.read_bytes() for path in sorted(FOLDER.glob("*/fixtures/**/*")) if path.suffix in suffixes]
    return [data for data in found if len(data) < LONGEST_SEED]


def split(parser: Callable[[], SSEParser | NDJSONParser], pieces: Iterable[bytes]) -> list[tuple[str, bytes]] | None:
    """Return the events of these chunks. Return `None` if one of them is too large."""
    splitter = parser()
    events: list[tuple[str, bytes]] = []
    try:
        for piece in pieces:
            events += splitter.feed(piece)
        events += splitter.finish()
    except EventTooLarge:
        return None
    return events


def same_however_cut(parser: Callable[[], SSEParser | NDJSONParser], data: bytes) -> None:
    """Check that a splitter gives the same events for the whole input and for its two parts."""
    at = len(data) * 5 // 13
    if split(parser, [data]) != split(parser, [data[:at], data[at:]]):
        raise Broken(f"other events when cut at {at}")


def sse(data: bytes) -> None:
    same_however_cut(lambda: SSEParser(CAP), data)


def ndjson(data: bytes) -> None:
    same_however_cut(lambda: NDJSONParser(CAP), data)


def frames(pieces: Iterable[bytes]) -> tuple[list[Frame], str]:
    """Return the frames of these chunks up to the first invalid one, and the error of that."""
    parser = FrameParser()
    found: list[Frame] = []
    try:
        for piece in pieces:
            for frame in parser.feed(piece):
                found.append(frame)
    except FramingError as error:
        return found, str(error)
    return found, ""


def eventstream(data: bytes) -> None:
    """Check Amazon's frames: the input itself, and a frame with valid checksums whose headers are the input."""
    lengths = struct.pack(">II", 16 + len(data), len(data))
    message = lengths + struct.pack(">I", crc32(lengths)) + data
    for whole in (data, message + struct.pack(">I", crc32(message))):
        at = len(whole) * 5 // 13
        if frames([whole]) != frames([whole[:at], whole[at:]]):
            raise Broken(f"other frames when cut at {at}")


def parts(boundary: str, pieces: Iterable[bytes]) -> list[tuple[PartHead, bytes]] | None:
    """Return the parts of a form in these chunks. Return `None` if it is refused."""
    parser = MultipartParser(boundary)
    heads: list[PartHead] = []
    contents: list[bytes] = []
    try:
        for each in chain.from_iterable(map(parser.feed, pieces)):
            if isinstance(each, PartHead):
                heads.append(each)
                contents.append(b"")
            else:
                contents[-1] += each
    except NotMultipart:
        return None
    return list(zip(heads, contents, strict=True)) if parser.complete else None


def form(data: bytes) -> None:
    """Parse the input as a form's body, with its first line as the Content-Type."""
    line, _, body = data.partition(b"\n")
    try:
        boundary = boundary_of(line.decode("latin-1")) or "xyz"
    except BadHead:
        boundary = "xyz"
    for whole in (data, body):
        at = len(whole) * 5 // 13
        if parts(boundary, [whole]) != parts(boundary, [whole[:at], whole[at:]]):
            raise Broken(f"other parts when cut at {at}")


def guard(data: bytes) -> None:
    try:
        found = load(data, ACTED_ON)
    except GatewayError:
        return
    if not isinstance(found, dict):
        raise Broken("no object")


def surfaces(data: bytes) -> None:
    for surface in SURFACES:
        for operation in {end.action for end in surface.endpoints if isinstance(end.action, Operation)}:
            try:
                surface.parse(operation, data, None)
            except GatewayError as error:
                surface.error(error.facts)


def wait(data: bytes) -> None:
    """Read every header, and the message, in which a vendor says how long to wait."""
    text = data.decode("latin-1")
    date = text[len(text) // 2 :]
    for name in ("retry-after", "retry-after-ms", "x-ratelimit-reset", "x-ratelimit-reset-requests"):
        headers = {name: text, "date": date, "x-ratelimit-remaining": "0"}
        for seconds in (
            read_retry_after(headers),
            read_rate_limit_wait(headers, text, {"details": [{"retryDelay": text}]}),
        ):
            if seconds is not None and not (isfinite(seconds) and seconds >= 0):
                raise Broken(f"a wait of {seconds} s")


def config(data: bytes) -> None:
    try:
        load_text(data.decode("utf-8", "replace"), "table.yaml", {"KEY": "sk-fuzzed"})
    except ConfigError as error:
        if not error.problems or "sk-fuzzed" in str(error):
            raise Broken("a refusal without a problem, or with a secret") from error


@cache
def _teams() -> Snapshot:
    teams = f'{{t: {{keys: ["{digest_of(KEY)}"], models: ["*"]}}}}'
    return snapshot(f"vendors: {{mock: {{}}}}\nmodels: {{mock/echo: {{}}}}\nteams: {teams}")


def key(data: bytes) -> None:
    lines = [line.partition(":") for line in data.decode("utf-8", "surrogateescape").split("\n")]
    headers = CIMultiDict((name.strip(), value.strip()) for name, _, value in lines)
    for surface in SURFACES:
        try:
            identify(_teams(), headers, surface.key_headers, 0.0)
        except GatewayError:
            continue
        if not any(KEY in value for value in headers.values()):
            raise Broken("a team without a key")


MODELS = {"replicate": "meta/llama", "bedrock_invoke": "amazon.titan-text-premier-v1:0"}
"""Model names that a dialect interprets. The other dialects accept any name."""


@cache
def _deployments() -> tuple[Deployment, ...]:
    """Return a deployment of each dialect, with a context window so that prompts are counted."""
    rows = {row.dialect: name for name, row in load_profiles().items()}
    return tuple(
        target_of(name, MODELS.get(dialect, "tiny"), context_window=4096, max_output_tokens=512)
        for dialect, name in rows.items()
    )


def translation(data: bytes) -> None:
    """Parse a request's body and encode it for each dialect."""
    for operation in (Operation.COMPLETIONS, Operation.CHAT):
        try:
            request = OPENAI.parse(operation, data, None)
        except GatewayError:
            continue
        for target in _deployments():
            with suppress(Refusal):
                plan_calls(request, target, behavior="truncate")


PROMPTS = (
    b'{"model":"v/m","prompt":"hi","max_tokens":16}',
    b'{"model":"v/m","prompt":"hi","max_tokens":16,"logprobs":2}',
    b'{"model":"v/m","prompt":[1,2,3],"max_tokens":16}',
)
CHATS = (
    b'{"model":"v/m","messages":[{"role":"user","content":"hi"}],"max_tokens":16}',
    b'{"model":"v/m","messages":[{"role":"user","content":"hi"}],"max_tokens":16,"tools":[{"type":"function",'
    b'"function":{"name":"f","parameters":{"type":"object"}}}]}',
)


@cache
def _calls() -> tuple[UpstreamRequest, ...]:
    """Return calls of each dialect for its decoders. A dialect has none for requests that it refuses."""
    asked = [
        OPENAI.parse(operation, body, None)
        for operation, bodies in ((Operation.COMPLETIONS, PROMPTS), (Operation.CHAT, CHATS))
        for body in bodies
    ]
    calls: list[UpstreamRequest] = []
    for target in _deployments():
        for request, stream in product(asked, (False, True)):
            with suppress(Refusal):
                calls += [call.sent for call in plan_calls(replace(request, stream=stream), target).calls[:1]]
    return tuple(calls)


def vendor(folder: str) -> Target:
    """Return the target for a dialect's decoders of responses, streams and errors."""

    def run(data: bytes) -> None:
        for sent in (call for call in _calls() if call.target.profile.dialect.startswith(folder)):
            (_stream if sent.stream else _whole)(sent, data)

    seeds = [
        data for path in sorted(fixture_path(folder).rglob("*.*")) if len(data := path.read_bytes()) < LONGEST_SEED
    ]
    return Target(folder, run, seeds, share=0.05)


def _whole(sent: UpstreamRequest, data: bytes) -> None:
    dialect = sent.target.dialect
    with suppress(UpstreamError):
        dialect.decode(sent, data)
    dialect.classify(sent, (400, 429, 500)[len(data) % 3], {"content-type": "application/json"}, data)


def _stream(sent: UpstreamRequest, data: bytes) -> None:
    decoder = sent.target.dialect.stream(sent)
    with suppress(UpstreamError):
        for start in range(0, len(data), PIECE):
            list(decoder.feed(data[start : start + PIECE]))
        list(decoder.finish())


REQUESTS = (
    b'{"model":"mock/echo","prompt":"hi","max_tokens":5,"n":2,"stop":["a"],"logit_bias":{"50256":-100},"echo":true}',
    b'{"model":"mock/echo","messages":[{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url",'
    b'"image_url":{"url":"data:image/png;base64,AAAA"}}]}],"stream":true,"stream_options":{"include_usage":true}}',
    b'{"model":"mock/echo","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":'
    b'{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"1"}],"tools":[{"type":"function",'
    b'"function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}],"tool_choice":'
    b'"auto","response_format":{"type":"json_schema","json_schema":{"name":"s","schema":{"type":"object"}}}}',
    b'{"model":"mock/echo","prompt":[[1,2,3],[4]],"guided_regex":"a+","inference_extra_params":{"a":{"b":1}},'
    b'"inference_extra_headers":{"baggage":"b"},"inference_timeout":5,"temperature":0.5,"top_k":3,"seed":7}',
)

WAITS = (
    b"120",
    b"1.5",
    b"6m0s",
    b"Wed, 21 Oct 2026 07:28:00 GMT",
    b"2026-10-21T07:28:00Z",
    b"1700000000",
    b"1700000000000",
    b"Please try again in 1h2m3.5s.",
    b"Mon, 01 Jan 0001 00:00:00 -2359",
    b"retry after 99999999 days",
)

KEYS = (b"Authorization: Bearer dk-other", b"x-api-key: dk-other\nauthorization: Bearer dk", b"api-key: \xc3\xa9")

FORMS = (
    b'multipart/form-data; boundary="xyz"\n--xyz\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n'
    b'--xyz\r\nContent-Disposition: form-data; name="file"; filename="a%22.wav"\r\nContent-Type: audio/wav\r\n\r\n'
    b"RIFF\r\n--xy\r\n--xyz--\r\n",
    b"--xyz\r\nContent-Disposition: form-data; name=\"file\"; filename*=UTF-8''a%20b\r\n\r\n\r\n--xyz--",
)

FRAMES = (
    b"\x01a\x07\x00\x02bc\x03def\x06\x00\x01x\x01t\x00\x01n\x05" + bytes(8) + b"\x01u\x09" + bytes(16),
    encode({":event-type": "chunk", ":message-type": "event"}, b'{"bytes":"e30="}') * 2,
    encode({}, b"") + encode({"a": "b" * 300}, b"{}" * 100),
)

TARGETS: tuple[Target, ...] = (
    Target("sse", sse, fixtures(".sse")),
    Target("ndjson", ndjson, fixtures(".ndjson", ".sse")),
    Target("eventstream", eventstream, FRAMES),
    Target("form", form, FORMS, (b"--xyz", b"\r\n", b'"', b"; name=", b"\\", b"boundary=")),
    Target("guard", guard, REQUESTS),
    Target("surfaces", surfaces, REQUESTS),
    Target("translation", translation, REQUESTS, share=0.5),
    Target("wait", wait, WAITS, (b"GMT", b"+9999", b"d", b"h", b"ms", b"Feb", b"0000", b"60", b"-")),
    Target("key", key, KEYS, (b"Bearer ", b"authorization", b"x-api-key", b"api-key", b": ")),
    Target("config", config, [path.read_bytes() for path in sorted(EXAMPLES.rglob("*.yaml"))], (b"${KEY}", b"<<: *a")),
    *map(vendor, NAMES),
)
