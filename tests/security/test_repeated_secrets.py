"""A vendor repeats the request in another encoding: no client, log line or metric shows its secrets."""

import asyncio
import base64
import html
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import quote

import orjson

from providers.dialects.anthropic.errors import failure_of as anthropic_failure
from providers.dialects.platforms.aws_errors import BEDROCK
from providers.dialects.platforms.aws_errors import failure_in_frame as aws_failure
from providers.dialects.platforms.google_errors import failure_of as gemini_failure
from providers.dialects.shared.errors import failure_in_body as openai_failure
from providers.failure import Failure
from providers.json_types import JsonObject
from providers.profiles.load_profiles import load_profiles
from providers.vendor_text.vet_message import vet
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.transport_calls import TARGET
from tests.proxy.kit.whole_gateway import port_of
from tests.security.test_canary import seen
from tests.support.cpu_growth import excess
from tests.support.gateway import running_gateway
from tests.support.http_scripts import data_frames, json_answer, sse_answer
from tests.support.looped import looped
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script

TOKEN = "opaque_fetched-token.of/no+known=form"
CLIENT_SECRET = "the+clients&100%=secret/signs"
KEY = "Quartz7.violet/plum+Amber=tail"
PASSWORD = "swordfish9"
PIN = "k3y-9"
SECRETS = (TOKEN, CLIENT_SECRET, KEY, PASSWORD, PIN)
BASIC = base64.b64encode(f"gateway:{PASSWORD}".encode()).decode()
TABLE = """\
version: 1
server:
  port: ${PORT}
  admin:
    port: ${ADMIN_PORT}
defaults: {retries: {attempts: 1}}
vendors:
  fake:
    profile: openai_compatible
    base_url: "ORIGIN/v1"
    allow_private: true
    api_key: "${KEY}"
    headers: {X-Pin: "${PIN}", X-Backend-Auth: "Basic ${BASIC}"}
  fetched:
    profile: openai_compatible
    base_url: "ORIGIN/v1"
    allow_private: true
    credentials:
      oidc: {token_url: "ORIGIN/token", client_id: me, client_secret: "${CLIENT_SECRET}", client_auth: post}
"""


def escaped(text: str) -> str:
    """Return a text within JSON within JSON."""
    return json.dumps(json.dumps(text).replace("/", "\\/"))


