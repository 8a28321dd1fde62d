"""Credentials: the correct header, and no other access to the secret."""

import base64
import logging
import re
import traceback
from dataclasses import replace

import pytest
from pydantic import SecretStr

from providers.redaction import MASK
from providers.vendor_credential import (
    AwsSource,
    Credential,
    EntraSource,
    ExchangeSource,
    GoogleSource,
    OidcSource,
    Source,
)
from tests.support.looped import looped

SECRET = "sk-very-secret-value"
OTHER = "another-secret-value"
STATIC = {"X-Project": SecretStr(OTHER)}
BEARER = Credential("bearer", "Authorization", SecretStr(SECRET), STATIC)
HEADER = Credential("header", "x-api-key", SecretStr(SECRET), STATIC)


def test_a_bearer_key_has_its_prefix() -> None:
    assert BEARER.headers() == {"X-Project": OTHER, "Authorization": f"Bearer {SECRET}"}


def test_a_header_key_is_bare() -> None:
    assert HEADER.headers() == {"X-Project": OTHER, "x-api-key": SECRET}


@pytest.mark.parametrize("style", ["bearer", "header"])
def test_without_a_key_only_the_static_headers_are_sent(style: str) -> None:
    assert Credential(style, "x-api-key", None, STATIC).headers() == {"X-Project": OTHER}  # type: ignore[arg-type]


def test_without_a_style_a_key_is_not_sent() -> None:
    assert Credential("none", "Authorization", SecretStr(SECRET)).headers() == {}
    assert Credential().headers() == {}


def test_people_see_which_headers_there_are_and_no_value() -> None:
    assert BEARER.masked() == {"X-Project": MASK, "Authorization": MASK}
    assert HEADER.masked().keys() == HEADER.headers().keys()


@pytest.mark.parametrize("credential", [BEARER, HEADER])
def test_no_way_of_printing_shows_a_secret(credential: Credential, caplog: pytest.LogCaptureFixture) -> None:
    shown = [repr(credential), str(credential), f"{credential}"]
    logging.getLogger("test").warning("using %s and %r", credential, credential)
    try:
        raise RuntimeError(credential)
    except RuntimeError:
        shown += [traceback.format_exc(), caplog.text, repr(credential.masked())]
    assert caplog.text
    for text in shown:
        assert SECRET not in text
        assert OTHER not in text


@pytest.mark.parametrize("credential", [BEARER, HEADER])
def test_a_vendor_that_repeats_what_it_was_sent_is_not_quoted(credential: Credential) -> None:
    said = f"no '{SECRET}' and {SECRET}, project={OTHER}."
    assert credential.conceal(said) == f"no '{MASK}' and {MASK}, project={MASK}."
    assert credential.conceal("no such model") == "no such model"
    assert Credential().conceal(said) == said


def test_what_was_fetched_is_concealed_as_well() -> None:
    assert Credential().conceal("no opaque-token", [SecretStr("opaque-token")]) == f"no {MASK}"


def test_a_text_that_repeats_a_secret_is_recognised() -> None:
    assert BEARER.is_echoed_in(f"id-{SECRET.upper()}")
    assert not BEARER.is_echoed_in("req_011CVXyZ")
    assert Credential().is_echoed_in("opaque-token", [SecretStr("opaque-token")])


def test_a_scheme_before_a_static_value_does_not_hide_it() -> None:
    basic = base64.b64encode(b"gateway:swordfish9").decode()
    credential = Credential(static={"X-A": SecretStr("Token abcd1234"), "X-B": SecretStr(f"Basic {basic}")})
    assert credential.conceal(f"<abcd1234><{basic}><swordfish9><gateway>") == f"<{MASK}><{MASK}><{MASK}><gateway>"
    broken = Credential(static={"X-B": SecretStr("Basic no-base64")})
    assert broken.conceal("no-base64") == MASK


@looped(
    ("name", "value", "hidden"),
    [("X-Region", "eu", False), ("X-Stage", "prod", False), ("X-Api-Key", "prod", True), ("X-Stage", "pr0d", True)],
)
def test_a_short_word_is_a_secret_only_under_a_name_that_says_so(name: str, value: str, hidden: bool) -> None:
    credential = Credential(static={name: SecretStr(value)})
    assert credential.conceal(f"in {value} now") == (f"in {MASK} now" if hidden else f"in {value} now")


def test_the_secrets_of_a_source_are_concealed() -> None:
    assert Credential(source=OIDC).conceal(f"bad {SECRET}") == f"bad {MASK}"


OIDC = OidcSource("https://id.example/token", "gateway", SecretStr(SECRET), "a b", allow_private=True)
KEY = ExchangeSource("https://id.example/token", SecretStr(SECRET))
SOURCES: list[Source] = [
    AwsSource("bedrock", "eu-central-1", "prod"),
    GoogleSource("scope"),
    EntraSource("scope", "me"),
    OIDC,
    KEY,
]


@looped("source", SOURCES)
def test_what_would_be_fetched_is_shown_by_its_scheme_alone(source: Source) -> None:
    credential = Credential(static=STATIC, source=source)
    assert credential.headers() == {"X-Project": OTHER}
    shown = credential.masked()
    assert shown["X-Project"] == MASK
    assert shown["Authorization"] in (f"Bearer {MASK}", f"AWS4-HMAC-SHA256 {MASK}")
    assert ("X-Amz-Date" in shown) == (source.kind == "aws")
    assert SECRET not in repr(credential)


def test_equal_sources_are_one_and_a_changed_secret_makes_another() -> None:
    again = replace(OIDC, client_secret=SecretStr(SECRET))
    changed = replace(OIDC, client_secret=SecretStr("other"))
    assert {OIDC: 1, again: 2} == {OIDC: 2}
    assert changed != OIDC
    assert len({*SOURCES, changed}) == len(SOURCES) + 1


def test_a_seal_tells_credentials_and_words_apart_and_shows_neither() -> None:
    sources: list[Source] = [*SOURCES, replace(OIDC, client_secret=SecretStr("other"))]
    kinds = [
        Credential(),
        BEARER,
        HEADER,
        replace(BEARER, key=SecretStr("other")),
        replace(BEARER, static={}),
        *(Credential(static=STATIC, source=source) for source in sources),
    ]
    words = [("a", "b"), ("a", "c"), ("a b", ""), ("a", "b", "")]
    seals = {credential.seal(*each) for credential in kinds for each in words}
    assert len(seals) == len(kinds) * len(words)
    assert all(re.fullmatch(r"[0-9a-f]{32}", seal) for seal in seals)


@looped("credential", [Credential(), BEARER, HEADER, Credential(source=OIDC), Credential(source=KEY)])
def test_the_same_credential_makes_the_same_seal(credential: Credential) -> None:
    again = replace(credential, static={name.upper(): SecretStr(OTHER) for name in credential.static})
    assert credential.seal("a", "b") == again.seal("a", "b") == credential.seal("a", "b")
