"""Requests are handed over without waiting, in bounded memory, and everything that happens to the writer is counted."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import orjson
import pytest

from config.sections.log_section import PayloadCollectorSection, PayloadLogSettings
from providers.completion import Usage
from proxy.background_tasks import background
from proxy.payload_log import payload_log as module
from proxy.payload_log.payload_log import PayloadLog, opened_payload_log
from proxy.process.assemble_app import Addresses, running
from proxy.process.load_table import Source
from proxy.request_record import RequestRecord
from tests.proxy.kit.tables import digest_of
from tests.proxy.tracing.kit.collector import Collector, collecting


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_WRITES_TIMEOUT", 60.0)


def place(file: Path, *redact: str) -> PayloadLogSettings:
    return PayloadLogSettings(file, frozenset({"search"}), 1024, redact, 10**6, 1)


def record(name: str, team: str = "search") -> RequestRecord:
    return RequestRecord(name, 1.0, "openai", "/v1/completions", team=team, status=200, finished=2.0)


def hand_over(log: PayloadLog, name: str, body: bytes, team: str = "search") -> RequestRecord:
    made = record(name, team)
    log.received(made, body)
    log.finished(made, None)
    return made


def written(file: Path) -> list[Mapping[str, object]]:
    return [orjson.loads(line) for line in file.read_bytes().splitlines()]


@pytest.mark.smoke
async def test_the_named_teams_requests_are_written_and_nothing_is_held_afterwards(tmp_path: Path) -> None:
    async with opened_payload_log(place(tmp_path / "p", "canary")) as log:
        made = [hand_over(log, "r-1", b'"canary"'), hand_over(log, "r-2", b"{}"), hand_over(log, "r-3", b"{}", "data")]
    assert [(line["request_id"], line["request"]) for line in written(tmp_path / "p")] == [
        *(("r-1", "[redacted]"), ("r-2", {}))
    ]
    assert [each.content for each in made] == [None] * 3
    assert (log.counts.written, log.counts.dropped, log.allowance.left) == (2, 0, module.MOST_HELD)


@pytest.mark.smoke
async def test_an_entry_counts_all_calls_of_its_request_as_the_log_does(tmp_path: Path) -> None:
    async with opened_payload_log(place(tmp_path / "p")) as log:
        made = record("r-1")
        made.usage, made.billed = Usage(1, 2), Usage(3, 5)
        log.received(made, b"{}")
        log.finished(made, None)
    (line,) = written(tmp_path / "p")
    assert (line["prompt_tokens"], line["completion_tokens"]) == (3, 5)


async def test_what_takes_too_long_or_is_too_long_is_withheld_and_the_next_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_CONTENT", 1000)
    async with opened_payload_log(place(tmp_path / "p", r"(a+)+$")) as log:
        hand_over(log, "slow", b'"' + b"a" * 60 + b'!"')
        hand_over(log, "long", b"x" * 1001)
        hand_over(log, "good", b'"b"')
    assert [line.get("withheld", line.get("request")) for line in written(tmp_path / "p")] == [
        *(module.TOO_LATE, module.TOO_LONG, "b")
    ]
    assert (log.counts.written, log.counts.withheld, log.counts.dropped) == (1, 2, 0)


@pytest.mark.smoke
async def test_what_cannot_be_written_is_counted_and_said_once_and_so_is_its_end(tmp_path: Path) -> None:
    said: list[str] = []
    log = PayloadLog(place(tmp_path / "later" / "p"), said.append)
    task = asyncio.ensure_future(log.run())
    try:
        for _ in range(3):
            hand_over(log, "lost", b"{}")
        await log.drain()
        (tmp_path / "later").mkdir()
        hand_over(log, "good", b"{}")
        await log.drain()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await log.end_process()
    assert (log.counts.written, log.counts.dropped, log.allowance.left) == (1, 3, module.MOST_HELD)
    assert said == [
        f"entries of the payload log {tmp_path / 'later' / 'p'} are dropped: No such file or directory",
        "the payload log is written again; 3 entries of it were dropped",
    ]


async def test_what_has_no_room_in_memory_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_HELD", 100)
    monkeypatch.setattr(module, "MOST_WAITING", 2)
    said: list[str] = []
    log = PayloadLog(place(tmp_path / "p"), said.append)
    assert hand_over(log, "large", b"x" * 101).content is None
    answered = record("answered")
    log.received(answered, b"x")
    assert answered.content is not None
    answered.content.answer = b"x" * 100
    log.finished(answered, None)
    for _ in range(3):
        hand_over(log, "small", b"x")
    assert (log.counts.dropped, log.allowance.left) == (3, 98)
    assert said == [f"entries of the payload log {tmp_path / 'p'} are dropped: {module.NO_MEMORY}"]


async def test_a_writer_that_cannot_start_costs_its_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refused(*_: object, **__: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(module, "start_child", refused)
    monkeypatch.setattr(module, "RESTART_PAUSE", 0.0)
    async with opened_payload_log(place(tmp_path / "p")) as log:
        hand_over(log, "lost", b"{}")
    assert (log.counts.written, log.counts.dropped) == (0, 1)


def test_the_counts_are_metrics() -> None:
    (family,) = module.PayloadCounts(written=3).families()
    assert [(labels[0][1], value) for (_, labels), value in family.samples] == [
        *(("dropped", 0.0), ("withheld", 0.0), ("written", 3.0))
    ]


TABLE = f"""version: 1
server:
  log: {{sample: 10%}}
  payload_log: {{path: payloads.jsonl, teams: [search], redact: ['bob@[a-z.]+']}}
