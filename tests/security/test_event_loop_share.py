"""The event loop's share of one request is bounded: work that grows with a body or a response is done in other threads.

The tests measure no seconds. They count the lines of Python that the event loop's thread runs without a pause, and the
bytes of JSON that it parses and writes, of texts that it hashes, and of each write to a socket.
"""

import asyncio
import hashlib
import inspect
import sys
import threading
import time
from asyncio.selector_events import _SelectorSocketTransport  # type: ignore[attr-defined]  # typeshed lacks it
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from providers.tasks.pass_on import PassedRequest
from providers.unified_request import Operation, Task
from proxy.gateway.read_passed import MOST_FIELDS, read_passed
from proxy.off_loop.request_threads import RequestThreads
from proxy.process.set_up_process import compile_patterns
from proxy.surfaces.registry import SURFACES
from proxy.surfaces.surface import CountAction, StoredAction
from tests.proxy.kit import gateway_rig
from tests.proxy.kit.gateway_rig import Rig, rig
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.nightly import some
from tests.support.vendor_script import Script
from tests.support.waiting import until

MOST_LINES = 20_000
"""Lines that take about 2 ms. The densest body of 256 KiB once took ten times as many, one of 927 KiB 100 times."""

MOST_JSON = 512 * 1024
"""Bytes of JSON that take about 2 ms to parse or to write, a little more than a body that is parsed on the event
loop."""

MOST_WRITTEN = 600_000
"""Bytes of one write, head included: asyncio copies the bytes that a socket does not take."""

TABLE = """
defaults: {retries: {attempts: 1}}
vendors:
  v: {profile: openai, api_key: k, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}
  e: {profile: vllm, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}
  c: {profile: openai_compatible, base_url: "http://127.0.0.1:PORT/v1", allow_private: true}
  d: {profile: deepseek, api_key: k, base_url: "http://127.0.0.1:PORT", allow_private: true}
models:
  v/m: {cache: {ttl: 10m}}
  e/m: {on_unsupported: drop}
  c/m: {}
  d/deepseek-chat: {context_length_exceeded_behavior: truncate}
"""

FIELDS: Mapping[object, JsonObject] = {
    Operation.CHAT: {"messages": [{"role": "user", "content": "p"}], "input": "p", "max_tokens": 5},
    Operation.COMPLETIONS: {"prompt": "p"},
    Task.EMBEDDINGS: {"input": "p"},
    Task.RERANK: {"query": "q", "documents": ["d"]},
    Task.MODERATIONS: {"input": "p"},
    Task.SPEECH: {"input": "p", "voice": "x"},
    Task.IMAGES: {"prompt": "p"},
    CountAction.TOKENS: {"messages": [{"role": "user", "content": "p"}]},
    StoredAction.INPUT_TOKENS: {"input": "p"},
}
"""The fields of a small request, by its action. The request of a chat has the fields of all APIs."""

PATHS: Mapping[str, JsonObject] = {
    path: FIELDS[action]
    for surface in SURFACES
    for action, path in {
        each.action: each.path for each in reversed(surface.endpoints) if each.method == "POST"
    }.items()
    if action in FIELDS
}
"""The first path of each action of each surface, with its small request."""

DENSE: Mapping[str, Callable[[JsonObject], JsonObject]] = {
    "unknown fields": lambda body: {**body, **{f"k{at}": 1 for at in range(20_000)}},
    "a list of lists": lambda body: {**body, "zz": [[]] * 80_000},
    "nested lists": lambda body: {**body, "zz": [_nested(50)] * 1800},
    "numbers": lambda body: {**body, "zz": [1] * 120_000},
    "extra params": lambda body: {**body, "inference_extra_params": {f"k{at}": 1 for at in range(20_000)}},
    "members": lambda body: {name: _many(value) for name, value in body.items()},
    "texts": lambda body: {name: _long(value) for name, value in body.items()},
}
"""The small bodies with most work for each byte. Each is smaller than the largest body that is parsed on the event
loop, or a little larger."""


