"""Tokens by Microsoft Entra ID, from a managed identity on loopback."""

import asyncio
import logging
import sys
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from azure.core.credentials import AccessToken
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import DefaultAzureCredential

from providers.json_types import JsonObject
from providers.vendor_credential import EntraSource
from proxy.vendor_credentials.entra import fetch
from proxy.vendor_credentials.token_cache import Fetched, Unobtainable
from tests.proxy.kit.transport_calls import call
from tests.support.http_scripts import json_answer
from tests.support.vendor import FakeVendor

pytestmark = pytest.mark.smoke


SCOPE = "https://cognitiveservices.azure.com/.default"
CANARY = "canary-token"


@pytest.fixture
def identity(vendor: FakeVendor, bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> FakeVendor:
    monkeypatch.setenv("IDENTITY_ENDPOINT", f"{vendor.base_url}/msi")
    monkeypatch.setenv("IDENTITY_HEADER", "canary-header")
    given: JsonObject = {"access_token": CANARY, "expires_on": str(int(time.time()) + 3600), "token_type": "Bearer"}
    vendor.default = json_answer(200, {**given, "resource": "https://cognitiveservices.azure.com"})
    return vendor


async def fetched(source: EntraSource) -> Fetched:
    return await asyncio.to_thread(fetch, source)


async def reason() -> str:
    with pytest.raises(Unobtainable) as caught:
        await fetched(EntraSource(SCOPE))
    assert "canary" not in caught.value.reason
    return caught.value.reason


async def test_a_managed_identity(identity: FakeVendor) -> None:
    given = await fetched(EntraSource(SCOPE))
    headers = given.token.credential(call("https://v.example/x")).headers()
    assert headers == {"X-Org": "acme", "Authorization": f"Bearer {CANARY}"}
    assert 3500 < given.lifetime <= 3600
    (request,) = identity.requests
    assert parse_qs(urlsplit(request.target).query)["resource"] == ["https://cognitiveservices.azure.com"]


async def test_one_of_several_identities(identity: FakeVendor) -> None:
    await fetched(EntraSource(SCOPE, "chosen"))
    (request,) = identity.requests
    assert parse_qs(urlsplit(request.target).query)["client_id"] == ["chosen"]


async def test_an_identity_that_is_refused(identity: FakeVendor, caplog: pytest.LogCaptureFixture) -> None:
    identity.default = json_answer(400, {"error": "canary", "error_description": "canary"})
    with caplog.at_level(logging.DEBUG):
        assert await reason() == "ClientAuthenticationError"
    assert "canary" not in caplog.text


@pytest.mark.usefixtures("identity")
async def test_what_azure_says_is_told_by_its_codes_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: DefaultAzureCredential, *scopes: str) -> AccessToken:
        raise ClientAuthenticationError("AADSTS700016: canary was not found. AADSTS50034 canary")

    monkeypatch.setattr(DefaultAzureCredential, "get_token", refuse)
    assert await reason() == "ClientAuthenticationError AADSTS50034 AADSTS700016"


async def test_a_library_that_is_missing_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    assert (
        await reason()
        == "credentials of the kind entra need an extra: make extras, or pip install '.[azure]' in Dragoman's source"
    )
