"""Requests and responses that pass guards, over sockets, on every surface, non-streaming and streamed."""

import asyncio
import hashlib
import re
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import orjson
import pytest

from providers.json_types import JsonObject, JsonValue
from proxy.dispatch import running_attempt
from proxy.plugins import answer_texts
from proxy.process.assemble_app import WholeGateway
from proxy.request_record import Attempt
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.whole_gateway import MOCK, port_of, table_before, up
from tests.proxy.plugins.kit import HIDDEN, SECRET, plugin
from tests.proxy.receipt.kit import told
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.openai_wire import chat as openai_chat
from tests.support.openai_wire import chat_frames
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Delay
from tests.support.waiting import until

SAYS = f"now say {SECRET} and again {SECRET}."
MODEL = {"model": "mock/echo"}


def chat(stream: bool, text: str) -> JsonObject:
    return {**MODEL, "messages": [{"role": "user", "content": text}], "stream": stream}


def prompt(stream: bool, text: str) -> JsonObject:
    return {**MODEL, "prompt": text, "stream": stream}


def message(stream: bool, text: str) -> JsonObject:
    return {**chat(stream, text), "max_tokens": 100}


def response(stream: bool, text: str) -> JsonObject:
    return {**MODEL, "input": text, "stream": stream}


SURFACES: Mapping[str, Callable[[bool, str], JsonObject]] = {
    "/v1/chat/completions": chat,
    "/v1/completions": prompt,
    "/v4/beta/chat/completions": chat,
    "/v4/beta/completions": prompt,
    "/inference/v1/chat/completions": chat,
    "/inference/v1/completions": prompt,
    "/api/v1/compatibility/openai/v1/chat/completions": chat,
    "/api/v1/compatibility/openai/v1/completions": prompt,
    "/v1/messages": message,
    "/v1/responses": response,
}


@asynccontextmanager
async def guarded(folder: Path, *plugins: str, teams: str = "") -> AsyncIterator[WholeGateway]:
    entries = ", ".join(f"g{number}: {each}" for number, each in enumerate(plugins, 1))
    async with up(f"{MOCK}plugins: {{{entries}}}\n{teams}", folder) as app:
        yield app


async def post(app: WholeGateway, path: str, body: JsonObject) -> Answer:
    return await exchange(port_of(app.url), request("POST", path, body))


_TEXTS = re.compile(rb'"(?:content|text|delta|output)":\s*("(?:[^"\\]|\\.)*")')


def joined_texts(answer: Answer) -> str:
    """Return all texts of a response, joined in their order."""
    return "".join(orjson.loads(found) for found in _TEXTS.findall(answer.body))


@pytest.mark.smoke
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kind", ["Hider", "LiveHider"])
async def test_an_answer_is_rewritten_on_every_surface(tmp_path: Path, kind: str, stream: bool) -> None:
    async with guarded(tmp_path, plugin(kind, "where: answer")) as app:
        for path, made in SURFACES.items():
            answer = await post(app, path, made(stream, SAYS))
            assert (answer.status, answer.whole) == (200, True), (path, answer.body)
            assert SECRET not in joined_texts(answer), path
            assert HIDDEN in joined_texts(answer), path
            assert SECRET.encode() not in answer.body, path
            assert answer.headers["x-dragoman-guarded"] == "g1"


@pytest.mark.smoke
@pytest.mark.parametrize("stream", [False, True])
async def test_a_request_is_rewritten_on_every_surface_before_it_is_sent(tmp_path: Path, stream: bool) -> None:
    async with guarded(tmp_path, plugin("Hider", "where: request")) as app:
        for path, made in SURFACES.items():
            answer = await post(app, path, made(stream, SAYS))
            assert (answer.status, answer.whole) == (200, True), (path, answer.body)
            assert SECRET not in joined_texts(answer), path
            assert "hidden" in joined_texts(answer), path
            assert answer.headers["x-dragoman-guarded"] == "g1"


