"""Every secret is recognisable, every request fails, and no secret appears in any output."""

import asyncio
import base64
import re
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from providers.json_types import JsonObject
from proxy.process.load_table import Source
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.proxy.kit.tables import digest_of
from tests.proxy.kit.whole_gateway import port_of
from tests.security import echo
from tests.security.canary import CANARIES, canary, leaks
from tests.support.forked_program import run_program
from tests.support.gateway import ROOT, RunningGateway, free_ports, running_gateway
from tests.support.http_scripts import json_answer
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script

TOKEN = "eyJcanary.fetched-token.plum"
ENVIRONMENT = {
    "VENDOR_KEY": canary("vendor-key"),
    "HEADER_VALUE": canary("header-value"),
    "CLIENT_SECRET": canary("client-secret"),
    "ADMIN_TOKEN": canary("admin-token"),
    "REDIS_PASSWORD": canary("redis-password"),
}
SECRETS = {**CANARIES, "fetched-token": TOKEN}
TABLE = f"""\
version: 1
server:
  port: ${{PORT}}
  admin:
    port: ${{ADMIN_PORT}}
    token: "${{ADMIN_TOKEN}}"
  shared: {{redis: "redis://me:${{REDIS_PASSWORD}}@127.0.0.1:NOBODY"}}
vendors:
  fake:
    profile: openai_compatible
    base_url: "ORIGIN/v1"
    allow_private: true
    api_key: "${{VENDOR_KEY}}"
    headers: {{X-Account: "${{HEADER_VALUE}}"}}
  claude: {{profile: anthropic, base_url: ORIGIN, allow_private: true, api_key: "${{file:key.txt}}"}}
  fetched:
    profile: openai_compatible
    base_url: "ORIGIN/v1"
    allow_private: true
    credentials:
      oidc: {{token_url: "ORIGIN/token", client_id: me, client_secret: "${{CLIENT_SECRET}}"}}
  down:
    profile: openai_compatible
    base_url: "http://127.0.0.1:NOBODY/v1"
    allow_private: true
    api_key: "${{VENDOR_KEY}}"
defaults: {{retries: {{attempts: 2}}}}
teams:
  search: {{keys: ["{digest_of(canary("team-key"))}"], models: ["*"]}}
models:
  fake/m: {{completions: true}}
  down/m: {{}}
"""
VENDORS = ("fake", "claude", "fetched")


@dataclass(frozen=True, slots=True)
class Way:
    """One way to repeat the request, at deployments of its own, so that no other failure opens their circuits."""

    name: str
    number: int
    vendor: str
    stream: bool

    @property
    def models(self) -> tuple[str, str]:
        """Return the vendor's two models with this response. A request that fails at the first goes to the second."""
        stem = f"w{self.number}{'s' if self.stream else 'w'}"
        return f"{stem}1", f"{stem}2"

    @property
    def route(self) -> str:
        """Return the name that leads to both."""
        return f"{self.vendor}.{self.models[0]}"

    @property
    def rows(self) -> str:
        return "".join(f"  {self.vendor}/{model}: {{max_output_tokens: 10}}\n" for model in self.models)


WAYS = tuple(
    Way(name, number, vendor, stream)
    for number, name in enumerate(echo.WAYS)
    for vendor in VENDORS
    for stream in (False, True)
)
KEY = {"Authorization": f"Bearer {canary('team-key')}"}
BROKEN = (
    'vendors:\n  fake: {api_key: ["CANARY"], headers: {X-A: {b: "CANARY"}}, base_url: "https://u:CANARY@h.example/"}\n'
)
OUR_HEADERS = re.compile(
    r"server|date|connection|content-(?:type|length)|transfer-encoding|cache-control|x-content-type-options"
    r"|x-accel-buffering|vary|x-request-id|x-should-retry|retry-after|x-dragoman-[a-z-]+"
)
"""Headers that a response may have. No header of a vendor is forwarded."""