vendors: {{mock: {{}}}}
models: {{mock/echo: {{}}, mock/*: {{}}}}
teams:
  search: {{keys: ["{digest_of("k")}"], models: ["*"]}}
  data: {{keys: ["{digest_of("d")}"], models: ["*"]}}
"""


def to_collector(url: str, *redact: str, timeout: str = "5s") -> PayloadLogSettings:
    section = PayloadCollectorSection.model_validate({"endpoint": url, "timeout": timeout})
    return PayloadLogSettings(None, frozenset({"search"}), 1024, redact, 10**6, 1, collector=section)


def sent_to(collector: Collector) -> list[Mapping[str, object]]:
    """Return the entries that a collector received."""
    scopes = [of for export in collector.logs for each in export.resource_logs for of in each.scope_logs]
    return [orjson.loads(record.body.string_value) for scope in scopes for record in scope.log_records]


async def test_a_collector_gets_many_entries_at_once() -> None:
    with collecting() as collector:
        async with opened_payload_log(to_collector(collector.url)) as log:
            for number in range(200):
                hand_over(log, str(number), b'"b"')
        found = sent_to(collector)
    assert [each["request_id"] for each in found] == [str(number) for number in range(200)]
    assert collector.asked == 4
    assert (log.counts.written, log.counts.dropped, log.allowance.left) == (200, 0, module.MOST_HELD)


@pytest.mark.nightly
async def test_one_that_takes_too_long_to_redact_comes_to_a_collector_without_its_texts_and_the_others_whole() -> None:
    with collecting() as collector:
        async with opened_payload_log(to_collector(collector.url, r"(a+)+$")) as log:
            for number in range(20):
                hand_over(log, str(number), b'"' + b"a" * 60 + b'!"' if number == 7 else b'"b"')
        found = sent_to(collector)
    assert [each["request_id"] for each in found] == [str(number) for number in range(20)]
    assert [each["request_id"] for each in found if "withheld" in each] == ["7"]
    assert (log.counts.written, log.counts.withheld, log.counts.dropped) == (19, 1, 0)


async def test_a_collector_that_does_not_answer_holds_nobody_up_and_what_it_misses_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING", 100)
    said: list[str] = []
    with collecting() as collector:
        collector.open.clear()
        log = PayloadLog(to_collector(collector.url, timeout="100ms"), said.append)
        async with background((log.run,)):
            for number in range(150):
                hand_over(log, str(number), b"{}")
            assert log.counts.dropped == 50
            await log.drain()
        await log.end_process()
    assert (log.counts.written, log.counts.dropped, log.allowance.left) == (0, 150, module.MOST_HELD)
    assert said[0] == f"entries of the payload log are dropped: {module.NO_MEMORY}"


def test_a_secret_of_the_collector_is_in_no_repr() -> None:
    given = {"endpoint": "http://127.0.0.1:1", "headers": {"authorization": "canary"}}
    made = replace(to_collector("http://127.0.0.1:1"), collector=PayloadCollectorSection.model_validate(given))
    assert "canary" not in repr(made)
    assert module.rules_of(made).headers == {"authorization": "canary"}


async def test_only_the_named_models_and_routes_are_written(tmp_path: Path) -> None:
    chosen = replace(place(tmp_path / "p"), models=("fast", "mock/*", "openai/gpt"))
    async with opened_payload_log(chosen) as log:
        for name, asked, label, called in (
            *(("route", "fast", "fast", "v/m/d"), ("wildcard", "mock/x", "mock/*", "mock/x/default")),
            *(("by a route", "slow", "slow", "openai/gpt/eu"), ("a deployment", "openai/gpt/eu", "openai/gpt", None)),
            *(("other", "v/m", "v/m", "v/m/d"), ("unknown", "nobody", "other", None)),
        ):
            made = record(name)
            log.received(made, b"{}")
            made.asked, made.model, made.called = asked, label, called
            log.finished(made, None)
    assert [line["request_id"] for line in written(tmp_path / "p")] == [
        *("route", "wildcard", "by a route", "a deployment")
    ]
    assert log.allowance.left == module.MOST_HELD


class Discard:
    """An output whose content is not checked."""

    def write(self, data: memoryview, /) -> int:
        return len(data)


async def test_a_gateway_writes_what_its_client_got_whole_and_streamed_of_that_team_alone(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(TABLE, encoding="utf-8")
    source = Source(path, {})
    message = {"role": "user", "content": "mail bob@example.com"}
    bodies = [
        *({"model": "mock/echo", "stream": stream, "messages": [message]} for stream in (False, True)),
        {"model": "mock/echo", "messages": 5},
    ]
    answers = []
    async with running(source, source.load(), Addresses("127.0.0.1", 0, "127.0.0.1", 0), Discard()) as app:
        async with aiohttp.ClientSession() as client:
            for key in ("k", "d"):
                for body in bodies:
                    headers = {"authorization": f"Bearer {key}"}
                    async with client.post(f"{app.url}/v1/chat/completions", json=body, headers=headers) as answer:
                        answers.append(await answer.read())
        assert urlsplit(app.admin_url).port
    lines = written(tmp_path / "payloads.jsonl")
    assert [(line["team"], line["status"], line["stream"]) for line in lines] == [
        *(("search", 200, False), ("search", 200, True), ("search", 400, False))
    ]
    hidden = json.loads(answers[0].replace(b"bob@example.com", b"[redacted]"))
    assert lines[0]["answer"] == hidden
    assert lines[1]["streamed"] == [{"index": 0, "text": "mail [redacted]", "finish_reason": "stop"}]
    assert lines[2]["answer"] == json.loads(answers[2])
    text = (tmp_path / "payloads.jsonl").read_text("utf-8")
    assert "bob@" not in text
    assert "Bearer" not in text
    assert digest_of("k") not in text


async def test_a_gateway_sends_a_collector_what_a_client_got(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    with collecting() as collector:
        log = f"payload_log: {{otlp: {{endpoint: '{collector.url}'}}, teams: ['*'], models: [mock/echo]}}"
        table = f"version: 1\nserver: {{{log}}}\nvendors: {{mock: {{}}}}\nmodels: {{mock/echo: {{}}, mock/*: {{}}}}\n"
        path.write_text(table, encoding="utf-8")
        source = Source(path, {})
        got = []
        async with (
            running(source, source.load(), Addresses("127.0.0.1", 0, "127.0.0.1", 0), Discard()) as app,
            aiohttp.ClientSession() as client,
        ):
            for model in ("mock/echo", "mock/other"):
                asked = {"model": model, "messages": [{"role": "user", "content": "hello"}]}
                async with client.post(f"{app.url}/v1/chat/completions", json=asked) as answer:
                    got.append(await answer.json())
        (entry,) = sent_to(collector)
    assert entry["request"] == {"model": "mock/echo", "messages": [{"role": "user", "content": "hello"}]}
    assert entry["answer"] == got[0]
