"""Credentials that expire in the whole gateway: from the configuration to the wire, through failures and reloads, and
never exposed."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import botocore.auth
import orjson
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials

from providers.dialects.platforms.aws_sigv4 import Signer
from proxy.cli.check_command import FORMS as CHECK_FORMS
from proxy.cli.check_command import check
from proxy.cli.explain_command import FORMS as EXPLAIN_FORMS
from proxy.cli.explain_command import ExplainOptions, explain
from proxy.process.assemble_app import Addresses, WholeGateway, running
from proxy.process.load_table import Source
from tests.proxy.kit.gateway_rig import ask
from tests.proxy.kit.raw_client import Answer, exchange, request
from tests.support.http_scripts import DONE, json_answer, sse_answer
from tests.support.openai_wire import completion, completion_frames
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script

SECRET = "canary-client-secret"
TOKEN = "canary-token"
ANY = Addresses("127.0.0.1", 0, "127.0.0.1", 0)

TABLE = """
version: 1
vendors:
  v:
    profile: openai_compatible
    base_url: "BASE/v1"
    allow_private: true
    credentials: {oidc: {token_url: "BASE/token", client_id: gateway, client_secret: "${SECRET}", scope: all}}
models: {v/m: {}, v/other: {}}
"""


@dataclass
class World:
    """A gateway, its vendor and its identity provider, with the requests to each."""

    app: WholeGateway
    vendor: FakeVendor
    path: Path
    log: BytesIO
    answers: list[Answer] = field(default_factory=list)

    async def post(self, model: str = "v/m", stream: bool = False) -> Answer:
        body = request("POST", "/v1/completions", ask(model, stream=stream))
        answer = await exchange(urlsplit(self.app.url).port or 0, body)
        self.answers.append(answer)
        return answer

    async def admin(self, path: str) -> bytes:
        return (await exchange(urlsplit(self.app.admin_url).port or 0, request("GET", path))).body

    def tokens(self) -> int:
        return sum(each.path == "/token" for each in self.vendor.requests)

    def authorizations(self) -> list[str | None]:
        return [each.header("authorization") for each in self.vendor.requests if each.path != "/token"]


def give(request: Received) -> Script:
    """Respond as the identity provider."""
    return json_answer(200, {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})


def serve(request: Received) -> Script:
    body = request.json()
    if isinstance(body, dict) and body.get("stream"):
        return sse_answer([*completion_frames(["one", "two"]), DONE])
    return json_answer(200, completion("hello"))


@asynccontextmanager
async def world(folder: Path, table: str = TABLE) -> AsyncIterator[World]:
    """Run everything for the duration of the block."""
    async with FakeVendor(serve) as vendor:
        vendor.answer_path("/token", give)
        path = folder / "t.yaml"
        path.write_text(table.replace("BASE", vendor.base_url), encoding="utf-8")
        source = Source(path, {"SECRET": SECRET})
        log = BytesIO()
        async with running(source, source.load_to_serve(), ANY, log) as app:
            yield World(app, vendor, path, log)


@pytest.fixture
async def made(tmp_path: Path) -> AsyncIterator[World]:
    async with world(tmp_path) as made:
        yield made


async def test_a_token_is_fetched_once_for_whole_and_streamed_answers_of_all_models(made: World) -> None:
    assert (await made.post()).status == 200
    streamed = await made.post("v/other", stream=True)
    assert streamed.status == 200
    assert streamed.whole
    assert made.authorizations() == [f"Bearer {TOKEN}"] * 2
    assert made.tokens() == 1


async def test_an_identity_provider_that_fails_makes_502_until_it_works_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with world(tmp_path) as made:
        made.vendor.answer_path("/token", json_answer(503, {}))
        answer = await made.post(stream=True)
        assert (answer.status, answer.code) == (502, "upstream_auth_failed")
        assert answer.message == "The gateway has no valid credential for the upstream at the moment."
        made.vendor.answer_path("/token", give)
        assert (await made.post(stream=True)).whole
        assert made.authorizations() == [f"Bearer {TOKEN}"]
    assert "no oidc credentials of v/m/default: the token endpoint returned 503" in caplog.text
    line = orjson.loads(made.log.getvalue().splitlines()[0])
    assert (line["status"], line["code"], line["attempts"][0]["outcome"]) == (502, "upstream_auth_failed", "auth")


async def test_a_token_that_the_vendor_refuses_is_replaced_within_the_one_attempt(made: World) -> None:
    await made.post()
    made.vendor.answer(json_answer(401, {"error": {"message": f"the token {TOKEN} is revoked"}}))
    answer = await made.post()
    assert (answer.status, answer.headers["x-dragoman-attempts"]) == (200, "1")
    assert made.tokens() == 2


async def test_a_vendor_that_refuses_every_token_makes_502(made: World) -> None:
    refused = json_answer(401, {"error": {"message": f"the token {TOKEN} is revoked"}})
    made.vendor.answer_path("/v1/completions", refused)
    answer = await made.post()
    assert (answer.status, answer.code) == (502, "upstream_auth_failed")
    assert len(made.authorizations()) == 2


@pytest.mark.parametrize(("old", "new", "tokens"), [("v/other", "v/another", 1), ("scope: all", "scope: some", 2)])
async def test_a_reload_keeps_tokens_unless_it_says_otherwise(old: str, new: str, tokens: int, made: World) -> None:
    await made.post()
    made.path.write_text(made.path.read_text("utf-8").replace(old, new), encoding="utf-8")
    assert (await made.app.reloader.reload()).problems == ()
    assert (await made.post()).status == 200
    assert made.tokens() == tokens


# Secrets that are never exposed ---------------------------------------------------------------------------------------


def echo(request: Received) -> Script:
    """Respond with everything that was sent."""
    shown = {name: value for name, value in request.headers} | {"body": request.body.decode()}
    return json_answer(401, {"error": {"message": str(shown), "code": str(shown)}, "error_description": str(shown)})


async def test_secrets_and_tokens_are_in_nothing_that_anybody_sees(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    question = tmp_path / "q.json"
    question.write_bytes(orjson.dumps(ask("v/m")))
    with caplog.at_level(logging.DEBUG):
        async with world(tmp_path) as made:
            source = Source(made.path, {"SECRET": SECRET})
            for at_token, at_vendor in ((echo, serve), (give, serve), (give, serve), (give, echo), (echo, echo)):
                made.vendor.answer_path("/token", at_token)
                made.vendor.answer_path("/v1/completions", at_vendor)
                await made.post(stream=len(made.answers) % 2 == 0)
            pages = [await made.admin(path) for path in ("/metrics", "/status", "/health/ready")]
            assert explain(source, ExplainOptions(str(question), None, None, None), EXPLAIN_FORMS["text"]) == 0
            assert explain(source, ExplainOptions(str(question), None, None, None), EXPLAIN_FORMS["json"]) == 0
            assert check(source, "warning", CHECK_FORMS["text"]) == 0
            shown = [repr(made.app), repr(source.load()), repr(source.load().snapshot.models["v/m"].targets)]
    *statuses, last = [answer.status for answer in made.answers]
    assert statuses == [502, 200, 200, 502]
    assert last in (502, 503)  # it may be too early to fetch again
    seen = [*pages, made.log.getvalue(), *(repr(answer).encode() for answer in made.answers)]
    texts = [*(page.decode() for page in seen), caplog.text, *capsys.readouterr(), *shown]
    assert "Authorization: Bearer ********" in "".join(texts)
    for text in texts:
        assert SECRET not in text
        assert TOKEN not in text


# Signatures ---------------------------------------------------------------------------------------------------------

AWS = """
version: 1
vendors:
  v:
    profile: openai_compatible
    base_url: "BASE/v1"
    allow_private: true
    headers: {X-Amzn-Trace: gateway}
    credentials: {aws: {service: bedrock, region: eu-central-1}}