def table_for(origin: str) -> str:
    """Return the configuration for a vendor at this address, with a port beside it on which nothing listens."""
    (closed,) = free_ports(1)
    rows = "".join(way.rows for way in WAYS)
    routes = [
        f"  {way.route}: {{targets: [{', '.join(f'{way.vendor}/{name}' for name in way.models)}]}}" for way in WAYS
    ]
    text = TABLE.replace("ORIGIN", origin).replace("NOBODY", str(closed))
    return f"{text}{rows}routes:\n" + "\n".join(routes) + "\n"


def token(received: Received) -> Script:
    return json_answer(200, {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600})


async def asked(gateway: RunningGateway, vendor: FakeVendor) -> Mapping[str, Answer]:
    port = port_of(gateway.url)
    slots = asyncio.Semaphore(16)
    vendor.answer_path("/token", token)
    for way in WAYS:
        for model in way.models:
            vendor.answer_model(model, echo.WAYS[way.name])

    async def one(way: Way) -> Answer:
        body: JsonObject = {"model": way.route, "messages": [{"role": "user", "content": "hi"}], "stream": way.stream}
        async with slots:
            return await exchange(port, request("POST", "/v1/chat/completions", body, KEY))

    made = await asyncio.gather(*map(one, WAYS))
    answers = {f"{way.name}, {way.route}": answer for way, answer in zip(WAYS, made, strict=True)}
    ask: JsonObject = {"model": "fake/m", "prompt": "hi"}
    secret = canary("client-header")
    wrong = canary("wrong-key")
    own: Mapping[str, bytes] = {
        "no connection": request("POST", "/v1/completions", {**ask, "model": "down/m"}, KEY),
        "a wrong key": request("POST", "/v1/completions", ask, {"x-api-key": wrong}),
        "a wrong bearer": request("POST", "/v5/completions", ask, {"Authorization": f"Bearer {wrong}"}),
        "a key in the path": request("GET", f"/v1/models?key={wrong}", None, KEY),
        "a header that may not pass": request(
            "POST", "/v1/completions", {**ask, "inference_extra_headers": {"Authorization": secret}}, KEY
        ),
        "a value that may not pass": request(
            "POST", "/v1/completions", {**ask, "inference_extra_headers": {"X-A": f"{secret}\n"}}, KEY
        ),
        "no HTTP": f"GET /{wrong} HTTP/1.1\r\nAuthorization {wrong}\r\n\r\n".encode(),
        "a key as a model": request("POST", "/v1/completions", {**ask, "model": 1, "api_key": wrong}, KEY),
    }
    for name, data in own.items():
        answers[name] = await exchange(port, data)
    return answers


def seen(answer: Answer) -> bytes:
    return f"{answer.status} {dict(answer.headers)} ".encode() + answer.body


async def told(gateway: RunningGateway) -> Mapping[str, bytes]:
    port = port_of(gateway.admin_url)
    good = {"Authorization": f"Bearer {canary('admin-token')}"}
    bad = {"Authorization": f"Bearer {canary('wrong-admin-token')}"}
    questions = {
        "metrics": request("GET", "/metrics", None, good),
        "status": request("GET", "/status", None, good),
        "status page": request("GET", "/status", None, {**good, "Accept": "text/html"}),
        "a wrong token": request("GET", "/status", None, bad),
        "a reload": request("POST", "/-/reload", None, good),
    }
    answers = {name: await exchange(port, data) for name, data in questions.items()}
    gateway.table.write_text(gateway.table.read_text("utf-8") + BROKEN.replace("CANARY", canary("vendor-key")), "utf-8")
    answers["a reload refused"] = await exchange(port, questions["a reload"])
    assert [answer.status for answer in answers.values()] == [200, 200, 200, 401, 200, 400]
    return {name: seen(answer) for name, answer in answers.items()}


