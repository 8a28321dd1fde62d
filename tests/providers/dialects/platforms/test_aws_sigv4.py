"""Signatures: the ones that AWS publishes, and botocore's for all requests that hypothesis generates."""

import datetime
import string
from urllib.parse import urlsplit

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from providers.dialects.platforms.aws_sigv4 import Signer, host_of
from tests.support.looped import looped

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
MOMENT = "20150830T123600Z"


def signer(service: str = "service", token: str | None = None) -> Signer:
    """Return a signer with the keys of AWS's own examples."""
    return Signer(KEY, SecretStr(SECRET), None if token is None else SecretStr(token), service, "us-east-1")


def clear(headers: dict[str, SecretStr]) -> dict[str, str]:
    return {name: value.get_secret_value() for name, value in headers.items()}


HOST = "https://example.amazonaws.com"


@looped(
    ("method", "url", "signed", "body", "signature"),
    [
        ("GET", f"{HOST}/", {}, b"", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("POST", f"{HOST}/", {}, b"", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            f"{HOST}/?Param2=value2&Param1=value1",
            {},
            b"",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "POST",
            f"{HOST}/",
            {"Content-Type": "application/x-www-form-urlencoded"},
            b"Param1=value1",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
    ],
)
def test_the_examples_of_aws_s_own_test_suite(
    method: str, url: str, signed: dict[str, str], body: bytes, signature: str
) -> None:
    headers = clear(signer().headers(method, url, signed, body, MOMENT))
    assert headers["Authorization"].endswith(f"Signature={signature}")
    assert headers["X-Amz-Date"] == MOMENT


def test_the_example_of_the_general_reference() -> None:
    headers = signer("iam").headers(
        "GET",
        "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
        {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"},
        b"",
        MOMENT,
    )
    assert clear(headers) == {
        "X-Amz-Date": MOMENT,
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
        "SignedHeaders=content-type;host;x-amz-date, "
        "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
    }


def of_botocore(method: str, url: str, signed: dict[str, str], body: bytes, token: str | None) -> dict[str, str]:
    """Return the headers that botocore signs at the same moment."""
    request = AWSRequest(method=method, url=url, headers=dict(signed), data=body)
    moment = datetime.datetime.strptime(MOMENT, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.UTC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(botocore.auth, "get_current_datetime", lambda: moment)
        keys = ReadOnlyCredentials(KEY, SECRET, token)
        botocore.auth.SigV4Auth(keys, "bedrock", "us-east-1").add_auth(request)
    return {name: value for name, value in request.headers.items() if name not in signed}


SEGMENT = st.text(string.ascii_letters + string.digits + "-._~!$&'()*+,;=:@", max_size=6)
ESCAPE = st.sampled_from(["%3A", "%2F", "%20", "%C3%A4", "%25"])
PATH = st.lists(
    st.builds("".join, st.lists(SEGMENT | ESCAPE, max_size=3)) | st.sampled_from([".", "..", ""]), max_size=5
)
QUERY = st.lists(st.builds(lambda a, b: f"{a}={b}", SEGMENT, SEGMENT) | SEGMENT, max_size=3)
HOSTS = st.sampled_from(
    ["bedrock-runtime.eu-central-1.amazonaws.com", "127.0.0.1:8080", "[::1]:9000", "[::1]", "a.example:443"]
)
VALUE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12).map(str.strip)
SIGNED = st.dictionaries(st.sampled_from(["Content-Type", "X-Amzn-Trace", "x-amz-meta", "Accept"]), VALUE, max_size=3)


URLS = st.builds(
    lambda scheme, host, path, query: f"{scheme}://{host}/{'/'.join(path)}{'?' if query else ''}{'&'.join(query)}",
    st.sampled_from(["http", "https"]),
    HOSTS,
    PATH,
    QUERY,
)
TOKENS = st.none() | st.text(string.ascii_letters, min_size=1, max_size=9)


@given(st.sampled_from(["GET", "POST"]), URLS, SIGNED, st.binary(max_size=20), TOKENS)
def test_every_signature_is_botocore_s_byte_for_byte(
    method: str, url: str, signed: dict[str, str], body: bytes, token: str | None
) -> None:
    ours = clear(signer("bedrock", token).headers(method, url, signed, body, MOMENT))
    assert ours == of_botocore(method, url, signed, body, token)


def test_the_escapes_of_a_path_are_escaped_once_more() -> None:
    url = "https://h.example/model/anthropic.claude-v1%3A0/converse"
    other = "https://h.example/model/anthropic.claude-v1:0/converse"
    assert clear(signer().headers("POST", url, {}, b"", MOMENT)) != clear(
        signer().headers("POST", other, {}, b"", MOMENT)
    )


def test_the_key_of_a_new_day_is_a_new_one() -> None:
    kept = signer()
    for moment in ("20150830T235959Z", "20150831T000000Z", "20150830T235959Z"):
        fresh = clear(signer().headers("GET", f"{HOST}/", {}, b"", moment))
        assert clear(kept.headers("GET", f"{HOST}/", {}, b"", moment)) == fresh


@looped(
    ("url", "host"),
    [
        ("https://h.example/x", "h.example"),
        ("https://h.example:443/x", "h.example"),
        ("http://h.example:443", "h.example:443"),
        ("http://127.0.0.1:80/", "127.0.0.1"),
        ("https://[::1]:443/", "[::1]"),
    ],
)
def test_a_host_has_its_port_only_where_it_is_not_the_scheme_s(url: str, host: str) -> None:
    assert host_of(url) == host
    assert urlsplit(url).scheme


def test_a_signer_shows_no_key() -> None:
    made = signer(token="session-canary")
    shown = repr(made) + str(made) + repr(made.headers("GET", f"{HOST}/", {}, b"", MOMENT))
    assert not [secret for secret in (SECRET, "session-canary") if secret in shown]


@pytest.mark.parametrize(("token", "secrets"), [(None, [SECRET]), ("session", [SECRET, "session"])])
def test_what_must_not_be_repeated_is_the_key_and_the_token(token: str | None, secrets: list[str]) -> None:
    assert [each.get_secret_value() for each in signer(token=token).secrets] == secrets
