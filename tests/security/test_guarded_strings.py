"""Every string that a vendor gets was shown to the guards of requests, or is listed in proxy/plugins/README.md as not
shown."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.proxy.gateway.test_pass_on_task import FORM_TYPE
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.whole_gateway import port_of, up
from tests.proxy.plugins.kit import HIDDEN, plugin
from tests.security.floor import ROOT
from tests.security.marked_answers import answers
from tests.security.marked_requests import MARK, RECORDER, SEEN, Marked, Marks, each_field, each_place
from tests.support.http_scripts import json_answer
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script

pytestmark = pytest.mark.timeout(600)  # thousands of requests, on a busy machine too

NOT_SHOWN = {"id", "call_id", "tool_use_id", "file_id", "file", "inference_extra_headers"}
"""Positions whose strings are not shown, each in backquotes in the README of plugins."""

BY_RESPONSES = "gpt/gpt-5.1-codex"
"""A model that is called through the vendor's Responses API, whatever API the client uses."""
SERVED = {
    "/v1/messages": ("claude/m", "engine/m", BY_RESPONSES),
    "/v1/chat/completions": ("engine/m", "gpt/m", BY_RESPONSES),
    "/v1/messages/count_tokens": ("claude/m",),
    "/v1/responses": ("gpt/m", "engine/m"),
    "/v1/rerank": ("co/m", "engine/m"),
    "/v1/embeddings": ("gpt/m", "engine/m", "co/m"),
    "/v1/moderations": ("gpt/m",),
    "/v1/audio/speech": ("gpt/m",),
    "/v1/images/generations": ("gpt/m",),
    "/v1/audio/transcriptions": ("gpt/m",),
}


def table(vendor: FakeVendor, guard: str) -> str:
    origin = vendor.base_url
    return f"""
version: 1
defaults: {{retries: {{attempts: 1}}, on_unsupported: drop}}
vendors:
  engine: {{profile: vllm, base_url: "{origin}/v1", allow_private: true}}
  claude: {{profile: anthropic, base_url: "{origin}", allow_private: true, api_key: k}}
  gpt: {{profile: openai, base_url: "{origin}/v1", allow_private: true, api_key: k}}
  co: {{profile: cohere, base_url: "{origin}", allow_private: true, api_key: k}}
models: {{engine/m: {{}}, claude/m: {{}}, gpt/m: {{}}, {BY_RESPONSES}: {{}}, co/m: {{}}}}
plugins: {{g: {guard}}}
"""


def found_in(texts: Iterable[str]) -> set[str]:
    return {each for text in texts for each in MARK.findall(text)}


def got(requests: Iterable[Received]) -> set[str]:
    """Return the marks that the vendor got, in bodies and heads."""
    return found_in(f"{each.headers} {each.body.decode('latin-1')}" for each in requests)


async def ask(port: int, marked: Marked, model: str) -> None:
    head, body = {}, marked.body
    if isinstance(body, bytes):
        body, head = body.replace(b"MODEL", model.encode()), FORM_TYPE
    else:
        body = {"model": model, **body}
    await exchange(port, request("POST", marked.path, body, head))


def asked(marks: Marks) -> list[tuple[Marked, str]]:
    requests = [*each_field(marks), *each_place(marks)]
    return [(each, model) for each in requests for model in SERVED.get(each.path, ("engine/m", "gpt/m"))]


async def test_threat_20_every_string_that_a_vendor_gets_was_shown_or_is_named_as_not_shown(tmp_path: Path) -> None:
    marks, reached, bridged, unseen = Marks(), set[str](), set[str](), dict[str, str]()
    async with (
        FakeVendor(lambda _: json_answer(400, {"error": {"message": "no"}})) as vendor,
        up(table(vendor, RECORDER), tmp_path) as app,
    ):
        for marked, model in asked(marks):
            SEEN.clear()
            before = len(vendor.requests)
            await ask(port_of(app.url), marked, model)
            sent = got(vendor.requests[before:])
            reached |= sent
            if model == BY_RESPONSES:
                bridged |= got(each for each in vendor.requests[before:] if each.target.endswith("/responses"))
            for mark in sent - found_in(SEEN):
                unseen[mark] = marks.places.get(mark, f"{marked.path} {marked.what} {model}")
    assert len(reached) > 1000
    assert len(bridged) > 100
    assert {place for mark, place in unseen.items() if mark.startswith("mark")} == set()
    assert set(unseen.values()) == NOT_SHOWN
    readme = (ROOT / "proxy" / "plugins" / "README.md").read_text("utf-8")
    assert [place for place in NOT_SHOWN if f"`{place}`" not in readme] == []


async def test_threat_20_no_string_that_a_guard_replaces_reaches_a_vendor(tmp_path: Path) -> None:
    reached: dict[str, str] = {}
    async with (
        FakeVendor(lambda _: json_answer(400, {"error": {"message": "no"}})) as vendor,
        up(table(vendor, plugin("Hider", 'word: "mark-"')), tmp_path) as app,
    ):
        for marked, model in asked(Marks()):
            before = len(vendor.requests)
            await ask(port_of(app.url), marked, model)
            found = {each for each in got(vendor.requests[before:]) if each.startswith("mark")}
            reached |= dict.fromkeys(found, f"{marked.path} {marked.what} {model}")
        assert len(vendor.requests) > 300
    assert reached == {}


@pytest.mark.parametrize("guard", ["Hider", "LiveHider"])
async def test_threat_20_no_string_of_an_answer_that_a_guard_replaces_reaches_a_client(
    tmp_path: Path, guard: str
) -> None:
    faults: list[str] = []
    script: list[Script] = [()]
    async with (
        FakeVendor(lambda _: script[0]) as vendor,
        up(table(vendor, plugin(guard, 'word: "mark-", where: answer')), tmp_path) as app,
    ):
        for marked in answers(Marks()):
            script[0] = marked.script
            got = await exchange(port_of(app.url), request("POST", marked.path, marked.request))
            found = re.findall(rb".{0,60}mark-.{0,9}", got.body)
            if got.status != 200 or not got.whole or found or HIDDEN.encode() not in got.body:
                faults.append(f"{marked.path} {marked.model} {got.status} {got.whole} {(found or got.body[:600])!r}")
    assert "\n".join(faults) == ""
