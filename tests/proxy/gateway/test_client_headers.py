"""Headers that a client can pass on to a vendor: none that affect framing, routing, identity or credentials."""

import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from providers.client_extras.extra_headers import check_headers
from providers.failure import Refusal
from proxy.surfaces.request.pass_through_fields import headers as extra_headers
from proxy.surfaces.request.rule_kinds import Invalid
from tests.providers.dialects.openai.kit import target
from tests.proxy.kit.gateway_rig import CLIENT_KEY, OPERATOR_KEY, Rig, ask
from tests.support.looped import looped
from tests.support.nightly import by_day

CANARY = "canary-of-a-header"

FORBIDDEN = (
    *("Authorization", "Proxy-Authorization", "Proxy-Authenticate", "WWW-Authenticate", "X-Auth-Token", "X-API-Key"),
    *("Api-Key", "apikey", "x-goog-api-key", "Ocp-Apim-Subscription-Key", "X-Amz-Security-Token", "X-Amz-Date"),
    *("X-Amz-Content-Sha256", "Cookie", "Cookie2", "Set-Cookie", "X-CSRF-Token", "X-Access-Token", "X-Secret"),
    *("Idempotency-Key", "OpenAI-Organization", "OpenAI-Project", "x-selected-account-id", "X-HF-Bill-To"),
    *("x-goog-user-project", "x-tenant-id", "Host", "X-Host", "X-Forwarded-For", "X-Forwarded-Host"),
    *("X-Forwarded-Proto", "X-Forwarded-Prefix", "Forwarded", "Via", "X-Real-IP", "X-Client-IP", "True-Client-IP"),
    *("CF-Connecting-IP", "X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override", "X-Method-Override"),
    *("X-Remote-User", "X-Envoy-Original-Path", "Max-Forwards", "Connection", "Keep-Alive", "Proxy-Connection", "TE"),
    *("Trailer", "Transfer-Encoding", "Upgrade", "HTTP2-Settings", "Expect", "Content-Length", "Content-Type"),
    *("Content-Encoding", "Content-MD5", "Accept-Encoding", "Accept", "Range", "If-None-Match", "If-Match", "Date"),
    *("Sec-WebSocket-Key", "Prefer", "X-Request-ID", "x-dragoman-deployment"),
    *("User-Agent", "X-Gateway-Destination-Endpoint", "Remote-User", "X-MS-Client-Principal", "X-Consumer-ID"),
    *("Fly-Client-IP", "X-SMG-Target-Worker", "X-Anything"),
)
TARGET = target("openai")


def spellings(name: str) -> list[str]:
    """Return the spellings of a name that could slip through a check."""
    loose = [f" {name}", f"{name} ", f"\t{name}", f"{name}\t", f"{name}:", f"{name}\r\n", f"{name}\0", f"x\r\n{name}"]
    return [name, name.lower(), name.upper(), name.swapcase(), name.replace("-", "_"), *loose]


def test_there_are_sixty_names_that_must_not_pass() -> None:
    assert len({name.lower() for name in FORBIDDEN}) >= 60


@looped("name", FORBIDDEN)
async def test_no_spelling_of_a_forbidden_name_reaches_a_vendor(served: Rig, name: str) -> None:
    for spelling in spellings(name):
        refused = await served.post("/v1/completions", ask(inference_extra_headers={spelling: CANARY}))
        assert refused.status == 400, spelling
        assert refused.code in ("invalid_value", "unsupported_parameter"), spelling
        assert CANARY not in refused.message
    assert served.vendor.requests == []


@pytest.mark.parametrize(
    "value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "\0", "\x01", "\x1f", "\x7f", "ü", "\u2028", "v" * 9000]
)
async def test_no_value_that_could_end_a_header_reaches_a_vendor(served: Rig, value: str) -> None:
    refused = await served.post("/v1/completions", ask(inference_extra_headers={"x-fine": value}))
    assert (refused.status, refused.code) == (400, "invalid_value")
    assert served.vendor.requests == []


async def test_what_a_client_sends_as_its_own_headers_stays_here(served: Rig) -> None:
    """Left out are the names that frame the client's own message or that the gateway itself reads."""
    own = {"authorization", "x-api-key", "api-key", "host", "content-length", "transfer-encoding", "expect"}
    own |= {"content-encoding", "content-type", "origin", "upgrade", "connection", "x-request-id", "http2-settings"}
    sent = {name: CANARY for name in FORBIDDEN if name.lower() not in own}
    assert (await served.post("/v1/completions", ask(), sent)).status == 200
    (received,) = served.vendor.requests
    told = {name.lower(): value for name, value in received.headers}
    assert CANARY not in str(told)
    assert CLIENT_KEY not in str(told)
    assert told["authorization"] == f"Bearer {OPERATOR_KEY}"


near = st.sampled_from(FORBIDDEN) | st.text(string.ascii_letters + string.digits + "-_ \r\n:\0ü", max_size=12)


@settings(max_examples=by_day(125, 500), suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(near, st.text(max_size=8) | st.just(CANARY), max_size=3))
def test_nothing_forbidden_passes_alone_or_among_others(value: dict[str, str]) -> None:
    lowered = {name.lower() for name in FORBIDDEN}
    try:
        passed = extra_headers(dict(value))
        check_headers(passed, TARGET)
    except (Invalid, Refusal):
        passed = {}
    for name, item in passed.items():
        assert name.lower() not in lowered
        assert set(name) <= set(string.ascii_letters + string.digits + "-")
        assert all(" " <= character <= "~" for character in item)