models: {v/m: {}}
"""


async def test_a_signed_call_is_one_that_aws_would_have_signed(
    tmp_path: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    async with world(tmp_path, AWS) as made:
        assert (await made.post()).status == 200
        (received,) = made.vendor.requests
    headers = {name: value for name, value in received.headers if name.lower() in ("content-type", "x-amzn-trace")}
    url = f"http://{received.header('host')}{received.target}"
    again = AWSRequest(method=received.method, url=url, headers=headers, data=received.body)
    moment = received.header("x-amz-date")
    assert moment is not None
    signer = botocore.auth.SigV4Auth(ReadOnlyCredentials("AKIAEXAMPLE", SECRET, TOKEN), "bedrock", "eu-central-1")
    again.headers["X-Amz-Date"] = moment
    again.headers["X-Amz-Security-Token"] = TOKEN
    again.context["timestamp"] = moment
    signature = signer.signature(signer.string_to_sign(again, signer.canonical_request(again)), again)
    assert (received.header("authorization") or "").endswith(f"Signature={signature}")
    assert received.header("x-amz-security-token") == TOKEN


async def test_keys_that_are_not_there_make_502(tmp_path: Path, bare_machine: Path) -> None:
    async with world(tmp_path, AWS) as made:
        answer = await made.post()
        assert (answer.status, answer.code) == (502, "upstream_auth_failed")
        assert made.vendor.requests == []


def test_an_explanation_shows_the_scheme_of_a_signature_and_signs_nothing(
    tmp_path: Path, bare_machine: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Signer, "headers", None)
    table, question = tmp_path / "t.yaml", tmp_path / "q.json"
    table.write_text(AWS.replace("BASE", "http://127.0.0.1:1"), encoding="utf-8")
    question.write_bytes(orjson.dumps(ask("v/m")))
    assert explain(Source(table, {}), ExplainOptions(str(question), None, None, None), EXPLAIN_FORMS["text"]) == 0
    shown = capsys.readouterr().out
    assert "Authorization: AWS4-HMAC-SHA256 ********\n" in shown
    assert "X-Amz-Date: ********\n" in shown