def _nested(levels: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(levels):
        value = [value]
    return value


def _many(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return value * 6000
    return [value] * 50_000 if value == "p" else value


def _long(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_long(each) for each in value]
    if isinstance(value, dict):
        return {name: _long(each) for name, each in value.items()}
    return '\n"' * 500_000 if value in ("p", "q", "d") else value


@dataclass(slots=True)
class LoopShare:
    """The most lines that the event loop's thread ran without a pause, and the most bytes in one call: of JSON, of a
    hashed text, and of a write of the gateway."""

    lines: int = 0
    json: int = 0
    hashed: int = 0
    written: int = 0
    _now: int = 0

    def trace(self, frame: FrameType, event: str, argument: object) -> Any:  # noqa: ANN401 - as sys.settrace has it
        """Count lines. See sys.settrace."""
        if event == "line":
            self._now += 1
            self.lines = max(self.lines, self._now)
        elif event == "call" and frame.f_code.co_name == "_run" and frame.f_globals["__name__"] == "asyncio.events":
            self._now = 0
        return self.trace

    def counted(self, call: Callable[..., object], thread: int) -> Callable[..., object]:
        """Return a function of orjson that counts its bytes, except the bytes of the tests' own vendor."""

        def counting(value: object, default: object = None, option: int | None = None) -> object:
            made = call(value) if default is None and option is None else call(value, default=default, option=option)
            caller = inspect.currentframe()
            caller = None if caller is None else caller.f_back
            ours = caller is not None and not caller.f_globals["__name__"].startswith("tests.")
            if ours and threading.get_ident() == thread:
                self.json = max([self.json, *(len(each) for each in (value, made) if isinstance(each, bytes))])
            return made

        return counting

    def hashing(self, call: Callable[..., Any], thread: int) -> Callable[..., object]:
        """Return a hash function that counts its initial bytes."""

        def counting(data: bytes = b"", **options: object) -> object:
            if threading.get_ident() == thread:
                self.hashed = max(self.hashed, len(data))
            return call(data, **options)

        return counting

    def writing(self, call: Callable[..., None]) -> Callable[..., None]:
        """Return a transport's method that counts the bytes that the gateway writes."""

        def counting(transport: asyncio.Transport, data: bytes) -> None:
            if type(transport.get_protocol()).__module__.startswith("proxy."):
                self.written = max(self.written, len(data))
            call(transport, data)

        return counting


@contextmanager
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopShare]:
    """Measure the work of this thread, the event loop's, within the block."""
    share, before = LoopShare(), sys.gettrace()
    with monkeypatch.context() as patch:
        thread = threading.get_ident()
        for name in ("loads", "dumps"):
            patch.setattr(orjson, name, share.counted(getattr(orjson, name), thread))
        patch.setattr(hashlib, "sha256", share.hashing(hashlib.sha256, thread))
        patch.setattr(_SelectorSocketTransport, "write", share.writing(_SelectorSocketTransport.write))
        sys.settrace(share.trace)
        try:
            yield share
        finally:
            sys.settrace(before)


@pytest.fixture
async def made(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Rig]:
    monkeypatch.setattr(gateway_rig, "MAX_BODY", 64 * 2**20)
    compile_patterns()  # as a process does when it is ready
    async with rig(TABLE) as gateway:
        gateway.vendor.default = json_answer(200, {"id": "x", "results": [], "data": [], "choices": []})
        yield gateway


async def share_of(made: Rig, monkeypatch: pytest.MonkeyPatch, path: str, body: JsonObject) -> LoopShare:
    data = orjson.dumps(body)
    with measured(monkeypatch) as share:
        answer = await made.post(path, data)
    assert answer.status != 500
    return share


def bodies() -> Iterator[object]:
    """Yield a path, a model and the kinds of its bodies. With every change: each path, all kinds for each action, and
    each action at a deployment that leaves fields out, which is the same for all paths."""
    seen: list[JsonObject] = []
    for path, fields in PATHS.items():
        others = [pytest.mark.nightly] if fields in seen else []
        yield pytest.param(path, "v/m", some([*DENSE], 4) if others else [*DENSE], id=f"{path}-v/m")
        yield pytest.param(path, "e/m", [*DENSE], id=f"{path}-e/m", marks=others)
        seen.append(fields)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("path", "model", "kinds"), [*bodies()])
