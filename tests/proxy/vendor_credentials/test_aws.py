"""Keys by AWS's chain, from every source that can run on loopback, and the calls that they sign."""

import asyncio
import datetime
import logging
import sys
import time
from dataclasses import replace
from pathlib import Path

import botocore.auth
import botocore.utils
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from pydantic import SecretStr

from providers.dialects.platforms.aws_sigv4 import Signer
from providers.json_types import JsonObject
from providers.vendor_credential import AwsSource
from proxy.http_client.http_transport import HttpTransport
from proxy.vendor_credentials import aws
from proxy.vendor_credentials.aws import DEFAULT_LIFETIME, MIN_LIFETIME, AwsFetch, AwsKeys
from proxy.vendor_credentials.token_cache import Fetched, Unobtainable
from tests.proxy.kit.transport_calls import TARGET, call, whole
from tests.support.http_scripts import body_answer, json_answer
from tests.support.looped import looped
from tests.support.vendor import FakeVendor
from tests.support.vendor_script import Received, Script

KEY, SECRET, SESSION = "AKIAEXAMPLE", "canary/secret+key", "canary-session-token"
SOURCE = AwsSource("bedrock", "eu-central-1")
ROLE = "arn:aws:iam::123456789012:role/gateway"
MOMENT = 1_795_271_619.0
URL = "https://bedrock-runtime.eu-central-1.amazonaws.com/model/anthropic.claude-v1%3A0/converse"


def access_key(fetched: Fetched) -> str:
    """Return the access key id that signs a call."""
    keys = fetched.token
    assert isinstance(keys, AwsKeys)
    return keys.credential(call(URL)).headers()["Authorization"].partition("Credential=")[2].partition("/")[0]


def later(seconds: float) -> str:
    moment = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def reason(source: AwsSource = SOURCE) -> str:
    with pytest.raises(Unobtainable) as caught:
        AwsFetch(source)()
    assert "canary" not in caught.value.reason
    return caught.value.reason


# The sources of keys --------------------------------------------------------------------------------------------------


