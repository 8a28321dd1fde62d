"""The usage that a vendor reported counts if the stream ends early: in log, metrics, ledger and budget alike."""

import asyncio
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple, cast

import orjson
import pytest

from providers.json_types import JsonObject
from proxy.deadlines import Phase
from proxy.ledger.ledger_row import read_line, row_line
from proxy.plugins.guarded_answers import attach_guards
from proxy.plugins.team_guards import TeamGuards
from proxy.request_record import RequestRecord
from proxy.telemetry.access_log import request_line
from tests.providers.dialects.bedrock.kit import chunk as invoke_frame
from tests.providers.dialects.bedrock.kit import event as aws_frame
from tests.providers.dialects.bedrock.kit import frame as aws_line
from tests.proxy.gateway.test_team_limits import views
from tests.proxy.kit.gateway_rig import AUTH, CLIENT_KEY, Rig, rig
from tests.proxy.kit.raw_client import connected, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.plugins.kit import SECRET, plugin
from tests.proxy.plugins.test_guarded_choice import chain
from tests.support.http_scripts import DONE, LAST_CHUNK, chunk, data_frames, head, sse_answer, sse_unterminated
from tests.support.vendor_script import Fin, Hang, Received, Rst, Script, Send, Step

pytestmark = pytest.mark.smoke

PROMPT, CACHED, SAID = 100_010, 100_000, f"Hello, {SECRET}"
GUESSED = len(SAID) // 4


class Counts(NamedTuple):
    """The expected counts; if `prompt` is `None`, it is an estimate."""

    prompt: int | None
    cached: int | None
    completion: int
    estimated: bool


class Stream(NamedTuple):
    """A vendor's stream up to its early end, the error that may end it, and the usage that it has reported."""

    model: str
    pieces: Sequence[bytes]
    error: bytes
    counts: Counts


def named(*events: JsonObject) -> list[bytes]:
    return [b"event: %s\ndata: %s\n\n" % (str(event["type"]).encode(), orjson.dumps(event)) for event in events]