WAYS: Mapping[str, Callable[[str], str]] = {
    "as it is": lambda text: text,
    "capitals": str.upper,
    "small letters": str.lower,
    "percent": lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    "quoted": lambda text: quote(text, safe=""),
    "quoted twice": lambda text: quote(quote(text, safe=""), safe=""),
    "HTML": lambda text: html.escape(text).replace("+", "&#43;").replace("/", "&#x2F;"),
    "JSON in JSON": escaped,
    "\\u": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "hexadecimal": lambda text: text.encode().hex(),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of a header": lambda text: base64.b64encode(f"authorization: {text};".encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(f"?{text}".encode()).decode(),
    "its beginning": lambda text: text[: len(text) * 2 // 3],
    "its end": lambda text: text[len(text) // 3 :],
    "its middle": lambda text: text[4:-4],
}
"""The encodings of a secret. The last three are parts of it."""


def bare(value: str) -> str:
    """Return a header's value without its scheme, and of RFC 7617's pair only the password."""
    scheme, _, rest = value.partition(" ")
    return base64.b64decode(rest).decode().partition(":")[2] if scheme == "Basic" else rest or value


def echo(way: str) -> Callable[[Received], Script]:
    """Return a vendor's refusal with every secret in one encoding. A stream contains it as an error event."""

    def answer(received: Received) -> Script:
        names = ("authorization", "x-pin", "x-backend-auth")
        values = [bare(value) for name, value in received.headers if name.lower() in names]
        text = "refused: " + ", ".join(f"<{WAYS[way](value)}>" for value in values)
        error: JsonObject = {"error": {"message": text, "type": "invalid_request_error", "code": text, "param": text}}
        if orjson.loads(received.body).get("stream"):
            return sse_answer(list(data_frames(error)))
        return json_answer(400, error)

    return answer


def token(received: Received) -> Script:
    return json_answer(200, {"access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600})


def shown(text: bytes) -> list[str]:
    """Return the secrets that can be read out of a text, complete or 12 characters of a long one, in any of the
    encodings."""
    lower = text.decode("utf-8", "replace").lower()
    found = []
    for secret in SECRETS:
        pieces = {secret} if len(secret) < 16 else {secret[at : at + 12] for at in range(len(secret) - 11)}
        forms = {
            form(piece).lower()
            for piece in pieces
            for form in (*list(WAYS.values())[: 10 if len(secret) >= 8 else 9], repr)
        }
        found += [secret for form in forms if form in lower]
        whole = base64.b64encode(secret.encode()).decode().lower()
        found += [secret] if len(secret) >= 8 and whole[: len(whole) // 4 * 4 - 4] in lower else []
    return sorted(set(found))


async def test_threat_17_no_form_of_a_secret_leaves_the_gateway(tmp_path: Path) -> None:
    environment = {"KEY": KEY, "PIN": PIN, "BASIC": BASIC, "CLIENT_SECRET": CLIENT_SECRET}
    models = {f"m{number}": way for number, way in enumerate(WAYS)}
    rows = "".join(f"  fake/{model}: {{}}\n  fetched/{model}: {{}}\n" for model in models)
    async with FakeVendor() as vendor:
        vendor.answer_path("/token", token)
        for model, way in models.items():
            vendor.answer_model(model, echo(way))
        text = f"{TABLE}models:\n{rows}".replace("ORIGIN", vendor.base_url)
        async with running_gateway(text, tmp_path, environment) as gateway:

            async def ask(name: str, stream: bool) -> bytes:
                body: JsonObject = {"model": name, "messages": [{"role": "user", "content": "hi"}], "stream": stream}
                answer = await exchange(port_of(gateway.url), request("POST", "/v1/chat/completions", body))
                assert b"refused: " in answer.body
                return seen(answer)

            names = [f"{vendor}/{model}" for vendor in ("fake", "fetched") for model in models]
            answers = dict(zip(names, await asyncio.gather(*(ask(name, False) for name in names)), strict=True))
            streams = dict(zip(names, await asyncio.gather(*(ask(name, True) for name in names)), strict=True))
            metrics = seen(await exchange(port_of(gateway.admin_url), request("GET", "/metrics")))
            await gateway.logged(2 * len(names))
        heard = b"".join(f"{received.headers}".encode() + received.body for received in vendor.requests)
        log = gateway.stdout.read_bytes() + gateway.stderr.read_bytes()
    for secret in (TOKEN, KEY, PIN, BASIC):
        assert secret.encode() in heard
    for name, body in (*answers.items(), *streams.items()):
        assert shown(body) == [], models[name.partition("/")[2]]
    assert shown(log) == []
    assert shown(metrics) == []


def test_what_is_looked_for_would_be_found() -> None:
    for name, way in WAYS.items():
        assert KEY in shown(f"<{way(KEY)}>".encode()) or "base64" in name, name
    assert KEY in shown(base64.b64encode(KEY.encode()))
    assert shown(b"refused: the model 'fake/m1' does not exist") == []


# Good words stay, and long ones cost little --------------------------------------------------------------------------


@looped(
    "words",
    [
        "The model `gpt-4o` does not exist or you do not have access to it.",
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        "'temperature' must be between 0 and 2; got 9 %",
        "Rate limit reached for requests per min (RPM): Limit 3, Used 3. Please try again in 20s.",
    ],
)
def test_the_words_that_clients_read_are_left_as_they_are(words: str) -> None:
    assert TARGET.credential.conceal(vet(words)) == words


@looped("text", ["a", "1 ", "maximum context length is ", "sk-", " ", "/a", "1:", "%41", "\\u0041", "QUJD"])
def test_threat_17_an_error_of_16_megabytes_costs_no_more_than_a_short_one(text: str) -> None:
    huge = text * (16_000_000 // len(text))

    def failures_of_it() -> list[Failure]:
        return [
            openai_failure(
                load_profiles()["openai_compatible"], {"error": {"message": huge, "code": huge, "param": huge}}
            ),
            anthropic_failure({"error": {"type": "invalid_request_error", "message": huge}}),
            gemini_failure({"message": huge, "status": "INVALID_ARGUMENT", "code": 400}),
            aws_failure(BEDROCK, {":exception-type": "validationException"}, orjson.dumps({"message": huge})),
        ]

    def concealed() -> list[str]:
        return [TARGET.credential.conceal(failure.message) for failure in failures_of_it()]

    assert all(len(words) <= 500 for words in concealed())
    # These once took from 5 to 20 seconds.
    assert excess(concealed, 50) == ""