@pytest.fixture
def keys_in_environment(bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set keys without an expiry."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


@pytest.mark.smoke
@pytest.mark.usefixtures("keys_in_environment")
def test_keys_of_the_environment_are_looked_at_again_after_a_while() -> None:
    fetched = AwsFetch(SOURCE)()
    assert (access_key(fetched), fetched.lifetime) == (KEY, DEFAULT_LIFETIME)


@pytest.mark.smoke
def test_keys_of_a_profile_are_read_afresh_each_time(bare_machine: Path) -> None:
    folder = bare_machine / ".aws"
    folder.mkdir()
    fetch = AwsFetch(AwsSource("bedrock", "eu-central-1", "prod"))
    for key in (KEY, "AKIAROTATED"):
        text = f"[prod]\naws_access_key_id = {key}\naws_secret_access_key = {SECRET}\n"
        (folder / "credentials").write_text(text, encoding="utf-8")
        assert access_key(fetch()) == key


def test_a_profile_may_run_a_program_for_keys(bare_machine: Path) -> None:
    folder = bare_machine / ".aws"
    folder.mkdir()
    given = f'{{"Version": 1, "AccessKeyId": "{KEY}", "SecretAccessKey": "{SECRET}", "Expiration": "{later(3600)}"}}'
    program = folder / "program.py"
    program.write_text(f"print({given!r})", encoding="utf-8")
    text = f"[default]\ncredential_process = {sys.executable} {program}\n"
    (folder / "config").write_text(text, encoding="utf-8")
    fetched = AwsFetch(SOURCE)()
    assert access_key(fetched) == KEY
    assert 3500 < fetched.lifetime <= 3600


class Services:
    """The AWS services that give keys: instance metadata, container metadata, STS."""

    def __init__(self, lifetime: float = 3600.0) -> None:
        self.lifetime = lifetime
        self.assumed: list[str] = []

    def answer(self, request: Received) -> Script:
        """Respond to any request to them."""
        given: JsonObject = {
            "AccessKeyId": KEY,
            "SecretAccessKey": SECRET,
            "Token": SESSION,
            "Expiration": later(self.lifetime),
        }
        match request.method, request.path:
            case "PUT", "/latest/api/token":
                return body_answer(200, b"t", [("x-aws-ec2-metadata-token-ttl-seconds", "600")])
            case "GET", "/latest/meta-data/iam/security-credentials/":
                return body_answer(200, b"role")
            case "GET", "/latest/meta-data/iam/security-credentials/role":
                return json_answer(200, {"Code": "Success", **given})
            case "GET", "/container":
                return json_answer(200, given)
            case "POST", "/":
                return self._sts(request)
            case _:
                return json_answer(404, {})

    def _sts(self, request: Received) -> Script:
        action = request.body.decode().partition("Action=")[2].partition("&")[0]
        self.assumed.append(action)
        body = (
            f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result><Credentials>'
            f"<AccessKeyId>ASIAASSUMED</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>"
            f"<SessionToken>{SESSION}</SessionToken><Expiration>{later(self.lifetime)}</Expiration></Credentials>"
            f"<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/gateway/x</Arn><AssumedRoleId>a:x"
            f"</AssumedRoleId></AssumedRoleUser></{action}Result></{action}Response>"
        )
        return body_answer(200, body.encode(), [("content-type", "text/xml")])


@pytest.fixture
def services(vendor: FakeVendor, bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> Services:
    """Run the services on a machine that knows their addresses."""
    made = Services()
    vendor.default = made.answer
    monkeypatch.delenv("AWS_EC2_METADATA_DISABLED")
    monkeypatch.setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", vendor.base_url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_STS", vendor.base_url)
    return made


async def test_keys_of_an_instance(services: Services) -> None:
    fetched = await asyncio.to_thread(AwsFetch(SOURCE))
    assert access_key(fetched) == KEY
    assert 3500 < fetched.lifetime <= 3600


async def test_keys_of_a_container(services: Services, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{vendor.base_url}/container")
    fetched = await asyncio.to_thread(AwsFetch(SOURCE))
    assert access_key(fetched) == KEY
    assert [each.path for each in vendor.requests] == ["/container"]


@pytest.mark.usefixtures("keys_in_environment")
async def test_a_role_is_taken_on_with_what_was_found_anew_each_time(services: Services) -> None:
    fetch = AwsFetch(AwsSource("bedrock", "eu-central-1", role_arn=ROLE))
    for count in (1, 2):
        fetched = await asyncio.to_thread(fetch)
        assert access_key(fetched) == "ASIAASSUMED"
        assert 3500 < fetched.lifetime <= 3600
        assert services.assumed == ["AssumeRole"] * count


async def test_a_pod_s_web_identity(services: Services, bare_machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = bare_machine / "token"
    token.write_text("canary-jwt", encoding="utf-8")
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(token))
    monkeypatch.setenv("AWS_ROLE_ARN", ROLE)
    fetched = await asyncio.to_thread(AwsFetch(SOURCE))
    assert access_key(fetched) == "ASIAASSUMED"
    assert services.assumed == ["AssumeRoleWithWebIdentity"]


# Failures -------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("bare_machine")
def test_nothing_found() -> None:
    assert reason() == "nothing found in environment, profiles, web identity, container or instance"


@pytest.mark.usefixtures("bare_machine")
def test_a_profile_that_does_not_exist() -> None:
    assert reason(AwsSource("bedrock", "eu-central-1", "canary")) == "ProfileNotFound"


@pytest.mark.usefixtures("keys_in_environment")
async def test_a_word_that_is_no_error_of_aws_is_not_repeated(services: Services, vendor: FakeVendor) -> None:
    body = f"<ErrorResponse><Error><Code>{SECRET}</Code></Error></ErrorResponse>".encode()
    vendor.default = body_answer(403, body, [("content-type", "text/xml")])
    source = AwsSource("bedrock", "eu-central-1", role_arn=ROLE)
    assert await asyncio.to_thread(reason, source) == "AssumeRole failed with an error"


@pytest.mark.usefixtures("keys_in_environment")
async def test_a_role_that_is_denied(services: Services, vendor: FakeVendor) -> None:
    body = b"<ErrorResponse><Error><Code>AccessDenied</Code><Message>canary</Message></Error></ErrorResponse>"
    vendor.default = body_answer(403, body, [("content-type", "text/xml")])
    source = AwsSource("bedrock", "eu-central-1", role_arn=ROLE)
    assert await asyncio.to_thread(reason, source) == "AssumeRole failed with AccessDenied"


def test_a_program_that_fails_may_print_what_it_likes(bare_machine: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = bare_machine / ".aws"
    folder.mkdir()
    program = folder / "program.py"
    program.write_text("import sys; sys.exit('canary')", encoding="utf-8")
    text = f"[default]\ncredential_process = {sys.executable} {program}\n"
    (folder / "config").write_text(text, encoding="utf-8")
    with caplog.at_level(logging.DEBUG):
        assert reason() == "CredentialRetrievalError"
    assert "canary" not in caplog.text


@pytest.mark.parametrize("body", ['{"canary": 1}', "[]", "canary"])
async def test_an_answer_that_makes_no_sense(
    services: Services, vendor: FakeVendor, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", f"{vendor.base_url}/container")
    monkeypatch.setattr(botocore.utils.ContainerMetadataFetcher, "SLEEP_TIME", 0)  # seconds before each of three tries
    vendor.answer_path("/container", body_answer(200, body.encode()))
    assert await asyncio.to_thread(reason) in ("KeyError", "TypeError", "CredentialRetrievalError")


def test_a_library_that_is_missing_is_told_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)
    assert (
        reason()
        == "credentials of the kind aws need an extra: make extras, or pip install '.[aws]' in Dragoman's source"
    )


def test_keys_whose_end_botocore_does_not_tell_are_taken_for_what_it_guarantees() -> None:
    class Refreshable:
        """Temporary keys of a botocore that gives their expiry another name."""

        def refresh_needed(self) -> bool:
            return False

    assert aws._lifetime(Refreshable()) == MIN_LIFETIME


# The use of keys ------------------------------------------------------------------------------------------------------

KEYS = AwsKeys(Signer(KEY, SecretStr(SECRET), SecretStr(SESSION), "bedrock", "eu-central-1"), lambda: MOMENT)


def test_what_is_signed_is_what_is_sent() -> None:
    given = {"x-amzn-guardrail": "g", "X-Amz-Meta": "client", "Accept": "application/json"}
    sent = call(URL, headers=given, body=b'{"a":1}')
    made = KEYS.credential(sent).headers()
    signed = {"content-type": "application/json", "x-amzn-guardrail": "g", "X-Amz-Meta": "client"}
    request = AWSRequest(method="POST", url=URL, headers=signed, data=sent.body)
    with pytest.MonkeyPatch.context() as patch:
        moment = datetime.datetime.fromtimestamp(MOMENT, datetime.UTC)
        patch.setattr(botocore.auth, "get_current_datetime", lambda: moment)
        keys = ReadOnlyCredentials(KEY, SECRET, SESSION)
        botocore.auth.SigV4Auth(keys, "bedrock", "eu-central-1").add_auth(request)
    wanted = {name: request.headers[name] for name in ("Authorization", "X-Amz-Date", "X-Amz-Security-Token")}
    assert made == {"X-Org": "acme", **wanted}


async def test_the_path_arrives_as_it_was_signed(vendor: FakeVendor, transport: HttpTransport) -> None:
    path = "/model/arn%3Aaws%3Abedrock%3Aeu-central-1%3A1%3Ainference-profile%2Feu.x-v1%3A0/converse"
    sent = call(f"{vendor.base_url}{path}", body=b'{"a":1}')
    carrying = AwsKeys(KEYS.signer, time.time).credential(sent)
    response = await transport.open(replace(sent, target=replace(TARGET, credential=carrying)), "req-1")
    assert await whole(response) == b'{"ok":true}'
    (request,) = vendor.requests
    assert request.target == path
    assert request.header("host") == f"127.0.0.1:{vendor.port}"
    assert request.header("content-type") == "application/json"
    moment = request.header("x-amz-date") or ""
    signed = {"content-type": "application/json"}
    again = KEYS.signer.headers(
        "POST", f"http://{request.header('host')}{request.target}", signed, request.body, moment
    )
    assert request.header("authorization") == again["Authorization"].get_secret_value()
    assert request.header("x-amz-security-token") == SESSION


@looped(
    ("status", "kind", "refused"),
    [
        (200, "", False),
        (401, "", True),
        (403, "ExpiredTokenException:http://internal.amazon.com/coral/", True),
        (403, "UnrecognizedClientException", True),
        (403, "InvalidSignatureException", True),
        (403, "AccessDeniedException", False),
        (403, "", False),
        (400, "ExpiredTokenException", False),
    ],
)
def test_only_an_answer_about_the_keys_is_a_reason_for_others(status: int, kind: str, refused: bool) -> None:
    assert KEYS.refused(status, {"x-amzn-errortype": kind} if kind else {}) is refused


def test_keys_show_nothing_of_themselves() -> None:
    shown = repr(KEYS) + repr(KEYS.credential(call(URL))) + repr(Fetched(KEYS, 1.0))
    assert not [secret for secret in (KEY, SECRET, SESSION) if secret in shown]
