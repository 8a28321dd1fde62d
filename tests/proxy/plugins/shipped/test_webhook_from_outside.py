"""The webhook as a receiver sees it: a gateway that runs as a process, and a signature that is verified by an
independent implementation (OpenSSL's, by the library `cryptography`)."""

from pathlib import Path

import orjson
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, hmac

from providers.json_types import JsonObject
from tests.proxy.kit.raw_client import exchange, request
from tests.proxy.kit.whole_gateway import MOCK, port_of
from tests.support.gateway import RunningGateway, running_gateway
from tests.support.http_scripts import head
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script, Send
from tests.support.waiting import until

OLD, NEW = "the-old-secret-of-a-hook", "the-new-secret-of-a-hook"


def status(number: int) -> Script:
    return (Send(head(number, [("content-length", "0")])),)


def table(server: FakeVendor, secret: str) -> str:
    options = f"{{url: '{server.base_url}/hook', secret: {secret}, allow_private: true}}"
    return f"{MOCK}plugins: {{hook: {{use: 'proxy.plugins.shipped.webhook_sink:WebhookSink', options: {options}}}}}\n"


def is_signed(received: Received, secret: str) -> bool:
    """Return whether one of the signatures of a post was made with a secret."""
    parts = [part.partition("=") for part in (received.header("x-dragoman-signature") or "").split(",")]
    seconds = next(value for name, _, value in parts if name == "t")
    for given in (value for name, _, value in parts if name == "v1"):
        made = hmac.HMAC(secret.encode(), hashes.SHA256())
        made.update(seconds.encode() + b"." + received.body)
        try:
            made.verify(bytes.fromhex(given))
        except InvalidSignature:
            continue
        return True
    return False


async def ask(gateway: RunningGateway, name: str) -> None:
    body: JsonObject = {"model": "mock/echo", "prompt": "canary-prompt"}
    head_and_body = request("POST", "/v1/completions", body, {"X-Request-Id": name})
    assert (await exchange(port_of(gateway.url), head_and_body)).status == 200


def names(received: Received) -> list[str]:
    return [row["request_id"] for row in orjson.loads(received.body)["rows"]]


async def test_rows_are_signed_sent_again_after_a_failure_and_signed_anew_after_a_rotation(tmp_path: Path) -> None:
    async with FakeVendor(status(204)) as server:
        server.answer(status(500))
        async with running_gateway(table(server, OLD), tmp_path) as gateway:
            await ask(gateway, "first")
            await until(lambda: len(server.requests) == 2)
            await gateway.reload(table(server, f"[{NEW}, {OLD}]"))
            await ask(gateway, "second")
            await until(lambda: len(server.requests) == 3)
            await gateway.reload(table(server, NEW))
            await ask(gateway, "third")
            assert await gateway.stop() == 0
        posts = server.requests
    assert [names(each) for each in posts] == [["first"], ["first"], ["second"], ["third"]]
    assert posts[0].body == posts[1].body
    signed = [(is_signed(each, OLD), is_signed(each, NEW)) for each in posts]
    assert signed == [(True, False), (True, False), (True, True), (False, True)]
    assert not any(b"canary" in each.body for each in posts)
    assert OLD not in gateway.messages()