@pytest.mark.timeout(600)  # thousands of requests, on a busy machine too
async def test_no_secret_leaves_the_gateway_whatever_a_vendor_repeats(tmp_path: Path) -> None:
    (tmp_path / "key.txt").write_text(canary("file-key"), "utf-8")
    async with FakeVendor() as vendor, running_gateway(table_for(vendor.base_url), tmp_path, ENVIRONMENT) as gateway:
        answers = await asked(gateway, vendor)
        admin = await told(gateway)
        # Bytes that are not HTTP are not a request, and have no line of their own.
        lines = await gateway.logged(len(answers) - 1)
    heard = b"".join(f"{received.headers}".encode() + received.body for received in vendor.requests)
    # The vendor has received each of its secrets, so the searches below could have found each.
    for kind in ("vendor-key", "file-key", "header-value"):
        assert canary(kind).encode() in heard
    assert TOKEN.encode() in heard
    assert {line["status"] for line in lines} >= {200, 400, 401, 429, 502}
    assert any(len(failed) == 2 for line in lines if isinstance(failed := line.get("attempts"), list))
    for way, answer in answers.items():
        assert answer.headers["server"] == "dragoman", way
        assert [name for name in answer.headers if not OUR_HEADERS.fullmatch(name)] == [], way
    public = {way: seen(answer) for way, answer in answers.items()}
    places = {**public, **admin, "log": gateway.stdout.read_bytes(), "messages": gateway.stderr.read_bytes()}
    assert leaks(places, SECRETS) == []


CHECK = ["check", "--strict", "--output", "json"]
EXPLAIN = ["explain", "ask.json", "--team", "search"]


@pytest.mark.parametrize(
    ("good", "commands"),
    [(True, [["check"], CHECK, ["routes"], EXPLAIN]), (False, [["check"], CHECK, ["serve"]])],
    ids=["a good table", "a bad table"],
)
def test_no_command_shows_a_secret(tmp_path: Path, good: bool, commands: Sequence[Sequence[str]]) -> None:
    text = table_for("http://127.0.0.1:1")
    if not good:
        text += BROKEN.replace("CANARY", canary("vendor-key"))
    (tmp_path / "table.yaml").write_text(text, "utf-8")
    (tmp_path / "key.txt").write_text(canary("file-key"), "utf-8")
    (tmp_path / "ask.json").write_bytes(orjson.dumps({"model": "fake/m", "prompt": "hi"}))
    environment = {**ENVIRONMENT, "PORT": "3", "ADMIN_PORT": "2", "PYTHONPATH": str(ROOT)}
    for command in commands:
        done = run_program(("-P", "-m", "proxy", *command, "-c", "table.yaml"), environment, tmp_path)
        assert (done.returncode == 0) is good, done.stderr
        assert leaks({" ".join(command): done.stdout + done.stderr}) == []


def test_no_dump_of_what_the_gateway_holds_shows_a_secret(tmp_path: Path) -> None:
    (tmp_path / "table.yaml").write_text(table_for("http://127.0.0.1:1"), "utf-8")
    (tmp_path / "key.txt").write_text(canary("file-key"), "utf-8")
    environment = {**ENVIRONMENT, "PORT": "1", "ADMIN_PORT": "2"}
    table = Source(tmp_path / "table.yaml", environment).load()
    targets = list(table.snapshot.targets())
    assert len(targets) == 2 + 2 * len(WAYS)
    dumps = {
        "table": repr(table),
        "config": table.loaded.config.model_dump_json() + str(table.loaded.config.model_dump()),
        "targets": f"{targets} {targets[0]} {[target.credential for target in targets]}",
        "error": "".join(traceback.TracebackException.from_exception(ValueError(table, targets)).format()),
    }
    assert leaks(dumps) == []


def test_the_search_finds_a_secret_however_it_is_written() -> None:
    secret = canary("vendor-key")
    written: list[str | bytes] = [
        secret,
        f"x{secret}y",
        secret[: len(secret) * 2 // 3],
        secret.replace("-", "%2D"),
        secret.encode().hex(),
        *(base64.b64encode(b"Bearer!"[:size] + secret.encode() + b"..") for size in range(7)),
    ]
    for text in written:
        (found,) = leaks({"place": text})
        assert found.startswith("place: vendor-key ")
    assert leaks({"place": "canary", "other": b"plum-quartz-violet"}) == []
