"""Pages whose origins the operator lists: the preflights of their browsers, and the headers that scripts may read."""

import re
from collections.abc import Mapping

from providers.json_types import JsonValue
from proxy.listener.cors_and_host_names import EXPOSED
from proxy.receipt.server_timing import RECEIPT_HEADER
from proxy.upstream.loop_detection import HOPS
from tests.proxy.kit.gateway_rig import AUTH, ask, rig
from tests.proxy.kit.raw_client import connected, request
from tests.support.gateway import ROOT
from tests.support.http_scripts import json_answer, sse_answer
from tests.support.looped import looped
from tests.support.openai_wire import completion, completion_frames

EVIL = "https://evil.example"
APP = "https://app.example.com"

STAINLESS = "x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version,x-stainless-retry-count"
STAINLESS += ",x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout,x-stainless-helper-method"
SDKS: Mapping[str, tuple[str, str, str]] = {
    "openai for Node": (
        "/v1/chat/completions",
        "POST",
        "authorization,content-type,openai-beta,openai-organization,openai-project,user-agent,"
        f"x-stainless-custom-poll-interval,x-stainless-poll-helper,{STAINLESS}",
    ),
    "openai for Node, a response deleted": ("/v1/responses/resp_1", "DELETE", f"authorization,{STAINLESS}"),
    "anthropic for Node": (
        "/v1/messages?beta=true",
        "POST",
        "anthropic-beta,anthropic-dangerous-direct-browser-access,anthropic-version,authorization,content-type,"
        f"x-api-key,x-stainless-helper,{STAINLESS}",
    ),
    "AI SDK": ("/v1/responses", "POST", "anthropic-version,authorization,content-type,user-agent,x-api-key"),
    "cohere": (
        "/v2/rerank",
        "POST",
        "authorization,content-type,x-fern-language,x-fern-platform,x-fern-runtime,x-fern-sdk-name,x-fern-sdk-version",
    ),
}
"""Path, method and header names in the SDKs' preflights from a browser."""


@looped(("path", "method", "names"), SDKS.values(), ids=SDKS)
@looped("origins", [[APP], ["*"]])
async def test_every_sdk_s_preflight_is_granted_all_that_it_asks_for(
    path: str, method: str, names: str, origins: list[str]
) -> None:
    asked = {
        "Origin": APP,
        "Access-Control-Request-Method": method,
        "Access-Control-Request-Headers": names,
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "cors",
    }
    async with rig() as served:
        served.guard.exchange((), origins)
        async with connected(served.port) as client:
            await client.send(request("OPTIONS", path, None, asked))
            status, granted = await client.head()
    assert status == 204
    assert granted["access-control-allow-origin"] in (APP, "*")
    assert method in granted["access-control-allow-methods"].split(", ")
    assert set(granted["access-control-allow-headers"].split(",")) == set(names.split(","))


async def test_every_answer_varies_by_origin_once_so_that_no_cache_mixes_them_up() -> None:
    async with rig() as served:
        served.guard.exchange((), [APP])
        heads: list[bytes] = []

        async def note(method: str, path: str, body: JsonValue, page: Mapping[str, str]) -> None:
            async with connected(served.port) as client:
                await client.send(request(method, path, body, {**AUTH, **page}))
                heads.append(await client.reader.readuntil(b"\r\n\r\n"))

        for page in ({}, {"Origin": APP}, {"Origin": EVIL}):
            served.vendor.default = json_answer(200, completion("hello", "m"))
            await note("POST", "/v1/completions", ask(), page)
            for path in ("/v1/models", "/health/live", "/nowhere"):
                await note("GET", path, None, page)
            served.vendor.default = sse_answer(completion_frames(["one", "two"]))
            await note("POST", "/v1/completions", ask(stream=True), page)
            served.memory.share = 0.99
            for _ in range(2):
                await note("POST", "/v1/completions", ask(), page)
            served.memory.share = 0.0
        async with connected(served.port) as client:
            await client.send(b"GARBAGE\r\n\r\n")
            heads.append(await client.reader.readuntil(b"\r\n\r\n"))
    assert {int(head.split(b" ")[1]) for head in heads} == {200, 400, 403, 404, 503}
    for head in heads:
        assert head.lower().count(b"\r\nvary: origin\r\n") == head.lower().count(b"\r\nvary:") == 1


async def test_an_answer_that_is_refused_before_http_is_parsed_varies_by_origin_too() -> None:
    async with rig() as served:
        served.memory.share = 0.99
        refused = [await served.post("/v1/completions", ask()) for _ in range(4)]
        served.memory.share = 0.0
        served.door.look()
    assert {answer.headers["vary"] for answer in refused} == {"Origin"}
    assert sum(count for _, _, count in served.turned_away) > 0


def test_a_page_may_read_every_header_of_the_gateway_s_own() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "proxy").rglob("*.py"))
    # Headers of webhooks and of client requests appear in no response.
    others = {HOPS, "x-dragoman-signature", "x-dragoman-session", RECEIPT_HEADER}
    own = set(re.findall(r'"(x-dragoman-[a-z-]+)"', sources)) - others
    exposed = set(EXPOSED.split(", "))
    assert own
    assert own <= exposed
    assert {"request-id", "x-request-id", "retry-after", "retry-after-ms", "x-should-retry"} <= exposed
    assert "anthropic-ratelimit-input-tokens-remaining" in exposed