FRESH: JsonObject = {"input_tokens": 10, "cache_read_input_tokens": CACHED, "output_tokens": 1}
OVERLOADED = named({"type": "error", "error": {"type": "overloaded_error", "message": "no"}})[0]
CLAUDE: list[JsonObject] = [
    {"type": "message_start", "message": {"id": "m", "role": "assistant", "content": [], "usage": FRESH}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}},
]
CLAUDE_END: JsonObject = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
COHERE: list[JsonObject] = [
    {"type": "message-start", "id": "m", "delta": {"message": {"role": "assistant"}}},
    {"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}},
    {"type": "content-delta", "index": 0, "delta": {"message": {"content": {"text": SAID}}}},
]
GOOGLE_USAGE: JsonObject = {"promptTokenCount": PROMPT, "cachedContentTokenCount": CACHED}
CANDIDATE: JsonObject = {"content": {"role": "model", "parts": [{"text": SAID}]}}
OPENAI: JsonObject = {
    "id": "c",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": SAID}, "finish_reason": None}],
}
OPENAI_USAGE: JsonObject = {
    **{"prompt_tokens": PROMPT, "completion_tokens": 3, "total_tokens": PROMPT + 3},
    "prompt_tokens_details": {"cached_tokens": CACHED},
}
CONVERSE: list[tuple[str, JsonObject]] = [
    ("messageStart", {"role": "assistant"}),
    ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": SAID}}),
]


def google(usage: JsonObject) -> list[bytes]:
    return data_frames({"candidates": [CANDIDATE], "usageMetadata": usage})


HAIKU = "anthropic.claude-haiku-4-5"
BEGUN, UNKNOWN = Counts(PROMPT, CACHED, GUESSED, True), Counts(None, None, GUESSED, True)
COUNTED = Counts(PROMPT, CACHED, 3, False)
GOOGLE_ERROR, AWS_ERROR = (
    data_frames({"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}})[0],
    aws_line('exception throttlingException {"message": "no"}'),
)
STREAMS: Mapping[str, Stream] = {
    "anthropic": Stream("claude-haiku-4-5", named(*CLAUDE), OVERLOADED, BEGUN),
    "vertex_anthropic": Stream("claude-haiku-4-5@20251001", named(*CLAUDE), OVERLOADED, BEGUN),
    "bedrock_anthropic": Stream(HAIKU, [invoke_frame(orjson.dumps(each)) for each in CLAUDE], AWS_ERROR, BEGUN),
    "bedrock": Stream(HAIKU, [aws_frame(name, orjson.dumps(each)) for name, each in CONVERSE], AWS_ERROR, UNKNOWN),
    "gemini": Stream("gemini-2.5-flash", google({**GOOGLE_USAGE, "candidatesTokenCount": 3}), GOOGLE_ERROR, COUNTED),
    "vertex": Stream("gemini-2.5-flash", google(GOOGLE_USAGE), GOOGLE_ERROR, BEGUN),
    "cohere": Stream("command-a-03-2025", named(*COHERE), data_frames({"message": "no"})[0], UNKNOWN),
    "openai": Stream(
        "gpt-4.1", data_frames({**OPENAI, "usage": OPENAI_USAGE}), data_frames({"error": {"message": "no"}})[0], COUNTED
    ),
    # Text after the last reported usage is estimated and added.
    "later": Stream(
        "m",
        data_frames({**OPENAI, "usage": OPENAI_USAGE}, OPENAI),
        data_frames({"error": {"message": "no"}})[0],
        Counts(PROMPT, CACHED, 3 + GUESSED, True),
    ),
    # The last usage has arrived, but not the end.
    "ended": Stream("claude-haiku-4-5", named(*CLAUDE, CLAUDE_END), OVERLOADED, Counts(PROMPT, CACHED, 9, False)),
}
ENDS = ("gone", "error", "reset", "eof", "idle")
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")

OWN = {
    "vertex": ", url_params: {location: europe-west4, project: p}",
    "vertex_anthropic": ", url_params: {location: europe-west4, project: p}",
    "bedrock": ", url_params: {region: eu-central-1}",
    "bedrock_anthropic": ", url_params: {region: eu-central-1}",
    "ended": ", profile: anthropic",
    "openai": ", profile: openai_compatible",
    "later": ", profile: openai_compatible",
}


def table() -> str:
    """Return a configuration of all the vendors, with a deployment for each kind of end."""
    rows = ["defaults: {retries: {attempts: 1}}", "vendors:"]
    for name in STREAMS:
        at = f'api_key: k, base_url: "http://127.0.0.1:PORT/{name}", allow_private: true'
        rows.append(f"  {name}: {{{at}{OWN.get(name, '')}, timeouts: {{idle: 1s}}}}")
    ends = ", ".join([f"{end}: {{}}" for end in ENDS])
    rows.append("models:")
    for name, stream in STREAMS.items():
        rows.append(f'  "{name}/{stream.model}": {{price: {{input: 1, output: 2}}, deployments: {{{ends}}}}}')
    limits = "limits: {tokens_per_day: 1000M}"
    return "\n".join([*rows, "teams:", f'  t: {{keys: ["{digest_of(CLIENT_KEY)}"], models: ["*"], {limits}}}', ""])


def script(received: Received) -> Script:
    """Return the stream for a request. The request's text selects its end."""
    name = received.path.split("/")[1]
    stream = STREAMS[name]
    end = next(end for end in ENDS if b"end-" + end.encode() in received.body)
    kind = "application/vnd.amazon.eventstream" if name.startswith("bedrock") else "text/event-stream"
    begun: list[Step] = [
        Send(head(200, [("content-type", kind), ("transfer-encoding", "chunked")])),
        *(Send(chunk(piece)) for piece in stream.pieces),
    ]
    endings: Mapping[str, Sequence[Step]] = {
        "gone": (Hang(),),
        "idle": (Hang(),),
        "error": (Send(chunk(stream.error)), Send(LAST_CHUNK)),
        "reset": (Rst(),),
        "eof": (Fin(),),
    }
    return (*begun, *endings[end])


def asked(path: str, model: str, end: str) -> bytes:
    said = f"end-{end}"
    body: JsonObject = {"model": model, "stream": True}
    if path == "/v1/responses":
        body["input"] = said
    else:
        body |= {"messages": [{"role": "user", "content": said}], "max_tokens": 100}
    return request("POST", path, body, AUTH)


async def call(served: Rig, path: str, model: str, end: str) -> None:
    if end != "gone":
        await exchange(served.port, asked(path, model, end))
        return
    async with connected(served.port) as client:
        await client.send(asked(path, model, end))
        status, _ = await client.head()
        assert status == 200, (path, model, await client.reader.read(500))
        seen, times = b"", 2 if model.startswith("later/") else 1
        while seen.count(SAID.encode()) < times:
            seen += await client.chunk()
        await client.leave()


def kept(record: RequestRecord) -> list[Counts]:
    """Return the token counts of a request in the log and in the ledger."""
    line, row = orjson.loads(request_line(record, record.cost)), read_line(row_line(record, 1, 1), "g").row
    assert line["cost_usd"] == pytest.approx((row.cost or 0) / 1e9)
    return [
        Counts(line["prompt_tokens"], line.get("cached_tokens"), line["completion_tokens"], "usage_estimated" in line),
        Counts(row.tokens_in, row.tokens_cached, row.tokens_out or 0, bool(row.estimated)),
    ]


async def test_threat_19_what_a_vendor_reported_counts_however_its_stream_ends() -> None:
    rows = [(name, end, path) for name in STREAMS for end in ENDS for path in PATHS]
    async with rig(table()) as served:
        served.vendor.default = script
        await asyncio.gather(
            *[call(served, path, f"{name}/{STREAMS[name].model}/{end}", end) for name, end, path in rows]
        )
        records = await served.finished(len(rows))
        seen: dict[str, list[Counts]] = {f"{record.asked} {record.path}": kept(record) for record in records}
        wrong: dict[str, object] = {}
        for name, end, path in rows:
            counts = seen[f"{name}/{STREAMS[name].model}/{end} {path}"]
            expected = STREAMS[name].counts
            if expected.prompt is None:
                expected = expected._replace(prompt=counts[0].prompt)
            if counts != [expected] * 2 or not 0 < (counts[0].prompt or 0) <= PROMPT:
                wrong[f"{name} {end} {path}"] = counts[0]
        assert wrong == {}
        totals = sum([each.prompt + each.completion for each, _ in seen.values() if each.prompt is not None])
        assert views(served)["team t: tokens day"] == totals
        assert sum(served.series("tokens_total").values()) == totals


@pytest.mark.parametrize("name", ["anthropic", "vertex"])
@pytest.mark.parametrize(
    ("guard", "end", "outcome"),
    [
        ("LiveRefuser", "gone", "client_error"),  # refused before any content is shown
        ("Refuser", "eof", "upstream_error"),
        ("Hider", "idle", "timeout"),
        ("LiveHider", "reset", "truncated"),
    ],
)
async def test_threat_19_it_counts_if_guards_hold_the_stream(name: str, guard: str, end: str, outcome: str) -> None:
    async with rig(table()) as served:
        served.vendor.default = script
        held = chain(plugin(guard))
        attach_guards(served.gateway.hooks, cast(TeamGuards, SimpleNamespace(of=lambda team: held)))
        model = f"{name}/{STREAMS[name].model}/{end}"
        await exchange(served.port, asked("/v1/chat/completions", model, end))
        (record,) = await served.finished(1)
        assert (record.outcome, kept(record)) == (outcome, [BEGUN] * 2)
        assert views(served)["team t: tokens day"] == PROMPT + GUESSED


@pytest.mark.parametrize("phase", [Phase.DRAIN, Phase.TOTAL])
async def test_threat_19_it_counts_if_the_gateway_ends_the_stream(phase: Phase) -> None:
    async with rig(table()) as served, connected(served.port) as client:
        served.vendor.default = script
        await client.send(asked("/v1/messages", "anthropic/claude-haiku-4-5/gone", "gone"))
        await client.head()
        while SAID.encode() not in await client.chunk():
            pass
        for deadlines in tuple(served.gateway.deadlines):
            deadlines.expire(phase)
        (record,) = await served.finished(1)
        assert kept(record) == [BEGUN] * 2


async def test_threat_19_what_was_reported_before_the_content_counts() -> None:
    """After reported usage, and before any text, an error lets another deployment respond. The usage of both counts."""
    text = (
        table()
        .replace("attempts: 1", "attempts: 3")
        .replace("teams:", "routes: {r: {targets: [anthropic/claude-haiku-4-5/eof, openai/gpt-4.1/eof]}}\nteams:")
    )
    frames = [
        *STREAMS["openai"].pieces,
        *data_frames({**OPENAI, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
        DONE,
    ]
    answers = {"anthropic": sse_unterminated(named(CLAUDE[0]), Fin()), "openai": sse_answer(frames)}
    async with rig(text) as served:
        served.vendor.default = lambda received: answers[received.path.split("/")[1]]
        answer = await exchange(served.port, asked("/v1/chat/completions", "r", "eof"))
        (record,) = await served.finished(1)
        assert (answer.status, len(record.attempts)) == (200, 2)
        assert kept(record) == [Counts(2 * PROMPT, 2 * CACHED, 4, True)] * 2