async def test_threat_05_no_body_keeps_the_event_loop(
    made: Rig, monkeypatch: pytest.MonkeyPatch, path: str, model: str, kinds: Sequence[str]
) -> None:
    await made.post(path, {"model": model, **PATHS[path]})  # the first request imports modules
    for name in kinds:
        body = DENSE[name]({"model": model, "temperature": 0, **PATHS[path]})
        share = await share_of(made, monkeypatch, path, body)
        assert share.lines < MOST_LINES, name
        assert share.json < MOST_JSON, name
        assert share.written < MOST_WRITTEN, name


LONG = "a b\n" * 500_000
"""A text that takes four times MOST_JSON."""

CALLED: JsonObject = {"role": "assistant", "tool_calls": [{"id": "f:0", "function": {"name": "f", "arguments": "{}"}}]}
TOOLS: JsonObject = {"tools": [{"type": "function", "function": {"name": "f"}}]}
TOO_LONG = (
    "This model's maximum context length is 600000 tokens. However, you requested 600100 tokens (599600 in the "
    "messages, 500 in the completion)."
)


def _user(text: str) -> JsonObject:
    return {"role": "user", "content": text}


def _whole(**message: JsonValue) -> Script:
    choice: JsonObject = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    return json_answer(200, {"id": "x", "choices": [choice]})


def _streamed(*texts: str) -> Script:
    deltas: list[JsonObject] = [{"index": 0, "delta": {"content": text}} for text in texts]
    events: list[JsonObject] = [{"id": "x", "choices": [choice]} for choice in deltas]
    events.append({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return sse_answer(b"".join(b"data: %b\n\n" % orjson.dumps(each) for each in events) + b"data: [DONE]\n\n", 200_000)


def _row(model: str, asked: JsonObject, *answers: Script) -> tuple[str, JsonObject, list[Script]]:
    return model, asked, list(answers)


HEAVY: Mapping[str, tuple[str, JsonObject, list[Script]]] = {
    "no usage": _row("c/m", {"messages": [_user(LONG)]}, _whole(content="x")),
    "a streamed answer without usage": _row("c/m", {"messages": [_user(LONG)], "stream": True}, _streamed("x")),
    "a long answer": _row("c/m", {"messages": [_user("p")]}, _whole(content=LONG)),
    "a long first event": _row("c/m", {"messages": [_user("p")], "stream": True}, _streamed(LONG)),
    "few long events": _row("c/m", {"messages": [_user("p")], "stream": True}, _streamed("x", *[LONG[:200_000]] * 10)),
    "a refused window": _row(
        "d/deepseek-chat",
        {"messages": [_user(LONG)], "max_tokens": 500},
        json_answer(400, {"error": {"message": TOO_LONG}}),
        _whole(content="x"),
    ),
    "calls without reasoning": _row(
        "d/deepseek-chat",
        {"messages": [_user(LONG), CALLED, {**_user(LONG), "role": "tool"}], **TOOLS},
        _whole(reasoning_content="r", tool_calls=CALLED["tool_calls"]),
    ),
}
"""Heavy requests and responses: a model, the fields of a chat, and the vendor's responses in order."""


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
async def test_threat_05_neither_a_long_answer_nor_an_unusual_one_keeps_the_event_loop(
    made: Rig, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    for name, (model, asked, answers) in HEAVY.items():
        if "tools" in asked and not path.endswith("completions"):
            continue
        body: JsonObject = {"model": model, "max_tokens": 100, **asked, "input": asked["messages"]}
        body.pop("messages" if path.endswith("responses") else "input")
        made.vendor.forget_answers()
        made.vendor.answer(*answers)
        share = await share_of(made, monkeypatch, path, body)
        assert made.records[-1].outcome == "ok", (name, made.records[-1].code)
        found = (share.lines < MOST_LINES, share.json < MOST_JSON, share.hashed < MOST_JSON)
        assert (*found, share.written < MOST_WRITTEN) == (True,) * 4, (name, share)


async def test_threat_05_what_a_heavy_request_held_is_freed_in_a_thread(
    made: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    # References: two lists, the loop's variable, the argument of getrefcount, and for a request also the plan and its
    # call.
    most = {"UnifiedRequest": 6, "CallPlan": 4, "Completion": 4}
    held: list[tuple[str, int]] = []
    free = RequestThreads._free

    def counted(things: list[object]) -> list[tuple[str, int]]:
        return [(type(each).__name__, sys.getrefcount(each)) for each in things]

    def freed(threads: RequestThreads) -> None:
        things = [each for ended in threads._ended for each in ended]
        # A thread that has just returned a result holds its own references for a moment.
        until_then = time.monotonic() + 5.0
        while any(count > most[name] for name, count in counted(things)) and time.monotonic() < until_then:
            time.sleep(0.001)
        held.extend(counted(things))
        del things
        free(threads)

    monkeypatch.setattr(RequestThreads, "_free", freed)
    body: JsonObject = {
        "model": "c/m",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "p"}] * 6000}],
    }
    made.vendor.answer(_whole(content="x" * 600_000))
    assert (await made.post("/v1/chat/completions", body)).status == 200
    await until(lambda: bool(held))
    assert [(name, count <= most[name]) for name, count in held] == [(name, True) for name in most], held


