"""Tokens by client credentials, from an endpoint on a loopback socket."""

import asyncio
import base64
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from urllib.parse import parse_qs

import pytest
from pydantic import SecretStr

from providers.json_types import JsonObject, JsonValue
from providers.vendor_credential import ExchangeSource, OidcSource
from proxy.http_client.http_transport import HttpTransport
from proxy.vendor_credentials import token_cache as held
from proxy.vendor_credentials.oidc import MAX_RESPONSE, OidcFetch
from proxy.vendor_credentials.token_cache import Fetched, Unobtainable
from tests.proxy.kit.transport_calls import TARGET
from tests.support.http_scripts import body_answer, head, json_answer
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Fin, Received, Script, Send

pytestmark = pytest.mark.smoke


CANARY = "canary+of the/client%"
SOURCE = OidcSource("", "gate way", SecretStr(CANARY), allow_private=True)
TOKEN = "canary-token"
GIVEN = json_answer(200, {"access_token": TOKEN, "token_type": "bearer", "expires_in": 600})


def fetch(vendor: FakeVendor, transport: HttpTransport, source: OidcSource = SOURCE) -> OidcFetch:
    return OidcFetch(replace(source, token_url=f"{vendor.base_url}/token"), TARGET, transport)


async def reason(work: Callable[[], Awaitable[Fetched]]) -> str:
    with pytest.raises(Unobtainable) as caught:
        await work()
    assert "canary" not in repr(caught.value)
    return caught.value.reason


