"""Credentials: the right header in clear, and no other way to the secret."""

import logging
import traceback

import pytest
from pydantic import SecretStr

from providers.auth import MASK, Credential

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