@pytest.mark.parametrize("store", [True, False])
async def test_threat_05_a_long_answer_is_written_and_stored_off_the_event_loop(
    made: Rig, monkeypatch: pytest.MonkeyPatch, store: bool
) -> None:
    text = "a b " * 3_000_000
    message: JsonObject = {"role": "assistant", "content": text}
    made.vendor.default = json_answer(
        200, {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    )
    share = await share_of(
        made, monkeypatch, "/v1/responses", {"model": "v/m", "input": "p", "store": store, "temperature": 0.5}
    )
    assert share.json < MOST_JSON
    assert share.lines < MOST_LINES


@pytest.mark.smoke
async def test_threat_05_a_light_request_runs_beside_a_heavy_one(made: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The light request gets its response while the heavy request's thread is blocked."""
    begun, go_on = threading.Event(), threading.Event()

    def standing(task: Task, body: bytes, default: str | None) -> PassedRequest:
        begun.set()
        assert go_on.wait(60)
        return read_passed(task, body, default)

    monkeypatch.setattr("proxy.gateway.pass_on_task.read_passed", standing)
    heavy = asyncio.ensure_future(made.post("/v1/moderations", {"model": "v/m", "input": ["x" * 300] * 2000}))
    try:
        assert await asyncio.to_thread(begun.wait, 60)
        assert (await made.get("/v1/models")).status == 200
        assert not heavy.done()
    finally:
        go_on.set()
    assert (await heavy).status == 200


ROWS: list[tuple[dict[str, object], int, str | None]] = [
    ({"input": ["x"] * 2048}, 200, None),
    ({"input": ["x"] * 2049}, 400, "input"),
    ({"input": [{"type": "text", "text": "x"}] * 2049}, 400, "input"),
    ({"input": "x", **{f"k{at}": 1 for at in range(MOST_FIELDS - 2)}}, 200, None),
    ({"input": "x", **{f"k{at}": 1 for at in range(MOST_FIELDS - 1)}}, 400, None),
]


@pytest.mark.smoke
@pytest.mark.parametrize("path", ["/v1/moderations", "/v1/audio/speech", "/v1/images/generations"])
async def test_threat_05_lists_beyond_what_any_vendor_takes_are_refused_by_name(made: Rig, path: str) -> None:
    for body, status, param in ROWS:
        answer = await made.post(path, orjson.dumps({"model": "v/m", **body}))
        assert answer.status == status
        if status == 400:
            assert answer.error()["param"] == param
            assert "at most" in answer.message