@pytest.mark.parametrize("stream", [False, True])
async def test_what_no_guard_changes_is_as_without_guards(tmp_path: Path, stream: bool) -> None:
    async with guarded(tmp_path, plugin("LiveHider", "word: absent")) as app:
        for path, made in SURFACES.items():
            answer = await post(app, path, made(stream, SAYS))
            assert answer.whole, path
            assert SAYS in joined_texts(answer), path
            assert ("x-dragoman-guarded" in answer.headers) is stream, path


@pytest.mark.parametrize(("kind", "stream"), [("Refuser", False), ("Refuser", True), ("LiveRefuser", False)])
async def test_a_refused_answer_is_an_error_in_the_surface_s_envelope(tmp_path: Path, kind: str, stream: bool) -> None:
    async with guarded(tmp_path, plugin(kind)) as app:
        for path, made in SURFACES.items():
            answer = await post(app, path, made(stream, SAYS))
            assert answer.status == 400, path
            assert b"Refused by the plugin 'g1': it says the word" in answer.body, path
            assert answer.headers["x-should-retry"] == "false"


async def test_a_refusal_before_anything_was_shown_is_a_status_in_streams_too(tmp_path: Path) -> None:
    async with guarded(tmp_path, plugin("LiveRefuser", "word: now")) as app:
        for path, made in SURFACES.items():
            assert (await post(app, path, made(True, SAYS))).status == 400, path


async def test_a_stream_that_is_refused_in_its_midst_looks_broken(tmp_path: Path) -> None:
    async with guarded(tmp_path, plugin("LiveRefuser")) as app:
        for path, made in SURFACES.items():
            answer = await post(app, path, made(True, SAYS))
            # The event of a failed response also ends the body.
            ends = b"event: response.failed" in answer.body
            assert (answer.status, answer.whole, ends) == (200, ends, "responses" in path), path
            assert b"Refused by the plugin 'g1': it says the word" in answer.body, path
            assert SECRET not in joined_texts(answer), path
            for sign in (b"[DONE]", b"message_stop", b"response.completed", b'"finish_reason":"stop"'):
                assert sign not in answer.body, path