async def test_the_client_shows_its_secret_in_a_header(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(GIVEN)
    source = replace(SOURCE, scope="a b", audience="api://x")
    fetched = await fetch(vendor, transport, source)()
    assert fetched.lifetime == 600
    assert fetched.token == held.Bearer(SecretStr(TOKEN))
    (request,) = vendor.requests
    assert (request.method, request.target) == ("POST", "/token")
    assert parse_qs(request.body.decode()) == {
        "grant_type": ["client_credentials"],
        "scope": ["a b"],
        "audience": ["api://x"],
    }
    assert request.header("content-type") == "application/x-www-form-urlencoded"
    assert request.header("accept") == "application/json"
    scheme, _, pair = (request.header("authorization") or "").partition(" ")
    assert (scheme, base64.b64decode(pair)) == ("Basic", b"gate+way:canary%2Bof+the%2Fclient%25")


async def test_or_in_the_body(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(GIVEN)
    await fetch(vendor, transport, replace(SOURCE, client_auth="post"))()
    (request,) = vendor.requests
    assert parse_qs(request.body.decode()) == {
        "grant_type": ["client_credentials"],
        "client_id": ["gate way"],
        "client_secret": [CANARY],
    }
    assert request.header("authorization") is None


async def test_an_api_key_is_exchanged_by_ibm_s_grant(vendor: FakeVendor, transport: HttpTransport) -> None:
    given: JsonObject = {"access_token": TOKEN, "refresh_token": "not_supported", "expires_in": 3600}
    vendor.answer(json_answer(200, {**given, "token_type": "Bearer", "expiration": 1_795_000_000, "scope": "ibm"}))
    source = ExchangeSource(f"{vendor.base_url}/identity/token", SecretStr(CANARY), allow_private=True)
    fetched = await OidcFetch(source, TARGET, transport)()
    assert fetched == Fetched(held.Bearer(SecretStr(TOKEN)), 3600)
    (request,) = vendor.requests
    assert parse_qs(request.body.decode()) == {
        "grant_type": ["urn:ibm:params:oauth:grant-type:apikey"],
        "apikey": [CANARY],
    }
    assert request.header("authorization") is None
    assert "canary" not in repr(source)


async def test_nothing_of_the_target_goes_to_the_token_endpoint(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.answer(GIVEN)
    await fetch(vendor, transport)()
    (request,) = vendor.requests
    assert not [value for _, value in request.headers if "sk-operator" in value or "acme" in value]


@pytest.mark.parametrize(
    ("answer", "lifetime"),
    [
        ({"access_token": TOKEN}, 300.0),
        ({"access_token": TOKEN, "expires_in": "3599"}, 3599.0),
        ({"access_token": TOKEN, "expires_in": 12.5}, 12.5),
        ({"access_token": TOKEN, "expires_in": None}, 300.0),
        ({"access_token": TOKEN, "expires_in": "soon"}, 300.0),
    ],
)
async def test_a_life_that_is_not_told_is_short(
    vendor: FakeVendor, transport: HttpTransport, answer: JsonValue, lifetime: float
) -> None:
    vendor.answer(json_answer(200, answer))
    assert (await fetch(vendor, transport)()).lifetime == lifetime


ECHO: JsonValue = {"error": "invalid_client", "error_description": f"the secret {CANARY} is wrong"}


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (json_answer(401, ECHO), "the token endpoint returned 401 invalid_client"),
        (json_answer(400, {"error": CANARY}), "the token endpoint returned 400"),
        (json_answer(400, {"error": ["canary"]}), "the token endpoint returned 400"),
        (json_answer(503, []), "the token endpoint returned 503"),
        (body_answer(500, CANARY.encode()), "the token endpoint returned 500"),
        (json_answer(307, {}, [("location", "/elsewhere")]), "the token endpoint returned 307"),
        (body_answer(200, b"<html>canary"), "the token endpoint returned 200 without an access token"),
        (json_answer(200, {"access_token": ""}), "the token endpoint returned 200 without an access token"),
        (json_answer(200, {"access_token": "a\r\nb: c"}), "the token endpoint returned 200 without an access token"),
        (json_answer(200, {"access_token": 5}), "the token endpoint returned 200 without an access token"),
        (
            json_answer(200, {"access_token": TOKEN, "token_type": "mac"}),
            "the token endpoint returned a token that is not a Bearer token",
        ),
        ((Fin(),), "the token endpoint: The upstream closed the connection without a response."),
        (
            (Send(head(200, [("content-length", "99")]) + b"{"), Fin()),
            "the token endpoint: The upstream's response broke off.",
        ),
        (
            body_answer(200, b" " * (MAX_RESPONSE + 1)),
            f"the token endpoint: The upstream's response is larger than {MAX_RESPONSE} bytes.",
        ),
    ],
)
async def test_what_goes_wrong_is_told_in_our_own_words(
    vendor: FakeVendor, transport: HttpTransport, script: Script, expected: str
) -> None:
    vendor.default = script
    assert await reason(fetch(vendor, transport)) == expected
    assert len(vendor.requests) == 1


async def test_an_endpoint_that_cannot_be_reached(transport: HttpTransport) -> None:
    source = replace(SOURCE, token_url="http://127.0.0.1:1/token")
    expected = "the token endpoint: The upstream refused the connection (127.0.0.1:1)."
    assert await reason(OidcFetch(source, TARGET, transport)) == expected


async def test_an_endpoint_in_the_own_network_is_not_called_without_the_operator_s_word(
    vendor: FakeVendor, transport: HttpTransport
) -> None:
    source = replace(SOURCE, token_url=f"http://localhost:{vendor.port}/token", allow_private=False)
    told = "The upstream's host name leads only to addresses that may not be called"
    expected = f"the token endpoint: {told} (localhost:{vendor.port})."
    assert await reason(OidcFetch(source, TARGET, transport)) == expected
    assert vendor.requests == []


async def test_a_fetch_that_is_given_up_closes_its_connection(vendor: FakeVendor, transport: HttpTransport) -> None:
    vendor.default = (Send(head(200, [("content-length", "99")])),)
    waiting = asyncio.create_task(fetch(vendor, transport)())
    (request,) = await vendor.received(1)
    waiting.cancel()
    await request.gone.wait()


@pytest.mark.parametrize("source", [SOURCE, replace(SOURCE, client_auth="post")])
async def test_the_secret_is_in_no_repr_and_no_log(
    vendor: FakeVendor, transport: HttpTransport, source: OidcSource, caplog: pytest.LogCaptureFixture
) -> None:
    def echo(request: Received) -> Script:
        return json_answer(401, {"error": "invalid_client", "error_description": request.body.decode()})

    vendor.default = echo
    made = fetch(vendor, transport, source)
    with caplog.at_level(logging.DEBUG):
        await reason(made)
    assert "canary" not in caplog.text
    assert "canary" not in repr(made) + repr(vars(made)) + repr(made._call())
