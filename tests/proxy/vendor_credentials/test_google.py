"""Tokens by Google's default credentials: a service account, a user's sign-in, the metadata server."""

import asyncio
import json
import logging
import sys
from functools import cache
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth.compute_engine import _metadata

from providers.json_types import JsonObject
from providers.vendor_credential import GoogleSource
from proxy.vendor_credentials.google import GoogleFetch
from proxy.vendor_credentials.token_cache import Fetched, Unobtainable
from tests.proxy.kit.transport_calls import call
from tests.support.http_scripts import json_answer
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Script

SCOPE = "https://www.googleapis.com/auth/cloud-platform"
CANARY = "canary-token"
GIVEN = json_answer(200, {"access_token": CANARY, "expires_in": 3600, "token_type": "Bearer"})

pytestmark = pytest.mark.filterwarnings("ignore:The load_credentials_from_file method:DeprecationWarning")


@cache
def private_key() -> str:
    """Return a key that signs a service account's assertions."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    formats = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return made.private_bytes(*formats).decode()


def account_file(folder: Path, vendor: FakeVendor) -> str:
    """Write a service account's file, whose token endpoint is the fake's."""
    account = {"type": "service_account", "client_email": "gw@p.example", "private_key_id": "1", "project_id": "p"}
    endpoint = {"private_key": private_key(), "token_uri": f"{vendor.base_url}/token"}
    path = folder / "account.json"
    path.write_text(json.dumps({**account, **endpoint}), encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def no_metadata_server(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the metadata server; the library read its variables when it was imported."""
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", True)


def headers(fetched: Fetched) -> dict[str, str]:
    return fetched.token.credential(call("https://v.example/x")).headers()


async def reason(source: GoogleSource) -> str:
    with pytest.raises(Unobtainable) as caught:
        await asyncio.to_thread(GoogleFetch(source))
    assert "canary" not in caught.value.reason
    return caught.value.reason


@pytest.mark.smoke
async def test_a_service_account_of_a_file(vendor: FakeVendor, tmp_path: Path) -> None:
    vendor.default = GIVEN
    fetched = await asyncio.to_thread(GoogleFetch(GoogleSource(SCOPE, account_file(tmp_path, vendor))))
    assert headers(fetched) == {"X-Org": "acme", "Authorization": f"Bearer {CANARY}"}
    assert 3590 < fetched.lifetime <= 3600
    (request,) = vendor.requests
    assert (request.method, request.path) == ("POST", "/token")


@pytest.mark.smoke
async def test_a_service_account_where_google_s_own_tools_look(
    vendor: FakeVendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor.default = GIVEN
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", account_file(tmp_path, vendor))
    assert headers(await asyncio.to_thread(GoogleFetch(GoogleSource(SCOPE))))["Authorization"] == f"Bearer {CANARY}"


async def test_a_file_is_read_again_when_what_it_held_stops_working(vendor: FakeVendor, tmp_path: Path) -> None:
    vendor.default = GIVEN
    fetch = GoogleFetch(GoogleSource(SCOPE, account_file(tmp_path, vendor)))
    await asyncio.to_thread(fetch)
    (tmp_path / "account.json").unlink()
    await asyncio.to_thread(fetch)
    assert len(vendor.requests) == 2
    vendor.answer(json_answer(400, {"error": "invalid_grant"}))
    for expected in ("RefreshError", "DefaultCredentialsError"):
        with pytest.raises(Unobtainable, match=expected):
            await asyncio.to_thread(fetch)
    account_file(tmp_path, vendor)
    assert headers(await asyncio.to_thread(fetch))["Authorization"] == f"Bearer {CANARY}"


async def test_the_project_whose_quota_counts_goes_along(
    vendor: FakeVendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vendor.default = GIVEN
    monkeypatch.setenv("GOOGLE_CLOUD_QUOTA_PROJECT", "payer")
    fetched = await asyncio.to_thread(GoogleFetch(GoogleSource(SCOPE, account_file(tmp_path, vendor))))
    assert headers(fetched)["x-goog-user-project"] == "payer"


async def test_the_metadata_server(vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch) -> None:
    host = f"127.0.0.1:{vendor.port}"
    monkeypatch.setattr(_metadata, "_NO_GCE_CHECK", False)
    monkeypatch.setattr(_metadata, "_GCE_METADATA_HOST", host)
    monkeypatch.setenv("GCE_METADATA_IP", host)
    given: JsonObject = {"access_token": CANARY, "expires_in": 600, "email": "gw@p.example", "scopes": []}
    vendor.default = json_answer(200, given, [("metadata-flavor", "Google")])
    fetched = await asyncio.to_thread(GoogleFetch(GoogleSource(SCOPE)))
    assert headers(fetched)["Authorization"] == f"Bearer {CANARY}"
    assert 590 < fetched.lifetime <= 600


@pytest.mark.parametrize(
    "script",
    [json_answer(400, {"error": "invalid_grant", "error_description": "canary"}), json_answer(200, {"canary": 1})],
)
async def test_a_token_that_is_refused(
    vendor: FakeVendor, tmp_path: Path, script: Script, caplog: pytest.LogCaptureFixture
) -> None:
    vendor.default = script
    with caplog.at_level(logging.DEBUG):
        assert await reason(GoogleSource(SCOPE, account_file(tmp_path, vendor))) == "RefreshError"
    assert "canary" not in caplog.text


async def test_nothing_found() -> None:
    assert await reason(GoogleSource(SCOPE)) == "DefaultCredentialsError"


@pytest.mark.parametrize("text", ["", "canary", "{}", '{"type": "canary"}', '{"type": "service_account"}'])
async def test_a_file_that_holds_no_credentials(tmp_path: Path, text: str) -> None:
    path = tmp_path / "account.json"
    path.write_text(text, encoding="utf-8")
    assert await reason(GoogleSource(SCOPE, str(path))) in ("DefaultCredentialsError", "MalformedError")


async def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert await reason(GoogleSource(SCOPE, str(tmp_path / "canary"))) == "DefaultCredentialsError"


async def test_a_library_that_is_missing_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.auth", None)
    expected = "credentials of the kind google need an extra: make extras, or pip install '.[gcp]' in Dragoman's source"
    assert await reason(GoogleSource(SCOPE)) == expected