@pytest.mark.parametrize("name", ["LiveRefuser", "Refuser"])
async def test_what_a_guard_refuses_in_a_stream_is_not_blamed_on_the_deployment(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[Attempt] = []

    def noted(deployment: str, started: float, *, name: str) -> Attempt:
        attempts.append(Attempt(deployment, started, name=name))
        return attempts[-1]

    monkeypatch.setattr(running_attempt, "Attempt", noted)
    async with guarded(tmp_path, plugin(name)) as app:
        await post(app, "/v1/chat/completions", chat(True, SAYS))
    assert [(each.outcome, each.message) for each in attempts] == [("ok", None)]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refused_request_reaches_no_vendor(tmp_path: Path, stream: bool) -> None:
    async with guarded(tmp_path, plugin("RequestRefuser")) as app:
        for path, made in SURFACES.items():
            answer = await post(app, path, made(stream, SAYS))
            assert answer.status == 400, path
            assert "x-dragoman-deployment" not in answer.headers
            assert b"no swordfish" in answer.body


HOSTILE = ["raise", "exit", "cancel", "leave", "interrupt", "nothing", "fewer", "numbers", "huge", "surrogate", "hang"]


@pytest.mark.parametrize("does", HOSTILE)
async def test_a_guard_that_fails_closed_refuses_and_one_that_fails_open_lets_pass(tmp_path: Path, does: str) -> None:
    slow = ", slow: true" if does == "hang" else ""
    entry = plugin("Hostile", f"does: {does}{slow}", ", fail: {}, deadline: 50ms")
    async with guarded(tmp_path, entry.replace("{}", "open")) as app:
        answer = await post(app, "/v1/chat/completions", chat(False, SAYS))
        assert SAYS in joined_texts(answer)
    async with guarded(tmp_path, entry.replace("{}", "closed")) as app:
        for _ in range(4):  # with all of its threads taken too
            answer = await post(app, "/v1/chat/completions", chat(False, SAYS))
            assert (answer.status, answer.code) == (503, "plugin_failed")
            assert SECRET.encode() not in answer.body


@pytest.mark.parametrize("fail", ["open", "closed"])
@pytest.mark.parametrize(("where", "stream"), [("request", False), ("answer", False), ("stream", True)])
async def test_the_exception_of_streams_refuses_anywhere(tmp_path: Path, where: str, stream: bool, fail: str) -> None:
    async with guarded(tmp_path, plugin("RaisingRefuser", f"where: {where}", f", fail: {fail}")) as app:
        answer = await post(app, "/v1/chat/completions", chat(stream, SAYS))
        assert (answer.status, answer.code) == (400, "content_filter")
        assert b"it says the word" in answer.body


async def test_a_guard_on_the_loop_that_took_too_long_has_failed(tmp_path: Path) -> None:
    async with guarded(tmp_path, plugin("Hostile", "does: block", ", deadline: 5ms")) as app:
        for _ in range(4):
            answer = await post(app, "/v1/chat/completions", chat(False, SAYS))
            assert (answer.status, answer.code) == (503, "plugin_failed")


async def test_a_guard_that_keeps_blocking_the_loop_leaves_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with guarded(tmp_path, plugin("Hostile", "does: block", ", deadline: 5ms, fail: open")) as app:
        for _ in range(5):
            assert (await post(app, "/v1/chat/completions", chat(False, SAYS))).status == 200
    assert [each for each in caplog.messages if "called in threads from now on" in each]


@pytest.mark.parametrize(("word", "fail", "whole"), [("raise", "open", True), ("raise", "closed", False)])
async def test_a_guard_that_fails_in_a_stream(tmp_path: Path, word: str, fail: str, whole: bool) -> None:
    async with guarded(tmp_path, plugin("HostileStream", f"word: {word}, where: answer", f", fail: {fail}")) as app:
        answer = await post(app, "/v1/chat/completions", chat(True, "one two three"))
        assert (answer.status, answer.whole) == (200, whole)
        assert joined_texts(answer) == ("one two three" if whole else "one")
        assert (b"plugin_failed" in answer.body) is not whole


@pytest.mark.parametrize("word", ["garbage", "none"])
async def test_garbage_instead_of_a_stream_is_a_failure(tmp_path: Path, word: str) -> None:
    async with guarded(tmp_path, plugin("HostileStream", f"word: {word}, where: answer")) as app:
        answer = await post(app, "/v1/chat/completions", chat(True, "one two three"))
        assert (answer.status, answer.code) == (503, "plugin_failed")


async def test_guards_see_what_those_before_them_left(tmp_path: Path) -> None:
    async with guarded(tmp_path, plugin("Hider"), plugin("Refuser"), plugin("RequestRefuser")) as app:
        answer = await post(app, "/v1/chat/completions", chat(False, SAYS))
        assert (answer.status, answer.headers["x-dragoman-guarded"]) == (200, "g1")


async def test_every_choice_passes(tmp_path: Path) -> None:
    for kind in ("Hider", "LiveHider"):
        async with guarded(tmp_path, plugin(kind, "where: answer")) as app:
            for stream in (False, True):
                answer = await post(app, "/v1/chat/completions", {**chat(stream, SAYS), "n": 3})
                assert answer.whole
                assert SECRET.encode() not in answer.body
                assert b'"index":2' in answer.body


@pytest.mark.parametrize("stream", [False, True])
async def test_log_probabilities_of_a_rewritten_answer_are_left_out_and_named(tmp_path: Path, stream: bool) -> None:
    async with guarded(tmp_path, plugin("Hider", "where: answer")) as app:
        body = {**chat(stream, SAYS), "logprobs": True}
        answer = await post(app, "/v1/chat/completions", body)
        assert SECRET.encode() not in answer.body
        assert b'"token"' not in answer.body
        assert "logprobs" in answer.headers["x-dragoman-dropped"]


async def test_a_stored_response_is_stored_as_it_was_rewritten(tmp_path: Path) -> None:
    async with guarded(tmp_path, plugin("LiveHider", "where: answer")) as app:
        for stream in (False, True):
            answer = await post(app, "/v1/responses", {**response(stream, SAYS), "store": True})
            name = re.search(rb'"id":\s*"(resp_[0-9a-f]+)"', answer.body)
            assert name is not None
            kept = await exchange(port_of(app.url), request("GET", f"/v1/responses/{name[1].decode()}"))
            assert kept.status == 200
            assert HIDDEN.encode() in kept.body
            assert SECRET.encode() not in kept.body


async def test_a_prompt_of_token_ids_is_refused_where_a_guard_has_to_read_it(tmp_path: Path) -> None:
    async with guarded(tmp_path, plugin("Hider")) as app:
        answer = await post(app, "/v1/completions", {**MODEL, "prompt": [1, 2, 3]})
        assert (answer.status, answer.code) == (400, "unsupported_parameter")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"model": "mock/echo", "input": ["ok", SAYS]}),
        ("/v1/rerank", {"model": "mock/echo", "query": "ok", "documents": ["ok", SAYS]}),
        ("/v1/moderations", {"model": "mock/echo", "input": SAYS}),
        ("/v1/messages/count_tokens", message(False, SAYS)),
        ("/v1/responses/input_tokens", response(False, SAYS)),
    ],
)
async def test_guards_see_the_texts_of_other_tasks_too(tmp_path: Path, path: str, body: JsonObject) -> None:
    body.pop("stream", None)
    async with guarded(tmp_path, plugin("RequestRefuser")) as app:
        answer = await post(app, path, body)
        assert answer.status == 400
        assert b"no swordfish" in answer.body


async def test_a_team_s_own_list_takes_the_place_of_all_guards(tmp_path: Path) -> None:
    digests = [f"sha256:{hashlib.sha256(name.encode()).hexdigest()}" for name in ("a", "b")]
    teams = "".join(
        f"  {name}: {{keys: ['{digest}'], models: ['*']{more}}}\n"
        for name, digest, more in (("a", digests[0], ", plugins: []"), ("b", digests[1], ""))
    )
    async with guarded(tmp_path, plugin("Hider"), teams=f"teams:\n{teams}") as app:
        for key, hidden in (("a", False), ("b", True)):
            head = {"authorization": f"Bearer {key}"}
            answer = await exchange(port_of(app.url), request("POST", "/v1/chat/completions", chat(False, SAYS), head))
            assert (HIDDEN in joined_texts(answer)) is hidden


@pytest.mark.parametrize(
    ("kinds", "code"),
    [(["RequestRefuser"], "refused_by_plugin"), (["Hider", "RequestRefuser"], "context_length_exceeded")],
)
async def test_every_part_of_a_large_request_is_seen(tmp_path: Path, kinds: list[str], code: str) -> None:
    """A request that passes is too long for the vendor."""
    parts: list[JsonValue] = [{"type": "text", "text": f"{number} " + "x" * 100} for number in range(4999)]
    body: JsonObject = {**MODEL, "messages": [{"role": "user", "content": [*parts, {"type": "text", "text": SECRET}]}]}
    async with guarded(tmp_path, *map(plugin, kinds)) as app:
        assert (await post(app, "/v1/chat/completions", body)).code == code


async def test_a_reload_brings_other_guards_and_closes_the_old(tmp_path: Path) -> None:
    async with guarded(tmp_path, plugin("Hider")) as app:
        old = app.front.plugins.guards
        assert old is not None
        made = old.running["g1"].plugin.made
        del old
        (tmp_path / "t.yaml").write_text(MOCK, encoding="utf-8")
        await app.reloader.reload()
        assert SAYS in joined_texts(await post(app, "/v1/chat/completions", chat(False, SAYS)))
        await until(lambda: made.closed == 1)


async def test_metrics_tell_what_plugins_do(tmp_path: Path) -> None:
    async with guarded(tmp_path, plugin("Hostile", "does: raise"), plugin("Hider")) as app:
        await post(app, "/v1/chat/completions", chat(False, SAYS))
        fresh = request("GET", "/metrics", headers={"cache-control": "no-cache"})
        shown = (await exchange(port_of(app.admin_url), fresh)).body
        assert b'dragoman_plugin_failures_total{plugin="g1"} 1.0' in shown
        assert b'dragoman_plugin_calls_total{plugin="g2"} 0.0' in shown
        assert b'dragoman_plugin_seconds_total{plugin="g1"}' in shown


LONG_ARGUMENTS = '{"a": "' + "\\u00fc\\/" * 20_000 + '"}'


@pytest.mark.parametrize("stream", [False, True])
async def test_a_light_request_is_answered_while_a_long_answer_is_read_for_its_guards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    read, passed, unescape = threading.Event(), threading.Event(), answer_texts.unescaped

    def waiting(arguments: str) -> str:
        if len(arguments) == len(LONG_ARGUMENTS):
            read.set()
            assert passed.wait(30)
        return unescape(arguments)

    monkeypatch.setattr(answer_texts, "unescaped", waiting)
    call: JsonObject = {"index": 0, "id": "1", "type": "function"}
    function: JsonObject = {"name": "f", "arguments": LONG_ARGUMENTS}
    delta: JsonObject = {"role": "assistant", "content": None, "tool_calls": [{**call, "function": function}]}
    whole: JsonObject = {**openai_chat("", finish_reason="tool_calls")}
    whole["choices"] = [{"index": 0, "message": delta, "finish_reason": "tool_calls"}]
    pieces: JsonObject = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    first: JsonObject = {**pieces, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    last: JsonObject = {**pieces, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    frames = [b"data: %b\n\n" % orjson.dumps(each) for each in (first, last)]
    async with FakeVendor(sse_answer([*frames, b"data: [DONE]\n\n"]) if stream else json_answer(200, whole)) as vendor:
        table = f"{table_before(vendor)}plugins: {{g: {plugin('Hider')}}}\n"
        async with up(
            table.replace("vendors: {", "vendors: {mock: {}, ").replace("models: {", "models: {mock/echo: {}, "),
            tmp_path,
        ) as app:
            asked = asyncio.create_task(post(app, "/v1/chat/completions", {**chat(stream, "hi"), "model": "v/m"}))
            await asyncio.to_thread(read.wait)
            light = await post(app, "/v1/chat/completions", chat(False, "hi"))
            passed.set()
            answer = await asked
    assert (light.status, answer.status, answer.whole) == (200, 200, True)


async def test_what_stands_beside_the_choices_of_an_answer_is_hidden_too(tmp_path: Path) -> None:
    citations: list[JsonValue] = [f"see {SECRET}"]
    whole: JsonObject = {**openai_chat("fine"), "citations": citations}
    async with FakeVendor(json_answer(200, whole)) as vendor, up(_hiding(vendor), tmp_path) as app:
        answer = await post(app, "/v1/chat/completions", {**chat(False, "hi"), "model": "v/m"})
    assert (answer.status, b'"fine"' in answer.body) == (200, True)
    assert SECRET.encode() not in answer.body


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_the_time_of_guards_and_of_what_they_hold_back_is_not_the_gateways(tmp_path: Path, stream: bool) -> None:
    sent = sse_answer(chat_frames(["one", "two"]))
    script = (*sent[:3], Delay(0.1), *sent[3:]) if stream else json_answer(200, openai_chat("fine"))
    more = "server: {receipt: true}\n"
    async with FakeVendor(script) as vendor, up(_hiding(vendor, "Sleeper") + more, tmp_path) as app:
        answer = await post(app, "/v1/chat/completions", {**chat(stream, "hi"), "model": "v/m"})
    parts = told(answer.headers["server-timing"])
    assert (answer.whole, "body" in parts) == (True, stream)
    assert parts["guards"] + parts.get("body", 0) >= (200 if stream else 100) - 3


def _hiding(vendor: FakeVendor, guard: str = "Hider") -> str:
    return f"{table_before(vendor)}plugins: {{g: {plugin(guard)}}}\n"
